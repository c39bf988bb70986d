/* ROW.QUERY: rows of a table in order, page by page (table/find.h).

   Rows touched: the table's key row, and those that the find looks at; nothing is written. What is asked for
   is understood as a whole before anything is read. An expired table is none; expired rows are left out. */
#include "base/num.h"
#include "command/families.h"
#include "command/table/table_common.h"
#include "exec/args.h"
#include "table/find.h"

#define DEFAULT_LIMIT 100
#define DEFAULT_SCAN  10000
#define MOST_ROWS     1000000

/* The arguments as they stand, before the index is known whose columns give them their types. */
struct words {
    const struct slice *argv;
    int argc, at;
    struct slice index, from, to, prefix, after; /* p is NULL: not given */
    const struct slice *eq;
    size_t neq;
    int *filters; /* where each one begins */
    size_t nfilters;
    const struct slice *fields;
    size_t nfields;
    int64_t limit, scan; /* 0: not given */
    bool reverse, count, explain;
};

struct query {
    struct call *c;
    struct rows rows;
    const struct table *table;
    struct find find;
    struct projection fields; /* the columns that are told */
    struct fault fault;
};

/* ---- reading arguments ---- */

static bool one_word(struct words *w, struct slice *ret, struct fault *fault)
{
    if (w->at >= w->argc) {
        fault_set(fault, FAULT_SYNTAX, "a value is missing behind %.*s", FAULT_CUT(w->argv[w->argc - 1]));
        return false;
    }
    *ret = w->argv[w->at++];
    return true;
}

static bool number(struct words *w, int64_t min, int64_t max, const char *what, int64_t *ret,
                   struct fault *fault)
{
    struct slice s;
    if (!one_word(w, &s, fault))
        return false;
    if (num_parse_i64(s, ret) && *ret >= min && *ret <= max)
        return true;
    fault_set(fault, FAULT_SYNTAX, "%s takes a number from %lld to %lld", what, (long long)min,
              (long long)max);
    return false;
}

/* "n word ...": that many words. */
static bool several(struct words *w, const char *what, const struct slice **ret, size_t *ret_n,
                    struct fault *fault)
{
    int64_t n;
    if (!number(w, 1, w->argc, what, &n, fault))
        return false;
    if (n > w->argc - w->at)
        return fault_set(fault, FAULT_SYNTAX, "%s has fewer values than its number says", what);
    *ret = w->argv + w->at;
    *ret_n = (size_t)n;
    w->at += (int)n;
    return true;
}

/* Passes over a filter's words, of which the column's is the first. */
static bool pass_filter(struct words *w, struct fault *fault)
{
    struct slice column, op, value;
    const struct slice *values;
    size_t n;
    w->filters[w->nfilters++] = w->at;
    if (!one_word(w, &column, fault) || !one_word(w, &op, fault))
        return false;
    if (slice_is(op, "ISNULL") || slice_is(op, "NOTNULL"))
        return true;
    if (slice_is(op, "IN"))
        return several(w, "IN", &values, &n, fault);
    return one_word(w, &value, fault);
}

static bool read_word(struct words *w, struct fault *fault)
{
    struct slice s = w->argv[w->at++];
    if (slice_is(s, "INDEX"))
        return one_word(w, &w->index, fault);
    if (slice_is(s, "EQ"))
        return several(w, "EQ", &w->eq, &w->neq, fault);
    if (slice_is(s, "FROM"))
        return one_word(w, &w->from, fault);
    if (slice_is(s, "TO"))
        return one_word(w, &w->to, fault);
    if (slice_is(s, "PREFIX"))
        return one_word(w, &w->prefix, fault);
    if (slice_is(s, "FILTER"))
        return pass_filter(w, fault);
    if (slice_is(s, "LIMIT"))
        return number(w, 1, MOST_ROWS, "LIMIT", &w->limit, fault);
    if (slice_is(s, "SCAN"))
        return number(w, 1, UINT32_MAX - 1, "SCAN", &w->scan, fault);
    if (slice_is(s, "AFTER"))
        return one_word(w, &w->after, fault);
    if (slice_is(s, "FIELDS"))
        return several(w, "FIELDS", &w->fields, &w->nfields, fault);
    if (slice_is(s, "REV"))
        return w->reverse = true;
    if (slice_is(s, "COUNT"))
        return w->count = true;
    if (slice_is(s, "EXPLAIN"))
        return w->explain = true;
    return fault_set(fault, FAULT_SYNTAX, "%.*s is no word of ROW.QUERY", FAULT_CUT(s));
}

/* ---- what they mean for the table ---- */

static bool find_column(struct query *q, struct slice name, uint16_t *ret)
{
    int place = schema_column(&q->table->schema, name);
    if (place < 0)
        return fault_set(&q->fault, FAULT_NO_COLUMN, "%.*s has no column %.*s", FAULT_CUT(q->table->name),
                         FAULT_CUT(name));
    *ret = (uint16_t)place;
    return true;
}

static bool column_value(struct query *q, uint16_t column, struct slice text, struct value *ret)
{
    const struct column *c = &q->table->schema.columns[column];
    return value_parse(c->type, c->name, text, q->c->arena, ret, &q->fault);
}

static bool find_values(struct query *q, uint16_t column, const struct slice *texts, size_t n,
                        struct filter *ret)
{
    struct value *values = arena_alloc(q->c->arena, n * sizeof *values);
    for (size_t i = 0; i < n; i++) {
        if (!column_value(q, column, texts[i], &values[i]))
            return false;
    }
    ret->values = values;
    ret->nvalues = n;
    return true;
}

static bool find_op(struct slice word, enum filter_op *ret)
{
    static const struct {
        const char *word;
        enum filter_op op;
    } ops[] = {
        {"=", FILTER_EQ},     {"eq", FILTER_EQ}, {"!=", FILTER_NE},          {"<>", FILTER_NE},
        {"ne", FILTER_NE},    {"<", FILTER_LT},  {"lt", FILTER_LT},          {"<=", FILTER_LE},
        {"le", FILTER_LE},    {">", FILTER_GT},  {"gt", FILTER_GT},          {">=", FILTER_GE},
        {"ge", FILTER_GE},    {"IN", FILTER_IN}, {"ISNULL", FILTER_IS_NULL}, {"NOTNULL", FILTER_NOT_NULL},
        {"LIKE", FILTER_LIKE}};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        if (slice_is(word, ops[i].word)) {
            *ret = ops[i].op;
            return true;
        }
    }
    return false;
}

/* A filter, from its column's word on. */
static bool understand_filter(struct query *q, const struct slice *words, struct filter *ret)
{
    if (!find_column(q, words[0], &ret->column))
        return false;
    if (!find_op(words[1], &ret->op))
        return fault_set(&q->fault, FAULT_SYNTAX, "FILTER does not know %.*s", FAULT_CUT(words[1]));
    if (ret->op == FILTER_IS_NULL || ret->op == FILTER_NOT_NULL)
        return true;
    if (ret->op == FILTER_LIKE) {
        struct value *pattern = arena_alloc(q->c->arena, sizeof *pattern);
        *pattern = (struct value){.kind = VALUE_TEXT, .s = words[2]};
        ret->values = pattern;
        ret->nvalues = 1;
        return true;
    }
    int64_t n = 1;
    if (ret->op == FILTER_IN)
        (void)num_parse_i64(words[2], &n);
    return find_values(q, ret->column, words + (ret->op == FILTER_IN ? 3 : 2), (size_t)n, ret);
}

/* "[v" and "(v", of an upper bound also "]v" and ")v". */
static bool understand_bound(struct query *q, uint16_t column, struct slice text, const char *marks,
                             const char *word, struct bound *ret)
{
    const char *mark = text.n ? strchr(marks, text.p[0]) : NULL;
    if (!mark || !*mark)
        return fault_set(&q->fault, FAULT_SYNTAX, "%s takes %cvalue or %cvalue: with it, without it", word,
                         marks[0], marks[1]);
    ret->on = true;
    ret->exclusive = (mark - marks) % 2 == 1;
    return column_value(q, column, slice_of(text.p + 1, text.n - 1), &ret->value);
}

/* The values of an order's first columns, and the bounds of the next one. */
static bool understand_range(struct query *q, const struct words *w)
{
    const struct schema *s = &q->table->schema;
    const struct key_part *parts = q->find.index ? q->find.index->parts : s->key;
    size_t nparts = q->find.index ? q->find.index->nparts : s->nkey;
    if (w->neq > nparts)
        return fault_set(&q->fault, FAULT_SYNTAX, "EQ has %zu values for %zu columns", w->neq, nparts);
    struct value *eq = arena_alloc(q->c->arena, (w->neq + 1) * sizeof *eq);
    for (size_t i = 0; i < w->neq; i++) {
        if (!column_value(q, parts[i].column, w->eq[i], &eq[i]))
            return false;
    }
    q->find.eq = eq;
    q->find.neq = w->neq;
    q->find.prefix = w->prefix;
    if (!w->from.p && !w->to.p)
        return true;
    if (w->neq == nparts)
        return fault_set(&q->fault, FAULT_SYNTAX,
                         "FROM and TO are for the column behind those of EQ: none is left");
    uint16_t column = parts[w->neq].column;
    return (!w->from.p || understand_bound(q, column, w->from, "[(", "FROM", &q->find.low)) &&
           (!w->to.p || understand_bound(q, column, w->to, "])[(", "TO", &q->find.high));
}

/* Which columns are told: all of them, or those of FIELDS. */
static bool understand_fields(struct query *q, const struct words *w)
{
    const struct schema *s = &q->table->schema;
    uint16_t *at = arena_alloc(q->c->arena, (w->nfields + 1) * sizeof *at);
    q->find.keys_only = w->nfields > 0;
    for (size_t i = 0; i < w->nfields; i++) {
        if (!find_column(q, w->fields[i], &at[i]))
            return false;
        q->find.keys_only = q->find.keys_only && find_holds(s, q->find.index, at[i]);
    }
    q->fields = (struct projection){w->nfields ? at : NULL, w->nfields};
    return true;
}

static bool understand(struct query *q, const struct words *w)
{
    const struct schema *s = &q->table->schema;
    struct find *f = &q->find;
    int index = w->index.p ? schema_index(s, w->index) : 0;
    if (index < 0)
        return fault_set(&q->fault, FAULT_NO_INDEX, "%.*s has no index %.*s", FAULT_CUT(q->table->name),
                         FAULT_CUT(w->index));
    *f = (struct find){.index = w->index.p ? &s->indexes[index] : NULL,
                       .nfilters = w->nfilters,
                       .reverse = w->reverse,
                       .limit = (uint32_t)(w->limit ? w->limit : DEFAULT_LIMIT),
                       .scan = (uint32_t)(w->scan    ? w->scan
                                          : w->count ? UINT32_MAX
                                                     : DEFAULT_SCAN)};
    struct filter *filters = arena_alloc(q->c->arena, (w->nfilters + 1) * sizeof *filters);
    f->filters = filters;
    for (size_t i = 0; i < w->nfilters; i++) {
        filters[i] = (struct filter){0};
        if (!understand_filter(q, w->argv + w->filters[i], &filters[i]))
            return false;
    }
    return understand_range(q, w) && understand_fields(q, w) && find_check(q->table, f, &q->fault);
}

/* ---- answers ---- */

struct told {
    struct query *q;
    size_t rows;
};

static enum status tell_row(void *arg, const struct table_row *row, struct slice name)
{
    struct told *t = arg;
    (void)name;
    t->rows++;
    reply_row_map(t->q->c->reply, &t->q->table->schema, row, &t->q->fields);
    return ST_OK;
}

static void tell_place(struct query *q, const struct find_place *place, const struct find_result *work)
{
    struct buf token = {0};
    if (place->ended) {
        reply_null(q->c->reply);
    } else {
        find_token(q->table, &q->find, place, &token);
        reply_bulk(q->c->reply, buf_slice(&token));
    }
    buf_release(&token);
    reply_integer(q->c->reply, (int64_t)work->scanned);
}

static enum status answer(struct query *q, bool count, struct find_place *place)
{
    struct call *c = q->c;
    struct find_result work;
    reply_array(c->reply, 3);
    enum status st;
    if (count) {
        uint64_t n;
        if ((st = find_count(&q->rows, &q->find, place, &n, &work)) != ST_OK)
            return st;
        reply_integer(c->reply, (int64_t)n);
    } else {
        struct told t = {.q = q};
        size_t mark = reply_begin_deferred(c->reply);
        if ((st = find_page(&q->rows, &q->find, place, tell_row, &t, &work)) != ST_OK)
            return st;
        reply_end_deferred(c->reply, mark, REPLY_ARRAY, t.rows);
    }
    tell_place(q, place, &work);
    return ST_OK;
}

static void explain(struct query *q)
{
    struct buf line = {0};
    find_explain(q->table, &q->find, &line);
    reply_bulk(q->c->reply, buf_slice(&line));
    buf_release(&line);
}

static enum status row_query(struct call *c)
{
    struct query q = {.c = c};
    struct words w = {.argv = c->argv, .argc = c->argc, .at = 2};
    enum status st = arg_rows(c, 1, &q.rows);
    if (st != ST_OK || !q.rows.table)
        return st;
    q.table = q.rows.table;
    w.filters = arena_alloc(c->arena, (size_t)c->argc * sizeof *w.filters);
    bool good = true;
    while (good && w.at < w.argc)
        good = read_word(&w, &q.fault);
    struct find_place place = {0};
    good = good && understand(&q, &w) &&
           (!w.after.p || find_resume(q.table, &q.find, w.after, c->arena, &place, &q.fault));
    if (!good) {
        reply_fault(c->reply, &q.fault);
        return ST_OK;
    }
    if (!w.explain)
        return answer(&q, w.count, &place);
    explain(&q);
    return ST_OK;
}

const struct command row_query_commands[] = {
    {.name = "row.query",
     .fn = row_query,
     .arity = -2,
     .flags = CMD_READONLY,
     .categories = CAT_READ | CAT_SLOW,
     .keys = {{.flags = KEY_RO | KEY_ACCESS, .index = 1, .step = 1}},
     .summary = "Rows of a table in the order of its primary key or of an index, page by page: with values "
                "of the first columns, bounds of the next one, and filters.",
     .since = "1.0.0",
     .group = "table",
     .complexity = "The rows looked at: those of a page, and with filters up to SCAN. COUNT: the whole range "
                   "unless SCAN bounds it."},
    {0},
};
