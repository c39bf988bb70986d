/* LCS, without the table of all prefixes that the textbook fills.

   Let L(i, j) be the length of the longest common subsequence of the first i bytes of a and the first j bytes
   of b. Along a row i, L grows by 0 or 1 at each j, so a row is nb bits; and the next row follows from it by
   a few word operations for every 64 of them (Hyyrö 2004: V' = (V + (V & M)) | (V & ~M), where M marks the
   places of the byte a[i] in b, and a zero bit of V marks a step).

   The way back from (na, nb) needs no numbers either: where the bytes differ, L(i - 1, j) > L(i, j - 1)
   exactly when row i steps at j. Only every sqrt(na)-th row is kept on the way forth; the rows between two of
   them are computed again on the way back. So two strings of 64 KiB take 4 MiB and a tenth of a second
   instead of 16 GiB. */
#include "command/string/lcs.h"

#include <stdint.h>

#include "base/mem.h"
#include "command/families.h"
#include "exec/args.h"

#define MAX_CELLS  (1ULL << 34) /* about half a second */
#define MAX_MEMORY (256ULL << 20)

/* ---- rows of steps ---- */

struct table {
    struct slice a, b;
    size_t words;        /* of a row */
    uint64_t *places;    /* a row of marks for each byte value that both strings have */
    uint16_t index[256]; /* 1 + which of them; 0: no place in b */
    uint64_t *empty;     /* the marks of every other byte */
};

static size_t row_words(size_t nb)
{
    return nb / 64 + 1;
}

static size_t square_root(size_t n)
{
    size_t r = 1;
    while (r * r < n)
        r += r / 8 + 1;
    return r;
}

/* An upper bound for lcs_each_run, in bytes. */
static uint64_t memory_needed(size_t na, size_t nb)
{
    uint64_t bytes_marked = na < 256 ? na : 256;
    return (bytes_marked + 4 + 3 * square_root(na)) * row_words(nb) * sizeof(uint64_t);
}

bool lcs_affordable(size_t a, size_t b)
{
    uint64_t cells;
    if (!a || !b)
        return true;
    return !__builtin_mul_overflow(a, b, &cells) && cells <= MAX_CELLS && memory_needed(a, b) <= MAX_MEMORY;
}

static void table_init(struct table *t, struct slice a, struct slice b)
{
    bool in_a[256] = {false};
    uint16_t marked = 0;
    *t = (struct table){.a = a, .b = b, .words = row_words(b.n)};
    for (size_t i = 0; i < a.n; i++)
        in_a[(unsigned char)a.p[i]] = true;
    for (size_t j = 0; j < b.n; j++) {
        unsigned char byte = (unsigned char)b.p[j];
        if (in_a[byte] && !t->index[byte])
            t->index[byte] = ++marked;
    }
    t->empty = mem_zalloc((1 + (size_t)marked) * t->words * sizeof *t->places);
    t->places = t->empty + t->words;
    for (size_t j = 0; j < b.n; j++) {
        uint16_t k = t->index[(unsigned char)b.p[j]];
        if (k)
            t->places[(size_t)(k - 1) * t->words + j / 64] |= 1ULL << (j % 64);
    }
}

static void table_release(struct table *t)
{
    mem_free(t->empty);
}

/* Row i + 1 from row i; both may be the same memory. */
static void next_row(const struct table *t, size_t i, const uint64_t *row, uint64_t *next)
{
    uint16_t k = t->index[(unsigned char)t->a.p[i]];
    const uint64_t *marks = k ? t->places + (size_t)(k - 1) * t->words : t->empty;
    uint64_t carry = 0;
    for (size_t w = 0; w < t->words; w++) {
        uint64_t v = row[w], sum;
        uint64_t over = __builtin_add_overflow(v, v & marks[w], &sum);
        over |= __builtin_add_overflow(sum, carry, &sum);
        next[w] = sum | (v & ~marks[w]);
        carry = over;
    }
}

static void first_row(const struct table *t, uint64_t *row)
{
    memset(row, 0xff, t->words * sizeof *row);
}

/* L at the end of a row. The bits behind b's last byte never step. */
static size_t row_length(const struct table *t, const uint64_t *row)
{
    size_t n = 0;
    for (size_t w = 0; w < t->words; w++)
        n += (size_t)__builtin_popcountll(~row[w]);
    return n;
}

static bool steps_at(const uint64_t *row, size_t j)
{
    return !(row[j / 64] >> (j % 64) & 1);
}

size_t lcs_length(struct slice a, struct slice b)
{
    struct table t;
    table_init(&t, a, b);
    uint64_t *row = mem_alloc(t.words * sizeof *row);
    first_row(&t, row);
    for (size_t i = 0; i < a.n; i++)
        next_row(&t, i, row, row);
    size_t n = row_length(&t, row);
    mem_free(row);
    table_release(&t);
    return n;
}

/* ---- the way back ---- */

struct path {
    struct table t;
    size_t stride;  /* rows 0, stride, 2 * stride, ... are kept */
    uint64_t *kept; /* those */
    uint64_t *rows; /* rows base + 1 .. base + stride */
    size_t base;
    lcs_run_fn *fn;
    void *arg;
};

static uint64_t *path_kept(const struct path *p, size_t i)
{
    return p->kept + i / p->stride * p->t.words;
}

/* Makes the rows above the kept row `base` available, those that a has. */
static void path_load(struct path *p, size_t base)
{
    const uint64_t *row = path_kept(p, base);
    size_t end = p->t.a.n - base < p->stride ? p->t.a.n : base + p->stride;
    for (size_t i = base; i < end; i++) {
        uint64_t *next = p->rows + (i - base) * p->t.words;
        next_row(&p->t, i, row, next);
        row = next;
    }
    p->base = base;
}

/* Row i, 0 < i <= na; i never grows from one call to the next. */
static const uint64_t *path_row(struct path *p, size_t i)
{
    if (i <= p->base)
        path_load(p, (i - 1) / p->stride * p->stride);
    return p->rows + (i - 1 - p->base) * p->t.words;
}

static void path_walk(struct path *p)
{
    const char *a = p->t.a.p, *b = p->t.b.p;
    size_t i = p->t.a.n, j = p->t.b.n, run = 0;
    path_load(p, (i - 1) / p->stride * p->stride);
    while (i && j) {
        if (a[i - 1] == b[j - 1]) {
            run++;
            i--;
            j--;
            continue;
        }
        if (run)
            p->fn(p->arg, i, j, run);
        run = 0;
        if (steps_at(path_row(p, i), j - 1))
            i--;
        else
            j--;
    }
    if (run)
        p->fn(p->arg, i, j, run);
}

size_t lcs_each_run(struct slice a, struct slice b, lcs_run_fn *fn, void *arg)
{
    struct path p = {.stride = square_root(a.n), .fn = fn, .arg = arg};
    if (!a.n || !b.n)
        return 0;
    table_init(&p.t, a, b);
    size_t bytes = p.t.words * sizeof *p.rows;
    p.kept = mem_alloc((a.n / p.stride + 1) * bytes);
    p.rows = mem_alloc(p.stride * bytes);
    uint64_t *row = mem_alloc(bytes);
    first_row(&p.t, row);
    for (size_t i = 0; i < a.n; i++) {
        if (i % p.stride == 0)
            memcpy(path_kept(&p, i), row, bytes);
        next_row(&p.t, i, row, row);
    }
    size_t n = row_length(&p.t, row);
    path_walk(&p);
    mem_free(row);
    mem_free(p.rows);
    mem_free(p.kept);
    table_release(&p.t);
    return n;
}

/* ---- the command ---- */

struct options {
    bool idx, len, with_match_len;
    int64_t min_match_len;
};

static bool parse_options(struct call *c, struct options *o)
{
    *o = (struct options){0};
    for (int i = 3; i < c->argc; i++) {
        if (slice_is(c->argv[i], "idx")) {
            o->idx = true;
        } else if (slice_is(c->argv[i], "len")) {
            o->len = true;
        } else if (slice_is(c->argv[i], "withmatchlen")) {
            o->with_match_len = true;
        } else if (slice_is(c->argv[i], "minmatchlen") && i + 1 < c->argc) {
            if (!arg_i64(c, ++i, &o->min_match_len, NULL))
                return false;
        } else {
            reply_error(c->reply, ERR_SYNTAX);
            return false;
        }
    }
    if (o->idx && o->len)
        reply_error(c->reply, "ERR If you want both the length and indexes, please just use IDX.");
    return !(o->idx && o->len);
}

struct runs {
    struct reply *reply;
    const struct options *o;
    size_t replied;
};

static void reply_range(struct reply *r, size_t at, size_t n)
{
    reply_array(r, 2);
    reply_integer(r, (int64_t)at);
    reply_integer(r, (int64_t)(at + n - 1));
}

static void reply_run(void *arg, size_t at_a, size_t at_b, size_t n)
{
    struct runs *runs = arg;
    if ((int64_t)n < runs->o->min_match_len)
        return;
    reply_array(runs->reply, runs->o->with_match_len ? 3 : 2);
    reply_range(runs->reply, at_a, n);
    reply_range(runs->reply, at_b, n);
    if (runs->o->with_match_len)
        reply_integer(runs->reply, (int64_t)n);
    runs->replied++;
}

static void reply_runs(struct call *c, const struct options *o, struct slice a, struct slice b)
{
    struct runs runs = {.reply = c->reply, .o = o};
    reply_map(c->reply, 2);
    reply_bulk_str(c->reply, "matches");
    size_t mark = reply_begin_deferred(c->reply);
    size_t n = lcs_each_run(a, b, reply_run, &runs);
    reply_end_deferred(c->reply, mark, REPLY_ARRAY, runs.replied);
    reply_bulk_str(c->reply, "len");
    reply_integer(c->reply, (int64_t)n);
}

/* Fills a text from its end. */
struct text {
    const char *a;
    char *at;
};

static void add_run(void *arg, size_t at_a, size_t at_b, size_t n)
{
    struct text *text = arg;
    (void)at_b;
    text->at -= n;
    memcpy(text->at, text->a + at_a, n);
}

static void reply_text(struct call *c, struct slice a, struct slice b)
{
    size_t cap = a.n < b.n ? a.n : b.n;
    char *p = arena_alloc(c->arena, cap + 1);
    struct text text = {.a = a.p, .at = p + cap};
    size_t n = lcs_each_run(a, b, add_run, &text);
    reply_bulk(c->reply, slice_of(text.at, n));
}

/* May strings of these lengths be compared? If not, the error has been replied. */
static bool lengths_allowed(struct call *c, int64_t a, int64_t b)
{
    const char *error = NULL;
    if (a >= UINT32_MAX - 1 || b >= UINT32_MAX - 1)
        error = "ERR String too long for LCS";
    else if (!lcs_affordable((size_t)a, (size_t)b))
        error = "ERR Insufficient memory, failed allocating transient memory for LCS";
    if (error)
        reply_error(c->reply, error);
    return !error;
}

static enum status lcs_command(struct call *c)
{
    const struct row *rows[2];
    int64_t size[2];
    struct slice s[2] = {SLICE(""), SLICE("")};
    struct options o;
    enum status st;
    for (int i = 0; i < 2; i++) {
        if ((st = arg_any(c, i + 1, &rows[i])) != ST_OK)
            return st;
        size[i] = rows[i] && rows[i]->type == ROW_STRING ? row_string_size(rows[i]) : 0;
    }
    if ((rows[0] && rows[0]->type != ROW_STRING) || (rows[1] && rows[1]->type != ROW_STRING)) {
        reply_error(c->reply, "ERR The specified keys must contain string values");
        return ST_OK;
    }
    if (!parse_options(c, &o) || !lengths_allowed(c, size[0], size[1]))
        return ST_OK;
    for (int i = 0; i < 2 && size[0] && size[1]; i++) {
        if ((st = view_string(c->view, rows[i], c->arena, &s[i])) != ST_OK)
            return st;
    }
    if (o.idx)
        reply_runs(c, &o, s[0], s[1]);
    else if (o.len)
        reply_integer(c->reply, (int64_t)lcs_length(s[0], s[1]));
    else
        reply_text(c, s[0], s[1]);
    return ST_OK;
}

/* ---- table ---- */

const struct command lcs_commands[] = {
    {.name = "lcs",
     .fn = lcs_command,
     .arity = -3,
     .flags = CMD_READONLY,
     .categories = CAT_READ | CAT_STRING | CAT_SLOW,
     .keys = {{.flags = KEY_RO | KEY_ACCESS, .index = 1, .last = 1, .step = 1}},
     .summary = "Finds the longest common subsequence of two strings.",
     .since = "7.0.0",
     .group = "string",
     .complexity = "O(N*M/64) for strings of N and M bytes, in memory of O(M*sqrt(N)/8) bytes"},
    {.name = NULL},
};
