/* JSON, base64 and percent-encoding: what is taken, what is refused, what is written. */
#include "base/buf.h"
#include "check.h"
#include "proto/base64.h"
#include "proto/json.h"
#include "proto/uri.h"

static struct arena arena;

/* ---- checking ---- */

static bool sound(const char *text)
{
    struct json v;
    const char *why;
    size_t at;
    return json_check(slice_str(text), &v, &why, &at);
}

static void takes_every_kind(void)
{
    static const char *const good[] = {"null",         " true ",
                                       "false",        "0",
                                       "-0",           "12.5e-3",
                                       "1E+2",         "\"\"",
                                       "[]",           "[1,[],{}]",
                                       "{}",           "{\"a\":{\"b\":[null]}}",
                                       " \n\t\r[ ] ",  "\"\\u00e9\\n\\/\"",
                                       "\"\xc3\xa9\"", "\"\\ud83d\\ude00\"",
                                       "\"\\u0000\"",  "{\"a\":1,\"a\":2}"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        check.context = good[i];
        CHECK(sound(good[i]));
    }
}

static void refuses_what_is_not_json(void)
{
    static const char *const bad[] = {"",
                                      " ",
                                      "nul",
                                      "True",
                                      "01",
                                      "-",
                                      "1.",
                                      ".5",
                                      "1e",
                                      "+1",
                                      "\"",
                                      "\"\\x\"",
                                      "\"\\u12\"",
                                      "\"\n\"",
                                      "[",
                                      "[1,]",
                                      "[1 2]",
                                      "{",
                                      "{a:1}",
                                      "{\"a\"}",
                                      "{\"a\":}",
                                      "{\"a\":1,}",
                                      "]",
                                      "[}",
                                      "1 2",
                                      "\"\xff\"",
                                      "\"\xc3\"",
                                      "\"\xed\xa0\x80\"",
                                      "\"\xc0\x80\"",
                                      "\"\\ud800\"",
                                      "\"\\ude00\"",
                                      "\"\\ud800\\u0041\"",
                                      "'a'",
                                      "\xef\xbb\xbf[1]",
                                      "NaN",
                                      "[1,,2]",
                                      "{\"a\":1 \"b\":2}",
                                      "\"\xf4\x90\x80\x80\""};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        check.context = bad[i];
        CHECK(!sound(bad[i]));
    }
}

static void says_where_and_what(void)
{
    struct json v;
    const char *why = NULL;
    size_t at = 0;
    CHECK(!json_check(SLICE("{\"a\": tru}"), &v, &why, &at));
    CHECK_EQ(at, 6);
    CHECK_STR(why, "expected a value");
    CHECK(!json_check(SLICE("[1] x"), &v, &why, &at));
    CHECK_EQ(at, 4);
    CHECK_STR(why, "nothing may follow the value");
}

static void depth_has_an_end(void)
{
    char text[2 * JSON_DEPTH + 3];
    memset(text, '[', JSON_DEPTH);
    memset(text + JSON_DEPTH, ']', JSON_DEPTH);
    text[2 * JSON_DEPTH] = '\0';
    CHECK(sound(text));
    memset(text, '[', JSON_DEPTH + 1);
    memset(text + JSON_DEPTH + 1, ']', JSON_DEPTH + 1);
    text[2 * JSON_DEPTH + 2] = '\0';
    CHECK(!sound(text));
}

/* ---- reading ---- */

static struct json parsed(const char *text)
{
    struct json v = {JSON_NULL, {NULL, 0}};
    const char *why;
    size_t at;
    CHECK(json_check(slice_str(text), &v, &why, &at));
    return v;
}

static void strings_are_decoded(void)
{
    struct json v = parsed("\"a\\u0000\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\u20ac\\ud83d\\ude00z\"");
    CHECK_SLICE(json_string(&v, &arena), SLICE("a\0\"\\/\b\f\n\r\t\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z"));
    v = parsed("\"plain\"");
    CHECK(json_string(&v, &arena).p == v.text.p + 1);
}

static void walks_members(void)
{
    struct json v = parsed(" { \"a\" : 1 , \"b\\n\":[ 1 , {\"x\":[]} , \"]\" ] , \"c\":null } "), item;
    struct json_walk w;
    struct slice name;
    CHECK_EQ(json_count(&v), 3);
    json_begin(&w, &v);
    REQUIRE(json_next_member(&w, &arena, &name, &item));
    CHECK_SLICE(name, SLICE("a"));
    CHECK_SLICE(item.text, SLICE("1"));
    REQUIRE(json_next_member(&w, &arena, &name, &item));
    CHECK_SLICE(name, SLICE("b\n"));
    CHECK_EQ(item.kind, JSON_ARRAY);
    CHECK_EQ(json_count(&item), 3);
    struct json_walk inner;
    struct json x;
    json_begin(&inner, &item);
    REQUIRE(json_next_item(&inner, &x) && json_next_item(&inner, &x));
    CHECK_SLICE(x.text, SLICE("{\"x\":[]}"));
    REQUIRE(json_next_item(&inner, &x));
    CHECK_SLICE(json_string(&x, &arena), SLICE("]"));
    CHECK(!json_next_item(&inner, &x));
    REQUIRE(json_next_member(&w, &arena, &name, &item));
    CHECK_EQ(item.kind, JSON_NULL);
    CHECK(!json_next_member(&w, &arena, &name, &item));
}

static void whole_numbers(void)
{
    int64_t i = 0;
    struct json v = parsed("9223372036854775807");
    CHECK(json_i64(&v, &i) && i == INT64_MAX);
    v = parsed("1e3");
    CHECK(json_i64(&v, &i) && i == 1000);
    v = parsed("5.0");
    CHECK(json_i64(&v, &i) && i == 5);
    v = parsed("1.5");
    CHECK(!json_i64(&v, &i));
    v = parsed("1e300");
    CHECK(!json_i64(&v, &i));
    v = parsed("\"1\"");
    CHECK(!json_i64(&v, &i));
}

/* ---- writing ---- */

static void strings_are_escaped(void)
{
    struct buf out = {0};
    CHECK(json_add_string(&out, SLICE("a\"\\\n\x01\x7f\xc3\xa9\0")));
    CHECK_SLICE(buf_slice(&out), SLICE("\"a\\\"\\\\\\n\\u0001\x7f\xc3\xa9\\u0000\""));
    out.len = 3;
    CHECK(!json_add_string(&out, SLICE("abc\xff")));
    CHECK_EQ(out.len, 3);
    out.len = 0;
    json_add_lossy(&out, SLICE("a\xff\xc3z"));
    CHECK_SLICE(buf_slice(&out), SLICE("\"a\xef\xbf\xbd\xef\xbf\xbdz\""));
    out.len = 0;
    json_add_double(&out, 1.0 / 0.0);
    json_add_double(&out, -0.5);
    json_add_i64(&out, INT64_MIN);
    CHECK_SLICE(buf_slice(&out), SLICE("\"inf\"-0.5-9223372036854775808"));
    buf_release(&out);
}

/* ---- base64 ---- */

static void base64_both_ways(void)
{
    static const char *const pairs[][2] = {{"", ""},
                                           {"f", "Zg=="},
                                           {"fo", "Zm8="},
                                           {"foo", "Zm9v"},
                                           {"foob", "Zm9vYg=="},
                                           {"fooba", "Zm9vYmE="},
                                           {"foobar", "Zm9vYmFy"},
                                           {"\xfb\xff", "+/8="}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct buf out = {0};
        struct slice back = {NULL, 0};
        base64_add(&out, slice_str(pairs[i][0]));
        CHECK_SLICE(buf_slice(&out), slice_str(pairs[i][1]));
        CHECK(base64_decode(slice_str(pairs[i][1]), &arena, &back));
        CHECK_SLICE(back, slice_str(pairs[i][0]));
        buf_release(&out);
    }
    struct slice back;
    CHECK(base64_decode(SLICE("-_8"), &arena, &back));
    CHECK_SLICE(back, SLICE("\xfb\xff"));
}

static void base64_refuses(void)
{
    static const char *const bad[] = {
        "Z", "Zg=", "Zg===", "Z===", "=", "Zm9v=", "Zm 9v", "Zh==", "Zm9=", "Zm9v\n", "Zg==Zg=="};
    struct slice back;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        check.context = bad[i];
        CHECK(!base64_decode(slice_str(bad[i]), &arena, &back));
    }
}

/* ---- targets ---- */

static void percent_both_ways(void)
{
    struct slice out;
    CHECK(uri_decode(SLICE("a%2Fb%00%25+%e2%82%AC"), false, &arena, &out));
    CHECK_SLICE(out, SLICE("a/b\0%+\xe2\x82\xac"));
    CHECK(uri_decode(SLICE("a+b"), true, &arena, &out));
    CHECK_SLICE(out, SLICE("a b"));
    CHECK(!uri_decode(SLICE("%"), false, &arena, &out));
    CHECK(!uri_decode(SLICE("a%2"), false, &arena, &out));
    CHECK(!uri_decode(SLICE("a%2g"), false, &arena, &out));
    CHECK(!uri_decode(SLICE("a%-1"), false, &arena, &out));
    struct buf text = {0};
    uri_encode(&text, SLICE("a/b \0~"));
    CHECK_SLICE(buf_slice(&text), SLICE("a%2Fb%20%00~"));
    buf_release(&text);
}

static void segments_and_parameters(void)
{
    struct slice path = SLICE("/keys//a%2Fb/"), part, name, value;
    bool bare;
    REQUIRE(uri_segment(&path, &part));
    CHECK_SLICE(part, SLICE("keys"));
    REQUIRE(uri_segment(&path, &part));
    CHECK_SLICE(part, SLICE(""));
    REQUIRE(uri_segment(&path, &part));
    CHECK_SLICE(part, SLICE("a%2Fb"));
    REQUIRE(uri_segment(&path, &part));
    CHECK_SLICE(part, SLICE(""));
    CHECK(!uri_segment(&path, &part));
    struct slice query = SLICE("&a=1&&NX&b=x=y&c=");
    REQUIRE(uri_param(&query, &name, &value, &bare));
    CHECK_SLICE(name, SLICE("a"));
    CHECK_SLICE(value, SLICE("1"));
    REQUIRE(uri_param(&query, &name, &value, &bare));
    CHECK_SLICE(name, SLICE("NX"));
    CHECK(bare && value.n == 0);
    REQUIRE(uri_param(&query, &name, &value, &bare));
    CHECK_SLICE(value, SLICE("x=y"));
    REQUIRE(uri_param(&query, &name, &value, &bare));
    CHECK(!bare && value.n == 0);
    CHECK(!uri_param(&query, &name, &value, &bare));
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    RUN(takes_every_kind);
    RUN(refuses_what_is_not_json);
    RUN(says_where_and_what);
    RUN(depth_has_an_end);
    RUN(strings_are_decoded);
    RUN(walks_members);
    RUN(whole_numbers);
    RUN(strings_are_escaped);
    RUN(base64_both_ways);
    RUN(base64_refuses);
    RUN(percent_both_ways);
    RUN(segments_and_parameters);
    arena_release(&arena);
    return check_done();
}
