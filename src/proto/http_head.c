/* What stands in headers, and the head of an answer. */
#include "proto/http.h"

#include <assert.h>
#include <stdio.h>
#include <time.h>

#include "base/num.h"

/* ---- headers ---- */

struct slice http_trim(struct slice s)
{
    while (s.n && (s.p[0] == ' ' || s.p[0] == '\t'))
        s = slice_of(s.p + 1, s.n - 1);
    while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
        s.n--;
    return s;
}

/* The next of a list separated by commas, or by `by`. */
static bool next_part(struct slice *list, char by, struct slice *ret)
{
    if (list->n == 0)
        return false;
    const char *end = memchr(list->p, by, list->n);
    size_t n = end ? (size_t)(end - list->p) : list->n;
    *ret = http_trim(slice_of(list->p, n));
    n += end != NULL;
    *list = slice_of(list->p + n, list->n - n);
    return true;
}

struct slice http_media_type(struct slice value)
{
    struct slice type = {NULL, 0};
    next_part(&value, ';', &type);
    return type;
}

/* "123" in its quotes, W/ before it (weak) or not. */
static bool read_tag(struct slice tag, int64_t *ret, bool *ret_weak)
{
    *ret_weak = tag.n > 2 && tag.p[0] == 'W' && tag.p[1] == '/';
    if (*ret_weak)
        tag = slice_of(tag.p + 2, tag.n - 2);
    if (tag.n < 2 || tag.p[0] != '"' || tag.p[tag.n - 1] != '"')
        return false;
    if (!num_parse_i64(slice_of(tag.p + 1, tag.n - 2), ret))
        *ret = -1; /* a tag, but none of ours */
    return true;
}

bool http_tags_have(struct slice list, int64_t version, bool strong, bool *ret_sound)
{
    struct slice tag;
    bool found = false, sound = true;
    if (slice_eq(http_trim(list), SLICE("*"))) {
        found = version != 0;
    } else {
        sound = list.n > 0;
        while (next_part(&list, ',', &tag)) {
            int64_t v;
            bool weak;
            if (!read_tag(tag, &v, &weak))
                sound = false;
            else
                found |= version != 0 && v == version && !(strong && weak);
        }
    }
    if (ret_sound)
        *ret_sound = sound;
    return sound && found;
}

bool http_prefers(struct slice prefer, const char *name, const char *value)
{
    struct slice one, left;
    while (next_part(&prefer, ',', &one)) {
        struct slice rest = http_media_type(one);
        if (!next_part(&rest, '=', &left) || !slice_is(left, name))
            continue;
        rest = http_trim(rest);
        if (rest.n >= 2 && rest.p[0] == '"' && rest.p[rest.n - 1] == '"')
            rest = slice_of(rest.p + 1, rest.n - 2);
        return slice_is(rest, value);
    }
    return false;
}

/* How much a range of Accept is wanted: 0 .. 1000. */
static int64_t quality(struct slice parameters)
{
    struct slice part;
    double q;
    while (next_part(&parameters, ';', &part))
        if (part.n > 2 && (part.p[0] == 'q' || part.p[0] == 'Q') && part.p[1] == '=' &&
            num_parse_double(slice_of(part.p + 2, part.n - 2), &q) && q >= 0 && q <= 1)
            return (int64_t)(q * 1000);
    return 1000;
}

bool http_prefers_raw(struct slice accept)
{
    struct slice range;
    int64_t json = -1, raw = -1, any = -1;
    while (next_part(&accept, ',', &range)) {
        struct slice type = http_media_type(range);
        int64_t q = quality(range);
        if (slice_is(type, "application/json"))
            json = q;
        else if (slice_is(type, "application/octet-stream"))
            raw = q;
        else if (slice_is(type, "*/*") || slice_is(type, "application/*"))
            any = q > any ? q : any;
    }
    if (json < 0)
        json = any;
    return raw > 0 && raw > json;
}

/* ---- answers ---- */

const char *http_reason(int status)
{
    switch (status) {
    case 200:
        return "OK";
    case 201:
        return "Created";
    case 202:
        return "Accepted";
    case 204:
        return "No Content";
    case 304:
        return "Not Modified";
    case 400:
        return "Bad Request";
    case 401:
        return "Unauthorized";
    case 403:
        return "Forbidden";
    case 404:
        return "Not Found";
    case 405:
        return "Method Not Allowed";
    case 406:
        return "Not Acceptable";
    case 408:
        return "Request Timeout";
    case 409:
        return "Conflict";
    case 412:
        return "Precondition Failed";
    case 413:
        return "Content Too Large";
    case 414:
        return "URI Too Long";
    case 415:
        return "Unsupported Media Type";
    case 417:
        return "Expectation Failed";
    case 422:
        return "Unprocessable Content";
    case 429:
        return "Too Many Requests";
    case 431:
        return "Request Header Fields Too Large";
    case 501:
        return "Not Implemented";
    case 503:
        return "Service Unavailable";
    case 504:
        return "Gateway Timeout";
    case 505:
        return "HTTP Version Not Supported";
    case 507:
        return "Insufficient Storage";
    default:
        return "Internal Server Error";
    }
}

#define HEAD_CHARS 256 /* all that is not `extra` or `date` */

static char *put(char *to, const char *text)
{
    size_t n = strlen(text);
    memcpy(to, text, n);
    return to + n;
}

static char *put_slice(char *to, struct slice s)
{
    if (s.n)
        memcpy(to, s.p, s.n);
    return to + s.n;
}

/* Status 200 and its like are on every hot path, so no printf. */
static char *put_status(char *to, int status)
{
    to = put(to, "HTTP/1.1 ");
    to += num_format_i64(to, status);
    *to++ = ' ';
    to = put(to, http_reason(status));
    return put(to, "\r\n");
}

void http_add_head(struct buf *out, size_t start, const struct http_head *head)
{
    char first[HEAD_CHARS], *p = put_status(first, head->status);
    size_t body = out->len - start;
    if (head->content_type) {
        p = put(p, "Content-Type: ");
        p = put(p, head->content_type);
        p = put(p, "\r\nContent-Length: ");
        p += num_format_u64(p, body);
        p = put(p, "\r\n");
    } else if (head->status != 204 && head->status != 304) {
        p = put(p, "Content-Length: 0\r\n");
    }
    if (head->version) {
        p = put(p, "ETag: \"");
        p += num_format_i64(p, head->version);
        p = put(p, "\"\r\n");
    }
    if (head->by_accept)
        p = put(p, "Vary: Accept\r\n");
    if (head->close)
        p = put(p, "Connection: close\r\n");
    else if (head->keep)
        p = put(p, "Connection: keep-alive\r\n");
    size_t n = (size_t)(p - first);
    assert(n <= sizeof first);
    size_t total = n + head->date.n + head->extra.n + 2;
    if (head->bodiless || !head->content_type)
        out->len = start;
    buf_reserve(out, total);
    if (out->len > start)
        memmove(out->p + start + total, out->p + start, out->len - start);
    p = put_slice(out->p + start, slice_of(first, n));
    p = put_slice(p, head->date);
    p = put_slice(p, head->extra);
    memcpy(p, "\r\n", 2);
    out->len += total;
}

size_t http_format_date(char out[HTTP_DATE_CHARS], int64_t seconds)
{
    static const char days[][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char months[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    time_t t = (time_t)seconds;
    struct tm tm;
    if (!gmtime_r(&t, &tm) || tm.tm_year < 0 || tm.tm_year > 8099)
        return 0;
    return (size_t)snprintf(out, HTTP_DATE_CHARS, "Date: %s, %02d %s %04d %02d:%02d:%02d GMT\r\n",
                            days[tm.tm_wday], tm.tm_mday, months[tm.tm_mon], tm.tm_year + 1900, tm.tm_hour,
                            tm.tm_min, tm.tm_sec);
}
