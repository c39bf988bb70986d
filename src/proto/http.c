#include "proto/http.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

static const char *const header_names[HTTP_HEADERS] = {
    [HTTP_HOST] = "host",
    [HTTP_AUTHORIZATION] = "authorization",
    [HTTP_CONTENT_TYPE] = "content-type",
    [HTTP_ACCEPT] = "accept",
    [HTTP_IF_MATCH] = "if-match",
    [HTTP_IF_NONE_MATCH] = "if-none-match",
    [HTTP_PREFER] = "prefer",
    [HTTP_ORIGIN] = "origin",
    [HTTP_REFERER] = "referer",
    [HTTP_EXPECT] = "expect",
    [HTTP_TRANSFER_ENCODING] = "transfer-encoding",
    [HTTP_SEC_FETCH_SITE] = "sec-fetch-site",
    [HTTP_UPSTASH_ENCODING] = "upstash-encoding",
    [HTTP_UPSTASH_SYNC_TOKEN] = "upstash-sync-token",
    [HTTP_LARDER_CONSISTENCY] = "larder-consistency",
    [HTTP_LARDER_TOKEN] = "larder-token",
    [HTTP_REQUEST_METHOD] = "access-control-request-method",
};

/* ---- what the library calls ---- */

static struct http_in *of(const http_parser *p)
{
    return p->data;
}

static int refuse(struct http_in *h, int status, const char *code, const char *message)
{
    h->refusal = (struct http_refusal){status, code, message};
    return 1;
}

/* Bytes at `at` go on with a span, or begin it. False: there is a gap. */
static bool extend(const struct http_in *h, struct http_span *s, const char *at, size_t n)
{
    size_t off = (size_t)(at - h->base);
    if (s->n == 0)
        s->off = off;
    else if (s->off + s->n != off)
        return false;
    s->n += n;
    return true;
}

static int on_url(http_parser *p, const char *at, size_t n)
{
    struct http_in *h = of(p);
    extend(h, &h->url, at, n);
    if (h->url.n > h->limits->max_uri)
        return refuse(h, 414, "uri_too_long",
                      "The target is longer than http-max-uri; POST a command instead.");
    return 0;
}

/* The library takes "Content-Length : 3" for "Content-Length: 3". Others take it for another header, and what
   is a body to one is a request to the other. */
static int on_header_field(http_parser *p, const char *at, size_t n)
{
    struct http_in *h = of(p);
    if (n && memchr(at, ' ', n))
        return refuse(h, 400, "bad_request", "A header's name has no spaces, nor any before its colon.");
    if (h->in_value)
        h->name.n = 0;
    h->in_value = false;
    extend(h, &h->name, at, n);
    return 0;
}

static int find_header(struct slice name)
{
    int i = 0;
    while (i < HTTP_HEADERS && !slice_is(name, header_names[i]))
        i++;
    return i;
}

/* A value begins, or goes on, on another line: nobody means that any more, and not all understand it. */
static bool folded(const struct http_in *h, const char *at, size_t n)
{
    if (h->in_value)
        return (size_t)(at - h->base) != h->value_end;
    while (n && at > h->base && (at[-1] == ' ' || at[-1] == '\t'))
        at--;
    return n && at > h->base && at[-1] == '\n';
}

static int on_header_value(http_parser *p, const char *at, size_t n)
{
    struct http_in *h = of(p);
    if (h->head_done) /* behind a body in chunks: nobody asks for those */
        return 0;
    if (folded(h, at, n))
        return refuse(h, 400, "bad_request", "A header goes over several lines.");
    h->value_end = (size_t)(at - h->base) + n;
    if (!h->in_value) {
        h->in_value = true;
        h->header = find_header(slice_of(h->base + h->name.off, h->name.n));
        if (h->header == HTTP_PREFER && h->has[HTTP_PREFER])
            h->header = HTTP_HEADERS; /* may be there twice; wishes on the first line are heard */
        if (h->header < HTTP_HEADERS && h->has[h->header])
            return refuse(h, 400, "bad_request", "A header that may be there once is there twice.");
        if (h->header < HTTP_HEADERS) {
            h->has[h->header] = true;
            h->values[h->header] = (struct http_span){(size_t)(at - h->base), 0};
        }
    }
    if (h->header < HTTP_HEADERS)
        extend(h, &h->values[h->header], at, n);
    return 0;
}

static struct slice text_of(const struct http_in *h, struct http_span s)
{
    return slice_of(h->base + s.off, s.n);
}

static struct slice header_value(const struct http_in *h, enum http_header header)
{
    return http_trim(text_of(h, h->values[header]));
}

static const char too_large[] = "The body is longer than http-max-body.";

static int on_headers_complete(http_parser *p)
{
    struct http_in *h = of(p);
    h->head_done = true;
    p->upgrade = 0; /* to nothing that we speak: the request is answered as it is */
    if (p->http_major != 1)
        return refuse(h, 505, "http_version_not_supported", "Speak HTTP/1.1.");
    if (p->http_minor >= 1 && !h->has[HTTP_HOST])
        return refuse(h, 400, "bad_request", "A request needs a Host header.");
    if (h->has[HTTP_TRANSFER_ENCODING] && p->http_minor == 0)
        return refuse(h, 400, "bad_request", "HTTP/1.0 has no chunks: send a Content-Length.");
    if (h->has[HTTP_TRANSFER_ENCODING] && !slice_is(header_value(h, HTTP_TRANSFER_ENCODING), "chunked"))
        return refuse(h, 501, "unknown_coding", "Transfer-Encoding takes chunked alone.");
    if (h->has[HTTP_EXPECT] && p->http_minor >= 1 && !http_wants_continue(h))
        return refuse(h, 417, "expectation_failed", "Expect takes 100-continue alone.");
    if (p->content_length != UINT64_MAX && p->content_length > h->limits->max_body)
        return refuse(h, 413, "body_too_large", too_large);
    http_parser_pause(p, 1); /* so that http_parse sees where the head ends */
    return 0;
}

static int on_body(http_parser *p, const char *at, size_t n)
{
    struct http_in *h = of(p);
    h->body_bytes += n;
    if (h->body_bytes > h->limits->max_body)
        return refuse(h, 413, "body_too_large", too_large);
    if (!h->has[HTTP_TRANSFER_ENCODING])
        extend(h, &h->body, at, n);
    return 0;
}

static int on_message_complete(http_parser *p)
{
    struct http_in *h = of(p);
    h->whole = true;
    http_parser_pause(p, 1);
    return 0;
}

static const http_parser_settings settings = {
    .on_url = on_url,
    .on_header_field = on_header_field,
    .on_header_value = on_header_value,
    .on_headers_complete = on_headers_complete,
    .on_body = on_body,
    .on_message_complete = on_message_complete,
};

/* ---- reading ---- */

/* What may stand around a body's chunks, beyond an eighth of the longest body. */
#define CHUNK_WORDS ((size_t)64 << 10)

void http_init(struct http_in *h)
{
    *h = (struct http_in){.header = HTTP_HEADERS};
    http_parser_init(&h->parser, HTTP_REQUEST);
}

/* All but the library's parser, which is ready for the next request already. */
static void next_request(struct http_in *h)
{
    h->pos = h->want = 0;
    h->head_done = h->whole = h->in_value = false;
    h->header = HTTP_HEADERS;
    h->url = h->name = h->body = (struct http_span){0, 0};
    memset(h->has, 0, sizeof h->has);
    h->head_end = 0;
    h->body_bytes = 0;
}

void http_reset(struct http_in *h)
{
    next_request(h);
    http_parser_init(&h->parser, HTTP_REQUEST);
}

/* ---- chunks ---- */

/* The library, as it is built, takes any byte for the line end behind a CR, and any two behind a chunk. So
   what it has found is read again, as it is meant to be; that spares remembering where the chunks are,
   too. */

/* The line with a chunk's size at *at, which moves behind it. */
static bool read_size(const struct http_in *h, size_t *at, uint64_t *ret)
{
    const char *p = h->base + *at, *end = h->base + h->pos;
    int digits = 0;
    for (*ret = 0; p < end && isxdigit((unsigned char)*p) && digits < 16; digits++, p++)
        *ret = *ret << 4 | (uint64_t)(*p <= '9' ? *p - '0' : (*p | 0x20) - 'a' + 10);
    const char *line_end = p < end ? memchr(p, '\n', (size_t)(end - p)) : NULL;
    if (!digits || !line_end || memchr(p, '\r', (size_t)(line_end - p)) != line_end - 1)
        return false;
    if (p < line_end - 1 && *p != ';' && *p != ' ' && *p != '\t')
        return false;
    *at = (size_t)(line_end + 1 - h->base);
    return true;
}

/* Puts a body in chunks together; false: they are not what they should be. */
static bool gather_chunks(const struct http_in *h, struct arena *arena, struct slice *ret)
{
    char *to = arena_alloc(arena, (size_t)h->body_bytes);
    size_t at = h->head_end, n = 0;
    uint64_t size;
    for (;;) {
        if (!read_size(h, &at, &size) || size > h->body_bytes - n)
            return false;
        if (size == 0)
            break;
        if (h->pos - at < size + 2 || memcmp(h->base + at + size, "\r\n", 2) != 0)
            return false;
        memcpy(to + n, h->base + at, size);
        n += size;
        at += size + 2;
    }
    *ret = slice_of(to, n);
    return n == h->body_bytes && h->base[h->pos - 1] == '\n';
}

/* ---- requests ---- */

/* "http://host/path" is as good as "/path". */
static struct slice without_host(struct slice url)
{
    static const struct slice schemes[] = {{"http://", 7}, {"https://", 8}};
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        size_t n = schemes[i].n;
        if (url.n < n || memcmp(url.p, schemes[i].p, n) != 0)
            continue;
        while (n < url.n && url.p[n] != '/' && url.p[n] != '?')
            n++;
        return slice_of(url.p + n, url.n - n);
    }
    return url;
}

static void describe(const struct http_in *h, struct slice body, struct http_request *ret)
{
    struct slice url = without_host(text_of(h, h->url));
    const char *hash = url.n ? memchr(url.p, '#', url.n) : NULL;
    if (hash)
        url.n = (size_t)(hash - url.p);
    const char *mark = url.n ? memchr(url.p, '?', url.n) : NULL;
    size_t path = mark ? (size_t)(mark - url.p) : url.n;
    *ret = (struct http_request){
        .method = (enum http_method)h->parser.method,
        .path = path ? slice_of(url.p, path) : SLICE("/"),
        .query = mark ? slice_of(mark + 1, url.n - path - 1) : slice_of(url.p + url.n, 0),
        .body = body,
        .keep_alive = http_should_keep_alive(&h->parser),
        .old = h->parser.http_minor == 0,
    };
    for (enum http_header i = 0; i < HTTP_HEADERS; i++)
        if (h->has[i])
            ret->headers[i] = header_value(h, i);
}

/* What the library found wrong, in words for a client. */
static void explain(struct http_in *h)
{
    switch (HTTP_PARSER_ERRNO(&h->parser)) {
    case HPE_HEADER_OVERFLOW:
        refuse(h, 431, "head_too_large", "The request's headers are longer than http-max-header.");
        break;
    case HPE_INVALID_METHOD:
        refuse(h, 501, "unknown_method", "There is no such method.");
        break;
    case HPE_INVALID_VERSION:
        refuse(h, 505, "http_version_not_supported", "Speak HTTP/1.1.");
        break;
    case HPE_INVALID_TRANSFER_ENCODING:
    case HPE_UNEXPECTED_CONTENT_LENGTH:
    case HPE_INVALID_CONTENT_LENGTH:
        refuse(h, 400, "bad_request", "Say the body's length once: Content-Length, or chunks, not both.");
        break;
    default:
        refuse(h, 400, "bad_request", "This is not an HTTP request.");
    }
}

static size_t hint(const struct http_in *h)
{
    uint64_t left = h->head_done && h->parser.content_length != UINT64_MAX ? h->parser.content_length : 1;
    return h->pos + (left ? (size_t)left : 1);
}

/* Lets the library read on, up to `end`. */
static void give(struct http_in *h, struct slice data, size_t end)
{
    if (h->pos < end)
        h->pos += http_parser_execute(&h->parser, &settings, data.p + h->pos, end - h->pos);
}

/* The library stands at the last byte of the head. */
static void enter_body(struct http_in *h, struct slice data)
{
    assert(h->pos < data.n);
    if (data.p[h->pos] != '\n') {
        refuse(h, 400, "bad_request", "The headers end with an empty line.");
        return;
    }
    h->head_end = h->pos + 1;
    http_parser_pause(&h->parser, 0);
    give(h, data, data.n);
}

enum http_result http_parse(struct http_in *h, struct slice data, const struct http_limits *limits,
                            struct arena *arena, struct http_request *ret, size_t *ret_used)
{
    assert(data.n >= h->pos);
    h->base = data.p;
    h->limits = limits;
    h->refusal.status = 0;
    h->parser.data = h;
    /* The head, which has a limit, first: how much of it comes at once must not matter. */
    give(h, data, !h->head_done && data.n > limits->max_head ? limits->max_head : data.n);
    if (h->head_done && !h->head_end && !h->refusal.status)
        enter_body(h, data);
    if (h->refusal.status)
        return HTTP_BAD;
    if (h->head_done && h->pos > limits->max_head + h->body_bytes + limits->max_body / 8 + CHUNK_WORDS) {
        refuse(h, 413, "body_too_large", "The body comes in chunks that are too small.");
        return HTTP_BAD;
    }
    if (h->whole) {
        struct slice body = text_of(h, h->body);
        if (h->has[HTTP_TRANSFER_ENCODING] && !gather_chunks(h, arena, &body)) {
            refuse(h, 400, "bad_request", "The body's chunks are not what they should be.");
            return HTTP_BAD;
        }
        describe(h, body, ret);
        *ret_used = h->pos;
        http_parser_pause(&h->parser, 0);
        next_request(h);
        return HTTP_WHOLE;
    }
    if (HTTP_PARSER_ERRNO(&h->parser) != HPE_OK) {
        explain(h);
        return HTTP_BAD;
    }
    if (!h->head_done && h->pos >= limits->max_head) {
        refuse(h, 431, "head_too_large", "The request's headers are longer than http-max-header.");
        return HTTP_BAD;
    }
    h->want = hint(h);
    return HTTP_MORE;
}

bool http_wants_continue(const struct http_in *h)
{
    return h->head_done && h->has[HTTP_EXPECT] && h->parser.http_minor >= 1 &&
           slice_is(header_value(h, HTTP_EXPECT), "100-continue");
}

struct slice http_header_seen(const struct http_in *h, enum http_header header)
{
    return h->has[header] ? header_value(h, header) : slice_of(NULL, 0);
}
