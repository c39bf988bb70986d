#include "sql/url.h"

#include <ctype.h>

#include "base/mem.h"

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)tolower((unsigned char)c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decodes in place: the result is never longer. */
static bool decode(char *s)
{
    char *out = s;
    for (; *s; s++) {
        if (*s != '%') {
            *out++ = *s;
            continue;
        }
        int high = hex_digit(s[1]), low = high < 0 ? -1 : hex_digit(s[2]);
        if (low < 0 || (high == 0 && low == 0))
            return false;
        *out++ = (char)(high * 16 + low);
        s += 2;
    }
    *out = '\0';
    return true;
}

/* Ends the string at the first of these characters and returns what follows it; NULL when there is none. */
static char *cut(char *s, const char *at)
{
    char *p = strpbrk(s, at);
    if (p)
        *p++ = '\0';
    return p;
}

static bool parse_hosts(char *s, struct url *u)
{
    while (s && u->nhosts < URL_HOSTS) {
        char *next = cut(s, ","), *port;
        struct url_host *h = &u->hosts[u->nhosts++];
        if (*s == '[') { /* an IPv6 address */
            s++;
            port = cut(s, "]");
            if (!port)
                return false;
            port = *port == ':' ? port + 1 : NULL;
        } else {
            port = cut(s, ":");
        }
        if (!decode(s) || (port && !decode(port)))
            return false;
        *h = (struct url_host){s, port && *port ? port : NULL};
        s = next;
    }
    return !s;
}

static bool parse_params(char *s, struct url *u)
{
    while (s && *s) {
        char *next = cut(s, "&"), *value = cut(s, "=");
        if (!value || u->nparams == URL_PARAMS || !decode(s) || !decode(value))
            return false;
        u->params[u->nparams++] = (struct url_param){s, value};
        s = next;
    }
    return true;
}

static bool parse(char *s, struct url *u)
{
    char *rest = strstr(s, "://");
    if (!rest)
        return false;
    *rest = '\0';
    rest += 3;
    u->scheme = s;
    char *params = cut(rest, "?");
    char *database = cut(rest, "/");
    char *at = strrchr(rest, '@');
    char *hosts = rest;
    if (at) {
        *at = '\0';
        hosts = at + 1;
        char *password = cut(rest, ":");
        if (!decode(rest) || (password && !decode(password)))
            return false;
        u->user = *rest ? rest : NULL;
        u->password = password;
    }
    if (database && !decode(database))
        return false;
    u->database = database && *database ? database : NULL;
    return parse_hosts(hosts, u) && parse_params(params, u);
}

enum status url_parse(const char *text, struct url *ret, struct error *err)
{
    *ret = (struct url){.text = mem_strdup(text)};
    if (parse(ret->text, ret))
        return ST_OK;
    url_release(ret);
    return error_set(
        err, ST_INVALID,
        "the URL of the store cannot be read: SCHEME://USER:PASSWORD@HOST:PORT/DATABASE?NAME=VALUE"
        " with special characters as %%XX");
}

void url_release(struct url *u)
{
    mem_free(u->text);
    *u = (struct url){0};
}

const char *url_param(const struct url *u, const char *name)
{
    for (int i = 0; i < u->nparams; i++)
        if (strcmp(u->params[i].name, name) == 0)
            return u->params[i].value;
    return NULL;
}

void url_remove_param(char *text, const char *name)
{
    size_t n = strlen(name);
    char *p = strchr(text, '?');
    while (p) {
        char *next = strchr(p + 1, '&');
        if (strncmp(p + 1, name, n) == 0 && p[1 + n] == '=') {
            if (!next) {
                *p = '\0';
                return;
            }
            memmove(p + 1, next + 1, strlen(next + 1) + 1);
        } else {
            p = next;
        }
    }
}

void url_turn_hosts(char *text)
{
    char *from = strstr(text, "://");
    if (!from)
        return;
    from += 3;
    size_t n = strcspn(from, "/?");
    char *at = memrchr(from, '@', n);
    n -= at ? (size_t)(at + 1 - from) : 0;
    from = at ? at + 1 : from;
    const char *comma = memchr(from, ',', n);
    if (!comma)
        return;
    size_t first = (size_t)(comma - from);
    char *host = mem_strndup(slice_of(from, first));
    memmove(from, comma + 1, n - first - 1);
    from[n - first - 1] = ',';
    memcpy(from + n - first, host, first);
    mem_free(host);
}
