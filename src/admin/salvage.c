#include "admin/salvage.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>

#include "admin/salvage_internal.h"
#include "base/mem.h"
#include "base/vec.h"
#include "journal/encoding.h"
#include "journal/replay.h"
#include "sql/remote.h"

#define SHOWN_ROWS  20 /* that are left out */
#define SHOWN_KEYS  10 /* of each of them */
#define SHOWN_BYTES 60 /* of each of them */

/* ---- reading ---- */

void salvage_add_row(struct salvage *v, int64_t seq)
{
    VEC_PUSH(v->rows, v->nrows, v->cap) = (struct salvage_row){.seq = seq};
}

void salvage_add_above_ids(struct buf *out)
{
    buf_addf(out, "coalesce((SELECT max(id) + 1 FROM larder_key), 0)");
    for (int t = 0; t < ITEM_TABLES; t++)
        check_add_text(out, ", coalesce((SELECT max(id) + 1 FROM {table}), 0)", (enum item_table)t);
}

/* Whether all of a row makes sense. */
static enum status judge(struct slice row, struct error *why)
{
    struct slice entries;
    struct journal_entry e;
    bool end = false;
    enum status st = journal_open(row, &entries, why);
    while (st == ST_OK && !end)
        st = journal_next(&entries, &e, &end, why);
    return st;
}

void salvage_note_damage(struct salvage_row *r, const struct error *why)
{
    r->damaged = true;
    snprintf(r->why, sizeof r->why, "%.*s", (int)sizeof r->why - 1, why->text);
    for (char *p = r->why; *p; p++)
        if (!isascii((unsigned char)*p))
            *p = '?';
}

/* Lists the rows and looks at each. */
static enum status look(struct salvage *v, struct error *err)
{
    enum status st = v->ops->list(v, err);
    for (size_t i = 0; st == ST_OK && i < v->nrows; i++) {
        struct salvage_row *r = &v->rows[i];
        struct slice bytes;
        struct error why;
        if (!r->damaged) {
            enum status read = v->ops->read(v, r->seq, &bytes, &why);
            if (read == ST_IO) {
                *err = why;
                return read;
            }
            r->unreadable = read != ST_OK;
            if (!r->unreadable && judge(bytes, &why) == ST_OK)
                continue;
            salvage_note_damage(r, &why);
        }
        fprintf(v->out, "row %" PRId64 " is damaged: %s\n", r->seq, r->why);
        v->damaged++;
    }
    return st;
}

/* Decides which rows are left out. */
static void choose(struct salvage *v)
{
    bool behind = v->mode == SALVAGE_DISCARD, skip = v->mode == SALVAGE_SKIP;
    for (size_t i = 0; i < v->nrows; i++) {
        struct salvage_row *r = &v->rows[i];
        behind |= r->damaged;
        r->left_out = r->damaged || (behind && !skip && r->seq > v->session.state.applying);
        v->left_out += r->left_out;
    }
}

/* ---- what is left out ---- */

static const char *type_name(enum row_type t)
{
    static const char *const names[] = {"deleted", "string", "hash", "list", "set", "zset", "table"};
    return (size_t)t < sizeof names / sizeof names[0] ? names[t] : "unknown";
}

static int by_key(const void *a, const void *b)
{
    const struct key_ref *x = a, *y = b;
    if (x->db != y->db)
        return x->db < y->db ? -1 : 1;
    return slice_cmp(x->key, y->key);
}

/* In quotes; what is no text as hexadecimal numbers. */
static void print_key(FILE *out, struct slice key)
{
    fputc('\'', out);
    for (size_t i = 0; i < key.n && i < SHOWN_BYTES; i++) {
        unsigned char c = (unsigned char)key.p[i];
        if (c == '\'')
            fputs("''", out);
        else if (iscntrl(c))
            fprintf(out, "\\x%02x", c);
        else
            fputc(c, out);
    }
    fputc('\'', out);
}

static void print_keys(struct salvage *v, const struct salvage_row *r, struct key_ref *keys, size_t n)
{
    size_t shown = 0, all = 0;
    if (n)
        qsort(keys, n, sizeof *keys, by_key);
    fprintf(v->out, "  row %" PRId64 "%s: ", r->seq, r->damaged ? ", as far as it can be read" : "");
    for (size_t i = 0; i < n; i++) {
        if (i && by_key(&keys[i - 1], &keys[i]) == 0)
            continue;
        if (++all > SHOWN_KEYS)
            continue;
        fputs(shown++ ? ", " : "", v->out);
        print_key(v->out, keys[i].key);
    }
    if (all > shown)
        fprintf(v->out, " and %zu more", all - shown);
    fputs(all ? "\n" : "no keys\n", v->out);
}

/* Copies a row, and the keys that it changes so far as it can be read. */
static enum status copy_row(struct salvage *v, const struct salvage_row *r, bool show, struct error *err)
{
    struct slice bytes = SLICE("");
    struct journal_entry e;
    struct error ignored;
    struct key_ref *keys = NULL;
    size_t n = 0, cap = 0;
    bool end = false;
    enum status st = r->unreadable ? ST_OK : v->ops->read(v, r->seq, &bytes, err);
    if (st == ST_OK)
        st = v->ops->copy_row(v, r, bytes, err);
    struct slice entries = journal_entries(bytes);
    while (st == ST_OK && journal_next(&entries, &e, &end, &ignored) == ST_OK && !end) {
        if (e.kind != JOURNAL_KEY)
            continue;
        VEC_PUSH(keys, n, cap) = (struct key_ref){e.key.db, e.key.key};
        st = v->ops->copy_key(v, r, &e.key, type_name(e.key.type), err);
    }
    if (st == ST_OK && show)
        print_keys(v, r, keys, n);
    mem_free(keys);
    return st;
}

static enum status copy_out(struct salvage *v, const char *url, struct error *err)
{
    if (v->left_out == 0)
        return ST_OK;
    enum status st = v->ops->copy_begin(v, url, err);
    if (st == ST_OK)
        fprintf(v->out, "left out: %zu of %zu %s, which %s these keys:\n", v->left_out, v->nrows,
                v->nrows == 1 ? "row" : "rows", v->left_out == 1 ? "changes" : "change");
    size_t copied = 0;
    for (size_t i = 0; st == ST_OK && i < v->nrows; i++)
        if (v->rows[i].left_out)
            st = copy_row(v, &v->rows[i], ++copied <= SHOWN_ROWS, err);
    if (st == ST_OK && copied > SHOWN_ROWS)
        fprintf(v->out, "  and %zu more\n", copied - SHOWN_ROWS);
    return st == ST_OK ? v->ops->copy_end(v, err) : st;
}

/* ---- the database ---- */

static enum status apply_rest(struct salvage *v, struct error *err)
{
    struct memtable *m = memtable_new(0);
    enum status st = ST_OK;
    for (size_t i = 0; st == ST_OK && i < v->nrows; i++) {
        struct slice bytes;
        if (v->rows[i].left_out)
            continue;
        st = v->ops->read(v, v->rows[i].seq, &bytes, err);
        if (st == ST_OK)
            st = replay_row(m, v->rows[i].seq, bytes, err);
    }
    if (st == ST_OK)
        st = replay_apply(v->session.store, m, err);
    memtable_free(m);
    if (st == ST_OK && v->nrows) /* of those left out, too: no number comes again */
        st = store_journal_applied(v->session.store, v->rows[v->nrows - 1].seq, err);
    if (st == ST_OK)
        st = v->ops->tidy(v, err);
    if (st == ST_OK)
        fprintf(v->out, "applied: %zu %s\n", v->nrows - v->left_out,
                v->nrows - v->left_out == 1 ? "row" : "rows");
    return st;
}

static enum status salvage(struct salvage *v, const char *url, bool *ret_ok, struct error *err)
{
    uint64_t found = 0;
    bool asked = v->mode == SALVAGE_APPLY || v->mode == SALVAGE_DISCARD;
    enum status st = look(v, err);
    if (st != ST_OK)
        return st;
    *ret_ok = true;
    if (v->damaged && v->mode == SALVAGE_APPLY)
        return error_set(err, ST_CORRUPT, "it cannot be applied as a whole: see larder check --salvage");
    if (v->damaged == 0 && !asked) {
        fprintf(v->out, "nothing is damaged: %zu %s to be applied by the next server\n", v->nrows,
                v->nrows == 1 ? "row" : "rows");
        return ST_OK;
    }
    choose(v);
    st = copy_out(v, url, err);
    if (st == ST_OK)
        st = apply_rest(v, err);
    if (st == ST_OK)
        st = v->ops->check(&v->session, v->out, &found, err);
    if (st == ST_OK)
        st = v->ops->commit(v, err);
    *ret_ok = found == 0;
    return st;
}

enum status store_salvage(const char *url, enum salvage_mode mode, FILE *out, bool *ret_ok, struct error *err)
{
    if (remote_is_url(url) && (mode == SALVAGE_APPLY || mode == SALVAGE_DISCARD))
        return error_set(err, ST_INVALID, "only an SQLite database has a log beside it");
    struct salvage *v = remote_is_url(url) ? salvage_new_remote() : salvage_new_sqlite();
    v->mode = mode;
    v->out = out;
    enum status st = check_open(url, true, &v->session, err);
    if (st == ST_OK)
        st = salvage(v, url, ret_ok, err);
    struct check_session session = v->session;
    mem_free(v->rows);
    v->ops->free(v);
    if (session.store)
        check_close(&session);
    return st;
}
