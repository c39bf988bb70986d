/* What tables over hashes have of their own: what is not as they say, in TABLE.INFO and TABLE.UNPARSED. */
#include "command/table/table_hashes.h"

#include "base/buf.h"
#include "base/num.h"
#include "command/families.h"
#include "command/table/table_common.h"
#include "proto/base64.h"
#include "table/hashes/hashes.h"
#include "table/keycode.h"

#define PAGE_ROWS   100
#define PAGE_MOST   10000
#define SHOWN_KEYS  10    /* in TABLE.INFO */
#define COUNTED_MAX 10000 /* there, at most */

/* ---- TABLE.INFO ---- */

struct tally {
    struct arena *arena;
    struct slice keys[SHOWN_KEYS];
    size_t nkeys, n;
};

static enum status count_flaw(void *arg, const struct hash_flaw *f)
{
    struct tally *t = arg;
    if (t->nkeys < SHOWN_KEYS && !(t->nkeys && slice_eq(t->keys[t->nkeys - 1], f->key)))
        t->keys[t->nkeys++] = arena_copy(t->arena, f->key);
    t->n++;
    return ST_OK;
}

enum status reply_hashes_info(struct call *c, struct rows *r)
{
    struct tally t = {.arena = c->arena};
    struct buf after = {0};
    enum status st = hashes_flaws(r, COUNTED_MAX, &after, count_flaw, &t);
    buf_release(&after);
    if (st != ST_OK)
        return st;
    reply_bulk_str(c->reply, "prefix");
    reply_bulk(c->reply, r->table->schema.prefix);
    reply_bulk_str(c->reply, "unparsable");
    reply_integer(c->reply, (int64_t)t.n);
    reply_bulk_str(c->reply, "unparsable_keys");
    reply_array(c->reply, t.nkeys);
    for (size_t i = 0; i < t.nkeys; i++)
        reply_bulk(c->reply, t.keys[i]);
    return ST_OK;
}

/* ---- TABLE.UNPARSED ---- */

struct listing {
    struct reply *reply;
    const struct schema *schema;
    size_t n;
};

static enum status list_flaw(void *arg, const struct hash_flaw *f)
{
    struct listing *l = arg;
    reply_array(l->reply, 3);
    reply_bulk(l->reply, f->key);
    if (f->column >= 0) {
        reply_bulk_str(l->reply, "column");
        reply_bulk(l->reply, l->schema->columns[f->column].name);
    } else if (f->index >= 0) {
        reply_bulk_str(l->reply, "index");
        reply_bulk(l->reply, l->schema->indexes[f->index].name);
    } else {
        reply_bulk_str(l->reply, "key");
        reply_null(l->reply);
    }
    l->n++;
    return ST_OK;
}

static bool read_token(const struct call *c, struct slice text, struct buf *after, struct fault *fault)
{
    struct slice name;
    if (text.n > (size_t)2 * KEYCODE_MAX || !base64_decode(text, c->arena, &name) || !hashes_is_flaw(name))
        return fault_set(fault, FAULT_BAD_TOKEN, "AFTER has no token of this command");
    after->len = 0;
    buf_add_slice(after, name);
    return true;
}

/* Behind the table: [LIMIT n] [AFTER token] */
static bool read_options(const struct call *c, uint32_t *ret_limit, struct buf *after, struct fault *fault)
{
    int64_t n;
    *ret_limit = PAGE_ROWS;
    for (int i = 2; i < c->argc; i += 2) {
        bool more = i + 1 < c->argc;
        if (more && slice_is(c->argv[i], "after")) {
            if (!read_token(c, c->argv[i + 1], after, fault))
                return false;
        } else if (more && slice_is(c->argv[i], "limit") && num_parse_i64(c->argv[i + 1], &n) && n > 0 &&
                   n <= PAGE_MOST) {
            *ret_limit = (uint32_t)n;
        } else {
            return fault_set(fault, FAULT_SYNTAX, "LIMIT 1 to %d and AFTER token may follow the table",
                             PAGE_MOST);
        }
    }
    return true;
}

static enum status reply_page(struct call *c, struct rows *r, uint32_t limit, struct buf *after)
{
    struct listing l = {.reply = c->reply, .schema = &r->table->schema};
    struct buf token = {0};
    reply_array(c->reply, 2);
    size_t mark = reply_begin_deferred(c->reply);
    enum status st = hashes_flaws(r, limit, after, list_flaw, &l);
    if (st != ST_OK)
        return st;
    reply_end_deferred(c->reply, mark, REPLY_ARRAY, l.n);
    base64_add_url(&token, buf_slice(after));
    if (after->len)
        reply_bulk(c->reply, buf_slice(&token));
    else
        reply_null(c->reply);
    buf_release(&token);
    return ST_OK;
}

static enum status table_unparsed(struct call *c)
{
    struct rows r;
    struct fault fault = {.kind = FAULT_NONE};
    struct buf after = {0};
    uint32_t limit;
    enum status st = arg_rows(c, 1, &r);
    if (st != ST_OK || !r.table)
        return st;
    if (!r.table->schema.on_hashes)
        fault_set(&fault, FAULT_REFUSED, "the table is not on hashes: its values are what its columns say");
    else if (read_options(c, &limit, &after, &fault))
        st = reply_page(c, &r, limit, &after);
    buf_release(&after);
    if (fault.kind)
        reply_fault(c->reply, &fault);
    return st;
}

const struct command table_hashes_commands[] = {
    {.name = "table.unparsed",
     .fn = table_unparsed,
     .arity = -2,
     .flags = CMD_READONLY,
     .categories = CAT_SLOW | CAT_READ,
     .keys = {{.flags = KEY_RO, .index = 1, .step = 1}},
     .summary = "Lists the hashes of a table over hashes that are not as it says.",
     .since = "1.0.0",
     .group = "table",
     .complexity = "O(N) in the hashes listed."},
    {.name = NULL},
};
