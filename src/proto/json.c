#include "proto/json.h"

#include <assert.h>
#include <math.h>

#include "base/num.h"
#include "proto/base64.h"

/* ---- characters ---- */

size_t utf8_length(const char *p, size_t n)
{
    const uint8_t *u = (const uint8_t *)p;
    if (n == 0 || u[0] < 0x80)
        return n != 0;
    size_t len = u[0] >= 0xF0 ? 4 : u[0] >= 0xE0 ? 3 : 2;
    if (u[0] < 0xC2 || u[0] > 0xF4 || len > n)
        return 0;
    /* The second byte's range keeps out what is longer than it need be, surrogates, and all above
       U+10FFFF. */
    uint8_t low = u[0] == 0xE0 ? 0xA0 : u[0] == 0xF0 ? 0x90 : 0x80;
    uint8_t high = u[0] == 0xED ? 0x9F : u[0] == 0xF4 ? 0x8F : 0xBF;
    if (u[1] < low || u[1] > high)
        return 0;
    for (size_t i = 2; i < len; i++)
        if (u[i] < 0x80 || u[i] > 0xBF)
            return 0;
    return len;
}

static size_t add_utf8(char *to, uint32_t c)
{
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        to[0] = (char)(0xC0 | c >> 6);
        to[1] = (char)(0x80 | (c & 63));
        return 2;
    }
    if (c < 0x10000) {
        to[0] = (char)(0xE0 | c >> 12);
        to[1] = (char)(0x80 | (c >> 6 & 63));
        to[2] = (char)(0x80 | (c & 63));
        return 3;
    }
    to[0] = (char)(0xF0 | c >> 18);
    to[1] = (char)(0x80 | (c >> 12 & 63));
    to[2] = (char)(0x80 | (c >> 6 & 63));
    to[3] = (char)(0x80 | (c & 63));
    return 4;
}

static int hex4(const char *p, const char *end)
{
    int v = 0;
    if (end - p < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        char c = p[i];
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0)
            return -1;
        v = v << 4 | digit;
    }
    return v;
}

static bool is_high(int unit)
{
    return unit >= 0xD800 && unit < 0xDC00;
}

static bool is_low(int unit)
{
    return unit >= 0xDC00 && unit < 0xE000;
}

/* ---- checking ---- */

struct checker {
    const char *p, *end;
    const char *why;  /* what is wrong at p; NULL: nothing yet */
    uint64_t objects; /* of the open arrays and objects, the innermost in the lowest bit: is it an object? */
    int depth;
};

static bool wrong(struct checker *c, const char *why)
{
    c->why = why;
    return false;
}

static void skip_space(struct checker *c)
{
    while (c->p < c->end && (*c->p == ' ' || *c->p == '\n' || *c->p == '\r' || *c->p == '\t'))
        c->p++;
}

static bool check_escape(struct checker *c)
{
    static const char known[] = "\"\\/bfnrt";
    const char *p = c->p + 1;
    if (p < c->end && *p && strchr(known, *p)) {
        c->p += 2;
        return true;
    }
    if (p == c->end || *p != 'u')
        return wrong(c, "there is no such escape");
    int unit = hex4(p + 1, c->end);
    if (unit < 0)
        return wrong(c, "\\u takes four hexadecimal digits");
    c->p += 6;
    if (!is_high(unit) && !is_low(unit))
        return true;
    bool paired = is_high(unit) && c->end - c->p >= 6 && c->p[0] == '\\' && c->p[1] == 'u' &&
                  is_low(hex4(c->p + 2, c->end));
    if (!paired)
        return wrong(c, "half a surrogate pair is no character");
    c->p += 6;
    return true;
}

static bool check_string(struct checker *c)
{
    c->p++;
    while (c->p < c->end) {
        uint8_t b = (uint8_t)*c->p;
        if (b == '"') {
            c->p++;
            return true;
        }
        if (b == '\\') {
            if (!check_escape(c))
                return false;
        } else if (b < 0x20) {
            return wrong(c, "a control character in a string must be escaped");
        } else if (b < 0x80) {
            c->p++;
        } else {
            size_t n = utf8_length(c->p, (size_t)(c->end - c->p));
            if (n == 0)
                return wrong(c, "this is not UTF-8");
            c->p += n;
        }
    }
    return wrong(c, "a string has no end");
}

static bool digits(struct checker *c)
{
    const char *from = c->p;
    while (c->p < c->end && *c->p >= '0' && *c->p <= '9')
        c->p++;
    return c->p > from;
}

static bool check_number(struct checker *c)
{
    if (*c->p == '-')
        c->p++;
    bool zero = c->p < c->end && *c->p == '0';
    if (zero)
        c->p++;
    else if (!digits(c))
        return wrong(c, "a number needs digits");
    if (zero && c->p < c->end && *c->p >= '0' && *c->p <= '9')
        return wrong(c, "a number has no leading zeros");
    if (c->p < c->end && *c->p == '.') {
        c->p++;
        if (!digits(c))
            return wrong(c, "a number needs digits behind its point");
    }
    if (c->p < c->end && (*c->p == 'e' || *c->p == 'E')) {
        c->p++;
        if (c->p < c->end && (*c->p == '+' || *c->p == '-'))
            c->p++;
        if (!digits(c))
            return wrong(c, "a number needs digits in its exponent");
    }
    return true;
}

static bool check_word(struct checker *c, const char *word, size_t n)
{
    if ((size_t)(c->end - c->p) < n || memcmp(c->p, word, n) != 0)
        return wrong(c, "expected a value");
    c->p += n;
    return true;
}

/* One that has nothing within it. */
static bool check_scalar(struct checker *c)
{
    switch (*c->p) {
    case '"':
        return check_string(c);
    case 't':
        return check_word(c, "true", 4);
    case 'f':
        return check_word(c, "false", 5);
    case 'n':
        return check_word(c, "null", 4);
    default:
        if (*c->p == '-' || (*c->p >= '0' && *c->p <= '9'))
            return check_number(c);
        return wrong(c, "expected a value");
    }
}

static bool check_name(struct checker *c)
{
    skip_space(c);
    if (c->p == c->end || *c->p != '"')
        return wrong(c, "expected a name in quotes");
    if (!check_string(c))
        return false;
    skip_space(c);
    if (c->p == c->end || *c->p != ':')
        return wrong(c, "expected a colon");
    c->p++;
    return true;
}

/* An array or object begins; *ret_empty: and ends. */
static bool open_nested(struct checker *c, bool *ret_empty)
{
    bool object = *c->p == '{';
    if (c->depth == JSON_DEPTH)
        return wrong(c, "too many arrays and objects within each other");
    c->p++;
    skip_space(c);
    *ret_empty = c->p < c->end && *c->p == (object ? '}' : ']');
    if (*ret_empty) {
        c->p++;
        return true;
    }
    c->objects = c->objects << 1 | object;
    c->depth++;
    return !object || check_name(c);
}

/* Behind a value: the commas and closing brackets up to where the next one begins. */
static bool check_behind(struct checker *c)
{
    while (c->depth > 0) {
        bool object = c->objects & 1;
        skip_space(c);
        if (c->p == c->end)
            return wrong(c, object ? "an object has no end" : "an array has no end");
        if (*c->p == ',') {
            c->p++;
            return !object || check_name(c);
        }
        if (*c->p != (object ? '}' : ']'))
            return wrong(c, object ? "expected a comma or a }" : "expected a comma or a ]");
        c->p++;
        c->objects >>= 1;
        c->depth--;
    }
    return true;
}

/* One value, whatever it has within it. */
static bool check_value(struct checker *c)
{
    do {
        skip_space(c);
        if (c->p == c->end)
            return wrong(c, "expected a value");
        bool whole = true;
        if (*c->p == '{' || *c->p == '[') {
            if (!open_nested(c, &whole))
                return false;
        } else if (!check_scalar(c)) {
            return false;
        }
        if (whole && !check_behind(c))
            return false;
    } while (c->depth > 0);
    return true;
}

static enum json_kind kind_of(char first)
{
    switch (first) {
    case '"':
        return JSON_STRING;
    case '[':
        return JSON_ARRAY;
    case '{':
        return JSON_OBJECT;
    case 't':
        return JSON_TRUE;
    case 'f':
        return JSON_FALSE;
    case 'n':
        return JSON_NULL;
    default:
        return JSON_NUMBER;
    }
}

bool json_check(struct slice document, struct json *ret, const char **ret_why, size_t *ret_at)
{
    struct checker c = {.p = document.p, .end = document.p + document.n};
    if (document.n == 0)
        c.p = c.end = "";
    const char *from = c.p;
    skip_space(&c);
    const char *start = c.p;
    bool ok = check_value(&c);
    struct slice text = slice_of(start, (size_t)(c.p - start));
    if (ok)
        skip_space(&c);
    if (ok && c.p != c.end)
        ok = wrong(&c, "nothing may follow the value");
    if (!ok) {
        *ret_why = c.why;
        *ret_at = (size_t)(c.p - from);
        return false;
    }
    *ret = (struct json){kind_of(*start), text};
    return true;
}

bool json_take(struct slice *text, struct json *ret)
{
    struct checker c = {.p = text->p, .end = text->p + text->n};
    if (text->n == 0)
        return false;
    skip_space(&c);
    const char *start = c.p;
    if (!check_value(&c))
        return false;
    *ret = (struct json){kind_of(*start), slice_of(start, (size_t)(c.p - start))};
    *text = slice_of(c.p, (size_t)(c.end - c.p));
    return true;
}

/* ---- reading what has been checked ---- */

static char unescape(char c)
{
    switch (c) {
    case 'b':
        return '\b';
    case 'f':
        return '\f';
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    default:
        return c;
    }
}

/* What stands between two quotes. */
static struct slice unquote(struct slice inner, struct arena *arena)
{
    if (!inner.n || !memchr(inner.p, '\\', inner.n))
        return inner;
    char *to = arena_alloc(arena, inner.n);
    size_t n = 0;
    const char *p = inner.p, *end = inner.p + inner.n;
    while (p < end) {
        if (*p != '\\') {
            to[n++] = *p++;
        } else if (p[1] != 'u') {
            to[n++] = unescape(p[1]);
            p += 2;
        } else {
            int unit = hex4(p + 2, end);
            p += 6;
            uint32_t c = (uint32_t)unit;
            if (is_high(unit)) {
                c = 0x10000 + ((c - 0xD800) << 10) + (uint32_t)(hex4(p + 2, end) - 0xDC00);
                p += 6;
            }
            n += add_utf8(to + n, c);
        }
    }
    return slice_of(to, n);
}

struct slice json_string(const struct json *v, struct arena *arena)
{
    assert(v->kind == JSON_STRING);
    return unquote(slice_of(v->text.p + 1, v->text.n - 2), arena);
}

bool json_i64(const struct json *v, int64_t *ret)
{
    double d;
    if (v->kind != JSON_NUMBER)
        return false;
    if (num_parse_i64(v->text, ret))
        return true;
    if (!num_parse_double(v->text, &d) || d != floor(d) || fabs(d) > 9007199254740992.0)
        return false;
    *ret = (int64_t)d;
    return true;
}

void json_begin(struct json_walk *w, const struct json *v)
{
    assert(v->kind == JSON_ARRAY || v->kind == JSON_OBJECT);
    w->rest = slice_of(v->text.p + 1, v->text.n - 1);
}

/* The value that the rest begins with; the rest moves behind it and the comma there. */
static struct json take_value(struct json_walk *w)
{
    struct checker c = {.p = w->rest.p, .end = w->rest.p + w->rest.n};
    skip_space(&c);
    const char *start = c.p;
    bool ok = check_value(&c);
    assert(ok);
    (void)ok;
    struct json v = {kind_of(*start), slice_of(start, (size_t)(c.p - start))};
    skip_space(&c);
    if (c.p < c.end && *c.p == ',')
        c.p++;
    w->rest = slice_of(c.p, (size_t)(c.end - c.p));
    return v;
}

/* Whether something comes before the closing bracket. */
static bool has_more(struct json_walk *w)
{
    struct checker c = {.p = w->rest.p, .end = w->rest.p + w->rest.n};
    skip_space(&c);
    w->rest = slice_of(c.p, (size_t)(c.end - c.p));
    return w->rest.n > 1;
}

bool json_next_item(struct json_walk *w, struct json *ret)
{
    if (!has_more(w))
        return false;
    *ret = take_value(w);
    return true;
}

bool json_next_member(struct json_walk *w, struct arena *arena, struct slice *ret_name, struct json *ret)
{
    if (!has_more(w))
        return false;
    struct checker c = {.p = w->rest.p, .end = w->rest.p + w->rest.n};
    const char *quote = c.p;
    bool ok = check_name(&c);
    assert(ok);
    (void)ok;
    const char *close = c.p - 1; /* the colon; before it, the closing quote */
    while (*close != '"')
        close--;
    *ret_name = unquote(slice_of(quote + 1, (size_t)(close - quote - 1)), arena);
    w->rest = slice_of(c.p, (size_t)(c.end - c.p));
    *ret = take_value(w);
    return true;
}

size_t json_count(const struct json *v)
{
    struct json_walk w;
    struct json ignored;
    size_t n = 0;
    json_begin(&w, v);
    while (has_more(&w)) {
        if (v->kind == JSON_OBJECT) {
            struct checker c = {.p = w.rest.p, .end = w.rest.p + w.rest.n};
            bool ok = check_name(&c);
            assert(ok);
            (void)ok;
            w.rest = slice_of(c.p, (size_t)(c.end - c.p));
        }
        ignored = take_value(&w);
        n++;
    }
    (void)ignored;
    return n;
}

const char *json_kind_name(enum json_kind kind)
{
    static const char *const names[] = {
        [JSON_NULL] = "null",       [JSON_FALSE] = "false",     [JSON_TRUE] = "true",
        [JSON_NUMBER] = "a number", [JSON_STRING] = "a string", [JSON_ARRAY] = "an array",
        [JSON_OBJECT] = "an object"};
    return names[kind];
}

/* ---- writing ---- */

/* Adds one byte that does not stand for itself. */
static size_t add_escape(char *to, uint8_t c)
{
    static const char digits16[] = "0123456789abcdef";
    static const char short_forms[] = {['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};
    to[0] = '\\';
    if (c == '"' || c == '\\') {
        to[1] = (char)c;
        return 2;
    }
    if (c < sizeof short_forms && short_forms[c]) {
        to[1] = short_forms[c];
        return 2;
    }
    memcpy(to + 1, "u00", 3);
    to[4] = digits16[c >> 4];
    to[5] = digits16[c & 15];
    return 6;
}

/* Up to where bytes stand for themselves. */
static size_t plain_run(const char *p, size_t n)
{
    size_t i = 0;
    while (i < n && (uint8_t)p[i] >= 0x20 && (uint8_t)p[i] < 0x80 && p[i] != '"' && p[i] != '\\')
        i++;
    return i;
}

static bool add_string(struct buf *out, struct slice s, bool lossy)
{
    size_t was = out->len;
    buf_reserve(out, s.n + 2);
    buf_add(out, "\"", 1);
    for (size_t i = 0; i < s.n;) {
        size_t n = plain_run(s.p + i, s.n - i);
        buf_add(out, s.p + i, n);
        i += n;
        if (i == s.n)
            break;
        if ((uint8_t)s.p[i] < 0x80) {
            out->len += add_escape(buf_reserve(out, 6), (uint8_t)s.p[i++]);
            continue;
        }
        n = utf8_length(s.p + i, s.n - i);
        if (n == 0 && !lossy) {
            out->len = was;
            return false;
        }
        if (n)
            buf_add(out, s.p + i, n);
        else
            buf_add(out, "\xEF\xBF\xBD", 3);
        i += n ? n : 1;
    }
    buf_add(out, "\"", 1);
    return true;
}

bool json_add_string(struct buf *out, struct slice s)
{
    return add_string(out, s, false);
}

void json_add_lossy(struct buf *out, struct slice s)
{
    (void)add_string(out, s, true);
}

void json_add_base64(struct buf *out, struct slice s)
{
    buf_add(out, "\"", 1);
    base64_add(out, s);
    buf_add(out, "\"", 1);
}

void json_add_i64(struct buf *out, int64_t v)
{
    out->len += num_format_i64(buf_reserve(out, NUM_I64_CHARS), v);
}

void json_add_double(struct buf *out, double v)
{
    if (isinf(v)) {
        buf_add_slice(out, v > 0 ? SLICE("\"inf\"") : SLICE("\"-inf\""));
        return;
    }
    out->len += num_format_double(buf_reserve(out, 128), v);
}
