/* Functions of SQL whose own versions take time that nothing bounds: instr and replace look at every place
   with every byte, LIKE and GLOB go back at each wildcard, trim compares each character with each. These give
   the same answers, and ask between whiles whether the text may go on. */
#include <string.h>

#include "base/buf.h"
#include "query/query_internal.h"

#define TICK_BYTES 65536 /* looked at between two questions */
#define TRIM_CHARS 256

static struct slice bytes_of(sqlite3_value *v)
{
    const void *p = sqlite3_value_type(v) == SQLITE_BLOB ? sqlite3_value_blob(v) : sqlite3_value_text(v);
    return slice_of(p ? p : "", (size_t)sqlite3_value_bytes(v));
}

static struct slice text_of(sqlite3_value *v)
{
    const void *p = sqlite3_value_text(v);
    return slice_of(p ? p : "", (size_t)sqlite3_value_bytes(v));
}

static bool any_null(int argc, sqlite3_value **argv)
{
    for (int i = 0; i < argc; i++)
        if (sqlite3_value_type(argv[i]) == SQLITE_NULL)
            return true;
    return false;
}

/* The machine's own check ends the statement behind this function. */
static bool go_on(sqlite3_context *ctx, uint64_t bytes)
{
    struct query_engine *e = sqlite3_user_data(ctx);
    if (query_tick(e, bytes / 64))
        return true;
    sqlite3_result_error_code(ctx, SQLITE_INTERRUPT);
    return false;
}

static size_t length_of_char(const char *p, size_t n)
{
    size_t i = 1;
    if ((unsigned char)*p >= 0xc0)
        while (i < n && ((unsigned char)p[i] & 0xc0) == 0x80)
            i++;
    return i;
}

static void sql_instr(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    if (any_null(argc, argv))
        return;
    bool blobs = sqlite3_value_type(argv[0]) == SQLITE_BLOB && sqlite3_value_type(argv[1]) == SQLITE_BLOB;
    struct slice in = blobs ? bytes_of(argv[0]) : text_of(argv[0]);
    struct slice what = blobs ? bytes_of(argv[1]) : text_of(argv[1]);
    if (!go_on(ctx, in.n))
        return;
    const char *at = what.n ? memmem(in.p, in.n, what.p, what.n) : in.p;
    int64_t place = 0;
    if (at && blobs) {
        place = at - in.p + 1;
    } else if (at) {
        place = 1;
        for (const char *p = in.p; p < at; place++)
            p += length_of_char(p, (size_t)(at - p));
    }
    sqlite3_result_int64(ctx, place);
}

/* What replace() makes, as far as it is no longer than a value may be. */
static bool replace_all(sqlite3_context *ctx, struct slice in, struct slice what, struct slice by,
                        struct buf *out)
{
    size_t max = (size_t)sqlite3_limit(sqlite3_context_db_handle(ctx), SQLITE_LIMIT_LENGTH, -1);
    const char *at;
    buf_reserve(out, in.n + 1);
    while ((at = memmem(in.p, in.n, what.p, what.n))) {
        size_t before = (size_t)(at - in.p);
        if (out->len + before + by.n > max)
            break;
        buf_add(out, in.p, before);
        buf_add_slice(out, by);
        in = slice_of(at + what.n, in.n - before - what.n);
    }
    if (at || out->len + in.n > max) {
        sqlite3_result_error_toobig(ctx);
        return false;
    }
    buf_add_slice(out, in);
    return true;
}

static void sql_replace(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    if (any_null(argc, argv))
        return;
    struct slice in = text_of(argv[0]), what = text_of(argv[1]), by = text_of(argv[2]);
    struct buf out = {0};
    if (!what.n) {
        sqlite3_result_value(ctx, argv[0]);
        return;
    }
    if (go_on(ctx, in.n) && replace_all(ctx, in, what, by, &out))
        sqlite3_result_text64(ctx, out.p ? out.p : "", out.len, SQLITE_TRANSIENT, SQLITE_UTF8);
    buf_release(&out);
}

/* ---- trim ---- */

enum trim_side { TRIM_LEFT = 1, TRIM_RIGHT = 2 };

/* The characters that trim takes away, each a slice; false: they are too many. */
static bool characters(struct slice set, struct slice *ret, size_t *ret_n)
{
    *ret_n = 0;
    while (set.n) {
        size_t n = length_of_char(set.p, set.n);
        if (*ret_n == TRIM_CHARS)
            return false;
        ret[(*ret_n)++] = slice_of(set.p, n);
        set = slice_of(set.p + n, set.n - n);
    }
    return true;
}

static size_t trimmed(struct slice in, bool left, const struct slice *chars, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *p = left ? in.p : in.p + in.n - chars[i].n;
        if (chars[i].n <= in.n && memcmp(p, chars[i].p, chars[i].n) == 0)
            return chars[i].n;
    }
    return 0;
}

static void trim(sqlite3_context *ctx, int argc, sqlite3_value **argv, int sides)
{
    struct slice chars[TRIM_CHARS] = {SLICE(" ")};
    size_t nchars = 1, n;
    if (any_null(argc, argv))
        return;
    struct slice in = text_of(argv[0]);
    if (argc == 2 && !characters(text_of(argv[1]), chars, &nchars)) {
        sqlite3_result_error(ctx, "trim() with more than 256 characters", -1);
        return;
    }
    if (!go_on(ctx, in.n))
        return;
    while ((sides & TRIM_LEFT) && in.n && (n = trimmed(in, true, chars, nchars)))
        in = slice_of(in.p + n, in.n - n);
    while ((sides & TRIM_RIGHT) && in.n && (n = trimmed(in, false, chars, nchars)))
        in.n -= n;
    sqlite3_result_text64(ctx, in.p, in.n, SQLITE_TRANSIENT, SQLITE_UTF8);
}

static void sql_trim(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    trim(ctx, argc, argv, TRIM_LEFT | TRIM_RIGHT);
}

static void sql_ltrim(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    trim(ctx, argc, argv, TRIM_LEFT);
}

static void sql_rtrim(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    trim(ctx, argc, argv, TRIM_RIGHT);
}

/* ---- LIKE and GLOB ---- */

struct wildcards {
    char all, one;
    bool sets;   /* [a-z] */
    bool nocase; /* of ASCII */
    struct slice escape;
};

static unsigned char fold(char c)
{
    return (unsigned char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
}

static uint32_t code_point(const char *p, size_t n)
{
    unsigned char c = (unsigned char)*p;
    uint32_t v = c < 0xc0 ? c : c < 0xe0 ? c & 0x1fu : c < 0xf0 ? c & 0x0fu : c & 0x07u;
    for (size_t i = 1; i < n; i++)
        v = v << 6 | ((unsigned char)p[i] & 0x3fu);
    return v;
}

static uint32_t take(struct slice *s)
{
    size_t n = length_of_char(s->p, s->n);
    uint32_t c = code_point(s->p, n);
    *s = slice_of(s->p + n, s->n - n);
    return c;
}

/* Whether c is in the set at the front of the pattern, behind its [, which is taken off. False in *ret_whole:
   the set has no end, and nothing matches. */
static bool in_set(struct slice *pattern, uint32_t c, bool *ret_whole)
{
    bool found = false, invert = pattern->n && *pattern->p == '^', first = true;
    uint32_t before = 0;
    if (invert)
        (void)take(pattern);
    *ret_whole = false;
    while (pattern->n) {
        uint32_t p = take(pattern);
        if (p == ']' && !first) {
            *ret_whole = true;
            return found != invert;
        }
        first = false;
        if (p == '-' && before && pattern->n && *pattern->p != ']') {
            found |= c >= before && c <= take(pattern);
            before = 0;
            continue;
        }
        found |= c == p;
        before = p;
    }
    return false;
}

/* One character of the text against what the pattern has next, which is no wildcard for many. */
static bool one_matches(const struct wildcards *w, struct slice *pattern, struct slice *text)
{
    bool whole;
    if (w->escape.n && pattern->n > w->escape.n && memcmp(pattern->p, w->escape.p, w->escape.n) == 0)
        *pattern = slice_of(pattern->p + w->escape.n, pattern->n - w->escape.n);
    else if (*pattern->p == w->one)
        return take(pattern), take(text), true;
    else if (w->sets && *pattern->p == '[') {
        (void)take(pattern);
        bool in = in_set(pattern, take(text), &whole);
        return in && whole;
    }
    uint32_t p = take(pattern), t = take(text);
    return p == t || (w->nocase && p < 0x80 && t < 0x80 && fold((char)p) == fold((char)t));
}

/* From one wildcard for many to the next, and never back before the last one: no more than the product of the
   lengths. */
static bool matches(sqlite3_context *ctx, const struct wildcards *w, struct slice pattern, struct slice text)
{
    struct slice star = {0}, from = {0};
    uint64_t looked = 0;
    for (;;) {
        bool all = pattern.n && *pattern.p == w->all && !(w->escape.n == 1 && *w->escape.p == w->all);
        if (all) {
            (void)take(&pattern);
            star = pattern;
            star.p = pattern.p ? pattern.p : "";
            from = text;
            if (!pattern.n)
                return true;
            continue;
        }
        if (!text.n && !pattern.n)
            return true;
        if (++looked % TICK_BYTES == 0 && !go_on(ctx, TICK_BYTES))
            return false;
        if (text.n && pattern.n && one_matches(w, &pattern, &text))
            continue;
        if (!star.p || !from.n)
            return false;
        (void)take(&from);
        pattern = star;
        text = from;
    }
}

static void like_or_glob(sqlite3_context *ctx, struct wildcards w, int argc, sqlite3_value **argv)
{
    if (any_null(argc, argv))
        return;
    struct slice pattern = text_of(argv[0]), text = text_of(argv[1]);
    if (pattern.n >
        (size_t)sqlite3_limit(sqlite3_context_db_handle(ctx), SQLITE_LIMIT_LIKE_PATTERN_LENGTH, -1)) {
        sqlite3_result_error(ctx, "LIKE or GLOB pattern too complex", -1);
        return;
    }
    if (argc == 3) {
        w.escape = text_of(argv[2]);
        if (!w.escape.n || length_of_char(w.escape.p, w.escape.n) != w.escape.n) {
            sqlite3_result_error(ctx, "ESCAPE expression must be a single character", -1);
            return;
        }
    }
    bool yes = matches(ctx, &w, pattern, text);
    struct query_engine *e = sqlite3_user_data(ctx);
    if (e->stop == STOP_NONE)
        sqlite3_result_int(ctx, yes);
}

static void sql_like(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    like_or_glob(ctx, (struct wildcards){.all = '%', .one = '_', .nocase = true}, argc, argv);
}

static void sql_glob(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    like_or_glob(ctx, (struct wildcards){.all = '*', .one = '?', .sets = true}, argc, argv);
}

int functions_register(struct query_engine *e)
{
    static const struct {
        const char *name;
        int argc;
        void (*fn)(sqlite3_context *ctx, int argc, sqlite3_value **argv);
    } all[] = {
        {"instr", 2, sql_instr},    {"replace", 3, sql_replace}, {"trim", 1, sql_trim},
        {"trim", 2, sql_trim},      {"ltrim", 1, sql_ltrim},     {"ltrim", 2, sql_ltrim},
        {"rtrim", 1, sql_rtrim},    {"rtrim", 2, sql_rtrim},     {"like", 2, sql_like},
        {"like", 3, sql_like},      {"glob", 2, sql_glob},       {"printf", -1, sql_printf},
        {"format", -1, sql_printf},
    };
    int rc = SQLITE_OK;
    for (size_t i = 0; rc == SQLITE_OK && i < sizeof all / sizeof *all; i++)
        rc = sqlite3_create_function_v2(e->db, all[i].name, all[i].argc,
                                        SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, e, all[i].fn,
                                        NULL, NULL, NULL);
    return rc;
}
