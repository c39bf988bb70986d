/* Keys and the items of collections as virtual tables that can only be read, with the columns of
   docs/schema.md: the same statements run in the database itself.

   A walk goes through the databases (or the one that is asked for), in each of them through the keys of a
   range in byte order, page by page, and of each collection through its items, page by page. A key that is
   told whole is one look-up, and so is a field or a member of it. */
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/mem.h"
#include "engine/coll.h"
#include "exec/args.h"
#include "query/constant.h"
#include "query/query_internal.h"
#include "query/redis_keys.h"

/* ---- the tables ---- */

static const struct redis_table tables[] = {
    {"larder_keys",
     "CREATE TABLE x(db INTEGER, key TEXT, type TEXT, size INTEGER, expires TEXT, ttl REAL, version INTEGER,"
     " key_bytes BLOB)",
     ROW_NONE,
     false,
     {OF_DB, OF_KEY, OF_TYPE, OF_SIZE, OF_EXPIRES, OF_TTL, OF_VERSION, OF_BYTES}},
    {"larder_strings",
     "CREATE TABLE x(db INTEGER, key TEXT, value TEXT, expires TEXT, key_bytes BLOB)",
     ROW_STRING,
     false,
     {OF_DB, OF_KEY, OF_STRING, OF_EXPIRES, OF_BYTES}},
    {"larder_hashes",
     "CREATE TABLE x(db INTEGER, key TEXT, field TEXT, value TEXT, expires TEXT, key_bytes BLOB)",
     ROW_HASH,
     true,
     {OF_DB, OF_KEY, OF_NAME, OF_VALUE, OF_EXPIRES, OF_BYTES}},
    {"larder_lists",
     "CREATE TABLE x(db INTEGER, key TEXT, position INTEGER, value TEXT, expires TEXT, key_bytes BLOB)",
     ROW_LIST,
     true,
     {OF_DB, OF_KEY, OF_POSITION, OF_VALUE, OF_EXPIRES, OF_BYTES}},
    {"larder_sets",
     "CREATE TABLE x(db INTEGER, key TEXT, member TEXT, expires TEXT, key_bytes BLOB)",
     ROW_SET,
     true,
     {OF_DB, OF_KEY, OF_NAME, OF_EXPIRES, OF_BYTES}},
    {"larder_zsets",
     "CREATE TABLE x(db INTEGER, key TEXT, member TEXT, score REAL, expires TEXT, key_bytes BLOB)",
     ROW_ZSET,
     true,
     {OF_DB, OF_KEY, OF_NAME, OF_SCORE, OF_EXPIRES, OF_BYTES}},
};
#define TABLES (sizeof tables / sizeof *tables)

bool redis_has(const char *name)
{
    for (size_t i = 0; i < TABLES; i++)
        if (strcasecmp(tables[i].name, name) == 0)
            return true;
    return false;
}

struct redis_vtab {
    sqlite3_vtab base;
    struct query_engine *e;
    const struct redis_table *table;
};

struct redis_module {
    struct query_engine *e;
    const struct redis_table *table;
};

static int connect_redis(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **ret,
                         char **ret_err)
{
    const struct redis_module *m = aux;
    (void)db;
    (void)argc;
    (void)argv;
    (void)ret_err;
    int rc = declare_own(m->e, m->table->declaration);
    if (rc != SQLITE_OK)
        return rc;
    struct redis_vtab *v = mem_zalloc(sizeof *v);
    v->e = m->e;
    v->table = m->table;
    *ret = &v->base;
    return SQLITE_OK;
}

static int disconnect_redis(sqlite3_vtab *vtab)
{
    mem_free(vtab);
    return SQLITE_OK;
}

/* ---- planning: values come in the order of these ---- */

enum { USE_DB = 1, USE_KEY = 2, USE_NAME = 4, USE_LOW = 8, USE_HIGH = 16, USE_PREFIX = 32, USE_NOTHING = 0 };

static int use_of(enum redis_column column, unsigned char op)
{
    bool key = column == OF_KEY || column == OF_BYTES;
    switch (op) {
    case SQLITE_INDEX_CONSTRAINT_EQ:
        return key ? USE_KEY : column == OF_DB ? USE_DB : column == OF_NAME ? USE_NAME : USE_NOTHING;
    case SQLITE_INDEX_CONSTRAINT_GT:
    case SQLITE_INDEX_CONSTRAINT_GE:
        return key ? USE_LOW : USE_NOTHING;
    case SQLITE_INDEX_CONSTRAINT_LT:
    case SQLITE_INDEX_CONSTRAINT_LE:
        return key ? USE_HIGH : USE_NOTHING;
    case SQLITE_INDEX_CONSTRAINT_GLOB:
        return column == OF_KEY ? USE_PREFIX : USE_NOTHING;
    default:
        return USE_NOTHING;
    }
}

static void explain(sqlite3_index_info *info, const struct redis_table *t, int uses)
{
    const char *name = t->columns[2] == OF_NAME && t->type == ROW_HASH ? "field" : "member";
    char text[128] = "";
    static const struct {
        int use;
        const char *text;
    } says[] = {{USE_DB, "db=?"},
                {USE_KEY, "key=?"},
                {USE_LOW, "key>?"},
                {USE_HIGH, "key<?"},
                {USE_PREFIX, "key GLOB ?"}};
    for (size_t i = 0; i < sizeof says / sizeof *says; i++)
        if (uses & says[i].use)
            (void)snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", *text ? " AND " : "",
                           says[i].text);
    if (uses & USE_NAME)
        (void)snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s=?", *text ? " AND " : "", name);
    info->idxStr = *text ? sqlite3_mprintf("keys(%s)", text) : sqlite3_mprintf("keys");
    info->needToFreeIdxStr = 1;
}

static void estimate(sqlite3_index_info *info, const struct redis_table *t, int uses)
{
    bool one_key = uses & USE_KEY;
    double keys = one_key ? (uses & USE_DB ? 1 : 16) : uses & USE_PREFIX ? 1000 : 100000;
    if (uses & (USE_LOW | USE_HIGH))
        keys /= 4;
    double rows = keys * (t->items && !(uses & USE_NAME) ? 20 : 1);
    info->estimatedRows = (sqlite3_int64)(rows < 1 ? 1 : rows);
    info->estimatedCost = keys * (t->items ? 4 : 1) + rows;
    if (one_key && (uses & USE_DB) && !t->items)
        info->idxFlags = SQLITE_INDEX_SCAN_UNIQUE;
}

static int best_index(sqlite3_vtab *vtab, sqlite3_index_info *info)
{
    const struct redis_vtab *v = (const struct redis_vtab *)vtab;
    int uses = 0, at[6], argc = 0;
    for (int i = 0; i < info->nConstraint; i++) {
        const struct sqlite3_index_constraint *c = &info->aConstraint[i];
        if (!c->usable || c->iColumn < 0)
            continue;
        enum redis_column column = v->table->columns[c->iColumn];
        int use = use_of(column, c->op);
        const char *collation = sqlite3_vtab_collation(info, i);
        bool text = column == OF_KEY || column == OF_NAME;
        if (use == USE_NOTHING || (uses & use) ||
            (text && (!collation || strcasecmp(collation, "BINARY") != 0)))
            continue;
        uses |= use;
        at[__builtin_ctz((unsigned)use)] = i;
    }
    if (!(uses & USE_KEY))
        uses &= ~USE_NAME; /* a name alone finds nothing */
    else
        uses &= ~(USE_LOW | USE_HIGH | USE_PREFIX);
    for (int i = 0; i < 6; i++)
        if (uses & 1 << i)
            info->aConstraintUsage[at[i]].argvIndex = ++argc;
    info->idxNum = uses;
    explain(info, v->table, uses);
    estimate(info, v->table, uses);
    return info->idxStr ? SQLITE_OK : SQLITE_NOMEM;
}

/* ---- reading ---- */

struct redis_cursor {
    sqlite3_vtab_cursor base;
    struct redis_walk walk;
};

static int open_cursor(sqlite3_vtab *vtab, sqlite3_vtab_cursor **ret)
{
    const struct redis_vtab *v = (const struct redis_vtab *)vtab;
    struct redis_cursor *c = mem_zalloc(sizeof *c);
    redis_walk_init(&c->walk, v->e, v->table);
    *ret = &c->base;
    return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *cursor)
{
    struct redis_cursor *c = (struct redis_cursor *)cursor;
    redis_walk_release(&c->walk);
    mem_free(c);
    return SQLITE_OK;
}

/* A key or a name that is looked for. CONSTANT_ANY: SQLite may find others equal. */
static enum constant bytes_of(sqlite3_value *v, struct arena *arena, struct slice *ret)
{
    struct value is;
    enum constant c =
        sqlite3_value_type(v) == SQLITE_BLOB ? CONSTANT_IS : constant_equal(COLUMN_TEXT, v, &is);
    if (c == CONSTANT_IS) {
        is = value_from_sqlite(v, arena);
        *ret = is.s;
    }
    return c;
}

/* Takes one value. False: nothing can match. */
static bool take(struct redis_walk *w, int use, sqlite3_value *v)
{
    struct value is;
    enum constant c;
    switch (use) {
    case USE_DB:
        c = constant_equal(COLUMN_INTEGER, v, &is);
        if (c != CONSTANT_IS || is.i < 0 || is.i >= w->ndbs)
            return false;
        w->db = (uint32_t)is.i;
        w->ndbs = w->db + 1;
        return true;
    case USE_KEY:
        return bytes_of(v, &w->given, &w->key) != CONSTANT_NEVER;
    case USE_NAME:
        return bytes_of(v, &w->given, &w->name) != CONSTANT_NEVER;
    case USE_LOW:
        return bytes_of(v, &w->given, &w->range.from) != CONSTANT_NEVER;
    case USE_HIGH:
        c = bytes_of(v, &w->given, &w->range.to);
        if (c == CONSTANT_IS) { /* the least key behind it, so that it is within */
            char *to = arena_alloc(&w->given, w->range.to.n + 1);
            memcpy(to, w->range.to.p, w->range.to.n);
            to[w->range.to.n] = '\0';
            w->range.to = slice_of(to, w->range.to.n + 1);
        }
        return c != CONSTANT_NEVER;
    default: {
        struct slice prefix = constant_prefix(v);
        if (prefix.n)
            w->range.prefix = arena_copy(&w->given, prefix);
        return sqlite3_value_type(v) != SQLITE_NULL;
    }
    }
}

static int filter(sqlite3_vtab_cursor *cursor, int uses, const char *text, int argc, sqlite3_value **argv)
{
    struct redis_cursor *c = (struct redis_cursor *)cursor;
    bool can = true;
    (void)text;
    (void)argc;
    redis_walk_begin(&c->walk);
    for (int i = 0, arg = 0; i < 6; i++)
        if (uses & 1 << i)
            can = take(&c->walk, 1 << i, argv[arg++]) && can;
    if (!can) {
        c->walk.ended = true;
        return SQLITE_OK;
    }
    return redis_walk_next(&c->walk);
}

static int next(sqlite3_vtab_cursor *cursor)
{
    return redis_walk_next(&((struct redis_cursor *)cursor)->walk);
}

static int at_end(sqlite3_vtab_cursor *cursor)
{
    return ((struct redis_cursor *)cursor)->walk.ended;
}

static void tell_moment(sqlite3_context *ctx, int64_t ms)
{
    char text[40];
    time_t seconds = (time_t)(ms / 1000);
    struct tm tm;
    if (ms <= 0 || !gmtime_r(&seconds, &tm))
        return;
    size_t n = strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &tm);
    (void)snprintf(text + n, sizeof text - n, ".%03d", (int)(ms % 1000));
    sqlite3_result_text(ctx, text, -1, SQLITE_TRANSIENT);
}

static void tell_bytes(sqlite3_context *ctx, struct slice s, bool text)
{
    struct value v = {.kind = text ? VALUE_TEXT : VALUE_BLOB, .s = s};
    value_to_sqlite(ctx, &v);
}

static int tell(sqlite3_context *ctx, struct redis_walk *w, enum redis_column column)
{
    const struct redis_key *k = &w->keys[w->at];
    const struct redis_item *item = &w->items[w->table->items ? w->item : 0];
    switch (column) {
    case OF_DB:
        sqlite3_result_int64(ctx, w->db);
        break;
    case OF_KEY:
    case OF_BYTES:
        tell_bytes(ctx, k->key, column == OF_KEY);
        break;
    case OF_TYPE:
        sqlite3_result_text(ctx, row_type_name(k->type), -1, SQLITE_STATIC);
        break;
    case OF_SIZE:
        return redis_tell_size(w, ctx);
    case OF_STRING:
        return redis_tell_string(w, ctx);
    case OF_EXPIRES:
        tell_moment(ctx, w->table->items ? item->expire_at : k->expire_at);
        break;
    case OF_TTL:
        if (k->expire_at > 0)
            sqlite3_result_double(ctx, (double)(k->expire_at - view_now(w->e->q->view)) / 1000.0);
        break;
    case OF_VERSION:
        sqlite3_result_int64(ctx, k->version);
        break;
    case OF_NAME:
        tell_bytes(ctx, item->name, true);
        break;
    case OF_VALUE:
        tell_bytes(ctx, item->value, true);
        break;
    case OF_POSITION:
        sqlite3_result_int64(ctx, item->position);
        break;
    case OF_SCORE:
        sqlite3_result_double(ctx, item->score);
        break;
    }
    return SQLITE_OK;
}

static int column(sqlite3_vtab_cursor *cursor, sqlite3_context *ctx, int i)
{
    struct redis_cursor *c = (struct redis_cursor *)cursor;
    return tell(ctx, &c->walk, c->walk.table->columns[i]);
}

static int rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *ret)
{
    *ret = (sqlite3_int64)((struct redis_cursor *)cursor)->walk.row;
    return SQLITE_OK;
}

static const sqlite3_module redis_module = {
    .iVersion = 1,
    .xConnect = connect_redis,
    .xBestIndex = best_index,
    .xDisconnect = disconnect_redis,
    .xOpen = open_cursor,
    .xClose = close_cursor,
    .xFilter = filter,
    .xNext = next,
    .xEof = at_end,
    .xColumn = column,
    .xRowid = rowid,
};

int redis_register(struct query_engine *e)
{
    int rc = SQLITE_OK;
    for (size_t i = 0; rc == SQLITE_OK && i < TABLES; i++) {
        struct redis_module *m = mem_alloc(sizeof *m);
        *m = (struct redis_module){.e = e, .table = &tables[i]};
        rc = sqlite3_create_module_v2(e->db, tables[i].name, &redis_module, m, mem_free);
    }
    return rc;
}
