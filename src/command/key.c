/* Keys whatever they hold: DEL, EXISTS, TYPE, RENAME, COPY, MOVE and OBJECT, and whole databases of them:
   DBSIZE, FLUSHDB, SWAPDB. None but COPY depends on how large a value is. */
#include "exec/args.h"

#include "command/families.h"
#include "engine/coll.h"
#include "table/names.h"

static const char ERR_SAME_OBJECT[] = "ERR source and destination objects are the same";
static const char ERR_DB_RANGE[] = "ERR DB index is out of range";

/* ---- one key or several ---- */

static enum status del(struct call *c)
{
    int64_t n = 0;
    for (int i = 1; i < c->argc; i++) {
        bool existed;
        enum status st = view_del(c->view, call_db(c), c->argv[i], &existed);
        if (st != ST_OK)
            return st;
        n += existed;
    }
    reply_integer(c->reply, n);
    return ST_OK;
}

/* A key named twice counts twice. */
static enum status touch(struct call *c)
{
    int64_t n = 0;
    for (int i = 1; i < c->argc; i++) {
        const struct row *row;
        enum status st = arg_any(c, i, &row);
        if (st != ST_OK)
            return st;
        n += row != NULL;
    }
    reply_integer(c->reply, n);
    return ST_OK;
}

static enum status exists(struct call *c)
{
    view_look_only(c->view);
    return touch(c);
}

static enum status type(struct call *c)
{
    const struct row *row;
    view_look_only(c->view);
    enum status st = arg_any(c, 1, &row);
    if (st == ST_OK)
        reply_simple(c->reply, row_type_name(row ? (enum row_type)row->type : ROW_NONE));
    return st;
}

static enum status randomkey(struct call *c)
{
    struct slice key;
    enum status st = view_random_key(c->view, call_db(c), c->arena, &key);
    if (st != ST_OK)
        return st;
    if (key.p)
        reply_bulk(c->reply, key);
    else
        reply_null(c->reply);
    return ST_OK;
}

/* ---- to another name ---- */

/* Whether a key may go there, as far as that depends on what it is: tables have names that SQL knows. False:
   an error has been replied. */
static enum status may_go(struct call *c, const struct row *row, uint32_t to_db, struct slice to, bool *ret)
{
    struct fault fault = {.kind = FAULT_NONE};
    enum status st = ST_OK;
    if (row->type == ROW_TABLE)
        st = table_move_check(c->view, row, call_db(c), c->argv[1], to_db, to, &fault);
    *ret = st == ST_OK && !fault.kind;
    if (fault.kind)
        reply_errorf(c->reply, "%s %s", fault_code(fault.kind), fault.text);
    return st;
}

/* A key onto itself is a success that changes nothing, for RENAME; for RENAMENX the new name is taken. */
static enum status rename_key(struct call *c, bool if_free, bool *ret_done)
{
    const struct row *row, *there = NULL;
    enum status st = arg_present(c, 1, &row);
    *ret_done = false;
    if (st != ST_OK || !row)
        return st;
    bool same = slice_eq(c->argv[1], c->argv[2]);
    if (if_free) {
        if (!same && (st = arg_any(c, 2, &there)) != ST_OK)
            return st;
        if (same || there) {
            reply_integer(c->reply, 0);
            return ST_OK;
        }
    }
    st = same ? ST_OK : may_go(c, row, call_db(c), c->argv[2], ret_done);
    *ret_done |= same;
    if (st != ST_OK || same || !*ret_done)
        return st;
    return view_move(c->view, call_db(c), c->argv[1], call_db(c), c->argv[2]);
}

static enum status rename_always(struct call *c)
{
    bool done;
    enum status st = rename_key(c, false, &done);
    if (st == ST_OK && done)
        reply_ok(c->reply);
    return st;
}

static enum status renamenx(struct call *c)
{
    bool done;
    enum status st = rename_key(c, true, &done);
    if (st == ST_OK && done)
        reply_integer(c->reply, 1);
    return st;
}

/* The number of a database that a client names. */
static bool arg_db(struct call *c, int i, uint32_t *ret)
{
    int64_t n;
    if (!arg_range(c, i, INT32_MIN, INT32_MAX, &n, NULL))
        return false;
    if (n < 0 || n >= view_databases(c->view)) {
        reply_error(c->reply, ERR_DB_RANGE);
        return false;
    }
    *ret = (uint32_t)n;
    return true;
}

static enum status move(struct call *c)
{
    uint32_t to;
    if (!arg_db(c, 2, &to))
        return ST_OK;
    if (to == call_db(c)) {
        reply_error(c->reply, ERR_SAME_OBJECT);
        return ST_OK;
    }
    const struct row *from, *there = NULL;
    enum status st = arg_any(c, 1, &from);
    if (st == ST_OK && from)
        st = view_get(c->view, to, c->argv[1], &there);
    if (st != ST_OK)
        return st;
    bool moves = from && !there;
    if (moves) {
        st = may_go(c, from, to, c->argv[1], &moves);
        if (st != ST_OK || !moves)
            return st;
    }
    if (moves && (st = view_move(c->view, call_db(c), c->argv[1], to, c->argv[1])) != ST_OK)
        return st;
    reply_integer(c->reply, moves);
    return ST_OK;
}

/* ---- COPY ---- */

/* Copies the pieces of a long string to a fresh id. They stay in memory until the batch has been
   committed. */
static enum status copy_chunks(struct call *c, const struct row_ext *from, int64_t *ret_id)
{
    enum status st = view_new_id(c->view, ret_id);
    for (int64_t pos = 0; st == ST_OK && pos * STORE_CHUNK_BYTES < from->size; pos++) {
        struct item_ref ref = {.table = ITEM_CHUNK, .id = from->id, .pos = pos};
        struct item_row item;
        bool found;
        st = view_item(c->view, &ref, &found, &item);
        if (st != ST_OK || !found)
            continue;
        item.ref = (struct item_ref){.table = ITEM_CHUNK, .id = *ret_id, .pos = pos};
        item.value = arena_copy(view_arena(c->view), item.value);
        st = view_put_item(c->view, &item);
    }
    return st;
}

struct copied {
    struct copied *next;
    struct coll_item item;
};

struct copying {
    struct arena *arena;
    struct copied *first, **end;
};

static enum status copy_item(void *arg, const struct coll_item *item)
{
    struct copying *g = arg;
    struct copied *i = arena_alloc(g->arena, sizeof *i);
    *i = (struct copied){.item = *item};
    i->item.name = arena_copy(g->arena, item->name);
    i->item.value = arena_copy(g->arena, item->value);
    *g->end = i;
    g->end = &i->next;
    return ST_OK;
}

/* The items of a collection, copied before any is written: a scan does not allow writes. */
static enum status copy_items(struct call *c, enum row_type type, struct copying *ret)
{
    struct coll *from;
    bool wrong;
    *ret = (struct copying){.arena = view_arena(c->view)};
    ret->end = &ret->first;
    enum status st = coll_open(c->view, call_db(c), c->argv[1], type, &from, &wrong);
    if (st != ST_OK)
        return st;
    if (type == ROW_LIST)
        return coll_range(from, 0, coll_size(from) - 1, false, copy_item, ret);
    return coll_each(from, copy_item, ret);
}

static enum status copy_coll(struct call *c, const struct row *row, uint32_t to_db, struct slice to)
{
    enum row_type type = (enum row_type)row->type;
    int64_t expire_at = row->expire_at;
    enum row_form form = (enum row_form)row->form;
    struct copying items;
    struct coll *coll;
    enum status st = copy_items(c, type, &items);
    if (st == ST_OK)
        st = coll_replace(c->view, to_db, to, type, &coll);
    for (struct copied *i = items.first; st == ST_OK && i; i = i->next)
        st = type == ROW_LIST ? coll_push(coll, false, i->item.value) : coll_put(coll, &i->item, NULL);
    if (st == ST_OK && form != FORM_UNKNOWN)
        coll_set_form(coll, form);
    if (st == ST_OK)
        st = coll_save(coll);
    return st == ST_OK && expire_at != EXPIRE_NEVER ? view_expire(c->view, to_db, to, expire_at) : st;
}

static enum status copy_string(struct call *c, const struct row *row, uint32_t to_db, struct slice to)
{
    struct row_ext chunks = row_items(row);
    struct row_draft d = {
        .type = ROW_STRING,
        .value = row_value(row),
        .size = chunks.size,
        .first = chunks.first,
        .expire_at = row->expire_at,
        .form = (enum row_form)row->form,
    };
    enum status st = chunks.id ? copy_chunks(c, &chunks, &d.id) : ST_OK;
    return st == ST_OK ? view_put(c->view, to_db, to, &d) : st;
}

static bool read_copy_options(struct call *c, uint32_t *ret_db, bool *ret_replace)
{
    *ret_db = call_db(c);
    *ret_replace = false;
    for (int i = 3; i < c->argc; i++) {
        if (slice_is(c->argv[i], "replace")) {
            *ret_replace = true;
        } else if (slice_is(c->argv[i], "db") && i + 1 < c->argc) {
            if (!arg_db(c, ++i, ret_db))
                return false;
        } else {
            reply_error(c->reply, ERR_SYNTAX);
            return false;
        }
    }
    if (*ret_db == call_db(c) && slice_eq(c->argv[1], c->argv[2])) {
        reply_error(c->reply, ERR_SAME_OBJECT);
        return false;
    }
    return true;
}

static enum status copy(struct call *c)
{
    uint32_t to_db;
    bool replace;
    if (!read_copy_options(c, &to_db, &replace))
        return ST_OK;
    const struct row *from, *there = NULL;
    view_count_lookups(c->view, true);
    enum status st = arg_any(c, 1, &from);
    view_count_lookups(c->view, false);
    if (st == ST_OK && from)
        st = view_get(c->view, to_db, c->argv[2], &there);
    if (st != ST_OK)
        return st;
    bool copies = from && (!there || replace);
    if (from && from->type == ROW_TABLE) {
        reply_error(c->reply, "REFUSED a table is not copied: create another one and insert its rows");
        return ST_OK;
    }
    if (copies)
        st = (from->type == ROW_STRING ? copy_string : copy_coll)(c, from, to_db, c->argv[2]);
    if (st == ST_OK)
        reply_integer(c->reply, copies);
    return st;
}

/* ---- databases ---- */

static enum status dbsize(struct call *c)
{
    int64_t keys, expires;
    enum status st = view_db_size(c->view, call_db(c), &keys, &expires);
    if (st == ST_OK)
        reply_integer(c->reply, keys);
    return st;
}

static enum status swapdb(struct call *c)
{
    int64_t a, b;
    if (!arg_range(c, 1, INT32_MIN, INT32_MAX, &a, "ERR invalid first DB index") ||
        !arg_range(c, 2, INT32_MIN, INT32_MAX, &b, "ERR invalid second DB index"))
        return ST_OK;
    int64_t n = view_databases(c->view);
    if (a < 0 || b < 0 || a >= n || b >= n) {
        reply_error(c->reply, ERR_DB_RANGE);
        return ST_OK;
    }
    enum status st = a == b ? ST_OK : view_swap_db(c->view, (uint32_t)a, (uint32_t)b);
    if (st == ST_OK)
        reply_ok(c->reply);
    return st;
}

/* ASYNC and SYNC are the same here: the rows are out of sight at once, and the sweeper removes them later. */
static bool read_flush_mode(struct call *c)
{
    if (c->argc == 1 || (c->argc == 2 && (slice_is(c->argv[1], "async") || slice_is(c->argv[1], "sync"))))
        return true;
    reply_error(c->reply, ERR_SYNTAX);
    return false;
}

static enum status flushdb(struct call *c)
{
    if (!read_flush_mode(c))
        return ST_OK;
    enum status st = view_flush_db(c->view, call_db(c));
    if (st == ST_OK)
        reply_ok(c->reply);
    return st;
}

static enum status flushall(struct call *c)
{
    if (!read_flush_mode(c))
        return ST_OK;
    for (uint32_t db = 0; db < view_databases(c->view); db++) {
        enum status st = view_flush_db(c->view, db);
        if (st != ST_OK)
            return st;
    }
    reply_ok(c->reply);
    return ST_OK;
}

/* clang-format off */
const struct command key_commands[] = {
    {
        .name = "del", .fn = del, .arity = -2, .flags = CMD_WRITE,
        .categories = CAT_KEYSPACE | CAT_WRITE | CAT_SLOW,
        .keys = {{.flags = KEY_RM | KEY_DELETE, .index = 1, .last = -1, .step = 1}},
        .summary = "Deletes keys.", .since = "1.0.0", .group = "generic",
        .complexity = "O(N) in the keys named, whatever their values' sizes.",
        .tips = {"request_policy:multi_shard", "response_policy:agg_sum"},
    },
    {
        .name = "unlink", .fn = del, .arity = -2, .flags = CMD_WRITE | CMD_FAST,
        .categories = CAT_KEYSPACE | CAT_WRITE | CAT_FAST,
        .keys = {{.flags = KEY_RM | KEY_DELETE, .index = 1, .last = -1, .step = 1}},
        .summary = "Deletes keys; the same as DEL.", .since = "4.0.0", .group = "generic",
        .complexity = "O(N) in the keys named, whatever their values' sizes.",
        .tips = {"request_policy:multi_shard", "response_policy:agg_sum"},
    },
    {
        .name = "exists", .fn = exists, .arity = -2, .flags = CMD_READONLY | CMD_FAST | CMD_ROWS_ONLY,
        .categories = CAT_KEYSPACE | CAT_READ | CAT_FAST,
        .keys = {{.flags = KEY_RO, .index = 1, .last = -1, .step = 1}},
        .summary = "Counts how many of the keys exist.", .since = "1.0.0", .group = "generic",
        .complexity = "O(N) in the keys named.",
        .tips = {"request_policy:multi_shard", "response_policy:agg_sum"},
    },
    {
        .name = "type", .fn = type, .arity = 2, .flags = CMD_READONLY | CMD_FAST | CMD_ROWS_ONLY,
        .categories = CAT_KEYSPACE | CAT_READ | CAT_FAST,
        .keys = {{.flags = KEY_RO, .index = 1, .step = 1}},
        .summary = "Tells the type of a key's value.", .since = "1.0.0", .group = "generic",
        .complexity = "O(1)",
    },
    {
        .name = "touch", .fn = touch, .arity = -2, .flags = CMD_READONLY | CMD_FAST | CMD_ROWS_ONLY,
        .categories = CAT_KEYSPACE | CAT_READ | CAT_FAST,
        .keys = {{.flags = KEY_RO, .index = 1, .last = -1, .step = 1}},
        .summary = "Reads keys, so that they stay in the cache, and counts those that exist.",
        .since = "3.2.1", .group = "generic", .complexity = "O(N) in the keys named.",
        .tips = {"request_policy:multi_shard", "response_policy:agg_sum"},
    },
    {
        .name = "randomkey", .fn = randomkey, .arity = 1, .flags = CMD_READONLY,
        .categories = CAT_KEYSPACE | CAT_READ | CAT_SLOW,
        .summary = "Returns one of the keys, any.", .since = "1.0.0", .group = "generic",
        .complexity = "O(1), or O(N) in the rows when nearly all of them are dead or of other databases.",
        .tips = {"request_policy:all_shards", "nondeterministic_output"},
    },
    {
        .name = "rename", .fn = rename_always, .arity = 3, .flags = CMD_WRITE,
        .categories = CAT_KEYSPACE | CAT_WRITE | CAT_SLOW,
        .keys = {{.flags = KEY_RW | KEY_ACCESS | KEY_DELETE, .index = 1, .step = 1},
                 {.flags = KEY_OW | KEY_UPDATE, .index = 2, .step = 1}},
        .summary = "Gives a key another name, in the place of what is there.", .since = "1.0.0",
        .group = "generic", .complexity = "O(1), whatever the values' sizes.",
    },
    {
        .name = "renamenx", .fn = renamenx, .arity = 3, .flags = CMD_WRITE | CMD_FAST,
        .categories = CAT_KEYSPACE | CAT_WRITE | CAT_FAST,
        .keys = {{.flags = KEY_RW | KEY_ACCESS | KEY_DELETE, .index = 1, .step = 1},
                 {.flags = KEY_OW | KEY_INSERT, .index = 2, .step = 1}},
        .summary = "Gives a key another name unless that is taken.", .since = "1.0.0",
        .group = "generic", .complexity = "O(1), whatever the value's size.",
    },
    {
        .name = "copy", .fn = copy, .arity = -3, .flags = CMD_WRITE | CMD_DENYOOM,
        .categories = CAT_KEYSPACE | CAT_WRITE | CAT_SLOW,
        .keys = {{.flags = KEY_RO | KEY_ACCESS, .index = 1, .step = 1},
                 {.flags = KEY_OW | KEY_UPDATE, .index = 2, .step = 1}},
        .summary = "Copies a key with its expiry.", .since = "6.2.0", .group = "generic",
        .complexity = "O(N) in the value's size.",
    },
    {
        .name = "move", .fn = move, .arity = 3, .flags = CMD_WRITE | CMD_FAST,
        .categories = CAT_KEYSPACE | CAT_WRITE | CAT_FAST,
        .keys = {{.flags = KEY_RW | KEY_ACCESS | KEY_UPDATE, .index = 1, .step = 1}},
        .summary = "Moves a key to another database.", .since = "1.0.0", .group = "generic",
        .complexity = "O(1), whatever the value's size.",
    },
    {
        .name = "dbsize", .fn = dbsize, .arity = 1, .flags = CMD_READONLY | CMD_FAST,
        .categories = CAT_KEYSPACE | CAT_READ | CAT_FAST,
        .summary = "Counts the keys of the database.", .since = "1.0.0", .group = "server",
        .complexity = "O(1) but for expired keys that wait to be swept.",
        .tips = {"request_policy:all_shards", "response_policy:agg_sum"},
    },
    {
        .name = "swapdb", .fn = swapdb, .arity = 3, .flags = CMD_WRITE | CMD_FAST,
        .categories = CAT_KEYSPACE | CAT_WRITE | CAT_FAST | CAT_DANGEROUS,
        .summary = "Exchanges two databases.", .since = "4.0.0", .group = "server", .complexity = "O(1)",
    },
    {
        .name = "flushdb", .fn = flushdb, .arity = -1, .flags = CMD_WRITE,
        .categories = CAT_KEYSPACE | CAT_WRITE | CAT_SLOW | CAT_DANGEROUS,
        .summary = "Removes every key of the database.", .since = "1.0.0", .group = "server",
        .complexity = "O(1); the sweeper removes the rows later.",
        .tips = {"request_policy:all_shards", "response_policy:all_succeeded"},
    },
    {
        .name = "flushall", .fn = flushall, .arity = -1, .flags = CMD_WRITE,
        .categories = CAT_KEYSPACE | CAT_WRITE | CAT_SLOW | CAT_DANGEROUS,
        .summary = "Removes every key of every database.", .since = "1.0.0", .group = "server",
        .complexity = "O(D) in the databases; the sweeper removes the rows later.",
        .tips = {"request_policy:all_shards", "response_policy:all_succeeded"},
    },
    {.name = NULL},
};
/* clang-format on */
