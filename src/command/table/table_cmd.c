/* Tables as wholes: TABLE.CREATE, TABLE.INFO, TABLE.LIST, TABLE.DROP. A table is a key: what is created here
   is one row of larder_key, what is dropped goes to the trash as any collection does, whatever its size. */
#include "base/buf.h"
#include "command/families.h"
#include "command/table/table_common.h"
#include "command/table/table_hashes.h"
#include "exec/args.h"
#include "exec/executor.h"
#include "table/build/build.h"
#include "table/find.h"
#include "table/hashes/hashes.h"
#include "table/text/ddl.h"
#include "table/text/describe.h"

#define ROWS_COUNTED 1000 /* by TABLE.INFO, which tells no more */

/* ---- TABLE.CREATE ---- */

struct create_options {
    bool if_absent;
    struct slice prefix; /* p is NULL: it has rows of its own */
};

/* Behind the text: [IF NOT EXISTS] [ON HASH PREFIX p] */
static bool read_create(const struct call *c, struct create_options *ret, struct fault *fault)
{
    *ret = (struct create_options){.if_absent = false};
    for (int i = 3; i < c->argc; i++) {
        if (!ret->if_absent && i + 2 < c->argc && slice_is(c->argv[i], "if") &&
            slice_is(c->argv[i + 1], "not") && slice_is(c->argv[i + 2], "exists")) {
            ret->if_absent = true;
            i += 2;
        } else if (!ret->prefix.p && i + 3 < c->argc && slice_is(c->argv[i], "on") &&
                   slice_is(c->argv[i + 1], "hash") && slice_is(c->argv[i + 2], "prefix")) {
            ret->prefix = c->argv[i + 3];
            i += 3;
        } else {
            return fault_set(fault, FAULT_SYNTAX, "%.*s is not understood behind the description",
                             FAULT_CUT(c->argv[i]));
        }
    }
    return true;
}

static enum status create_on_hashes(struct call *c, struct schema *s, struct fault *fault)
{
    struct rows r = {.catalog = call_catalog(c), .view = c->view, .arena = c->arena};
    bool builds;
    enum status st = hashes_create(&r, call_db(c), c->argv[1], s, &builds, fault);
    c->executor->builds_asked |= builds;
    return st;
}

static enum status table_create_command(struct call *c)
{
    struct fault fault = {.kind = FAULT_NONE};
    struct schema s;
    struct create_options o;
    const struct row *r;
    if (!read_create(c, &o, &fault) ||
        !ddl_table(c->argv[2], o.prefix.p ? &o.prefix : NULL, c->arena, &s, &fault)) {
        reply_fault(c->reply, &fault);
        return ST_OK;
    }
    enum status st = arg_any(c, 1, &r);
    if (st == ST_OK && !(o.if_absent && r && r->type == ROW_TABLE))
        st = o.prefix.p ? create_on_hashes(c, &s, &fault)
                        : table_create(c->view, call_db(c), c->argv[1], &s, &fault);
    if (st == ST_OK && fault.kind)
        reply_fault(c->reply, &fault);
    else if (st == ST_OK)
        reply_ok(c->reply);
    return st;
}

/* ---- TABLE.INFO ---- */

static void reply_bool_field(struct reply *r, const char *name, bool v)
{
    reply_bulk_str(r, name);
    reply_bool(r, v);
}

static void reply_columns(struct reply *r, const struct schema *s)
{
    reply_bulk_str(r, "columns");
    reply_array(r, s->ncolumns);
    for (size_t i = 0; i < s->ncolumns; i++) {
        const struct column *c = &s->columns[i];
        reply_map(r, 4);
        reply_bulk_str(r, "name");
        reply_bulk(r, c->name);
        reply_bulk_str(r, "type");
        reply_bulk_str(r, column_type_name(c->type));
        reply_bool_field(r, "not_null", c->not_null);
        reply_bulk_str(r, "default");
        reply_value(r, &c->default_value);
    }
}

static void reply_parts(struct reply *r, const struct schema *s, const struct key_part *parts, size_t n)
{
    reply_array(r, n);
    for (size_t i = 0; i < n; i++) {
        reply_map(r, 2);
        reply_bulk_str(r, "column");
        reply_bulk(r, s->columns[parts[i].column].name);
        reply_bool_field(r, "desc", parts[i].desc);
    }
}

/* progress: by index, how many rows a build has passed. */
static void reply_indexes(struct reply *r, const struct schema *s, const uint64_t *progress)
{
    static const char *const states[] = {
        [INDEX_READY] = "ready", [INDEX_BUILDING] = "building", [INDEX_FAILED] = "failed"};
    reply_bulk_str(r, "indexes");
    reply_array(r, s->nindexes);
    for (size_t i = 0; i < s->nindexes; i++) {
        const struct table_index *x = &s->indexes[i];
        reply_map(r, 6);
        reply_bulk_str(r, "name");
        reply_bulk(r, x->name);
        reply_bool_field(r, "unique", x->unique);
        reply_bulk_str(r, "columns");
        reply_parts(r, s, x->parts, x->nparts);
        reply_bulk_str(r, "state");
        reply_bulk_str(r, states[x->state]);
        reply_bulk_str(r, "progress");
        if (x->state == INDEX_BUILDING)
            reply_integer(r, (int64_t)progress[i]);
        else
            reply_null(r);
        reply_bulk_str(r, "error");
        if (x->error.n)
            reply_bulk(r, x->error);
        else
            reply_null(r);
    }
}

/* How far builds are. */
static enum status read_progress(struct rows *r, uint64_t **ret)
{
    const struct schema *s = &r->table->schema;
    enum status st = ST_OK;
    *ret = arena_alloc(r->arena, (s->nindexes + 1) * sizeof **ret);
    for (size_t i = 0; st == ST_OK && i < s->nindexes; i++)
        if (s->indexes[i].state == INDEX_BUILDING)
            st = build_progress(r, &s->indexes[i], &(*ret)[i]);
    return st;
}

static void reply_texts(struct reply *r, const struct table *t)
{
    static const char *const names[] = {
        [DIALECT_SQLITE] = "sqlite", [DIALECT_POSTGRES] = "postgresql", [DIALECT_MARIADB] = "mariadb"};
    struct buf text = {0};
    schema_describe(&t->schema, &text);
    reply_bulk_str(r, "create");
    reply_bulk(r, buf_slice(&text));
    reply_bulk_str(r, "view");
    reply_map(r, 3);
    for (int d = DIALECT_SQLITE; d <= DIALECT_MARIADB; d++) {
        text.len = 0;
        schema_view(&t->schema, t->name, t->db, t->id, (enum schema_dialect)d, &text);
        reply_bulk_str(r, names[d]);
        reply_bulk(r, buf_slice(&text));
    }
    buf_release(&text);
}

static enum status table_info(struct call *c)
{
    struct rows t;
    struct find every = {.scan = ROWS_COUNTED, .keys_only = true};
    struct find_place place = {.begun = false};
    struct find_result work = {0};
    uint64_t rows, *progress;
    enum status st = arg_rows(c, 1, &t);
    if (st != ST_OK || !t.table || (st = find_count(&t, &every, &place, &rows, &work)) != ST_OK ||
        (st = read_progress(&t, &progress)) != ST_OK)
        return st;
    const struct schema *s = &t.table->schema;
    reply_map(c->reply, s->on_hashes ? 8 + HASHES_INFO_FIELDS : 8);
    reply_bulk_str(c->reply, "name");
    reply_bulk(c->reply, t.table->name);
    reply_bulk_str(c->reply, "id");
    reply_integer(c->reply, t.table->id);
    reply_columns(c->reply, s);
    reply_bulk_str(c->reply, "key");
    reply_parts(c->reply, s, s->key, s->nkey);
    reply_indexes(c->reply, s, progress);
    reply_bulk_str(c->reply, "rows_estimate");
    reply_integer(c->reply, (int64_t)rows);
    reply_texts(c->reply, t.table);
    return s->on_hashes ? reply_hashes_info(c, &t) : ST_OK;
}

/* ---- TABLE.LIST, TABLE.DROP ---- */

struct listing {
    struct reply *reply;
    size_t n;
};

static enum status list_name(void *arg, struct slice name)
{
    struct listing *l = arg;
    reply_bulk(l->reply, name);
    l->n++;
    return ST_OK;
}

static enum status table_list(struct call *c)
{
    struct listing l = {.reply = c->reply};
    size_t mark = reply_begin_deferred(c->reply);
    enum status st = table_each(call_catalog(c), c->view, call_db(c), list_name, &l);
    if (st == ST_OK)
        reply_end_deferred(c->reply, mark, REPLY_ARRAY, l.n);
    return st;
}

static enum status table_drop(struct call *c)
{
    struct rows t;
    enum status st = arg_rows(c, 1, &t);
    if (st != ST_OK || !t.table)
        return st;
    st = view_del(c->view, call_db(c), c->argv[1], NULL);
    if (st == ST_OK)
        reply_ok(c->reply);
    return st;
}

/* clang-format off */
#define ON_TABLE(name_, fn_, arity_, flags_, categories_, key_flags_, complexity_, summary_)                 \
    {                                                                                                        \
        .name = (name_), .fn = (fn_), .arity = (arity_), .flags = (flags_),                                  \
        .categories = CAT_SLOW | (categories_),                                                              \
        .keys = {{.flags = (key_flags_), .index = 1, .step = 1}},                                            \
        .summary = (summary_), .since = "1.0.0", .group = "table", .complexity = (complexity_)               \
    }

const struct command table_commands[] = {
    ON_TABLE("table.create", table_create_command, -3, CMD_WRITE | CMD_DENYOOM, CAT_WRITE, KEY_OW | KEY_INSERT,
             "O(N) in the tables of the database.", "Creates a table."),
    ON_TABLE("table.info", table_info, 2, CMD_READONLY, CAT_READ, KEY_RO,
             "O(N) in the columns and indexes; of the rows up to 1,000 are counted.", "Describes a table."),
    ON_TABLE("table.drop", table_drop, 2, CMD_WRITE, CAT_WRITE, KEY_RM | KEY_DELETE,
             "O(1) row, however many rows the table has.", "Removes a table."),
    {.name = "table.list", .fn = table_list, .arity = 1, .flags = CMD_READONLY,
     .categories = CAT_READ | CAT_SLOW, .summary = "Lists the tables of the database, in byte order.",
     .since = "1.0.0", .group = "table", .complexity = "O(N) in the tables of the database."},
    {.name = NULL},
};
/* clang-format on */
