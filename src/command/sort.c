/* SORT: the elements of a list, a set or a sorted set in order, by themselves or by the values of other keys,
   replied or stored as a list, or the values of other keys in their place.

   Patterns are texts in Redis, which end at a NUL; so do values that are compared with ALPHA, unless the
   result is stored. What is equal stays in the order it had. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/num.h"
#include "command/families.h"
#include "command/string/value.h"
#include "engine/coll.h"
#include "exec/args.h"

#define FETCHED 1000 /* keys at once */

/* ---- patterns ---- */

/* The name of a key, with an element of the collection in the place of its star, and a field of that key. */
struct pattern {
    bool self; /* "#": the element itself */
    bool none; /* no star: no key can be meant */
    struct slice before, behind;
    struct slice field; /* empty: the key is a string */
};

static struct slice up_to_nul(struct slice s)
{
    return slice_of(s.p, s.n ? strnlen(s.p, s.n) : 0);
}

static struct pattern read_pattern(struct slice s)
{
    struct slice text = up_to_nul(s);
    const char *end = s.p + s.n;
    const char *star = text.n ? memchr(text.p, '*', text.n) : NULL;
    struct pattern p = {.self = slice_eq(text, SLICE("#")), .none = !star};
    if (!star)
        return p;
    const char *behind = star + 1;
    size_t left = text.n - (size_t)(behind - text.p);
    const char *arrow = memmem(behind, left, "->", 2);
    if (arrow && arrow + 2 < text.p + text.n)
        p.field = slice_of(arrow + 2, (size_t)(end - arrow - 2));
    else
        arrow = end;
    p.before = slice_of(s.p, (size_t)(star - s.p));
    p.behind = slice_of(behind, (size_t)(arrow - behind));
    return p;
}

/* ---- arguments ---- */

struct element {
    struct slice name;
    struct slice by; /* ALPHA; p is NULL: there is nothing to compare */
    double score;    /* else */
    size_t place;    /* before sorting */
};

struct sorting {
    struct call *c;
    bool desc, alpha, as_is; /* as_is: BY a key that is always the same, so that nothing is sorted */
    bool by;
    struct pattern by_pattern;
    struct pattern *gets;
    int ngets;
    int64_t limit_start, limit_count;
    int store; /* argument of the key to store under; 0: none */

    struct coll *coll;
    enum row_type type;
    int64_t from, to; /* of the elements in order, those that are wanted */
    struct element *elements;
    size_t n;
    bool not_numbers;
    struct buf key, number;
};

/* Reads an option at argv[i] and returns where the next one begins; 0: an error has been replied. */
static int read_option(struct sorting *s, int i, bool stores)
{
    struct call *c = s->c;
    struct slice word = c->argv[i];
    int left = c->argc - i - 1;
    if (slice_is(word, "asc")) {
        s->desc = false;
    } else if (slice_is(word, "desc")) {
        s->desc = true;
    } else if (slice_is(word, "alpha")) {
        s->alpha = true;
    } else if (slice_is(word, "limit") && left >= 2) {
        if (!arg_i64(c, i + 1, &s->limit_start, NULL) || !arg_i64(c, i + 2, &s->limit_count, NULL))
            return 0;
        return i + 3;
    } else if (stores && slice_is(word, "store") && left >= 1) {
        s->store = i + 1;
        return i + 2;
    } else if (slice_is(word, "by") && left >= 1) {
        s->by = true;
        s->by_pattern = read_pattern(c->argv[i + 1]);
        s->as_is |= s->by_pattern.none;
        return i + 2;
    } else if (slice_is(word, "get") && left >= 1) {
        s->gets[s->ngets++] = read_pattern(c->argv[i + 1]);
        return i + 2;
    } else {
        reply_error(c->reply, ERR_SYNTAX);
        return 0;
    }
    return i + 1;
}

static bool read_options(struct sorting *s, bool stores)
{
    struct call *c = s->c;
    s->limit_count = -1;
    s->gets = arena_alloc(c->arena, (size_t)c->argc * sizeof *s->gets);
    for (int i = 2; i < c->argc;)
        if (!(i = read_option(s, i, stores)))
            return false;
    return true;
}

/* Where a key to store under stands among SORT's arguments, or -1. The last one counts. */
static int find_store(const struct slice *argv, int argc)
{
    int found = -1;
    for (int i = 2; i < argc; i++) {
        if (slice_is(argv[i], "limit"))
            i += 2;
        else if (slice_is(argv[i], "get") || slice_is(argv[i], "by"))
            i++;
        else if (slice_is(argv[i], "store") && i + 1 < argc)
            found = i + 1;
    }
    return found;
}

/* ---- values of other keys ---- */

struct value {
    const struct row *row; /* a string */
    struct slice bytes;    /* or an element itself or a field's value, when p is not NULL */
};

static void name_key(struct sorting *s, const struct pattern *p, struct slice name)
{
    s->key.len = 0;
    buf_add_slice(&s->key, p->before);
    buf_add_slice(&s->key, name);
    buf_add_slice(&s->key, p->behind);
}

/* Where reads are round trips: the keys that a pattern means for some elements come together, and so do their
   locks, in order. SORT waits for them once, not for each in turn. */
static enum status fetch(struct sorting *s, const struct pattern *p, size_t from, size_t to)
{
    struct view *v = s->c->view;
    if (p->self || p->none || !view_wants_declarations(v))
        return ST_OK;
    for (size_t i = from; i < to; i++) {
        name_key(s, p, s->elements[i].name);
        view_declare(v, call_db(s->c), arena_copy(s->c->arena, buf_slice(&s->key)));
    }
    return view_fetch_declared(v);
}

/* The same for all patterns that are replied, from element i on, when its turn has come. */
static enum status fetch_next(struct sorting *s, int64_t i)
{
    enum status st = ST_OK;
    int64_t end = s->to - i < FETCHED ? s->to + 1 : i + FETCHED;
    if ((i - s->from) % FETCHED)
        return ST_OK;
    for (int k = 0; st == ST_OK && k < s->ngets; k++)
        st = fetch(s, &s->gets[k], (size_t)i, (size_t)end);
    return st;
}

static enum status find_value(struct sorting *s, const struct pattern *p, struct slice name,
                              struct value *ret)
{
    struct view *v = s->c->view;
    *ret = (struct value){0};
    if (p->self)
        ret->bytes = name;
    if (p->self || p->none)
        return ST_OK;
    name_key(s, p, name);
    if (!p->field.n) {
        enum status st = view_get(v, call_db(s->c), buf_slice(&s->key), &ret->row);
        if (st == ST_OK && ret->row && ret->row->type != ROW_STRING)
            ret->row = NULL;
        return st;
    }
    struct coll *hash;
    struct coll_item item;
    bool wrong, found = false;
    enum status st = coll_open(v, call_db(s->c), buf_slice(&s->key), ROW_HASH, &hash, &wrong);
    if (st == ST_OK && hash)
        st = coll_find(hash, p->field, &found, &item);
    if (st == ST_OK && found)
        ret->bytes = slice_of(item.value.n ? item.value.p : "", item.value.n);
    return st;
}

/* The bytes of a value; p is NULL when there is none. */
static enum status value_bytes(struct sorting *s, const struct value *v, struct slice *ret)
{
    *ret = v->bytes;
    return v->row ? view_string(s->c->view, v->row, s->c->arena, ret) : ST_OK;
}

/* ---- loading ---- */

static enum status add_element(void *arg, const struct coll_item *item)
{
    struct sorting *s = arg;
    struct slice name = s->type == ROW_LIST ? item->value : item->name;
    struct arena *arena = s->store ? view_arena(s->c->view) : s->c->arena;
    s->elements[s->n] = (struct element){.name = arena_copy(arena, name), .place = s->n};
    s->n++;
    return ST_OK;
}

struct skipping {
    struct sorting *s;
    int64_t place;
};

/* Of the members of a set, as they come, only those that are wanted. */
static enum status add_wanted(void *arg, const struct coll_item *item)
{
    struct skipping *k = arg;
    int64_t place = k->place++;
    if (place > k->s->to)
        return ST_STOP;
    return place < k->s->from ? ST_OK : add_element(k->s, item);
}

/* Elements [from, to] in the order that the collection has, or (DESC) has backwards. */
static enum status load_range(struct sorting *s, int64_t from, int64_t to)
{
    int64_t last = coll_size(s->coll) - 1;
    bool reverse = s->as_is && s->desc;
    int64_t low = reverse ? last - to : from, high = reverse ? last - from : to;
    if (s->type == ROW_LIST)
        return coll_range(s->coll, low, high, reverse, add_element, s);
    if (s->type == ROW_ZSET)
        return coll_by_rank(s->coll, low, high, reverse, add_element, s);
    if (!s->as_is)
        return coll_each(s->coll, add_element, s);
    struct skipping k = {s, 0};
    return coll_each(s->coll, add_wanted, &k);
}

static int64_t clamp(int64_t v, int64_t min, int64_t max)
{
    return v < min ? min : v > max ? max : v;
}

static enum status load(struct sorting *s)
{
    int64_t size = coll_size(s->coll);
    int64_t count = clamp(s->limit_count, -1, size);
    s->from = clamp(s->limit_start, 0, size);
    s->to = count < 0 || count > size - s->from ? size - 1 : s->from + count - 1;
    int64_t n = s->as_is ? s->to - s->from + 1 : size;
    if (n <= 0)
        return ST_OK;
    s->elements = arena_alloc(s->c->arena, (size_t)n * sizeof *s->elements);
    enum status st = load_range(s, s->as_is ? s->from : 0, s->as_is ? s->to : size - 1);
    if (st == ST_OK && s->as_is) {
        s->to -= s->from;
        s->from = 0;
    }
    return st;
}

/* What strtod takes up to the end or a NUL, which is everything that is nothing as well. */
static bool parse_score(struct sorting *s, struct slice text, double *ret)
{
    int64_t integer;
    if (num_parse_i64(text, &integer)) {
        *ret = (double)integer;
        return true;
    }
    s->number.len = 0;
    buf_add_slice(&s->number, text);
    buf_add(&s->number, "", 1);
    char *end;
    errno = 0;
    *ret = strtod(s->number.p, &end);
    return !*end && errno != ERANGE && !isnan(*ret);
}

static enum status weigh(struct sorting *s, struct element *e)
{
    struct slice by = e->name;
    if (s->by) {
        struct value v;
        enum status st = find_value(s, &s->by_pattern, e->name, &v);
        if (st == ST_OK)
            st = value_bytes(s, &v, &by);
        if (st != ST_OK || !by.p)
            return st;
    }
    if (s->alpha)
        e->by = s->store ? by : up_to_nul(by);
    else if (!parse_score(s, by, &e->score))
        s->not_numbers = true;
    return ST_OK;
}

static int compare(const void *a, const void *b, void *arg)
{
    const struct element *x = a, *y = b;
    const struct sorting *s = arg;
    int c;
    if (!s->alpha && (x->score < y->score || x->score > y->score))
        c = x->score < y->score ? -1 : 1;
    else if (!s->alpha)
        c = slice_cmp(x->name, y->name);
    else if (x->by.p && y->by.p)
        c = slice_cmp(x->by, y->by);
    else
        c = (x->by.p != NULL) - (y->by.p != NULL);
    if (c)
        return s->desc ? -c : c;
    return (x->place > y->place) - (x->place < y->place);
}

static enum status sort_elements(struct sorting *s)
{
    enum status st = ST_OK;
    for (size_t i = 0; st == ST_OK && i < s->n; i++) {
        if (s->by && i % FETCHED == 0)
            st = fetch(s, &s->by_pattern, i, s->n - i < FETCHED ? s->n : i + FETCHED);
        if (st == ST_OK)
            st = weigh(s, &s->elements[i]);
    }
    if (st == ST_OK && !s->not_numbers && s->n > 1)
        qsort_r(s->elements, s->n, sizeof *s->elements, compare, s);
    return st;
}

/* ---- the result ---- */

static enum status reply_value(struct call *c, const struct value *v)
{
    if (!v->bytes.p)
        return reply_row(c, v->row);
    reply_bulk(c->reply, v->bytes);
    return ST_OK;
}

static enum status reply_element(struct sorting *s, struct slice name)
{
    enum status st = ST_OK;
    if (!s->ngets)
        reply_bulk(s->c->reply, name);
    for (int i = 0; st == ST_OK && i < s->ngets; i++) {
        struct value v;
        st = find_value(s, &s->gets[i], name, &v);
        if (st == ST_OK)
            st = reply_value(s->c, &v);
    }
    return st;
}

/* What is not there is stored as an empty string. */
static enum status store_element(struct sorting *s, struct coll *list, struct slice name)
{
    enum status st = s->ngets ? ST_OK : coll_push(list, false, name);
    for (int i = 0; st == ST_OK && i < s->ngets; i++) {
        struct value v;
        struct slice bytes;
        st = find_value(s, &s->gets[i], name, &v);
        if (st == ST_OK)
            st = value_bytes(s, &v, &bytes);
        if (st == ST_OK)
            st = coll_push(list, false, arena_copy(view_arena(s->c->view), bytes));
    }
    return st;
}

static enum status put_out(struct sorting *s)
{
    struct call *c = s->c;
    struct coll *list = NULL;
    enum status st = ST_OK;
    int64_t each = s->ngets ? s->ngets : 1, n = s->n ? (s->to - s->from + 1) * each : 0;
    if (s->store)
        st = coll_replace(c->view, call_db(c), c->argv[s->store], ROW_LIST, &list);
    else
        reply_array(c->reply, (size_t)n);
    for (int64_t i = s->from; st == ST_OK && n && i <= s->to; i++) {
        struct slice name = s->elements[i].name;
        st = fetch_next(s, i);
        if (st == ST_OK)
            st = list ? store_element(s, list, name) : reply_element(s, name);
    }
    if (st != ST_OK || !list)
        return st;
    st = coll_save(list);
    if (st == ST_OK)
        reply_integer(c->reply, n);
    return st;
}

/* ---- commands ---- */

/* Opens the collection, NULL when there is none. *ret_wrong: it is none, which has been replied. */
static enum status open_source(struct sorting *s, bool *ret_wrong)
{
    struct call *c = s->c;
    const struct row *row;
    view_count_lookups(c->view, true);
    enum status st = arg_any(c, 1, &row);
    *ret_wrong = false;
    if (st != ST_OK || !row)
        return st;
    s->type = (enum row_type)row->type;
    *ret_wrong = s->type != ROW_LIST && s->type != ROW_SET && s->type != ROW_ZSET;
    if (*ret_wrong) {
        reply_error(c->reply, ERR_WRONGTYPE);
        return ST_OK;
    }
    view_count_lookups(c->view, false); /* it is the same key */
    st = coll_open(c->view, call_db(c), c->argv[1], s->type, &s->coll, ret_wrong);
    view_count_lookups(c->view, true);
    return st;
}

static enum status run(struct sorting *s)
{
    enum status st = ST_OK;
    /* A set has no order of its own, so that what is stored of it as it is, or goes to a script, gets one. */
    if (s->as_is && (s->store || s->c->script) && s->type == ROW_SET) {
        s->as_is = s->by = false;
        s->alpha = true;
    }
    if (s->coll)
        st = load(s);
    if (st == ST_OK && !s->as_is)
        st = sort_elements(s);
    if (st != ST_OK)
        return st;
    if (!s->not_numbers)
        return put_out(s);
    reply_error(s->c->reply, "ERR One or more scores can't be converted into double");
    return ST_OK;
}

static enum status sort_command(struct call *c, bool stores)
{
    struct sorting s = {.c = c};
    bool wrong;
    if (!read_options(&s, stores))
        return ST_OK;
    enum status st = open_source(&s, &wrong);
    if (st == ST_OK && !wrong)
        st = run(&s);
    buf_release(&s.key);
    buf_release(&s.number);
    return st;
}

static enum status sort(struct call *c)
{
    return sort_command(c, true);
}

static enum status sort_ro(struct call *c)
{
    return sort_command(c, false);
}

/* clang-format off */
#define CATEGORIES (CAT_SET | CAT_SORTEDSET | CAT_LIST | CAT_SLOW | CAT_DANGEROUS)
#define SOURCE     {.flags = KEY_RO | KEY_ACCESS, .index = 1, .step = 1}
#define LOOKED_UP  {.flags = KEY_RO | KEY_ACCESS, .unknown = true, .step = 1, \
                    .notes = "For the optional BY/GET keyword. It is marked 'unknown' because the key names " \
                             "derive from the content of the key we sort"}
#define STORED     {.flags = KEY_OW | KEY_UPDATE, .unknown = true, .step = 1, .find = find_store, \
                    .notes = "For the optional STORE keyword. It is marked 'unknown' because the keyword can " \
                             "appear anywhere in the argument array"}
#define COST       "O(N+M*log(M)) with N elements in the collection and M of them sorted, and the keys looked up."

const struct command sort_commands[] = {
    {
        .name = "sort", .fn = sort, .arity = -2, .flags = CMD_WRITE | CMD_DENYOOM | CMD_MOVABLEKEYS,
        .categories = CAT_WRITE | CATEGORIES, .keys = {SOURCE, LOOKED_UP, STORED},
        .summary = "Returns the elements of a list, a set or a sorted set in order, or stores them.",
        .since = "1.0.0", .group = "generic", .complexity = COST,
    },
    {
        .name = "sort_ro", .fn = sort_ro, .arity = -2, .flags = CMD_READONLY | CMD_MOVABLEKEYS,
        .categories = CAT_READ | CATEGORIES, .keys = {SOURCE, LOOKED_UP},
        .summary = "Returns the elements of a list, a set or a sorted set in order.",
        .since = "7.0.0", .group = "generic", .complexity = COST,
    },
    {.name = NULL},
};
/* clang-format on */
