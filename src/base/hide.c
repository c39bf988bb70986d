#include "base/hide.h"

#include <stdio.h>
#include <string.h>

/* The stretch of a URL that is a password: false when there is none. */
static int find_secret(const char *url, size_t *ret_from, size_t *ret_to)
{
    const char *start = strstr(url, "://");
    if (!start)
        return 0;
    start += 3;
    const char *end = start + strcspn(start, "/?"), *at = NULL, *colon = NULL;
    for (const char *p = start; p < end; p++) {
        if (*p == '@')
            at = p;
        if (*p == ':' && !colon)
            colon = p;
    }
    if (at && colon && colon < at) {
        *ret_from = (size_t)(colon - url) + 1;
        *ret_to = (size_t)(at - url);
        return 1;
    }
    const char *param = strstr(end, "password=");
    if (!param || param == end || (param[-1] != '?' && param[-1] != '&'))
        return 0;
    param += 9;
    *ret_from = (size_t)(param - url);
    *ret_to = *ret_from + strcspn(param, "&");
    return 1;
}

const char *hide_password(char *out, size_t cap, const char *url)
{
    size_t from, to;
    if (find_secret(url, &from, &to))
        snprintf(out, cap, "%.*s***%s", (int)from, url, url + to);
    else
        snprintf(out, cap, "%s", url);
    return out;
}

const char *hide_passwords(char *out, size_t cap, const char *urls)
{
    size_t used = 0;
    out[0] = '\0';
    while (*urls && used + 1 < cap) {
        char url[1024], shown[sizeof url + 4];
        size_t n = strcspn(urls, " ");
        if (n < sizeof url)
            snprintf(url, sizeof url, "%.*s", (int)n, urls);
        else
            snprintf(url, sizeof url, "***");
        snprintf(out + used, cap - used, "%s%s", used ? " " : "", hide_password(shown, sizeof shown, url));
        used += strlen(out + used);
        urls += n;
        urls += strspn(urls, " ");
    }
    return out;
}
