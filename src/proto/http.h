/* Reads HTTP/1.x requests, incrementally, and writes the head of an answer.

   The grammar is libhttp-parser's; here is what it is given and what becomes of its callbacks. As with
   resp.h, the caller keeps the bytes of an unfinished request in one contiguous buffer and calls again when
   there are more: nothing is read twice, and how the input was cut into pieces never changes the result.
   A body with a length is borrowed from that buffer; one that came in chunks is put together in the arena.

   Where the grammar leaves room, and a proxy before us might read something else, the request is refused: a
   length said twice, codings other than chunked, headers over several lines, spaces in their names. */
#ifndef LARDER_PROTO_HTTP_H
#define LARDER_PROTO_HTTP_H

#include <http_parser.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/slice.h"

struct http_limits {
    size_t max_uri;
    size_t max_head; /* request line and headers; at most HTTP_HEAD_MAX */
    uint64_t max_body;
};
#define HTTP_HEAD_MAX ((size_t)64 << 10) /* below where the library itself gives up */

/* The headers that the server reads. */
enum http_header {
    HTTP_HOST,
    HTTP_AUTHORIZATION,
    HTTP_CONTENT_TYPE,
    HTTP_ACCEPT,
    HTTP_IF_MATCH,
    HTTP_IF_NONE_MATCH,
    HTTP_PREFER,
    HTTP_ORIGIN,
    HTTP_REFERER,
    HTTP_EXPECT,
    HTTP_TRANSFER_ENCODING,
    HTTP_SEC_FETCH_SITE,
    HTTP_UPSTASH_ENCODING,
    HTTP_UPSTASH_SYNC_TOKEN,
    HTTP_LARDER_CONSISTENCY,
    HTTP_LARDER_TOKEN,
    HTTP_REQUEST_METHOD, /* Access-Control-Request-Method */
    HTTP_HEADERS
};

struct http_request {
    enum http_method method;            /* the library's: HTTP_GET, HTTP_PUT, ... */
    struct slice path;                  /* up to the "?", as it came */
    struct slice query;                 /* behind it */
    struct slice headers[HTTP_HEADERS]; /* p is NULL: not there */
    struct slice body;
    bool keep_alive;
    bool old; /* of HTTP/1.0: a connection that goes on has to be told so */
};

/* Why a request cannot be read: an answer with this status, then the end of the connection. */
struct http_refusal {
    int status;
    const char *code; /* "uri_too_long" */
    const char *message;
};

enum http_result {
    HTTP_MORE,  /* not whole yet; h->want says how many bytes the buffer should be able to hold (a hint) */
    HTTP_WHOLE, /* *ret, of *ret_used bytes */
    HTTP_BAD    /* h->refusal */
};

struct http_span {
    size_t off, n;
};

struct http_in {
    http_parser parser;
    size_t pos; /* bytes of the current request that the parser has seen */
    size_t want;
    struct http_refusal refusal;
    bool head_done, whole;
    bool in_value;    /* the last callback was about a header's value */
    int header;       /* enum http_header it belongs to, or HTTP_HEADERS */
    size_t value_end; /* of the last header: where its value goes on, unless it is folded */
    struct http_span url, name, values[HTTP_HEADERS];
    bool has[HTTP_HEADERS];
    size_t head_end;       /* behind the head; 0: it is not whole yet */
    struct http_span body; /* unless it comes in chunks */
    uint64_t body_bytes;
    const char *base; /* during a call: the request's first byte */
    const struct http_limits *limits;
};

void http_init(struct http_in *h);

/* Forgets an unfinished request: the next call gets it again from its first byte. */
void http_reset(struct http_in *h);

/* data starts at the first byte of the current request. */
enum http_result http_parse(struct http_in *h, struct slice data, const struct http_limits *limits,
                            struct arena *arena, struct http_request *ret, size_t *ret_used);

/* The client waits for a word before it sends the body (Expect: 100-continue). */
bool http_wants_continue(const struct http_in *h);

/* A header of the request that is coming in, when its head is whole; p is NULL: not there. */
struct slice http_header_seen(const struct http_in *h, enum http_header header);

/* ---- headers ---- */

/* Without the white space around it. */
struct slice http_trim(struct slice s);

/* The name of a media type without its parameters: "application/json" of "application/json;
   charset=utf-8". */
struct slice http_media_type(struct slice value);

/* Whether a list of entity tags (If-Match, If-None-Match) has this version, or is "*"; version 0 is nothing's
   and only "*" could mean it, which it does not. *ret_sound (may be NULL): it is such a list at all.
   If-Match compares strongly (strong): a weak tag, W/"12", is like nothing there. */
bool http_tags_have(struct slice list, int64_t version, bool strong, bool *ret_sound);

/* Whether a Prefer header has this preference with this value: "return", "minimal". The first of that name
   counts. */
bool http_prefers(struct slice prefer, const char *name, const char *value);

/* What the client would rather have, by Accept: bytes as they are, or JSON (in doubt). */
bool http_prefers_raw(struct slice accept);

/* ---- answers ---- */

struct http_head {
    int status;
    const char *content_type; /* NULL: there is no body, and none is expected */
    int64_t version;          /* of what was asked for, as its ETag; 0: none */
    struct slice date;        /* "Date: ...\r\n" */
    struct slice extra;       /* more headers, each with its line end */
    bool close;               /* the connection ends behind it ... */
    bool keep;                /* ... or does not, which HTTP/1.0 has to be told */
    bool by_accept;           /* it may be another one for another Accept, which caches have to know */
    bool bodiless;            /* to HEAD: the length is told, the body is not */
};

/* The answer's body stands in out from `start` on: puts the head before it. */
void http_add_head(struct buf *out, size_t start, const struct http_head *head);

const char *http_reason(int status);

/* "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n", of seconds since the epoch. */
#define HTTP_DATE_CHARS 48
size_t http_format_date(char out[HTTP_DATE_CHARS], int64_t seconds);

#endif
