#include "journal/run.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rand.h"
#include "store/journal_rows.h"

#define ALL        "all"
#define FAR_BEYOND ((uint64_t)1 << 32) /* commits of one run */

struct words {
    char database[24], runs[HISTORY_TEXT], reached[48];
};

static enum status read_words(struct store *writer, struct words *w, struct error *err)
{
    enum status st = store_get_word(writer, "database_id", w->database, sizeof w->database, err);
    if (st == ST_OK)
        st = store_get_word(writer, "runs", w->runs, sizeof w->runs, err);
    return st == ST_OK ? store_get_word(writer, "reached", w->reached, sizeof w->reached, err) : st;
}

/* How far the last run got, whose last ticket this was. */
static uint64_t end_of_last(const struct history *h, const char *reached, int64_t ticket)
{
    const struct branch *last = history_last(h);
    char *end;
    if (!last)
        return 0;
    uint64_t n = strtoull(reached, &end, 10);
    int64_t from = *end == '@' ? strtoll(end + 1, NULL, 10) : ticket;
    if (ticket > from)
        n += (uint64_t)(ticket - from);
    return strcmp(reached, ALL) == 0 ? last->from + FAR_BEYOND : n > last->from ? n : last->from;
}

static void begin_behind(struct journal_run *r, const struct words *w, int64_t ticket)
{
    if (!history_read(slice_str(w->runs), &r->history))
        r->history.n = 0; /* all of them count as lost */
    const struct branch *last = history_last(&r->history);
    uint32_t number = last ? branch_number(last->id) % UINT16_MAX + 1 : 1;
    r->base = end_of_last(&r->history, w->reached, ticket);
    r->start = ticket;
    history_add(&r->history, number, r->base);
}

static enum status number_database(struct store *writer, struct words *w, struct error *err)
{
    int64_t number;
    if (strtoll(w->database, NULL, 10) > 0)
        return ST_OK;
    rand_secure(&number, sizeof number);
    snprintf(w->database, sizeof w->database, "%" PRId64, (number & INT64_MAX) | 1);
    return store_set_word(writer, "database_id", w->database, err);
}

static enum status write_run(struct store *writer, const struct journal_run *r, enum durability d,
                             bool logged, struct error *err)
{
    char text[HISTORY_TEXT];
    enum status st = store_set_word(writer, "runs", history_text(&r->history, text), err);
    if (st != ST_OK)
        return st;
    if (logged) {
        snprintf(text, sizeof text, "%" PRIu64 "@%" PRId64, r->base, r->start);
        return store_set_word(writer, "reached", text, err);
    }
    return d == DURABILITY_ALWAYS ? run_all(writer, err) : run_record(writer, r, r->start, err);
}

static enum status begin(struct store *writer, enum durability d, bool logged, int64_t ticket,
                         struct journal_run *ret, struct error *err)
{
    struct words w;
    enum status st = store_begin(writer, STORE_WRITE, NULL, NULL, err);
    if (st != ST_OK)
        return st;
    st = read_words(writer, &w, err);
    if (st == ST_OK)
        st = number_database(writer, &w, err);
    if (st == ST_OK) {
        begin_behind(ret, &w, ticket);
        st = write_run(writer, ret, d, logged, err);
    }
    if (st == ST_OK)
        st = store_commit(writer, err);
    if (st != ST_OK) {
        store_rollback(writer);
        return st;
    }
    ret->database = (uint64_t)strtoll(w.database, NULL, 10);
    return ST_OK;
}

enum status run_begin(struct store *writer, enum durability d, bool logged, int64_t ticket,
                      struct journal_run *ret, struct error *err)
{
    *ret = (struct journal_run){0};
    enum status st = begin(writer, d, logged, ticket, ret, err);
    return st == ST_FULL || st == ST_READONLY || st == ST_DENIED ? ST_OK : st;
}

enum status run_record(struct store *writer, const struct journal_run *r, int64_t ticket, struct error *err)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, run_number(r, ticket));
    return store_set_word(writer, "reached", text, err);
}

enum status run_all(struct store *writer, struct error *err)
{
    return store_set_word(writer, "reached", ALL, err);
}

void run_end(struct store *writer, const struct journal_run *r, int64_t ticket)
{
    struct error ignored;
    if (!r->database || store_begin(writer, STORE_WRITE, NULL, NULL, &ignored) != ST_OK)
        return;
    if (run_record(writer, r, ticket, &ignored) != ST_OK || store_commit(writer, &ignored) != ST_OK)
        store_rollback(writer);
}
