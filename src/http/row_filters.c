/* GET /tables/{table}/rows: pages of rows, by filters as PostgREST writes them.

     age=gte.18  name=like.Ma*  state=in.(a,b)  city=is.null     order=age.desc,name   select=name,age
   index=by_age

   Filters on the first columns of the primary key or of an index, a range on the next one and the order
   decide which of them serves the request best; what it does not serve is looked at row by row. An order that
   none of them has is refused: a page would have to read everything. A cursor names the order that the first
   page took, so that an index that is made meanwhile changes nothing. */
#include "http/http_tables.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/num.h"
#include "command/families.h"
#include "command/table/table_common.h"
#include "table/find.h"

#define DEFAULT_SCAN 10000
#define MOST_SCAN    1000000
#define PAGE_BYTES   ((size_t)16 << 20) /* behind which a page ends */
#define ORDER_MAX    32

struct ordering {
    uint16_t column;
    bool desc;
};

struct row_query {
    struct call *c;
    struct answer *a;
    struct rows rows;
    const struct schema *s;
    struct filter *filters; /* all that were given */
    size_t nfilters;
    struct ordering order[ORDER_MAX];
    size_t norder;
    struct http_columns columns;
    struct fault fault;
};

/* An order of rows that might serve. */
struct plan {
    const struct table_index *index; /* NULL: the primary key */
    const struct key_part *parts;
    size_t nparts;
    size_t eq[SCHEMA_PARTS_MAX]; /* filters that give the first columns' values */
    size_t neq;
    int low, high; /* filters that bound the next one; -1: none */
    bool reverse;
    int score;
};

static bool bad_filter(struct row_query *q, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static bool bad_filter(struct row_query *q, const char *fmt, ...)
{
    char text[400];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    answer_error(q->a, 400, "bad_filter", text);
    return false;
}

static bool fail(struct row_query *q)
{
    http_answer_fault(q->a, &q->fault);
    return false;
}

static bool find_column(struct row_query *q, struct slice name, uint16_t *ret)
{
    int place = schema_column(q->s, name);
    *ret = (uint16_t)place;
    if (place >= 0)
        return true;
    fault_set(&q->fault, FAULT_NO_COLUMN, "there is no column or parameter %.*s", FAULT_CUT(name));
    return fail(q);
}

/* ---- filters ---- */

static bool one_value(struct row_query *q, struct filter *f, struct slice text)
{
    const struct column *c = &q->s->columns[f->column];
    struct value *v = arena_alloc(q->c->arena, sizeof *v);
    f->values = v;
    f->nvalues = 1;
    return value_parse(c->type, c->name, text, q->c->arena, v, &q->fault) || fail(q);
}

/* The next of "a,b,"c,d"": quotes hold commas, and a backslash within them the next character. */
static bool next_of_list(struct slice *list, struct arena *arena, struct slice *ret)
{
    char *to = arena_alloc(arena, list->n + 1);
    size_t n = 0, i = 0;
    bool quoted = list->n && list->p[0] == '"';
    for (i = quoted; i < list->n && (quoted || list->p[i] != ','); i++) {
        if (quoted && list->p[i] == '"') {
            quoted = false;
            continue;
        }
        if (quoted && list->p[i] == '\\' && i + 1 < list->n)
            i++;
        to[n++] = list->p[i];
    }
    *ret = slice_of(to, n);
    bool more = i < list->n;
    *list = more ? slice_of(list->p + i + 1, list->n - i - 1) : (struct slice){NULL, 0};
    return !quoted;
}

static bool read_list(struct row_query *q, struct filter *f, struct slice text)
{
    const struct column *c = &q->s->columns[f->column];
    if (text.n < 2 || text.p[0] != '(' || text.p[text.n - 1] != ')')
        return bad_filter(q, "in takes a list: in.(a,b,c).");
    struct slice list = slice_of(text.p + 1, text.n - 2), item;
    size_t most = 1;
    for (size_t i = 0; i < list.n; i++)
        most += list.p[i] == ',';
    struct value *values = arena_alloc(q->c->arena, most * sizeof *values);
    f->op = FILTER_IN;
    f->values = values;
    while (list.n || (list.p && f->nvalues)) {
        if (!next_of_list(&list, q->c->arena, &item))
            return bad_filter(q, "A quoted value of in has no end.");
        if (!value_parse(c->type, c->name, item, q->c->arena, &values[f->nvalues++], &q->fault))
            return fail(q);
    }
    return true;
}

static bool read_is(struct row_query *q, struct filter *f, struct slice text)
{
    f->op = slice_is(text, "null") ? FILTER_IS_NULL : FILTER_NOT_NULL;
    if (slice_is(text, "null") || slice_is(text, "not_null"))
        return true;
    f->op = FILTER_EQ;
    if (q->s->columns[f->column].type == COLUMN_BOOLEAN &&
        (slice_is(text, "true") || slice_is(text, "false")))
        return one_value(q, f, text);
    return bad_filter(q, "is takes null or not_null, and of a BOOLEAN true or false.");
}

/* A pattern: * is %, because % has to be encoded in a query. */
static bool read_like(struct row_query *q, struct filter *f, struct slice text)
{
    struct value *v = arena_alloc(q->c->arena, sizeof *v);
    char *pattern = arena_alloc(q->c->arena, text.n + 1);
    for (size_t i = 0; i < text.n; i++)
        pattern[i] = text.p[i] == '*' ? '%' : text.p[i];
    *v = (struct value){.kind = VALUE_TEXT, .s = slice_of(pattern, text.n)};
    f->op = FILTER_LIKE;
    f->values = v;
    f->nvalues = 1;
    return true;
}

/* "gte.18" */
static bool read_filter(struct row_query *q, const struct http_filter *from, struct filter *f)
{
    static const struct {
        const char *word;
        enum filter_op op;
    } ops[] = {{"eq", FILTER_EQ},  {"neq", FILTER_NE}, {"gt", FILTER_GT},
               {"gte", FILTER_GE}, {"lt", FILTER_LT},  {"lte", FILTER_LE}};
    const char *dot = from->value.n ? memchr(from->value.p, '.', from->value.n) : NULL;
    struct slice op = slice_of(from->value.p, dot ? (size_t)(dot - from->value.p) : from->value.n);
    struct slice text = dot ? slice_of(dot + 1, from->value.n - op.n - 1) : SLICE("");
    *f = (struct filter){0};
    if (!find_column(q, from->name, &f->column))
        return false;
    if (dot && slice_eq(op, SLICE("in")))
        return read_list(q, f, text);
    if (dot && slice_eq(op, SLICE("is")))
        return read_is(q, f, text);
    if (dot && slice_eq(op, SLICE("like")))
        return read_like(q, f, text);
    for (size_t i = 0; dot && i < sizeof ops / sizeof *ops; i++) {
        if (slice_eq(op, slice_str(ops[i].word))) {
            f->op = ops[i].op;
            return one_value(q, f, text);
        }
    }
    return bad_filter(
        q, "A filter is written %.*s=OPERATOR.VALUE, with eq, neq, gt, gte, lt, lte, like, in or is.",
        FAULT_CUT(from->name));
}

/* "age.desc,name" */
static bool read_order(struct row_query *q, struct slice text)
{
    if (!text.p)
        return true;
    const char *p = text.p, *end = text.p + text.n;
    while (p <= end) {
        const char *comma = memchr(p, ',', (size_t)(end - p));
        struct slice item = slice_of(p, (size_t)((comma ? comma : end) - p));
        const char *dot = memchr(item.p, '.', item.n);
        struct slice name = slice_of(item.p, dot ? (size_t)(dot - item.p) : item.n);
        struct slice way = dot ? slice_of(dot + 1, item.n - name.n - 1) : SLICE("asc");
        if (q->norder == ORDER_MAX)
            return bad_filter(q, "order has more than %d columns.", ORDER_MAX);
        struct ordering *o = &q->order[q->norder++];
        if (!find_column(q, name, &o->column))
            return false;
        o->desc = slice_eq(way, SLICE("desc"));
        if (!o->desc && !slice_eq(way, SLICE("asc")))
            return bad_filter(q, "order is written column, column.asc or column.desc.");
        p += item.n + 1;
    }
    return true;
}

/* ---- which order serves best ---- */

/* The first filter of a column that is one of two kinds, or -1. */
static int filter_of(const struct row_query *q, uint16_t column, enum filter_op one, enum filter_op other)
{
    for (size_t i = 0; i < q->nfilters; i++) {
        if (q->filters[i].column == column && (q->filters[i].op == one || q->filters[i].op == other))
            return (int)i;
    }
    return -1;
}

static bool is_given(const struct row_query *q, const struct plan *p, uint16_t column)
{
    for (size_t i = 0; i < p->neq; i++) {
        if (q->filters[p->eq[i]].column == column)
            return true;
    }
    return false;
}

/* The part of an order at a place: behind an index's own columns those of the primary key follow. NULL: there
   is none. */
static const struct key_part *part_at(const struct row_query *q, const struct plan *p, size_t i)
{
    if (i < p->nparts)
        return &p->parts[i];
    i -= p->nparts;
    return p->index && !p->index->unique && i < q->s->nkey ? &q->s->key[i] : NULL;
}

/* Whether rows come in the order that is asked for, one way or the other. */
static bool has_order(const struct row_query *q, struct plan *p)
{
    size_t at = 0;
    bool known = false;
    for (size_t i = 0; i < q->norder; i++) {
        const struct ordering *o = &q->order[i];
        const struct key_part *part;
        if (is_given(q, p, o->column))
            continue;
        while ((part = part_at(q, p, at)) && is_given(q, p, part->column))
            at++;
        if (!part)
            return !p->index; /* the whole primary key: no two rows are left to be ordered */
        if (part->column != o->column || (known && p->reverse != (part->desc != o->desc)))
            return false;
        p->reverse = part->desc != o->desc;
        known = true;
        at++;
    }
    return true;
}

/* What an order can do: the more of its columns are given, the better. */
static void make_plan(const struct row_query *q, const struct table_index *index, struct plan *p)
{
    *p = (struct plan){.index = index, .low = -1, .high = -1};
    p->parts = index ? index->parts : q->s->key;
    p->nparts = index ? index->nparts : q->s->nkey;
    for (; p->neq < p->nparts; p->neq++) {
        int i = filter_of(q, p->parts[p->neq].column, FILTER_EQ, FILTER_IS_NULL);
        if (i < 0)
            break;
        p->eq[p->neq] = (size_t)i;
    }
    if (p->neq < p->nparts) {
        p->low = filter_of(q, p->parts[p->neq].column, FILTER_GT, FILTER_GE);
        p->high = filter_of(q, p->parts[p->neq].column, FILTER_LT, FILTER_LE);
    }
    bool one = p->neq == p->nparts && (!index || index->unique);
    p->score = 4 * (int)p->neq + (p->low >= 0) + (p->high >= 0) + (one ? 1000 : 0);
}

static bool is_candidate(const struct table_index *index, int64_t number)
{
    return number < 0 ? index->state == INDEX_READY : index->number == number;
}

/* number: of the index that has to serve, 0 for the primary key, -1: whichever is best. */
static bool choose(struct row_query *q, int64_t number, struct plan *ret)
{
    bool found = false;
    if (number <= 0) {
        make_plan(q, NULL, ret);
        found = has_order(q, ret);
    }
    for (size_t i = 0; i < q->s->nindexes; i++) {
        struct plan p;
        if (!is_candidate(&q->s->indexes[i], number))
            continue;
        make_plan(q, &q->s->indexes[i], &p);
        if (has_order(q, &p) && (!found || p.score > ret->score)) {
            *ret = p;
            found = true;
        }
    }
    if (!found)
        bad_filter(q, "%s has this order: make an index of these columns, or ask in SQL.",
                   number < 0 ? "Neither the primary key nor an index" : "The index is none that");
    return found;
}

/* ---- the find ---- */

static void set_bound(const struct row_query *q, int i, enum filter_op exclusive, struct bound *ret)
{
    if (i >= 0)
        *ret = (struct bound){true, q->filters[i].op == exclusive, q->filters[i].values[0]};
}

static bool is_used(const struct plan *p, size_t i)
{
    for (size_t k = 0; k < p->neq; k++) {
        if (p->eq[k] == i)
            return true;
    }
    return (int)i == p->low || (int)i == p->high;
}

static void make_find(struct row_query *q, const struct plan *p, struct find *ret)
{
    struct value *eq = arena_alloc(q->c->arena, (p->neq + 1) * sizeof *eq);
    struct filter *rest = arena_alloc(q->c->arena, (q->nfilters + 1) * sizeof *rest);
    *ret = (struct find){.index = p->index, .eq = eq, .neq = p->neq, .filters = rest, .reverse = p->reverse};
    for (size_t i = 0; i < p->neq; i++)
        eq[i] = q->filters[p->eq[i]].op == FILTER_EQ ? q->filters[p->eq[i]].values[0]
                                                     : (struct value){.kind = VALUE_NULL};
    set_bound(q, p->low, FILTER_GT, &ret->low);
    set_bound(q, p->high, FILTER_LT, &ret->high);
    for (size_t i = 0; i < q->nfilters; i++) {
        if (!is_used(p, i))
            rest[ret->nfilters++] = q->filters[i];
    }
    ret->keys_only = true;
    for (size_t i = 0; i < q->columns.n; i++)
        ret->keys_only = ret->keys_only && find_holds(q->s, p->index, q->columns.at[i]);
}

/* "3.TOKEN": the number of an index that is there, or 0 for the primary key, and the find's own token.
 *ret_number has that of the index that is named, if any. */
static bool split_cursor(struct row_query *q, struct slice cursor, int64_t *ret_number,
                         struct slice *ret_token)
{
    const char *dot = cursor.n ? memchr(cursor.p, '.', cursor.n) : NULL;
    size_t digits = dot ? (size_t)(dot - cursor.p) : 0;
    int64_t number = -1;
    bool there = dot && num_parse_i64(slice_of(cursor.p, digits), &number) && number == 0;
    for (size_t i = 0; i < q->s->nindexes; i++)
        there = there || q->s->indexes[i].number == number;
    if (there && (*ret_number < 0 || *ret_number == number)) {
        *ret_number = number;
        *ret_token = slice_of(cursor.p + digits + 1, cursor.n - digits - 1);
        return true;
    }
    fault_set(&q->fault, FAULT_BAD_TOKEN, "the cursor is none that a page of these rows has said");
    return fail(q);
}

/* Which order has to serve: the cursor's, the one that is named, or any. */
static bool order_number(struct row_query *q, const struct http_call *x, int64_t *ret,
                         struct slice *ret_token)
{
    struct slice name = x->query[PARAM_INDEX];
    int i = name.p ? schema_index(q->s, name) : 0;
    *ret = -1;
    if (i < 0) {
        fault_set(&q->fault, FAULT_NO_INDEX, "there is no index %.*s", FAULT_CUT(name));
        return fail(q);
    }
    if (name.p)
        *ret = q->s->indexes[i].number;
    return !x->query[PARAM_CURSOR].p || split_cursor(q, x->query[PARAM_CURSOR], ret, ret_token);
}

static bool understand(struct row_query *q, const struct http_call *x, struct find *f,
                       struct find_place *place)
{
    struct plan plan;
    int64_t number;
    struct slice token = {NULL, 0};
    q->filters = arena_alloc(q->c->arena, (x->nfilters + 1) * sizeof *q->filters);
    for (size_t i = 0; i < x->nfilters; i++) {
        if (!read_filter(q, &x->filters[i], &q->filters[q->nfilters++]))
            return false;
    }
    if (!read_order(q, x->query[PARAM_ORDER]) || !order_number(q, x, &number, &token))
        return false;
    if (!http_columns_of(x, q->s, q->c->arena, &q->columns, &q->fault))
        return fail(q);
    if (!choose(q, number, &plan))
        return false;
    make_find(q, &plan, f);
    *place = (struct find_place){0};
    return (find_check(q->rows.table, f, &q->fault) &&
            (!token.p || find_resume(q->rows.table, f, token, q->c->arena, place, &q->fault))) ||
           fail(q);
}

/* ---- the page ---- */

/* A find_fn. */
static enum status add_row(void *arg, const struct table_row *row, struct slice name)
{
    struct row_query *q = arg;
    struct buf *out = q->a->out;
    (void)name;
    if (out->p[out->len - 1] != '[')
        buf_add(out, ",", 1);
    http_add_columns(out, q->s, row->values, &q->columns);
    return out->len - q->a->start > PAGE_BYTES ? ST_STOP : ST_OK;
}

static void add_end(struct row_query *q, const struct find *f, const struct find_place *place,
                    const struct find_result *work)
{
    struct buf *out = q->a->out;
    buf_add_slice(out, SLICE("],\"cursor\":"));
    if (place->ended) {
        buf_add_slice(out, SLICE("null"));
    } else {
        buf_addf(out, "\"%d.", f->index ? f->index->number : 0);
        find_token(q->rows.table, f, place, out);
        buf_add(out, "\"", 1);
    }
    buf_addf(out, ",\"scanned\":%llu}", (unsigned long long)work->scanned);
}

static enum status list(struct call *c)
{
    struct answer *a = answer_of(c);
    const struct http_call *x = a->call;
    struct row_query q = {.c = c, .a = a};
    struct find f;
    struct find_place place;
    struct find_result work;
    bool open;
    enum status st = http_open_table(c, &q.rows, &open);
    if (st != ST_OK || !open)
        return st;
    q.s = &q.rows.table->schema;
    if (!understand(&q, x, &f, &place))
        return ST_OK;
    f.limit = (uint32_t)x->page.limit;
    f.scan = (uint32_t) * (const int64_t *)x->detail;
    buf_add_slice(a->out, SLICE("{\"rows\":["));
    st = find_page(&q.rows, &f, &place, add_row, &q, &work);
    if (st == ST_OK)
        add_end(&q, &f, &place, &work);
    return st;
}

void http_rows_list(struct http_api *api, struct http_call *x)
{
    int64_t *scan = arena_alloc(x->arena, sizeof *scan);
    (void)api;
    x->detail = scan;
    if (http_limit_param(x, &x->page.limit) &&
        http_number_param(x, PARAM_SCAN, 1, MOST_SCAN, DEFAULT_SCAN, scan))
        http_key_call(x, &http_rows_commands[0], x->path[0]);
}

/* clang-format off */
const struct command http_rows_commands[] = {
    {.name = "http|rows", .fn = list, .arity = 2, .flags = CMD_READONLY,
     .keys = {{.flags = KEY_RO | KEY_ACCESS, .index = 1, .step = 1}}, .group = "http"},
    {.name = NULL},
};
/* clang-format on */
