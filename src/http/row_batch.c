/* The operations on rows in POST /batch: row_put, row_update, row_delete. Their conditions and their changes
   are one step, with those of keys in the same batch. */
#include "http/http_tables.h"

/* The columns that are increased, and by how much. */
static bool read_increases(const struct schema *s, const struct json *incr, struct arena *arena,
                           struct row_write *w, struct fault *fault)
{
    struct row_write by = http_new_write(s, arena);
    if (incr->kind == JSON_NULL)
        return true;
    if (!http_read_columns(s, incr, arena, &by, fault))
        return false;
    for (size_t i = 0; i < s->ncolumns; i++) {
        if (!by.given[i])
            continue;
        if (w->given[i])
            return fault_set(fault, FAULT_SYNTAX, "%.*s is set and increased", FAULT_CUT(s->columns[i].name));
        w->values[i] = by.values[i];
        w->given[i] = true;
    }
    w->increase = by.given;
    return true;
}

/* What the operation says, and the name of its row. */
static bool understand(const struct schema *s, const struct http_row_op *op, struct arena *arena,
                       struct row_write *w, struct slice *ret_name, struct fault *fault)
{
    struct row_write key = http_new_write(s, arena);
    *w = http_new_write(s, arena);
    if (op->kind != ROW_OP_PUT && !http_key_of_json(s, &op->key, arena, key.values, ret_name, fault))
        return false;
    if (op->kind == ROW_OP_DELETE)
        return true;
    if (op->row.kind != JSON_NULL && !http_read_columns(s, &op->row, arena, w, fault))
        return false;
    if (!read_increases(s, &op->incr, arena, w, fault))
        return false;
    if (op->kind == ROW_OP_UPDATE)
        return true;
    struct buf name = {0};
    bool good = rowcode_name(s, w->values, &name, fault);
    *ret_name = arena_copy(arena, buf_slice(&name));
    buf_release(&name);
    return good;
}

static enum status put(struct call *c, struct rows *r, const struct row_write *w, struct fault *fault)
{
    enum row_outcome outcome;
    int64_t version;
    enum status st = rows_put(r, w, &outcome, &version, fault);
    if (st == ST_OK && fault->kind == FAULT_NONE)
        buf_addf(answer_of(c)->out, "{\"version\":%lld,\"created\":%s}", (long long)version,
                 outcome == ROW_NEW ? "true" : "false");
    return st;
}

static enum status update(struct call *c, struct rows *r, struct slice name, const struct row_write *w,
                          struct fault *fault)
{
    struct answer *a = answer_of(c);
    enum row_outcome outcome;
    struct table_row row;
    enum status st = rows_update(r, name, w, &outcome, &row, fault);
    if (st != ST_OK || fault->kind != FAULT_NONE)
        return st;
    if (outcome == ROW_NOT_MET)
        http_row_not_found(a);
    else
        buf_addf(a->out, "{\"version\":%lld}", (long long)row.version);
    return ST_OK;
}

static enum status remove_row(struct call *c, struct rows *r, struct slice name)
{
    enum row_outcome outcome;
    enum status st = rows_delete(r, name, ROW_ALWAYS, 0, &outcome);
    if (st == ST_OK)
        buf_addf(answer_of(c)->out, "{\"deleted\":%s}", outcome == ROW_REPLACED ? "true" : "false");
    return st;
}

static enum status change(struct call *c, struct rows *r, const struct http_row_op *op, struct slice name,
                          const struct row_write *w, struct fault *fault)
{
    switch (op->kind) {
    case ROW_OP_PUT:
        return put(c, r, w, fault);
    case ROW_OP_UPDATE:
        return update(c, r, name, w, fault);
    default:
        return remove_row(c, r, name);
    }
}

enum status http_run_row_op(struct call *c, const struct http_row_op *op)
{
    struct answer *a = answer_of(c);
    struct rows r;
    struct row_write w;
    struct fault fault = {0};
    struct slice name;
    bool go;
    enum status st = http_open_table(c, &r, &go);
    if (st != ST_OK || !go)
        return st;
    if (!understand(&r.table->schema, op, c->arena, &w, &name, &fault)) {
        http_answer_fault(a, &fault);
        return ST_OK;
    }
    w.keep_expiry = op->kind == ROW_OP_UPDATE && op->expiry.kind == EXPIRY_NONE;
    if (!http_expiry_at(&op->expiry, view_now(c->view), &w.expire_at)) {
        answer_error(a, 400, "bad_ttl", "expire_at has passed already.");
        return ST_OK;
    }
    struct table_row row = {0};
    bool found = false;
    const struct http_conditions *only = &op->only;
    if (only->if_absent || only->if_present || only->has_version)
        st = rows_get(&r, name, &found, &row);
    if (st != ST_OK || !http_conditions_hold(a, only, found ? row.version : 0, "row"))
        return st;
    st = change(c, &r, op, name, &w, &fault);
    if (st == ST_OK && fault.kind != FAULT_NONE)
        http_answer_fault(a, &fault);
    return st;
}
