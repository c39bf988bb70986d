/* Rows of tables one by one: ROW.PUT, ROW.UPDATE, ROW.GET, ROW.MGET, ROW.DEL, ROW.TTL, ROW.EXPIRE.

   Each touches the rows it names and their entries, in the command's own change set; the table's key row is
   read and never written. What a crash leaves, and what two clients see, is what any command leaves. */
#include "base/num.h"
#include "command/families.h"
#include "command/table/table_common.h"
#include "exec/args.h"

/* ---- reading ---- */

static void reply_one(struct call *c, const struct schema *s, const struct table_row *row,
                      const struct row_options *o)
{
    if (o->with_version)
        reply_array(c->reply, 2);
    reply_row_map(c->reply, s, row, &o->fields);
    if (o->with_version)
        reply_integer(c->reply, row->version);
}

/* The arguments of a key from argv[i] on; false: there are fewer than it has columns. */
static bool has_key(const struct call *c, const struct schema *s, int i, struct fault *fault)
{
    if ((size_t)(c->argc - i) >= s->nkey)
        return true;
    return fault_set(fault, FAULT_SYNTAX, "the primary key has %zu columns", s->nkey);
}

static enum status row_get(struct call *c)
{
    struct rows r;
    struct fault fault = {.kind = FAULT_NONE};
    struct row_options o;
    struct slice name = {NULL, 0};
    struct table_row row;
    bool found;
    enum status st = arg_rows(c, 1, &r);
    if (st != ST_OK || !r.table)
        return st;
    const struct schema *s = &r.table->schema;
    if (!has_key(c, s, 2, &fault) || !arg_row_options(c, s, 2 + (int)s->nkey, &o, &fault) ||
        !arg_row_name(c, &r, 2, &name, &fault)) {
        reply_fault(c->reply, &fault);
        return ST_OK;
    }
    if ((st = rows_get(&r, name, &found, &row)) != ST_OK)
        return st;
    if (found)
        reply_one(c, s, &row, &o);
    else
        reply_null(c->reply);
    return ST_OK;
}

/* KEYS n k ...: their names. */
static bool read_names(struct call *c, const struct rows *r, struct slice **ret, int *ret_n,
                       struct row_options *ret_o, struct fault *fault)
{
    const struct schema *s = &r->table->schema;
    if (!slice_is(c->argv[2], "keys"))
        return fault_set(fault, FAULT_SYNTAX, "KEYS n key ... is expected behind the table");
    if (!arg_count(c, 3, (int)s->nkey, ret_n, fault))
        return false;
    *ret = arena_alloc(c->arena, (size_t)*ret_n * sizeof **ret);
    for (int i = 0; i < *ret_n; i++)
        if (!arg_row_name(c, r, 4 + i * (int)s->nkey, &(*ret)[i], fault))
            return false;
    return arg_row_options(c, s, 4 + *ret_n * (int)s->nkey, ret_o, fault);
}

static enum status row_mget(struct call *c)
{
    struct rows r;
    struct fault fault = {.kind = FAULT_NONE};
    struct row_options o;
    struct slice *names = NULL;
    int n = 0;
    enum status st = arg_rows(c, 1, &r);
    if (st != ST_OK || !r.table)
        return st;
    if (!read_names(c, &r, &names, &n, &o, &fault)) {
        reply_fault(c->reply, &fault);
        return ST_OK;
    }
    struct table_row *rows = arena_alloc(c->arena, (size_t)n * sizeof *rows);
    if ((st = rows_get_many(&r, names, (size_t)n, rows)) != ST_OK)
        return st;
    reply_array(c->reply, (size_t)n);
    for (int i = 0; i < n; i++) {
        if (rows[i].values)
            reply_one(c, &r.table->schema, &rows[i], &o);
        else
            reply_null(c->reply);
    }
    return ST_OK;
}

/* ---- what is to be written ---- */

enum expiry { EXPIRY_NONE, EXPIRY_EX, EXPIRY_PX, EXPIRY_EXAT, EXPIRY_PXAT };

static const char *const expiry_words[] = {
    [EXPIRY_EX] = "ex", [EXPIRY_PX] = "px", [EXPIRY_EXAT] = "exat", [EXPIRY_PXAT] = "pxat"};

struct writer {
    struct call *c;
    const struct schema *s;
    struct row_write w;
    bool *increase;
    bool update;
    bool has_expiry, any;
    struct fault fault;
};

static void writer_init(struct writer *x, struct call *c, const struct schema *s, bool update)
{
    *x = (struct writer){.c = c, .s = s, .update = update};
    x->w.values = arena_alloc(c->arena, (s->ncolumns + 1) * sizeof *x->w.values);
    x->w.given = arena_alloc(c->arena, s->ncolumns + 1);
    x->increase = arena_alloc(c->arena, s->ncolumns + 1);
    memset(x->w.given, 0, s->ncolumns + 1);
    memset(x->increase, 0, s->ncolumns + 1);
    x->w.increase = x->increase;
    x->w.keep_expiry = update;
}

/* argv[i] names a column that was not told before. */
static bool take_column(struct writer *x, int i, uint16_t *ret)
{
    if (!arg_column(x->c, x->s, i, ret, &x->fault))
        return false;
    if (x->w.given[*ret])
        return fault_set(&x->fault, FAULT_SYNTAX, "%.*s is told twice", FAULT_CUT(x->c->argv[i]));
    x->w.given[*ret] = true;
    x->any = true;
    return true;
}

static bool take_value(struct writer *x, int column, int value)
{
    uint16_t k;
    if (!take_column(x, column, &k))
        return false;
    const struct column *of = &x->s->columns[k];
    return value_parse(of->type, of->name, x->c->argv[value], x->c->arena, &x->w.values[k], &x->fault);
}

static bool take_fields(struct writer *x, int *i)
{
    int n;
    if (!arg_count(x->c, *i + 1, 2, &n, &x->fault))
        return false;
    for (int k = 0; k < n; k++)
        if (!take_value(x, *i + 2 + 2 * k, *i + 3 + 2 * k))
            return false;
    *i += 2 + 2 * n;
    return true;
}

static bool take_nulls(struct writer *x, int *i)
{
    int n;
    uint16_t column;
    if (!arg_count(x->c, *i + 1, 1, &n, &x->fault))
        return false;
    for (int k = 0; k < n; k++) {
        if (!take_column(x, *i + 2 + k, &column))
            return false;
        x->w.values[column] = (struct value){.kind = VALUE_NULL};
    }
    *i += 2 + n;
    return true;
}

static bool take_increase(struct writer *x, int *i)
{
    uint16_t column;
    if (*i + 2 >= x->c->argc)
        return fault_set(&x->fault, FAULT_SYNTAX, "INCR needs a column and a number behind it");
    if (!arg_column(x->c, x->s, *i + 1, &column, &x->fault))
        return false;
    const struct column *of = &x->s->columns[column];
    if (of->type != COLUMN_INTEGER && of->type != COLUMN_REAL && of->type != COLUMN_TIMESTAMP)
        return fault_set(&x->fault, FAULT_BAD_TYPE, "%.*s is %s, which INCR cannot add to",
                         FAULT_CUT(of->name), column_type_name(of->type));
    if (!take_column(x, *i + 1, &column))
        return false;
    enum column_type type = of->type == COLUMN_REAL ? COLUMN_REAL : COLUMN_INTEGER;
    x->increase[column] = true;
    if (!value_parse(type, of->name, x->c->argv[*i + 2], x->c->arena, &x->w.values[column], &x->fault))
        return false;
    *i += 3;
    return true;
}

static bool take_expiry(struct writer *x, enum expiry e, int *i)
{
    int64_t t;
    if (x->has_expiry)
        return fault_set(&x->fault, FAULT_SYNTAX, "the expiry is told twice");
    if (*i + 1 >= x->c->argc || !num_parse_i64(x->c->argv[*i + 1], &t))
        return fault_set(&x->fault, FAULT_SYNTAX, "%s needs an integer behind it", expiry_words[e]);
    bool good = t > 0;
    if (e == EXPIRY_EX || e == EXPIRY_EXAT)
        good = good && !__builtin_mul_overflow(t, 1000, &t);
    if (e == EXPIRY_EX || e == EXPIRY_PX)
        good = good && !__builtin_add_overflow(t, view_now(x->c->view), &t);
    if (!good)
        return fault_set(&x->fault, FAULT_SYNTAX, "invalid expire time: %.*s", FAULT_CUT(x->c->argv[*i + 1]));
    x->w.expire_at = t;
    x->w.keep_expiry = false;
    x->has_expiry = true;
    *i += 2;
    return true;
}

static bool take_condition(struct writer *x, enum row_condition condition, int *i)
{
    if (x->w.condition != ROW_ALWAYS)
        return fault_set(&x->fault, FAULT_SYNTAX, "only one of NX, XX and IFVER can be told");
    x->w.condition = condition;
    ++*i;
    if (condition != ROW_IF_VERSION)
        return true;
    if (*i >= x->c->argc || !num_parse_i64(x->c->argv[*i], &x->w.version))
        return fault_set(&x->fault, FAULT_SYNTAX, "IFVER needs a version behind it");
    ++*i;
    return true;
}

/* KEEPTTL of a put, PERSIST of an update: what they do not do by themselves. */
static bool take_keep(struct writer *x, int *i)
{
    if (x->has_expiry)
        return fault_set(&x->fault, FAULT_SYNTAX, "the expiry is told twice");
    x->has_expiry = true;
    x->w.keep_expiry = !x->update;
    ++*i;
    return true;
}

static bool take_option(struct writer *x, int *i)
{
    struct slice word = x->c->argv[*i];
    if (slice_is(word, "fields"))
        return take_fields(x, i);
    if (slice_is(word, "nulls"))
        return take_nulls(x, i);
    if (slice_is(word, "ifver"))
        return take_condition(x, ROW_IF_VERSION, i);
    for (int e = EXPIRY_EX; e <= EXPIRY_PXAT; e++)
        if (slice_is(word, expiry_words[e]))
            return take_expiry(x, (enum expiry)e, i);
    if (slice_is(word, x->update ? "persist" : "keepttl"))
        return take_keep(x, i);
    if (x->update && slice_is(word, "incr"))
        return take_increase(x, i);
    if (!x->update && slice_is(word, "nx"))
        return take_condition(x, ROW_IF_NEW, i);
    if (!x->update && slice_is(word, "xx"))
        return take_condition(x, ROW_IF_THERE, i);
    return fault_set(&x->fault, FAULT_SYNTAX, "%.*s is not understood here", FAULT_CUT(word));
}

static bool take_options(struct writer *x, int i)
{
    while (i < x->c->argc)
        if (!take_option(x, &i))
            return false;
    return true;
}

/* ---- writing ---- */

/* :1 and :0, null when the condition does not hold; or the fault. */
static enum status answer(struct call *c, enum status st, const struct fault *fault, enum row_outcome outcome,
                          enum row_outcome one)
{
    if (st != ST_OK)
        return st;
    if (fault->kind)
        reply_fault(c->reply, fault);
    else if (outcome == ROW_NOT_MET)
        reply_null(c->reply);
    else
        reply_integer(c->reply, outcome == one);
    return ST_OK;
}

static enum status row_put(struct call *c)
{
    struct rows r;
    struct writer x;
    enum row_outcome outcome = ROW_NOT_MET;
    enum status st = arg_rows(c, 1, &r);
    if (st != ST_OK || !r.table)
        return st;
    writer_init(&x, c, &r.table->schema, false);
    if (take_options(&x, 2) && !x.any)
        fault_set(&x.fault, FAULT_SYNTAX, "FIELDS n column value ... is missing");
    if (!x.fault.kind)
        st = rows_put(&r, &x.w, &outcome, NULL, &x.fault);
    return answer(c, st, &x.fault, outcome, ROW_NEW);
}

static enum status row_update(struct call *c)
{
    struct rows r;
    struct writer x;
    struct slice name = {NULL, 0};
    enum row_outcome outcome = ROW_NOT_MET;
    enum status st = arg_rows(c, 1, &r);
    if (st != ST_OK || !r.table)
        return st;
    const struct schema *s = &r.table->schema;
    writer_init(&x, c, s, true);
    if (!slice_is(c->argv[2], "key"))
        fault_set(&x.fault, FAULT_SYNTAX, "KEY value ... is expected behind the table");
    else if (has_key(c, s, 3, &x.fault) && take_options(&x, 3 + (int)s->nkey) && !x.any && !x.has_expiry)
        fault_set(&x.fault, FAULT_SYNTAX, "there is nothing to update: FIELDS, NULLS, INCR or an expiry");
    if (!x.fault.kind && arg_row_name(c, &r, 3, &name, &x.fault))
        st = rows_update(&r, name, &x.w, &outcome, NULL, &x.fault);
    return answer(c, st, &x.fault, outcome, ROW_REPLACED);
}

static enum status row_del(struct call *c)
{
    struct rows r;
    struct slice name = {NULL, 0};
    struct fault fault = {.kind = FAULT_NONE};
    enum row_condition condition = ROW_ALWAYS;
    enum row_outcome outcome = ROW_NOT_MET;
    int64_t version = 0;
    enum status st = arg_rows(c, 1, &r);
    if (st != ST_OK || !r.table)
        return st;
    int behind = 2 + (int)r.table->schema.nkey;
    if (has_key(c, &r.table->schema, 2, &fault) && behind < c->argc) {
        condition = ROW_IF_VERSION;
        if (!slice_is(c->argv[behind], "ifver") || behind + 2 != c->argc ||
            !num_parse_i64(c->argv[behind + 1], &version))
            fault_set(&fault, FAULT_SYNTAX, "the key has %zu columns, and IFVER version may follow it",
                      r.table->schema.nkey);
    }
    if (!fault.kind && arg_row_name(c, &r, 2, &name, &fault))
        st = rows_delete(&r, name, condition, version, &outcome);
    if (st == ST_OK && !fault.kind && outcome == ROW_NOT_MET && condition == ROW_ALWAYS) {
        reply_integer(c->reply, 0);
        return ST_OK;
    }
    return answer(c, st, &fault, outcome, ROW_REPLACED);
}

/* ---- expiry ---- */

/* The name of the row whose key is argv[i] to the last argument. */
static bool take_last_key(struct call *c, const struct rows *r, int i, struct slice *ret, struct fault *fault)
{
    if ((size_t)(c->argc - i) != r->table->schema.nkey)
        return fault_set(fault, FAULT_SYNTAX, "the primary key has %zu columns", r->table->schema.nkey);
    return arg_row_name(c, r, i, ret, fault);
}

static enum status row_expire(struct call *c)
{
    struct rows r;
    struct slice name = {NULL, 0};
    struct fault fault = {.kind = FAULT_NONE};
    enum row_outcome outcome = ROW_NOT_MET;
    int64_t seconds, moment = 0;
    enum status st = arg_rows(c, 1, &r);
    if (st != ST_OK || !r.table || !arg_i64(c, 2, &seconds, NULL))
        return st;
    if (__builtin_mul_overflow(seconds, 1000, &seconds) ||
        __builtin_add_overflow(seconds, view_now(c->view), &moment)) {
        reply_error(c->reply, "ERR invalid expire time in 'row.expire' command");
        return ST_OK;
    }
    if (take_last_key(c, &r, 3, &name, &fault))
        st = rows_expire(&r, name, moment > 0 ? moment : 1, &outcome);
    if (st == ST_OK && fault.kind)
        reply_fault(c->reply, &fault);
    else if (st == ST_OK)
        reply_integer(c->reply, outcome == ROW_REPLACED);
    return st;
}

/* -2: no such row; -1: no expiry. Seconds are rounded to the nearest, as TTL does. */
static enum status tell_ttl(struct call *c, bool seconds)
{
    struct rows r;
    struct slice name = {NULL, 0};
    struct fault fault = {.kind = FAULT_NONE};
    struct item_row item;
    bool found;
    enum status st = arg_rows(c, 1, &r);
    if (st != ST_OK || !r.table)
        return st;
    if (!take_last_key(c, &r, 2, &name, &fault)) {
        reply_fault(c->reply, &fault);
        return ST_OK;
    }
    if ((st = rows_find(&r, name, &found, &item)) != ST_OK)
        return st;
    int64_t left = found && item.expire_at != EXPIRE_NEVER ? item.expire_at - view_now(c->view) : 0;
    if (!found || item.expire_at == EXPIRE_NEVER)
        reply_integer(c->reply, found ? -1 : -2);
    else
        reply_integer(c->reply, seconds ? left / 1000 + (left % 1000 >= 500) : left);
    return ST_OK;
}

static enum status row_ttl(struct call *c)
{
    return tell_ttl(c, true);
}

static enum status row_pttl(struct call *c)
{
    return tell_ttl(c, false);
}

/* clang-format off */
#define WRITES(name_, fn_, arity_, flags_, key_flags_, complexity_, summary_)                                \
    {                                                                                                        \
        .name = (name_), .fn = (fn_), .arity = (arity_), .flags = CMD_WRITE | CMD_FAST | (flags_),           \
        .categories = CAT_WRITE | CAT_FAST,                                                                  \
        .keys = {{.flags = KEY_RW | (key_flags_), .index = 1, .step = 1}},                                   \
        .summary = (summary_), .since = "1.0.0", .group = "table", .complexity = (complexity_)               \
    }

#define READS(name_, fn_, arity_, complexity_, summary_)                                                     \
    {                                                                                                        \
        .name = (name_), .fn = (fn_), .arity = (arity_), .flags = CMD_READONLY | CMD_FAST,                   \
        .categories = CAT_READ | CAT_FAST,                                                                   \
        .keys = {{.flags = KEY_RO | KEY_ACCESS, .index = 1, .step = 1}},                                     \
        .summary = (summary_), .since = "1.0.0", .group = "table", .complexity = (complexity_)               \
    }

#define ROW_AND_ENTRIES "O(1) row and one entry for each index that changes, however many rows there are."

const struct command row_commands[] = {
    WRITES("row.put", row_put, -5, CMD_DENYOOM, KEY_UPDATE, ROW_AND_ENTRIES,
           "Puts a row into a table, in the place of one with the same primary key."),
    WRITES("row.update", row_update, -5, CMD_DENYOOM, KEY_ACCESS | KEY_UPDATE, ROW_AND_ENTRIES,
           "Changes columns of a row that is there."),
    WRITES("row.del", row_del, -3, 0, KEY_DELETE, ROW_AND_ENTRIES, "Removes a row from a table."),
    WRITES("row.expire", row_expire, -4, 0, KEY_UPDATE, "O(1) row", "Lets a row end after some seconds."),
    READS("row.get", row_get, -3, "O(1) row", "Answers a row by its primary key."),
    READS("row.mget", row_mget, -5, "O(N) in the rows asked for.", "Answers rows by their primary keys."),
    READS("row.ttl", row_ttl, -3, "O(1) row", "Tells how many seconds a row has left."),
    READS("row.pttl", row_pttl, -3, "O(1) row", "Tells how many milliseconds a row has left."),
    {.name = NULL},
};
/* clang-format on */
