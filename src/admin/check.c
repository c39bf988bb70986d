/* Runs the checks and tells the findings; what they look for is in check_sqlite.c and check_remote.c. */
#include "admin/check.h"

#include <inttypes.h>
#include <string.h>

#include "admin/check_internal.h"
#include "base/clock.h"
#include "store/remote/remote_schema.h"
#include "store/sqlite/schema.h"

/* ---- findings ---- */

void check_found(struct findings *f, struct slice text)
{
    if (f->take)
        f->take(f->arg, text);
    else if (++f->n <= CHECK_SHOWN)
        fprintf(f->out, "%s  %.*s\n", f->n == 1 ? "WRONG\n" : "", (int)text.n, text.p);
}

enum status check_one(const char *title, const char *text, check_ask_fn *ask, void *arg, struct findings *f,
                      struct error *err)
{
    int64_t start = clock_mono_us();
    f->n = 0;
    fprintf(f->out, "%s ... ", title);
    fflush(f->out);
    enum status st = ask(arg, text, f, err);
    if (st != ST_OK)
        fprintf(f->out, "UNREADABLE\n");
    else if (f->n > CHECK_SHOWN)
        fprintf(f->out, "  and %" PRIu64 " more\n", f->n - CHECK_SHOWN);
    else if (f->n == 0)
        fprintf(f->out, "ok (%.1f s)\n", (double)(clock_mono_us() - start) / 1e6);
    fflush(f->out);
    f->total += f->n;
    return st;
}

/* ---- item tables ---- */

void check_add_text(struct buf *out, const char *pattern, enum item_table t)
{
    for (const char *p = pattern, *brace; *p; p = strchr(brace, '}') + 1) {
        brace = strchr(p, '{');
        if (!brace) {
            buf_addf(out, "%s", p);
            return;
        }
        buf_add(out, p, (size_t)(brace - p));
        if (strncmp(brace, "{table}", 7) == 0)
            buf_addf(out, "%s", item_tables[t].name);
        else if (strncmp(brace, "{key}", 5) == 0)
            buf_addf(out, "%s", item_tables[t].key);
        else if (strncmp(brace, "{ord}", 5) == 0)
            buf_addf(out, "%s", item_tables[t].columns[COLUMN_ORD]);
        else
            buf_addf(out, "%d", item_tables[t].owner);
    }
}

/* A check that every table has in the same words. */
static enum status check_table(const char *title, const char *pattern, enum item_table t, check_ask_fn *ask,
                               void *arg, struct findings *f, struct error *err)
{
    struct buf text = {0};
    check_add_text(&text, pattern, t);
    buf_add(&text, "", 1);
    enum status st = check_one(title, text.p, ask, arg, f, err);
    buf_release(&text);
    return st;
}

/* What a table says of its collections: as all do that number their items, and in words of its own. */
static enum status check_collections(const struct check_texts *k, enum item_table t, check_ask_fn *ask,
                                     void *arg, struct findings *f, struct error *err)
{
    enum status st = ST_OK;
    if (item_numbered(t))
        st = check_table(item_tables[t].title, k->numbered, t, ask, arg, f, err);
    for (size_t i = 0; st == ST_OK && i < k->ntables; i++)
        if (k->of_tables[i].table == t)
            st = check_one(k->of_tables[i].check.title, k->of_tables[i].check.text, ask, arg, f, err);
    return st;
}

enum status check_all(const struct check_texts *k, check_ask_fn *ask, void *arg, struct findings *f,
                      struct error *err)
{
    enum status st = ST_OK;
    for (size_t i = 0; st == ST_OK && i < k->nkeys; i++)
        st = check_one(k->of_keys[i].title, k->of_keys[i].text, ask, arg, f, err);
    for (int t = 0; st == ST_OK && t < ITEM_TABLES; t++)
        st = check_collections(k, (enum item_table)t, ask, arg, f, err);
    for (int t = 0; st == ST_OK && t < ITEM_TABLES; t++) {
        char title[64];
        snprintf(title, sizeof title, "%s without a key", item_tables[t].items);
        st = check_table(title, k->orphans, (enum item_table)t, ask, arg, f, err);
    }
    return st;
}

/* ---- the program's ---- */

enum status store_check(const char *url, FILE *out, bool *ret_ok, struct error *err)
{
    struct check_session s = {0};
    uint64_t in_journal = 0, in_tables = 0;
    bool comparable = false;
    enum status st = check_open_settled(url, &s, err);
    if (st != ST_OK)
        return st;
    int version = SCHEMA_VERSION;
    if (!s.sql)
        version = REMOTE_SCHEMA_VERSION;
    fprintf(out, "schema version %d\n", version);
    st = check_journal(&s, out, &in_journal, &comparable, err);
    if (st == ST_OK && comparable)
        st = s.sql ? check_tables(&s, out, &in_tables, err) : remote_check_tables(&s, out, &in_tables, err);
    check_close(&s);
    if (st != ST_OK)
        return st;
    uint64_t total = in_journal + in_tables;
    *ret_ok = total == 0;
    if (!comparable)
        fprintf(out, "the tables have a part of what the journal says, and were not checked\n");
    if (in_journal)
        fprintf(out, "a server will not start on this: see larder check --salvage\n");
    if (total)
        fprintf(out, "%" PRIu64 " %s\n", total, total == 1 ? "finding" : "findings");
    return ST_OK;
}
