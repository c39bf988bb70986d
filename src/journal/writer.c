/* The thread that writes: groups into the journal (or the tables), the frozen memtable into the tables, slice
   by slice, and what the owner asks for in between. Everything here but what says otherwise runs with the
   lock held; it is let go around every use of the writer's session.

   How much of the frozen table goes along with a group: so much that the table is in before the active one,
   at the rate at which groups grow it, has become as large as it may, and before half of apply-lag is over.
   So the work is spread evenly, and when writers are faster than the tables can follow, their own commits
   take longer: that slows them down. */
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"
#include "journal/encoding.h"
#include "journal/jstore.h"

#define MIN_SLICE      32     /* rows */
#define SORT_ROWS      4096   /* in one step */
#define MANY_ROWS      16384  /* at a time, where nobody else has to wait */
#define DROP_ROWS      16     /* of the journal, with a group or a slice */
#define MAX_SLICE_US   4000   /* what a slice takes at most along with a group, unless the journal is full */
#define IDLE_SLICE_US  2000   /* what a slice may take when nothing else is to do */
#define QUIET_US       10000  /* without a group for so long, what is left is applied */
#define SCAN_US        200000 /* ... and without a scan */
#define WRITE_EVERY_US 100000 /* between two groups that nobody waits for ... */
#define EAGER_BYTES    ((size_t)4 << 20) /* ... unless there is so much */
#define LOCK_RETRY_US  5000
#define RETRY_US       100000
#define LOOK_US        1000000 /* how often the connection to a server is looked at */
#define SYNC_US        1000000 /* how long a commit that nobody waited for may stay so on a server */

/* ---- telling ---- */

static void tell(struct jstore *s)
{
    pthread_cond_broadcast(&s->told);
    if (s->wake)
        s->wake(s->wake_arg);
}

/* ---- transactions; without the lock ---- */

/* What a session that reads sees of a transaction that writes. Not its commit alone: when the database's log
   starts over, which is before it, that looks like a change, too. */
static void writes_begin(struct jstore *s)
{
    atomic_store(&s->committing, true);
}

static void writes_end(struct jstore *s)
{
    atomic_fetch_add(&s->commits, 1);
    atomic_store(&s->committing, false);
}

/* On a connection that was made in the place of a lost one. */
static enum status begin_again(struct jstore *s, enum store_txn kind, bool *ret_others, struct error *err)
{
    enum status st = jback_catch_up(s, err);
    if (st == ST_OK)
        st = store_begin(s->writer, kind, ret_others, err);
    if (st != ST_OK || store_connection(s->writer) == s->proven)
        return st;
    store_rollback(s->writer);
    return error_set(err, ST_IO, "the connection to the database was lost");
}

static enum status begin(struct jstore *s, enum store_txn kind, struct error *err)
{
    bool others = false;
    if (kind != STORE_READ)
        writes_begin(s);
    enum status st = store_begin(s->writer, kind, &others, err);
    if (st == ST_OK && store_connection(s->writer) != s->proven) {
        store_rollback(s->writer);
        st = begin_again(s, kind, &others, err);
    }
    if (st == ST_OK && others) {
        atomic_store(&s->others, true);
        s->counts_doubtful = true;
    }
    if (st == ST_OK && s->doubt && kind != STORE_READ) {
        st = store_journal_forget(s->writer, s->durable, s->applied, err);
        if (st != ST_OK)
            store_rollback(s->writer);
    }
    if (st != ST_OK && kind != STORE_READ)
        writes_end(s);
    return st;
}

void jthread_check_others(struct jstore *s)
{
    struct error ignored;
    if (begin(s, STORE_READ, &ignored) == ST_OK)
        store_rollback(s->writer);
}

/* Another process has written, and the owner did not know that when it counted: until it has counted again,
   nobody shall believe what larder_db says. */
static enum status doubt_counts(struct jstore *s, struct error *err)
{
    uint32_t next;
    struct changes c = {.dbs = s->dbs, .ndbs = s->ndbs};
    enum status st = store_load_dbs(s->writer, s->dbs, s->ndbs, &next, err);
    for (size_t i = 0; i < s->ndbs; i++)
        s->dbs[i].keys = s->dbs[i].expires = -1;
    s->counts_doubtful = false;
    return st == ST_OK ? store_apply(s->writer, &c, err) : st;
}

static enum status end(struct jstore *s, enum status st, struct error *err)
{
    if (st == ST_OK) {
        st = store_commit(s->writer, err);
        /* A conflict is how a row that was not there is told. */
        if (st == ST_OK || st == ST_UNKNOWN || st == ST_CONFLICT)
            s->doubt = s->base.far && st != ST_OK;
    } else {
        store_rollback(s->writer);
    }
    writes_end(s);
    return st;
}

/* Whether a commit of such a transaction is durable when it returns, and with it all before it: both
   databases write one log, in order. */
static bool is_waited_for(const struct jstore *s, enum store_txn kind)
{
    return kind == STORE_WRITE && s->going_by == DURABILITY_ALWAYS;
}

/* Makes everything that was committed durable. */
static enum status sync_all(struct jstore *s, struct error *err)
{
    enum status st = begin(s, STORE_READ, err); /* the database is as we left it */
    if (st != ST_OK)
        return st;
    store_rollback(s->writer);
    st = store_sync(s->writer, err);
    if (st == ST_OK && store_connection(s->writer) != s->proven)
        st = error_set(err, ST_IO, "the connection to the database was lost");
    return st;
}

/* Up to the last group that was committed; with the lock. */
static void synced(struct jstore *s)
{
    s->synced = s->durable;
    jback_release(s);
}

/* ---- applying; without the lock ---- */

/* The next rows of the frozen table, within the running transaction. *ret_last: that was all of them. */
static enum status apply_rows(struct jstore *s, size_t rows, bool *ret_last, struct error *err)
{
    struct changes c;
    int64_t next_id;
    *ret_last = !mem_apply_next(s->apply, rows, &c, &next_id);
    c.next_id = next_id;
    c.replay = true;
    if (*ret_last)
        return store_journal_applied(s->writer, s->frozen_upto, err);
    enum status st = ST_OK;
    if (!s->said && !s->saying)
        st = store_journal_applying(s->writer, s->frozen_upto, err);
    s->saying = st == ST_OK;
    return st == ST_OK ? store_apply(s->writer, &c, err) : st;
}

static enum status drop_rows(struct jstore *s, struct error *err)
{
    return s->dropping ? store_journal_drop(s->writer, s->applied, DROP_ROWS, &s->dropping, err) : ST_OK;
}

/* How many rows go along with a group of so many bytes. */
static size_t pace(const struct jstore *s, size_t bytes, int64_t now)
{
    size_t left = mem_apply_left(s->apply), half = (size_t)s->options.max_bytes / 2;
    size_t room = half > s->behind_bytes + bytes ? half - s->behind_bytes : bytes;
    size_t by_size = (size_t)((double)left * (double)bytes / (double)room);
    int64_t until = s->apply_began_us + (int64_t)s->options.lag_ms * 500;
    size_t by_time = left;
    if (until > now && now >= s->slice_us)
        by_time = (size_t)((double)left * (double)(now - s->slice_us) / (double)(until - s->slice_us));
    size_t rows = by_size > by_time ? by_size : by_time;
    size_t most = s->row_us > 0 ? (size_t)(MAX_SLICE_US / s->row_us) : MIN_SLICE;
    if (rows > most && s->behind_bytes < half)
        rows = most;
    return rows < MIN_SLICE ? MIN_SLICE : rows;
}

/* ---- groups; without the lock ---- */

/* Into the tables. The same row may be there several times: a memtable finds out what it is in the end. */
enum status jthread_write_direct(struct jstore *s, const struct jgroup *g, struct error *err)
{
    mem_mark from = memtable_mark(s->direct);
    enum status st = jrecover_row(s->direct, g->last, buf_slice(&g->row), err);
    struct mem_apply *a = mem_apply_new(s->direct);
    struct changes c;
    int64_t next_id;
    while (mem_apply_sort(a, MANY_ROWS))
        ;
    while (st == ST_OK && mem_apply_next(a, MANY_ROWS, &c, &next_id)) {
        c.next_id = next_id;
        c.replay = true;
        st = store_apply(s->writer, &c, err);
    }
    mem_apply_free(a);
    memtable_leave(s->direct, from, memtable_mark(s->direct));
    return st == ST_OK && s->base.far ? store_journal_applied(s->writer, g->last, err) : st;
}

/* Along with a group: a bit of sorting, or a slice. */
static enum status go_along(struct jstore *s, const struct jgroup *g, enum store_txn kind, bool *ret_last,
                            struct error *err)
{
    enum status st = drop_rows(s, err);
    if (st != ST_OK || !s->apply)
        return st;
    if (s->sorting) {
        s->sorting = mem_apply_sort(s->apply, SORT_ROWS);
        return ST_OK;
    }
    if (s->base.far && !is_waited_for(s, kind) && mem_apply_left(s->apply) == 0)
        return ST_OK; /* the word that all is in comes with a commit that is: finish_due */
    int64_t now = clock_mono_us();
    size_t rows = pace(s, g->row.len, now);
    st = apply_rows(s, rows, ret_last, err);
    s->slice_us = now;
    s->row_us += ((double)(clock_mono_us() - now) / (double)rows - s->row_us) / 8;
    return st;
}

static enum store_txn kind_of(const struct jgroup *g)
{
    return g->lazy ? STORE_WRITE_LAZY : STORE_WRITE;
}

static enum status write_group(struct jstore *s, struct jgroup *g, bool direct, bool *ret_last,
                               struct error *err)
{
    enum store_txn kind = kind_of(g);
    enum status st = begin(s, kind, err);
    if (st != ST_OK)
        return st;
    size_t n = g->row.len;
    journal_end(&g->row);
    if (direct)
        st = jthread_write_direct(s, g, err);
    else
        st = store_journal_add(s->writer, g->last, buf_slice(&g->row), err);
    if (st == ST_OK)
        st = go_along(s, g, kind, ret_last, err);
    if (st == ST_OK && s->counts_doubtful)
        st = doubt_counts(s, err);
    st = end(s, st, err);
    if (st != ST_OK)
        g->row.len = n;
    return st;
}

/* ---- groups, with the lock ---- */

/* It has to be tried again, unless a table with its rows was frozen meanwhile to be applied as a whole. */
static void put_back(struct jstore *s, struct jgroup *g)
{
    if (s->frozen_outsized) {
        jgroup_free(g);
        return;
    }
    g->next = s->first;
    s->first = g;
    if (!s->tail)
        s->tail = g;
}

/* The slice that was handed out last has to come again, or all of it has been committed. */
static void slice_over(struct jstore *s, enum status st, bool last)
{
    if (!s->apply)
        return;
    s->said |= st == ST_OK && s->saying;
    s->saying = false;
    if (st != ST_OK) {
        mem_apply_again(s->apply);
        return;
    }
    if (!last)
        return;
    mem_apply_free(s->apply);
    s->apply = NULL;
    s->frozen = NULL;
    s->applied = s->frozen_upto;
    s->dropping = true;
    if (s->base.far)
        synced(s); /* whoever says `last` there has waited for it */
    atomic_fetch_sub(&s->journal_bytes, s->frozen_bytes);
    s->frozen_counted = false;
    if (s->inherited)
        log_info("replayed the journal", "bytes=%zu", s->frozen_bytes);
    s->inherited = false;
}

static void written(struct jstore *s, struct jgroup *g, bool direct)
{
    s->written_us = s->looked_us = clock_mono_us();
    histogram_add(&s->commit_us, (uint64_t)(s->written_us - g->born_us));
    int64_t before = s->durable;
    s->durable = g->last;
    VEC_PUSH(s->done, s->ndone, s->cap_done) = (struct jdone){g->last, direct};
    if (direct && s->base.far) {
        s->applied = g->last;
    } else if (!direct) {
        s->journaled = g->last;
        if (s->behind_bytes == 0)
            s->behind_us = s->written_us;
        s->behind_bytes += g->row.len;
        atomic_fetch_add(&s->journal_bytes, g->row.len);
    }
    if (!s->base.far) {
        jgroup_free(g);
        return;
    }
    g->direct = direct;
    jback_keep(s, g);
    if (is_waited_for(s, kind_of(g)))
        synced(s);
    else if (before == s->synced)
        s->unsynced_us = s->written_us;
}

/* The group, and all that came behind it, is undone by the owner: it builds on it. */
static void give_up(struct jstore *s, struct jgroup *g, const struct error *err)
{
    mem_apply_free(s->apply);
    s->apply = NULL;
    s->failed = err->code;
    s->undone = *err;
    if (g)
        jgroup_free(g);
}

/* How long a failure is waited for: it may be over soon. */
static int64_t patience_us(const struct jstore *s, enum status st)
{
    if (st == ST_BUSY)
        return (int64_t)s->options.lock_ms * 1000;
    bool away = st == ST_IO || st == ST_UNKNOWN || st == ST_CONFLICT;
    return s->base.far && away ? (int64_t)s->options.away_ms * 1000 : 0;
}

static bool is_passing(struct jstore *s, const struct error *err)
{
    int64_t now = clock_mono_us(), patience = patience_us(s, err->code);
    if (patience && s->lock_since_us == 0)
        s->lock_since_us = now;
    if (patience && now - s->lock_since_us < patience) {
        s->retry_us = now + LOCK_RETRY_US;
        return true;
    }
    s->lock_since_us = 0;
    return false;
}

/* Nobody can say whether what is given up now was written. */
static void admit_doubt(const struct jstore *s, struct error *err)
{
    struct error why = *err;
    if (s->doubt && why.code != ST_UNKNOWN)
        (void)error_set(err, ST_UNKNOWN, "whether it was written is unknown: %.180s", why.text);
}

/* They are told that nothing was done, which is true of what they ask for, whatever became of the group. */
static void refuse_writers(struct jstore *s, const struct error *err)
{
    s->failure = *err;
    if (err->code == ST_UNKNOWN)
        (void)error_set(&s->failure, ST_IO, "the connection to the database was lost");
    s->failing = s->failure.code;
}

static bool keeps_trying(struct jstore *s, struct error *err)
{
    bool passing = is_passing(s, err);
    s->locked = passing && err->code == ST_BUSY;
    if (passing)
        return true;
    bool lasting = s->base.far && patience_us(s, err->code) > 0;
    if (s->durability != DURABILITY_ALWAYS || lasting) { /* writers are refused until it is over */
        refuse_writers(s, err);
        s->failures++;
        s->retry_us = clock_mono_us() + RETRY_US;
    }
    admit_doubt(s, err);
    return s->durability != DURABILITY_ALWAYS;
}

/* Another server has the tables, or acknowledged writes are gone from them. */
static bool lost_them(struct jstore *s, enum status st, const struct error *err)
{
    if (st != ST_LOCKED && st != ST_LOST)
        return false;
    s->over = true;
    s->failure = *err;
    tell(s);
    return true;
}

static void works_again(struct jstore *s)
{
    s->locked = false;
    s->lock_since_us = s->retry_us = 0;
    s->failing = s->stuck = ST_OK;
}

static void write_next(struct jstore *s)
{
    struct jgroup *g = s->first;
    struct error err;
    bool last = false;
    s->first = g->next;
    if (!s->first)
        s->tail = NULL;
    g->sealed = true;
    bool nothing_waits = s->journaled <= s->applied && !s->frozen;
    bool direct = s->options.max_bytes == 0 || (nothing_waits && g->rows <= s->options.few_rows);
    s->directly = direct;
    pthread_mutex_unlock(&s->lock);
    enum status st = write_group(s, g, direct, &last, &err);
    pthread_mutex_lock(&s->lock);
    s->directly = false;
    slice_over(s, st, last);
    if (st == ST_OK) {
        works_again(s);
        written(s, g, direct);
    } else if (lost_them(s, st, &err) || keeps_trying(s, &err)) {
        put_back(s, g);
    } else {
        give_up(s, g, &err);
    }
    tell(s);
}

/* ---- the frozen table, with the lock ---- */

static void start_apply(struct jstore *s)
{
    s->apply = mem_apply_new(s->frozen);
    s->sorting = true;
    s->said = s->saying = false;
    if (!s->frozen_counted) { /* else it begins again after a failure */
        s->frozen_bytes = s->behind_bytes;
        s->behind_bytes = 0;
        s->frozen_counted = true;
    }
    s->apply_began_us = s->slice_us = clock_mono_us();
    s->freeze_wanted = false;
}

static enum status apply_some(struct jstore *s, size_t rows, bool *ret_last, struct error *err)
{
    /* On a database server that may crash while we live, the frozen table goes only when a commit was waited
       for that has all of it. A file crashes with us: there the log's order is enough. */
    bool over = s->base.far && mem_apply_left(s->apply) == 0;
    enum store_txn kind = over ? STORE_WRITE : STORE_WRITE_LAZY;
    enum status st = begin(s, kind, err);
    if (st != ST_OK)
        return st;
    st = apply_rows(s, rows, ret_last, err);
    if (st == ST_OK)
        st = drop_rows(s, err);
    st = end(s, st, err);
    bool safe = !s->base.far || !*ret_last || is_waited_for(s, kind);
    return st == ST_OK && !safe ? sync_all(s, err) : st;
}

static void adapt(struct jstore *s, int64_t took_us)
{
    if (took_us > IDLE_SLICE_US && s->idle_rows > MIN_SLICE)
        s->idle_rows /= 2;
    else if (took_us < IDLE_SLICE_US / 2 && s->idle_rows < MANY_ROWS)
        s->idle_rows += s->idle_rows / 4;
}

/* The journal has it all, so that nobody needs to know before another process has had the lock for long. */
static void apply_failed(struct jstore *s, const struct error *err)
{
    if (lost_them(s, err->code, err) || is_passing(s, err))
        return;
    s->stuck = err->code;
    s->failure = *err;
    s->failures++;
    s->retry_us = clock_mono_us() + RETRY_US;
    if (!s->outsized_waits)
        return;
    if (s->durability == DURABILITY_ALWAYS) /* what can only come in behind it cannot */
        give_up(s, NULL, err);
    else
        s->failing = err->code;
}

/* While there is no group to write. */
static void apply_idly(struct jstore *s)
{
    struct error err;
    bool last = false;
    enum status st = ST_OK;
    pthread_mutex_unlock(&s->lock);
    int64_t start = clock_mono_us();
    if (s->sorting) {
        s->sorting = mem_apply_sort(s->apply, SORT_ROWS);
    } else {
        st = apply_some(s, s->idle_rows, &last, &err);
        s->slice_us = start;
        adapt(s, clock_mono_us() - start);
    }
    pthread_mutex_lock(&s->lock);
    slice_over(s, st, last);
    if (st != ST_OK)
        apply_failed(s, &err);
    else if (last)
        works_again(s);
    else
        s->lock_since_us = 0;
    if (s->stuck != ST_OK || last)
        tell(s);
}

static enum status apply_everything(struct jstore *s, struct error *err)
{
    bool last = false;
    while (s->sorting)
        s->sorting = mem_apply_sort(s->apply, MANY_ROWS);
    enum status st = begin(s, STORE_WRITE, err);
    if (st != ST_OK)
        return st;
    while (st == ST_OK && !last)
        st = apply_rows(s, MANY_ROWS, &last, err);
    st = end(s, st, err);
    return st == ST_OK && s->base.far && !is_waited_for(s, STORE_WRITE) ? sync_all(s, err) : st;
}

/* What is in the frozen table was not all journaled: one transaction makes it durable. */
static void apply_whole(struct jstore *s)
{
    struct error err;
    if (!s->apply)
        start_apply(s);
    pthread_mutex_unlock(&s->lock);
    enum status st = apply_everything(s, &err);
    pthread_mutex_lock(&s->lock);
    if (st == ST_OK) {
        int64_t upto = s->frozen_upto;
        works_again(s);
        s->durable = s->journaled = upto;
        slice_over(s, st, true);
        s->safe = upto;
        VEC_PUSH(s->done, s->ndone, s->cap_done) = (struct jdone){upto, false};
        s->frozen_outsized = false;
    } else if (lost_them(s, st, &err) || keeps_trying(s, &err)) {
        mem_apply_free(s->apply);
        s->apply = NULL;
    } else {
        give_up(s, NULL, &err);
    }
    tell(s);
}

/* Rows of the journal that are in the tables. */
static void drop_idly(struct jstore *s)
{
    struct error err;
    pthread_mutex_unlock(&s->lock);
    enum status st = begin(s, STORE_WRITE_LAZY, &err);
    if (st == ST_OK)
        st = end(s, drop_rows(s, &err), &err);
    pthread_mutex_lock(&s->lock);
    if (st != ST_OK)
        s->retry_us = clock_mono_us() + RETRY_US;
}

/* Whether the database can be reached: while nothing else finds that out, or writers are refused because it
   could not. */
static void look(struct jstore *s)
{
    struct error err;
    pthread_mutex_unlock(&s->lock);
    enum status st = begin(s, STORE_READ, &err);
    if (st == ST_OK)
        store_rollback(s->writer);
    pthread_mutex_lock(&s->lock);
    s->looked_us = clock_mono_us();
    if (lost_them(s, st, &err) || st != ST_OK || s->failing == ST_OK)
        return;
    s->failing = ST_OK;
    tell(s);
}

/* What nobody waited for is kept until it is durable. */
static void sync_idly(struct jstore *s)
{
    struct error err;
    pthread_mutex_unlock(&s->lock);
    enum status st = sync_all(s, &err);
    pthread_mutex_lock(&s->lock);
    s->unsynced_us = clock_mono_us();
    if (st == ST_OK)
        synced(s);
    else
        (void)lost_them(s, st, &err);
}

/* ---- what the owner asks for ---- */

static void run_job(struct jstore *s)
{
    enum jjob job = s->job;
    enum durability d = s->durability;
    struct error err = {.code = ST_OK};
    pthread_mutex_unlock(&s->lock);
    enum status st = job == JOB_SYNC ? sync_all(s, &err) : store_set_durability(s->writer, d, &err);
    pthread_mutex_lock(&s->lock);
    if (st == ST_OK && job == JOB_SYNC)
        synced(s);
    else if (st == ST_OK)
        s->going_by = d;
    else
        (void)lost_them(s, st, &err);
    s->job = JOB_NONE;
    s->job_status = st;
    s->job_error = err;
    tell(s);
}

static void sweep(struct jstore *s)
{
    struct sweep_budget b = {
        .now = EXPIRE_DELETED, /* rows that expired are the owner's */
        .max_rows = s->sweep_rows,
        .dbs = s->sweep_dbs,
        .ndbs = s->sweep_ndbs,
    };
    struct sweep_result r;
    struct error err;
    pthread_mutex_unlock(&s->lock);
    writes_begin(s);
    enum status st = store_sweep(s->writer, &b, &r, &err);
    writes_end(s);
    pthread_mutex_lock(&s->lock);
    s->sweep_rows = 0;
    if (st != ST_OK)
        return;
    s->swept.deleted += r.deleted;
    s->swept.items += r.items;
    s->swept.more = r.more;
}

/* ---- the loop ---- */

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* When the first group is to be written. */
static int64_t group_due(const struct jstore *s)
{
    const struct jgroup *g = s->first;
    if (!g)
        return INT64_MAX;
    bool now = s->durability == DURABILITY_ALWAYS || s->hurry || s->stop || g->sealed || s->job ||
               g->row.len >= EAGER_BYTES;
    int64_t due = now ? 0 : g->born_us + WRITE_EVERY_US;
    return due > s->retry_us ? due : s->retry_us;
}

/* When the owner is to be asked to freeze the active table. */
static int64_t freeze_due(const struct jstore *s)
{
    if (s->frozen || s->freeze_wanted || s->behind_bytes == 0)
        return INT64_MAX;
    if (s->behind_bytes >= s->options.max_bytes / 2 || s->stop || s->hurry)
        return 0;
    /* Rows that move under a scan are seen twice by it: it is let through first. */
    int64_t quiet = s->written_us + QUIET_US;
    int64_t scanned = atomic_load_explicit(&s->scanned_us, memory_order_relaxed) + SCAN_US;
    if (scanned > quiet)
        quiet = scanned;
    return earlier(s->behind_us + (int64_t)s->options.lag_ms * 500, quiet);
}

static int64_t look_due(const struct jstore *s)
{
    if (!s->base.far || (s->frozen && s->frozen_outsized))
        return INT64_MAX;
    return s->looked_us + (s->failing != ST_OK ? RETRY_US : LOOK_US);
}

static int64_t sync_due(const struct jstore *s)
{
    bool wanted = s->base.far && s->synced < s->durable && !(s->frozen && s->frozen_outsized);
    return wanted ? s->unsynced_us + SYNC_US : INT64_MAX;
}

static void wait_until(struct jstore *s, int64_t due)
{
    s->idle = true;
    if (due == INT64_MAX) {
        pthread_cond_wait(&s->work, &s->lock);
    } else {
        struct timespec ts = {.tv_sec = due / 1000000, .tv_nsec = due % 1000000 * 1000};
        pthread_cond_timedwait(&s->work, &s->lock, &ts);
    }
    s->idle = false;
}

static bool may_apply(const struct jstore *s, int64_t now)
{
    return s->frozen && s->durable >= s->frozen_upto && now >= s->retry_us;
}

/* Only the word is missing that the frozen table is in, and groups that nobody waits for do not carry it. */
static bool finish_due(const struct jstore *s)
{
    bool over = s->base.far && s->apply && !s->sorting && mem_apply_left(s->apply) == 0;
    return over && !(s->first && is_waited_for(s, kind_of(s->first)));
}

/* By itself: when there is nothing that it could go along with. */
static bool apply_due(const struct jstore *s, int64_t now)
{
    return may_apply(s, now) && (finish_due(s) || (group_due(s) > now && !s->job));
}

/* Does one thing. False: there was nothing to do. */
static bool do_something(struct jstore *s, int64_t now)
{
    if (s->failed != ST_OK || s->over)
        return false;
    if (s->frozen && s->frozen_outsized && now >= s->retry_us) {
        apply_whole(s);
    } else if (s->frozen && s->frozen_outsized) { /* what came behind it waits, but for the owner */
        if (!s->job)
            return false;
        run_job(s);
    } else if (may_apply(s, now) && !s->apply) {
        start_apply(s);
    } else if (sync_due(s) <= now) {
        sync_idly(s);
    } else if (apply_due(s, now)) {
        apply_idly(s);
    } else if (group_due(s) <= now) {
        write_next(s);
    } else if (s->job) {
        run_job(s);
    } else if (freeze_due(s) <= now) {
        s->freeze_wanted = true;
        tell(s);
    } else if (s->dropping && now >= s->retry_us) {
        drop_idly(s);
    } else if (s->sweep_rows && now >= s->retry_us) {
        sweep(s);
    } else if (look_due(s) <= now) {
        look(s);
    } else {
        return false;
    }
    return true;
}

void *jthread_run(void *arg)
{
    struct jstore *s = arg;
    s->idle_rows = 256;
    pthread_mutex_lock(&s->lock);
    for (;;) {
        int64_t now = clock_mono_us();
        if (do_something(s, now))
            continue;
        if (s->stop && !s->hurry)
            break;
        int64_t due = INT64_MAX;
        if (s->failed == ST_OK && !s->over) {
            due = earlier(earlier(group_due(s), freeze_due(s)),
                          s->frozen || s->sweep_rows || s->dropping ? s->retry_us : INT64_MAX);
            due = earlier(due, earlier(look_due(s), sync_due(s)));
        }
        wait_until(s, due);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}
