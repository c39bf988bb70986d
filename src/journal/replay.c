/* What a process left in the journal when it ended: into a memtable, in order, and from there into the
   tables, sorted. Ended again in the middle, it is done again: nothing of the journal goes before all of it
   is in.

   The numbers that rows have in the journal are those of another time. A row may be gone whose number is
   here: earlier versions journaled a key that was set again under the number that it had before it was
   deleted, and rows may have been moved by an application's SQL. A server that lives finds out and tries
   again (writer.c); here every row is brought to its state by its name. SQLite's tables need no telling: they
   try the number, and then the name. */
#include "journal/replay.h"

#include "base/clock.h"
#include "base/log.h"
#include "journal/encoding.h"
#include "store/journal_rows.h"

#define SLICE_ROWS  50000
#define SORT_ROWS   65536
#define PROGRESS_US 1000000
#define AHEAD       16 /* entries */

static void take_entry(struct memtable *m, const struct journal_entry *e, int64_t seq)
{
    switch (e->kind) {
    case JOURNAL_KEY:
        memtable_put_key(m, &e->key, false, seq);
        break;
    case JOURNAL_ITEM:
        memtable_put_item(m, &e->item, false, seq);
        break;
    case JOURNAL_LOST:
        memtable_del_item(m, &e->lost, seq);
        break;
    case JOURNAL_RANGE:
        memtable_put_range(m, &e->range);
        break;
    case JOURNAL_TRASH:
        memtable_add_trash(m, &e->trash);
        break;
    case JOURNAL_DB:
        memtable_put_db(m, &e->db);
        break;
    case JOURNAL_IDS:
        memtable_put_next_id(m, e->next_id);
        break;
    }
}

/* Entries that are read and not taken yet: each waits for memory, and the others meanwhile. */
struct ahead {
    struct journal_entry entries[AHEAD];
    uint32_t numbers[AHEAD];
    size_t read, taken;
};

static uint32_t near(const struct memtable *m, const struct journal_entry *e)
{
    if (e->kind == JOURNAL_KEY)
        return memtable_near_key(m, e->key.db, e->key.key);
    return e->kind == JOURNAL_ITEM || e->kind == JOURNAL_LOST
               ? memtable_near_item(m, e->kind == JOURNAL_ITEM ? &e->item.ref : &e->lost)
               : 0;
}

static enum status take_entries(struct memtable *m, struct slice entries, int64_t seq, int64_t *next_seq,
                                struct error *err)
{
    struct ahead a = {.read = 0};
    for (bool end = false;; a.taken++) {
        while (!end && a.read < a.taken + AHEAD) {
            struct journal_entry *next = &a.entries[a.read % AHEAD];
            enum status st = journal_next(&entries, next, &end, err);
            if (st != ST_OK)
                return st;
            if (!end)
                a.numbers[a.read++ % AHEAD] = near(m, next);
        }
        if (a.taken == a.read)
            return ST_OK;
        if (a.taken + AHEAD / 2 < a.read)
            memtable_nearer(m, a.numbers[(a.taken + AHEAD / 2) % AHEAD]);
        const struct journal_entry *e = &a.entries[a.taken % AHEAD];
        take_entry(m, e, seq);
        if (e->kind == JOURNAL_KEY && e->key.seq >= *next_seq && e->key.seq < INT64_MAX)
            *next_seq = e->key.seq + 1;
    }
}

enum status replay_row_numbers(struct memtable *m, int64_t seq, struct slice row, int64_t *next_seq,
                               struct error *err)
{
    struct slice entries;
    struct error why;
    mem_mark before = memtable_mark(m);
    enum status st = journal_open(row, &entries, &why);
    if (st == ST_OK)
        st = take_entries(m, entries, seq, next_seq, &why);
    if (st != ST_OK) {
        memtable_undo(m, before);
        return error_set(err, st, "row %lld of the journal is damaged: %s", (long long)seq, why.text);
    }
    memtable_settle(m, memtable_mark(m));
    return ST_OK;
}

enum status replay_row(struct memtable *m, int64_t seq, struct slice row, struct error *err)
{
    int64_t ignored = INT64_MAX;
    return replay_row_numbers(m, seq, row, &ignored, err);
}

/* Within the running transaction. tells: people wait for it. */
static enum status bring_in(struct store *writer, const struct memtable *m, bool tells, struct error *err)
{
    struct mem_apply *a = mem_apply_new(m);
    struct changes c;
    enum status st = ST_OK;
    int64_t next_id, said_us = clock_mono_us();
    while (mem_apply_sort(a, SORT_ROWS))
        continue;
    size_t rows = mem_apply_left(a);
    while (st == ST_OK && mem_apply_next(a, SLICE_ROWS, &c, &next_id)) {
        c.next_id = next_id;
        c.replay = true;
        for (size_t i = 0; writer->far && i < c.nkeys; i++)
            c.keys[i].seq = 0;
        st = store_apply(writer, &c, err);
        if (tells && clock_mono_us() - said_us >= PROGRESS_US) {
            said_us = clock_mono_us();
            log_info("replaying the journal", "rows=%zu left=%zu", rows, mem_apply_left(a));
        }
    }
    mem_apply_free(a);
    return st;
}

enum status replay_apply(struct store *writer, const struct memtable *m, struct error *err)
{
    return bring_in(writer, m, false, err);
}

/* ---- at the start of a server ---- */

struct replay {
    struct memtable *mem;
    struct journal_state state;
    int64_t last;
    int64_t next_seq; /* rows keep the numbers that only the memory of the former process had */
    size_t rows, bytes;
    bool damaged;
    struct error *err;
};

static enum status take_row(void *arg, int64_t seq, struct slice row)
{
    struct replay *r = arg;
    if (seq <= r->state.applied) /* it only has not been removed yet */
        return ST_OK;
    r->last = seq;
    r->rows++;
    r->bytes += row.n;
    enum status st = replay_row_numbers(r->mem, seq, row, &r->next_seq, r->err);
    r->damaged = st != ST_OK;
    return st;
}

/* One transaction: whoever reads the tables with SQL meanwhile sees a state that was. */
static enum status apply_all(struct store *writer, const struct replay *r, struct error *err)
{
    enum status st = store_begin(writer, STORE_WRITE_LAZY, NULL, NULL, err);
    if (st != ST_OK)
        return st;
    st = bring_in(writer, r->mem, true, err);
    if (st == ST_OK)
        st = store_journal_applied(writer, r->last, err);
    if (st == ST_OK && (st = store_commit(writer, err)) == ST_OK)
        return store_sync(writer, err);
    store_rollback(writer);
    return st;
}

static enum status read_all(struct store *writer, struct replay *r, struct error *err)
{
    enum status st = store_begin(writer, STORE_READ, NULL, NULL, err);
    if (st != ST_OK)
        return st;
    st = store_journal_state(writer, &r->state, err);
    r->last = r->state.applied;
    if (st == ST_OK)
        st = store_journal_each(writer, take_row, r, err);
    store_rollback(writer);
    return st;
}

/* What a person can do about it. The URL of a server may have a password. */
static void advise(const struct store *writer, const char *url, struct error *err)
{
    struct error what = *err;
    if (writer->far)
        (void)error_set(err, what.code, "%s. Keep a copy of the database, then: larder check --salvage",
                        what.text);
    else
        (void)error_set(err, what.code,
                        "%s. Keep a copy of the files, then: larder check --salvage --store %s", what.text,
                        url);
}

/* Hands out a journal that could not be applied, so that the new store's thread tries it again. */
static void keep(const struct replay *r, const struct error *why, struct journal_past *ret)
{
    ret->applied = r->state.applied;
    ret->mem = r->mem;
    ret->next_seq = r->next_seq;
    ret->bytes = r->bytes;
    ret->why = *why;
    log_warning("the journal waits for room on the disk: reads are served, writes are refused",
                "groups=%zu bytes=%zu error=\"%s\"", r->rows, r->bytes, why->text);
}

enum status replay_or_keep(struct store *writer, const char *url, struct journal_past *ret, struct error *err)
{
    struct replay r = {.mem = memtable_new(0), .next_seq = STORE_PROVISIONAL, .err = err};
    int64_t start = clock_mono_us();
    enum status st = read_all(writer, &r, err);
    bool applies = st == ST_OK && (r.rows || r.state.applying);
    if (r.damaged)
        advise(writer, url, err);
    if (applies)
        st = apply_all(writer, &r, err);
    *ret = (struct journal_past){.last = r.last, .applied = r.last};
    if (applies && st == ST_FULL && !writer->far) {
        keep(&r, err, ret);
        return ST_OK;
    }
    if (applies && st == ST_OK)
        log_info("replayed the journal", "groups=%zu bytes=%zu ms=%lld", r.rows, r.bytes,
                 (long long)(clock_mono_us() - start) / 1000);
    memtable_free(r.mem);
    return st;
}

enum status replay_all(struct store *writer, const char *url, struct journal_past *ret, struct error *err)
{
    enum status st = replay_or_keep(writer, url, ret, err);
    if (st != ST_OK || !ret->mem)
        return st;
    memtable_free(ret->mem);
    ret->mem = NULL;
    *err = ret->why;
    return err->code;
}
