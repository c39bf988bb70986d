/* The rows of larder_journal on a database server, and larder_meta's word on how far the tables are. Like
   changes, what is written here goes out with the commit: nothing waits for an answer. */
#include <stdio.h>

#include "store/remote/remote_journal.h"

#define PAGE_ROWS 16

static enum status begin_write(struct rstore *s, struct error *err)
{
    if (s->asked != TXN_WRITE && s->asked != TXN_LAZY)
        return error_set(err, ST_INTERNAL, "the journal is written without a transaction");
    enum status st = rstore_connected(s, err);
    if (st != ST_OK)
        return st;
    rstore_begin_write(s);
    s->dirty = true;
    return ST_OK;
}

enum status rjournal_add(struct store *base, int64_t seq, struct slice row, struct error *err)
{
    struct rstore *s = rstore_of(base);
    const struct param p[] = {param_i64(seq), param_bytes(row)};
    enum status st = begin_write(s, err);
    if (st != ST_OK)
        return st;
    struct request r = {.text = rtext(s, R_JOURNAL_ADD), .params = p, .nparams = 2};
    remote_add(s->conn, &r);
    return ST_OK;
}

/* ---- reading ---- */

struct page {
    store_journal_fn *fn;
    void *arg;
    int64_t last;
    size_t n;
};

static enum status take_row(void *arg, const struct remote_row *row)
{
    struct page *p = arg;
    p->last = remote_i64(row, 0);
    p->n++;
    return p->fn ? p->fn(p->arg, p->last, remote_bytes(row, 1)) : ST_OK;
}

/* Rows behind p->last. */
static enum status read_page(struct rstore *s, struct page *p, int64_t limit, struct error *err)
{
    const struct param params[] = {param_i64(p->last), param_i64(limit)};
    enum status st = rstore_connected(s, err);
    if (st != ST_OK)
        return st;
    struct request r = {
        .text = rtext(s, R_JOURNAL_PAGE), .params = params, .nparams = 2, .fn = take_row, .arg = p};
    p->n = 0;
    remote_add(s->conn, &r);
    return rstore_run(s, err);
}

enum status rjournal_each(struct store *base, store_journal_fn *fn, void *arg, struct error *err)
{
    struct page p = {.fn = fn, .arg = arg, .last = INT64_MIN};
    enum status st;
    do
        st = read_page(rstore_of(base), &p, PAGE_ROWS, err);
    while (st == ST_OK && p.n == PAGE_ROWS);
    return st;
}

enum status rjournal_state(struct store *base, struct journal_state *ret, struct error *err)
{
    struct rstore *s = rstore_of(base);
    enum status st = rstore_connected(s, err);
    int64_t last[2] = {0, 0};
    if (st == ST_OK)
        st = rstore_get_meta(s, "applied", &ret->applied, err);
    if (st == ST_OK)
        st = rstore_get_meta(s, "applying", &ret->applying, err);
    if (st != ST_OK)
        return st;
    struct request r = {.text = rtext(s, R_JOURNAL_LAST), .fn = rread_two, .arg = last};
    remote_add(s->conn, &r);
    st = rstore_run(s, err);
    ret->last = last[0];
    return st;
}

enum status rjournal_pending(struct rstore *s, bool *ret, struct error *err)
{
    struct journal_state state = {0};
    struct page p = {0};
    enum status st = rjournal_state(&s->base, &state, err);
    p.last = state.applied;
    if (st == ST_OK)
        st = read_page(s, &p, 1, err);
    *ret = p.n > 0;
    return st;
}

/* ---- applying ---- */

enum status rjournal_applied(struct store *base, int64_t seq, struct error *err)
{
    struct rstore *s = rstore_of(base);
    const struct param p[] = {param_i64(seq)};
    enum status st = begin_write(s, err);
    if (st != ST_OK)
        return st;
    struct request r = {.text = rtext(s, R_SET_APPLIED), .params = p, .nparams = 1};
    remote_add(s->conn, &r);
    return ST_OK;
}

static enum status take_dropped(void *arg, const struct remote_row *row)
{
    struct rstore *s = arg;
    int64_t seq = remote_i64(row, 0);
    if (seq > s->dropped_to)
        s->dropped_to = seq;
    s->dropped++;
    return ST_OK;
}

/* How many rows went is known when the transaction has ended: whether there are more, the next call tells.
   Rows are looked for behind those that are gone, which the index of a server may still have. */
enum status rjournal_drop(struct store *base, int64_t seq, uint32_t max, bool *ret_more, struct error *err)
{
    struct rstore *s = rstore_of(base);
    *ret_more = s->dropped < 0 || s->dropped >= (int64_t)max;
    if (!*ret_more) {
        s->dropped = -1;
        return ST_OK;
    }
    const struct param p[] = {param_i64(s->dropped_to), param_i64(seq), param_i64(max)};
    enum status st = begin_write(s, err);
    if (st != ST_OK)
        return st;
    struct request r = {
        .text = rtext(s, R_JOURNAL_DROP), .params = p, .nparams = 3, .fn = take_dropped, .arg = s};
    s->dropped = 0;
    remote_add(s->conn, &r);
    return ST_OK;
}

enum status rjournal_forget(struct store *base, int64_t after, int64_t applied, struct error *err)
{
    struct rstore *s = rstore_of(base);
    const struct param p[] = {param_i64(after), param_i64(applied)};
    enum status st = begin_write(s, err);
    if (st != ST_OK)
        return st;
    struct request r = {.text = rtext(s, R_JOURNAL_FORGET), .params = p, .nparams = 1};
    remote_add(s->conn, &r);
    r = (struct request){.text = rtext(s, R_LOWER_APPLIED), .params = p, .nparams = 2};
    remote_add(s->conn, &r);
    return ST_OK;
}

/* ---- words ---- */

struct word {
    char *ret;
    size_t cap;
};

static enum status take_word(void *arg, const struct remote_row *row)
{
    const struct word *w = arg;
    struct slice text = remote_bytes(row, 0);
    snprintf(w->ret, w->cap, "%.*s", (int)text.n, text.n ? text.p : "");
    return ST_OK;
}

enum status rjournal_get_word(struct store *base, const char *name, char *ret, size_t cap, struct error *err)
{
    struct rstore *s = rstore_of(base);
    struct word w = {ret, cap};
    const struct param p = param_bytes(slice_str(name));
    enum status st = rstore_connected(s, err);
    if (st != ST_OK)
        return st;
    struct request r = {.text = rtext(s, R_GET_WORD), .params = &p, .nparams = 1, .fn = take_word, .arg = &w};
    ret[0] = '\0';
    remote_add(s->conn, &r);
    return rstore_run(s, err);
}

enum status rjournal_set_word(struct store *base, const char *name, const char *text, struct error *err)
{
    struct rstore *s = rstore_of(base);
    const struct param p[] = {param_bytes(slice_str(name)), param_bytes(slice_str(text))};
    enum status st = begin_write(s, err);
    if (st != ST_OK)
        return st;
    struct request r = {.text = rtext(s, R_PUT_WORD), .params = p, .nparams = 2};
    remote_add(s->conn, &r);
    return ST_OK;
}
