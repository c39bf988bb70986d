/* Walking the keys: SCAN in pages, KEYS in one go.

   SCAN's cursor is the number of the last row it looked at. Rows are walked from the newest to the oldest and
   keep their number as long as they are in the table, so a key that is there during a whole iteration is
   returned whatever else is written meanwhile, and keys created meanwhile cannot make an iteration endless.
   The server remembers nothing about iterations. */
#include "command/scan.h"

#include "base/glob.h"
#include "base/num.h"
#include "command/families.h"
#include "exec/args.h"

/* Rows that one page looks at, at most: COUNT is a hint, and a page of any size would stop everyone else. */
#define SCAN_COUNT_MAX     100000
#define SCAN_COUNT_DEFAULT 10

struct page_word {
    struct page_word *next;
    struct slice word;
};

/* What strtoul takes, as in Redis: a decimal number below 2^64 with a sign if need be (a negative one wraps
   around) and nothing else, up to a NUL. An empty word is zero. */
static bool parse_cursor(struct slice s, uint64_t *ret)
{
    const char *nul = s.n ? memchr(s.p, '\0', s.n) : NULL;
    size_t end = nul ? (size_t)(nul - s.p) : s.n;
    bool negative = end && s.p[0] == '-';
    size_t i = negative || (end && s.p[0] == '+');
    if (i && i == end)
        return false;
    uint64_t v = 0;
    for (; i < end; i++) {
        if (s.p[i] < '0' || s.p[i] > '9' || __builtin_mul_overflow(v, 10, &v) ||
            __builtin_add_overflow(v, (uint64_t)(s.p[i] - '0'), &v))
            return false;
    }
    *ret = negative ? 0 - v : v;
    return true;
}

static enum row_type type_named(struct slice word)
{
    for (enum row_type t = ROW_STRING; t <= ROW_TABLE; t++)
        if (slice_is(word, row_type_name(t)))
            return t;
    return ROW_NONE;
}

bool scan_cursor(struct call *c, int i, struct scan_page *s)
{
    uint64_t given;
    *s = (struct scan_page){.arena = c->arena, .count = SCAN_COUNT_DEFAULT};
    s->end = &s->first;
    if (!parse_cursor(c->argv[i], &given)) {
        reply_error(c->reply, "ERR invalid cursor");
        return false;
    }
    s->cursor = given < INT64_MAX ? (int64_t)given : INT64_MAX;
    return true;
}

bool scan_options(struct call *c, int first, bool keys, struct scan_page *s)
{
    for (int i = first; i < c->argc; i += 2) {
        bool has_value = i + 1 < c->argc;
        if (has_value && slice_is(c->argv[i], "count")) {
            int64_t count;
            if (!arg_i64(c, i + 1, &count, NULL))
                return false;
            if (count < 1) {
                reply_error(c->reply, ERR_SYNTAX);
                return false;
            }
            s->count = count < SCAN_COUNT_MAX ? (uint32_t)count : SCAN_COUNT_MAX;
        } else if (has_value && slice_is(c->argv[i], "match")) {
            bool all = slice_eq(c->argv[i + 1], SLICE("*"));
            s->pattern = all ? (struct slice){NULL, 0} : c->argv[i + 1];
        } else if (has_value && keys && slice_is(c->argv[i], "type")) {
            s->typed = true;
            s->type = type_named(c->argv[i + 1]);
        } else {
            reply_error(c->reply, ERR_SYNTAX);
            return false;
        }
    }
    return true;
}

bool scan_wants(const struct scan_page *s, struct slice name)
{
    return !s->pattern.p || glob_match(s->pattern, name, false);
}

void scan_add(struct scan_page *s, struct slice word)
{
    struct page_word *w = arena_alloc(s->arena, sizeof *w + word.n);
    char *bytes = (char *)(w + 1);
    if (word.n)
        memcpy(bytes, word.p, word.n);
    *w = (struct page_word){NULL, {bytes, word.n}};
    *s->end = w;
    s->end = &w->next;
    s->n++;
}

void scan_reply(struct call *c, const struct scan_page *s)
{
    reply_array(c->reply, 2);
    reply_bulk_i64(c->reply, s->cursor);
    reply_array(c->reply, s->n);
    for (const struct page_word *w = s->first; w; w = w->next)
        reply_bulk(c->reply, w->word);
}

static enum status add_key(void *arg, struct slice key, const struct key_row *row)
{
    struct scan_page *s = arg;
    if ((!s->typed || row->type == s->type) && scan_wants(s, key))
        scan_add(s, key);
    return ST_OK;
}

static enum status scan(struct call *c)
{
    struct scan_page s;
    if (!scan_cursor(c, 1, &s) || !scan_options(c, 2, true, &s))
        return ST_OK;
    enum status st = view_scan(c->view, call_db(c), &s.cursor, s.count, add_key, &s);
    if (st == ST_OK)
        scan_reply(c, &s);
    return st;
}

struct listing {
    struct reply *reply;
    struct slice pattern;
    bool all; /* the prefix is the whole pattern but for a last "*": no key needs to be matched again */
    size_t n;
};

static enum status list_key(void *arg, struct slice key, const struct key_row *row)
{
    struct listing *l = arg;
    (void)row;
    if (l->all || glob_match(l->pattern, key, false)) {
        reply_bulk(l->reply, key);
        l->n++;
    }
    return ST_OK;
}

static enum status keys(struct call *c)
{
    struct listing l = {.reply = c->reply, .pattern = c->argv[1]};
    struct slice prefix = glob_prefix(l.pattern);
    l.all = l.pattern.n == prefix.n + 1 && l.pattern.p[prefix.n] == '*';
    size_t mark = reply_begin_deferred(c->reply);
    enum status st = view_each_key(c->view, call_db(c), prefix, list_key, &l);
    if (st == ST_OK)
        reply_end_deferred(c->reply, mark, REPLY_ARRAY, l.n);
    return st;
}

/* clang-format off */
const struct command scan_commands[] = {
    {
        .name = "keys", .fn = keys, .arity = 2, .flags = CMD_READONLY,
        .categories = CAT_KEYSPACE | CAT_READ | CAT_SLOW | CAT_DANGEROUS,
        .summary = "Lists the keys that match a pattern.", .since = "1.0.0", .group = "generic",
        .complexity = "O(N) in the keys that start with what the pattern has before its first wildcard.",
        .tips = {"request_policy:all_shards", "nondeterministic_output_order"},
    },
    {
        .name = "scan", .fn = scan, .arity = -2, .flags = CMD_READONLY,
        .categories = CAT_KEYSPACE | CAT_READ | CAT_SLOW,
        .summary = "Lists the keys page by page.", .since = "2.8.0", .group = "generic",
        .complexity = "O(COUNT) for each page, O(N) in the keys for all of them.",
        .tips = {"nondeterministic_output", "request_policy:special"},
    },
    {.name = NULL},
};
/* clang-format on */
