/* The HTTP parser: requests in one piece and in many, what is refused and with which status; heads. */
#include "base/buf.h"
#include "check.h"
#include "proto/http.h"

static const struct http_limits usual = {.max_uri = 64, .max_head = 512, .max_body = 100};

/* Everything the parser says about the input, when it comes `step` bytes at a time. */
static void transcribe(struct slice input, size_t step, struct buf *out)
{
    struct http_in h;
    http_init(&h);
    struct arena arena = {0};
    size_t start = 0, given = 0;
    for (;;) {
        struct http_request r;
        size_t used = 0;
        char *copy = malloc(given - start + 1); /* so that nobody relies on where the bytes were */
        memcpy(copy, input.p + start, given - start);
        enum http_result res = http_parse(&h, slice_of(copy, given - start), &usual, &arena, &r, &used);
        if (res == HTTP_WHOLE) {
            buf_addf(out, "%s %.*s?%.*s type=%.*s [%.*s]%s;", http_method_str(r.method), (int)r.path.n,
                     r.path.p, (int)r.query.n, r.query.p, (int)r.headers[HTTP_CONTENT_TYPE].n,
                     r.headers[HTTP_CONTENT_TYPE].n ? r.headers[HTTP_CONTENT_TYPE].p : "", (int)r.body.n,
                     r.body.n ? r.body.p : "", r.keep_alive ? "" : " close");
            start += used;
        }
        free(copy);
        if (res == HTTP_BAD) {
            buf_addf(out, "%d %s", h.refusal.status, h.refusal.code);
            break;
        }
        if (res == HTTP_MORE) {
            if (given == input.n) {
                if (start < given)
                    buf_addf(out, "...");
                break;
            }
            given = input.n - given > step ? given + step : input.n;
        }
    }
    arena_release(&arena);
}

static void expect(struct slice input, const char *prefetch)
{
    static const size_t steps[] = {SIZE_MAX, 1, 2, 3, 7, 50};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        struct buf out = {0};
        transcribe(input, steps[i], &out);
        CHECK_SLICE(buf_slice(&out), slice_str(prefetch));
        buf_release(&out);
    }
}

#define EXPECT(input, prefetch) expect(SLICE(input), prefetch)
#define HOST                    "Host: x\r\n"

static void requests(void)
{
    EXPECT("GET /keys/a?x=1 HTTP/1.1\r\n" HOST "\r\n", "GET /keys/a?x=1 type= [];");
    EXPECT("GET http://other/a HTTP/1.1\r\n" HOST "\r\n", "GET /a? type= [];");
    EXPECT("GET http://other?q HTTP/1.1\r\n" HOST "\r\n", "GET /?q type= [];");
    EXPECT("PUT /a HTTP/1.1\r\n" HOST "content-TYPE:  text/plain \r\nContent-Length: 3\r\n\r\nabc",
           "PUT /a? type=text/plain [abc];");
    EXPECT("GET / HTTP/1.0\r\n\r\n", "GET /? type= [] close;");
    EXPECT("GET / HTTP/1.1\r\nConnection: close\r\n" HOST "\r\n", "GET /? type= [] close;");
}

static void several_in_a_row(void)
{
    EXPECT("GET /a HTTP/1.1\r\n" HOST "Content-Type: x\r\n\r\n"
           "POST /b HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nxyGET /c HTTP/1.1\r\n" HOST "\r\nGET /d",
           "GET /a? type=x [];POST /b? type= [xy];GET /c? type= [];...");
}

static void chunks(void)
{
    EXPECT("POST /b HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
           "3\r\nabc\r\nA;ext=1\r\n0123456789\r\n0\r\nContent-Type: late\r\n\r\nGET /c HTTP/1.1\r\n" HOST
           "\r\n",
           "POST /b? type= [abc0123456789];GET /c? type= [];");
    EXPECT("POST /b HTTP/1.1\r\n" HOST "Transfer-Encoding: Chunked\r\n\r\n"
           "0003 ; a=\"b\"\r\nabc\r\n1\r\n\n\r\n2;\r\n\r\n\r\n00\r\n\r\n",
           "POST /b? type= [abc\n\r\n];");
    EXPECT("POST /b HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "POST /b? type= [];");
    EXPECT("POST /b HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\nf\r\n0123456789abcde\r\n0\r\n\r\n",
           "POST /b? type= [0123456789abcde];");
}

#define CHUNKS          "POST /a HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
#define CHUNKED(header) "POST /a HTTP/1.1\r\n" HOST header "\r\n\r\n1\r\na\r\n0\r\n\r\n"

/* What one server might read so and another otherwise. */
static void nothing_is_smuggled(void)
{
    EXPECT(CHUNKED("Transfer-Encoding: gzip, chunked"), "501 unknown_coding");
    EXPECT(CHUNKED("Transfer-Encoding: chunked, gzip"), "501 unknown_coding");
    EXPECT(CHUNKED("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"), "400 bad_request");
    EXPECT(CHUNKED("Transfer-Encoding: identity\r\nTransfer-Encoding: chunked"), "400 bad_request");
    EXPECT(CHUNKED("Transfer-Encoding : chunked"), "400 bad_request");
    EXPECT(CHUNKED("Transfer-Encoding:\r\n chunked"), "400 bad_request");
    EXPECT(CHUNKED("Transfer-Encoding: chunked\r\n "), "400 bad_request");
    EXPECT(CHUNKED("Transfer-Encoding: chunked\r\nContent-Length : 5"), "400 bad_request");
    EXPECT("POST /a HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400 bad_request");
    EXPECT("POST /a HTTP/1.1\r\n" HOST "Content-Length : 1\r\n\r\na", "400 bad_request");
    EXPECT("POST /a HTTP/1.1\r\n" HOST "Content-Length:\r\n\t1\r\n\r\na", "400 bad_request");
    EXPECT("GET /a HTTP/1.1\r\n" HOST "X: a\r\n b\r\n\r\n", "400 bad_request");
    EXPECT("GET /a HTTP/1.1\r\n" HOST "X:\r\n b\r\n\r\n", "400 bad_request");
    EXPECT("GET /a HTTP/1.1\r\n" HOST "X y: b\r\n\r\n", "400 bad_request");
    EXPECT("GET /a HTTP/1.1\r\nHost: x\r\n\rX", "400 bad_request");
    EXPECT(CHUNKS "1\rXa\r\n0\r\n\r\n", "400 bad_request");
    EXPECT(CHUNKS "1\r\naXY0\r\n\r\n", "400 bad_request");
    EXPECT(CHUNKS "1\r\na\r\n0\r\n\rX", "400 bad_request");
    EXPECT(CHUNKS "0\rX\r\n", "400 bad_request");
    EXPECT(CHUNKS "1;a\rb\r\na\r\n0\r\n\r\n", "400 bad_request");
    /* Nothing to see here. */
    EXPECT("GET /a HTTP/1.1\r\n" HOST "X:\r\nContent-Type:y\r\nZ: \r\n\r\n", "GET /a? type=y [];");
}

/* A body may not take much more than itself in the chunks around it. */
static void small_chunks(void)
{
    struct buf in = {0};
    buf_addf(&in, "POST /a HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 100; i++)
        buf_addf(&in, "1;%0600d\r\na\r\n", 0);
    size_t most = in.len;
    buf_addf(&in, "0\r\n\r\n");
    struct buf prefetch = {0};
    buf_addf(&prefetch, "POST /a? type= [%.*s];", 100,
             "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
             "aaaaa");
    buf_add(&prefetch, "", 1);
    expect(buf_slice(&in), prefetch.p);
    in.len = most - 605;
    buf_addf(&in, "1;%08000d\r\na\r\n0\r\n\r\n", 0);
    expect(buf_slice(&in), "413 body_too_large");
    buf_release(&prefetch);
    buf_release(&in);
}

static void refusals(void)
{
    EXPECT("hello\r\n\r\n", "501 unknown_method");
    EXPECT("GET /a HTTP/2.0\r\n" HOST "\r\n", "505 http_version_not_supported");
    EXPECT("GET /a HTTP/1.1\r\n\r\n", "400 bad_request");
    EXPECT("GET /a HTTP/1.1\r\n" HOST HOST "\r\n", "400 bad_request");
    EXPECT("GET /a HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n", "400 bad_request");
    EXPECT("GET /a HTTP/1.1\r\nHo st: x\r\n\r\n", "400 bad_request");
    EXPECT("POST /a HTTP/1.1\r\n" HOST "Content-Length: 1\r\nContent-Length: 1\r\n\r\na", "400 bad_request");
    EXPECT("POST /a HTTP/1.1\r\n" HOST "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
           "400 bad_request");
    EXPECT("POST /a HTTP/1.1\r\n" HOST "Content-Length: x\r\n\r\n", "400 bad_request");
    EXPECT("POST /a HTTP/1.1\r\n" HOST "Content-Length: 101\r\n\r\n", "413 body_too_large");
    EXPECT("POST /a HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
           "40\r\n0123456789012345678901234567890123456789012345678901234567890123\r\n"
           "40\r\n0123456789012345678901234567890123456789012345678901234567890123\r\n",
           "413 body_too_large");
    EXPECT("GET /0123456789012345678901234567890123456789012345678901234567890123456789 HTTP/1.1\r\n" HOST
           "\r\n",
           "414 uri_too_long");
    EXPECT("POST /a HTTP/1.1\r\n" HOST "Expect: miracles\r\nContent-Length: 1\r\n\r\na",
           "417 expectation_failed");
}

static void head_limit(void)
{
    struct buf in = {0};
    buf_addf(&in, "GET /a HTTP/1.1\r\n" HOST "X: %0400d\r\n\r\n", 0);
    expect(buf_slice(&in), "GET /a? type= [];");
    in.len = 0;
    buf_addf(&in, "GET /a HTTP/1.1\r\n" HOST "X: %0500d\r\n\r\n", 0);
    expect(buf_slice(&in), "431 head_too_large");
    buf_release(&in);
}

static void tags(void)
{
    bool sound;
    CHECK(http_tags_have(SLICE("\"12\""), 12, false, &sound) && sound);
    CHECK(http_tags_have(SLICE("\"1\", W/\"12\""), 12, false, &sound) && sound);
    CHECK(!http_tags_have(SLICE("\"1\",\"abc\""), 12, false, &sound) && sound);
    CHECK(http_tags_have(SLICE(" * "), 12, false, &sound) && sound);
    CHECK(!http_tags_have(SLICE("*"), 0, false, &sound) && sound);
    CHECK(!http_tags_have(SLICE("12"), 12, false, &sound) && !sound);
    CHECK(!http_tags_have(SLICE(""), 12, false, &sound) && !sound);
    CHECK(!http_tags_have(SLICE("\"0\""), 0, false, &sound) && sound);
    CHECK(!http_tags_have(SLICE("W/\"12\""), 12, true, &sound) && sound);
    CHECK(http_tags_have(SLICE("W/\"12\", \"12\""), 12, true, &sound) && sound);
    CHECK(http_tags_have(SLICE("*"), 12, true, &sound) && sound);
    CHECK(http_prefers(SLICE("return=minimal"), "return", "minimal"));
    CHECK(http_prefers(SLICE("wait=5, Return = \"minimal\"; x=1"), "return", "minimal"));
    CHECK(!http_prefers(SLICE("return=representation, return=minimal"), "return", "minimal"));
    CHECK(!http_prefers(SLICE("return"), "return", "minimal"));
    CHECK(!http_prefers(SLICE("return=\""), "return", "minimal"));
    CHECK(!http_prefers(SLICE(""), "return", "minimal"));
}

static void preferences(void)
{
    CHECK(http_prefers_raw(SLICE("application/octet-stream")));
    CHECK(http_prefers_raw(SLICE("application/json;q=0.5, application/octet-stream")));
    CHECK(!http_prefers_raw(SLICE("application/json, application/octet-stream;q=0.9")));
    CHECK(!http_prefers_raw(SLICE("*/*")));
    CHECK(!http_prefers_raw(SLICE("text/html, */*;q=0.1")));
    CHECK(http_prefers_raw(SLICE("application/octet-stream, */*;q=0.1")));
    CHECK(!http_prefers_raw(SLICE("application/octet-stream;q=0")));
    CHECK(!http_prefers_raw(SLICE("")));
    CHECK_SLICE(http_media_type(SLICE(" text/plain ; charset=utf-8")), SLICE("text/plain"));
}

static void heads(void)
{
    struct buf out = {0};
    buf_addf(&out, "before{}");
    struct http_head head = {.status = 200,
                             .content_type = "application/json",
                             .version = 7,
                             .date = SLICE("Date: d\r\n"),
                             .extra = SLICE("Allow: GET\r\n"),
                             .close = true};
    http_add_head(&out, 6, &head);
    CHECK_SLICE(buf_slice(&out),
                SLICE("beforeHTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "
                      "2\r\nETag: \"7\"\r\nConnection: close\r\nDate: d\r\nAllow: GET\r\n\r\n{}"));
    out.len = 0;
    buf_addf(&out, "{}");
    http_add_head(&out, 0, &(struct http_head){.status = 404, .content_type = "x", .bodiless = true});
    CHECK_SLICE(buf_slice(&out),
                SLICE("HTTP/1.1 404 Not Found\r\nContent-Type: x\r\nContent-Length: 2\r\n\r\n"));
    out.len = 0;
    http_add_head(&out, 0, &(struct http_head){.status = 304, .version = 1});
    CHECK_SLICE(buf_slice(&out), SLICE("HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\n\r\n"));
    buf_release(&out);
    char date[HTTP_DATE_CHARS];
    size_t n = http_format_date(date, 784111777);
    CHECK_SLICE(slice_of(date, n), SLICE("Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"));
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    RUN(requests);
    RUN(several_in_a_row);
    RUN(chunks);
    RUN(nothing_is_smuggled);
    RUN(small_chunks);
    RUN(refusals);
    RUN(head_limit);
    RUN(tags);
    RUN(preferences);
    RUN(heads);
    return check_done();
}
