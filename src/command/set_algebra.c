/* Intersections, unions and differences of sets, as replies, as counts and stored.

   A walk over a set in the tables must not read anything else, so the set that is walked over comes in
   pieces, and of each piece those members go on to the result that the other sets have, or don't have. They
   go straight to where the result belongs: no second copy of it is made. What is small is remembered on the
   way, where that saves looking it up again and again. */
#include "command/set.h"

#include <stdlib.h>

#include "base/buf.h"
#include "command/families.h"
#include "command/scores.h"
#include "exec/args.h"

#define PIECE    512    /* members looked at together */
#define REMEMBER 100000 /* names kept in memory at most */

struct piece {
    struct arena arena; /* of the names */
    struct slice names[PIECE];
    size_t n;
    bool in[PIECE];  /* what a set answered about each */
    struct buf last; /* where the next piece begins */
};

/* What a command works on, and where its result goes. */
struct algebra {
    struct call *c;
    struct coll **sets; /* those that are not empty */
    int nsets;
    bool none;         /* the first one is empty (SDIFF), or any is (SINTER) */
    struct coll *into; /* NULL: into the reply */
    bool count_only;   /* SINTERCARD */
    int64_t limit;     /* members wanted at most */
    int64_t found;
    struct scores seen; /* names that are out of the question */
    struct piece *piece;
};

/* ---- pieces ---- */

static enum status take_name(void *arg, const struct coll_item *item)
{
    struct piece *p = arg;
    p->names[p->n++] = arena_copy(&p->arena, item->name);
    return ST_OK;
}

/* The next piece of a set, or (more false) the first one. The last one is empty. */
static enum status next_piece(struct piece *p, struct coll *s, bool more)
{
    arena_reset(&p->arena);
    p->n = 0;
    struct slice after = more ? slice_of(p->last.p ? p->last.p : "", p->last.len) : slice_of(NULL, 0);
    enum status st = coll_piece(s, after, PIECE, take_name, p);
    p->last.len = 0;
    if (p->n)
        buf_add_slice(&p->last, p->names[p->n - 1]);
    return st;
}

/* Leaves those in the piece that s has, or those that it does not have. */
static enum status filter(struct piece *p, struct coll *s, bool have)
{
    enum status st = coll_has(s, p->names, p->n, p->in);
    size_t n = 0;
    for (size_t i = 0; st == ST_OK && i < p->n; i++)
        if (p->in[i] == have)
            p->names[n++] = p->names[i];
    p->n = n;
    return st;
}

/* Leaves those in the piece that have not been seen; noted, they have been from now on. */
static void filter_seen(struct algebra *a, bool note)
{
    struct piece *p = a->piece;
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++) {
        bool fresh = !scores_find(&a->seen, p->names[i]);
        if (fresh && note)
            scores_add(&a->seen, p->names[i], &fresh);
        if (fresh)
            p->names[n++] = p->names[i];
    }
    p->n = n;
}

/* What is left of a piece belongs to the result. */
static enum status put_out(struct algebra *a)
{
    const struct piece *p = a->piece;
    enum status st = ST_OK;
    for (size_t i = 0; st == ST_OK && i < p->n && a->found < a->limit; i++) {
        a->found++;
        if (a->into) {
            struct coll_item item = {.name = arena_copy(view_arena(a->c->view), p->names[i])};
            st = coll_put_known(a->into, &item, NULL);
        } else if (!a->count_only) {
            reply_bulk(a->c->reply, p->names[i]);
        }
    }
    return st;
}

/* ---- the three operations ---- */

typedef enum status operation(struct algebra *a);

static int by_size(const void *a, const void *b)
{
    int64_t x = coll_size(*(struct coll *const *)a), y = coll_size(*(struct coll *const *)b);
    return (x > y) - (x < y);
}

static enum status intersection(struct algebra *a)
{
    struct piece *p = a->piece;
    qsort(a->sets, (size_t)a->nsets, sizeof(struct coll *), by_size);
    enum status st = next_piece(p, a->sets[0], false);
    while (st == ST_OK && p->n && a->found < a->limit) {
        for (int i = 1; st == ST_OK && i < a->nsets && p->n; i++)
            st = filter(p, a->sets[i], true);
        if (st == ST_OK)
            st = put_out(a);
        if (st == ST_OK)
            st = next_piece(p, a->sets[0], true);
    }
    return st;
}

/* How many members the sets from `first` on have, up to `end`. */
static int64_t total(const struct algebra *a, int first, int end)
{
    int64_t n = 0;
    for (int i = first; i < end; i++)
        n += coll_size(a->sets[i]);
    return n;
}

/* One more set of a union: those behind it have been, those before it are still to come. */
static enum status unite(struct algebra *a, int k, bool remember)
{
    struct piece *p = a->piece;
    int largest = a->nsets - 1, least = remember ? largest : k + 1;
    enum status st = next_piece(p, a->sets[k], false);
    while (st == ST_OK && p->n) {
        for (int i = largest; st == ST_OK && i >= least && i > k && p->n; i--)
            st = filter(p, a->sets[i], false);
        if (remember && k < largest)
            filter_seen(a, k > 0);
        if (st == ST_OK)
            st = put_out(a);
        if (st == ST_OK)
            st = next_piece(p, a->sets[k], true);
    }
    return st;
}

/* The largest set first, whole. Of each other one those members that the largest does not have, and none of
   the sets between them, whose members are remembered for that unless they are too many. */
static enum status set_union(struct algebra *a)
{
    enum status st = ST_OK;
    qsort(a->sets, (size_t)a->nsets, sizeof(struct coll *), by_size);
    bool remember = a->nsets > 2 && total(a, 0, a->nsets - 1) <= REMEMBER;
    for (int k = a->nsets - 1; st == ST_OK && k >= 0; k--)
        st = unite(a, k, remember);
    return st;
}

static enum status note_name(void *arg, const struct coll_item *item)
{
    bool added;
    scores_add(arg, item->name, &added);
    return ST_OK;
}

static enum status difference(struct algebra *a)
{
    struct piece *p = a->piece;
    enum status st = ST_OK;
    int64_t size = coll_size(a->sets[0]), others = total(a, 1, a->nsets);
    bool remember = size * (a->nsets - 1) > PIECE && others <= size && others <= REMEMBER;
    for (int i = 1; remember && st == ST_OK && i < a->nsets; i++)
        st = coll_each(a->sets[i], note_name, &a->seen);
    if (st == ST_OK)
        st = next_piece(p, a->sets[0], false);
    while (st == ST_OK && p->n) {
        if (remember)
            filter_seen(a, false);
        for (int i = 1; !remember && st == ST_OK && i < a->nsets && p->n; i++)
            st = filter(p, a->sets[i], false);
        if (st == ST_OK)
            st = put_out(a);
        if (st == ST_OK)
            st = next_piece(p, a->sets[0], true);
    }
    return st;
}

static enum status run(struct algebra *a, operation *op)
{
    if (a->none || a->nsets == 0)
        return ST_OK;
    struct piece *p = arena_alloc(a->c->arena, sizeof *p);
    p->n = 0;
    p->arena = (struct arena){0};
    p->last = (struct buf){0};
    a->piece = p;
    a->seen.arena = a->c->arena;
    enum status st = op(a);
    arena_release(&p->arena);
    buf_release(&p->last);
    scores_release(&a->seen);
    return st;
}

/* ---- commands ---- */

/* Opens argv[first] and the n - 1 behind it. *ret_ok is false when one holds another type, which has been
   replied. */
static enum status open_sets(struct call *c, struct algebra *a, int first, int n, operation *op, bool *ret_ok)
{
    *a = (struct algebra){.c = c, .limit = INT64_MAX};
    a->sets = arena_alloc(c->arena, (size_t)n * sizeof(struct coll *));
    *ret_ok = false;
    view_count_lookups(c->view, true);
    for (int i = 0; i < n; i++) {
        struct coll *s;
        bool wrong;
        enum status st = set_open(c, first + i, &s, &wrong);
        if (st != ST_OK || wrong)
            return st;
        if (s)
            a->sets[a->nsets++] = s;
        else
            a->none |= op == intersection || (op == difference && i == 0);
    }
    *ret_ok = true;
    return ST_OK;
}

static enum status reply_result(struct call *c, operation *op)
{
    struct algebra a;
    bool ok;
    enum status st = open_sets(c, &a, 1, c->argc - 1, op, &ok);
    if (st != ST_OK || !ok)
        return st;
    size_t mark = reply_begin_deferred(c->reply);
    st = run(&a, op);
    if (st == ST_OK)
        reply_end_deferred(c->reply, mark, REPLY_SET, (size_t)a.found);
    return st;
}

static enum status store_result(struct call *c, operation *op)
{
    struct algebra a;
    bool ok;
    enum status st = open_sets(c, &a, 2, c->argc - 2, op, &ok);
    if (st != ST_OK || !ok)
        return st;
    st = coll_replace(c->view, call_db(c), c->argv[1], ROW_SET, &a.into);
    if (st == ST_OK)
        st = run(&a, op);
    if (st == ST_OK)
        st = coll_save(a.into);
    if (st == ST_OK)
        reply_integer(c->reply, a.found);
    return st;
}

static enum status sinter(struct call *c)
{
    return reply_result(c, intersection);
}

static enum status sunion(struct call *c)
{
    return reply_result(c, set_union);
}

static enum status sdiff(struct call *c)
{
    return reply_result(c, difference);
}

static enum status sinterstore(struct call *c)
{
    return store_result(c, intersection);
}

static enum status sunionstore(struct call *c)
{
    return store_result(c, set_union);
}

static enum status sdiffstore(struct call *c)
{
    return store_result(c, difference);
}

/* numkeys key [key ...] [LIMIT limit]; a limit of 0 is none. */
static bool read_intercard(struct call *c, int *ret_nkeys, int64_t *ret_limit)
{
    int64_t n;
    *ret_limit = 0;
    if (!arg_range(c, 1, 1, INT64_MAX, &n, "ERR numkeys should be greater than 0"))
        return false;
    if (n > c->argc - 2) {
        reply_error(c->reply, "ERR Number of keys can't be greater than number of args");
        return false;
    }
    *ret_nkeys = (int)n;
    for (int i = 2 + *ret_nkeys; i < c->argc; i += 2) {
        if (!slice_is(c->argv[i], "limit") || i + 1 == c->argc) {
            reply_error(c->reply, ERR_SYNTAX);
            return false;
        }
        if (!arg_range(c, i + 1, 0, INT64_MAX, ret_limit, "ERR LIMIT can't be negative"))
            return false;
    }
    return true;
}

static enum status sintercard(struct call *c)
{
    struct algebra a;
    int nkeys;
    int64_t limit;
    bool ok;
    if (!read_intercard(c, &nkeys, &limit))
        return ST_OK;
    enum status st = open_sets(c, &a, 2, nkeys, intersection, &ok);
    if (st != ST_OK || !ok)
        return st;
    a.count_only = true;
    if (limit)
        a.limit = limit;
    st = run(&a, intersection);
    if (st == ST_OK)
        reply_integer(c->reply, a.found);
    return st;
}

/* clang-format off */
#define READS \
    .arity = -2, .flags = CMD_READONLY, .categories = CAT_READ | CAT_SET | CAT_SLOW, .group = "set", \
    .keys = {{.flags = KEY_RO | KEY_ACCESS, .index = 1, .last = -1, .step = 1}}, .since = "1.0.0", \
    .tips = {"nondeterministic_output_order"}
#define STORES(into) \
    .arity = -3, .flags = CMD_WRITE | CMD_DENYOOM, .categories = CAT_WRITE | CAT_SET | CAT_SLOW, \
    .keys = {{.flags = (into) | KEY_UPDATE, .index = 1, .step = 1}, \
             {.flags = KEY_RO | KEY_ACCESS, .index = 2, .last = -1, .step = 1}}, \
    .group = "set", .since = "1.0.0"
#define INTER_COST "O(N*K) with N members in the smallest of K sets."
#define UNION_COST "O(N) in the members of all sets."
#define DIFF_COST  "O(N) in the members of all sets, or O(N*K) in those of the first of K sets where that is less."

const struct command set_algebra_commands[] = {
    {
        .name = "sinter", .fn = sinter, READS, .complexity = INTER_COST,
        .summary = "Returns the members that all of several sets have.",
    },
    {
        .name = "sunion", .fn = sunion, READS, .complexity = UNION_COST,
        .summary = "Returns the members that any of several sets has.",
    },
    {
        .name = "sdiff", .fn = sdiff, READS, .complexity = DIFF_COST,
        .summary = "Returns the members of the first set that none of the others has.",
    },
    {
        .name = "sinterstore", .fn = sinterstore, STORES(KEY_RW), .complexity = INTER_COST,
        .summary = "Stores the members that all of several sets have in a key.",
    },
    {
        .name = "sunionstore", .fn = sunionstore, STORES(KEY_OW), .complexity = UNION_COST,
        .summary = "Stores the members that any of several sets has in a key.",
    },
    {
        .name = "sdiffstore", .fn = sdiffstore, STORES(KEY_OW), .complexity = DIFF_COST,
        .summary = "Stores the members of the first set that none of the others has in a key.",
    },
    {
        .name = "sintercard", .fn = sintercard, .arity = -3, .flags = CMD_READONLY | CMD_MOVABLEKEYS,
        .categories = CAT_READ | CAT_SET | CAT_SLOW, .group = "set",
        .keys = {{.flags = KEY_RO | KEY_ACCESS, .index = 1, .keynum = true, .keynum_first = 1, .step = 1}},
        .since = "7.0.0", .complexity = INTER_COST,
        .summary = "Counts the members that all of several sets have.",
    },
    {.name = NULL},
};
/* clang-format on */
