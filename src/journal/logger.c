/* The logger: the thread that writes groups to the redo log (redo/redo.h), where there is one. It takes the
   first group, appends it, says what became of it, and waits when there is none. It uses nothing but the log,
   so that no pass, no checkpoint and no other process's lock keeps a reply waiting.

   `always`: one write and one sync a group. What fails is given up, and the owner undoes it and all behind
   it; the log has begun nothing that a later start could take for it, or says that it does not know
   (ST_UNKNOWN).

   `everysec`, `off`: groups are appended without a sync, which follows after a second, or when much is
   unsynced, or when somebody needs it: a pass (the tables may have only what the log has for good), SAVE,
   another durability. A group is kept until then: when a sync fails, what was appended since the last one
   counts no more, and is appended again, by the same numbers, to a new epoch. Until all of it is synced
   transactions that write are refused, so that what a crash may take stays what was written within about a
   second.

   A CRASH between the append and the reply: the group is there, nobody was told. Within the append: all of
   the group or nothing. Between a failed sync and the end of appending again: what that second wrote may be
   gone in part, in order. An outsized change set (journal.h) is in the tables before the log hears of it: the
   next start finds tables that are ahead of the log. No group follows before the log has heard of it. */
#include "base/clock.h"
#include "base/log.h"
#include "journal/encoding.h"
#include "journal/writer.h"

#define SYNC_US    1000000            /* between two syncs under `everysec` */
#define SYNC_BYTES ((size_t)16 << 20) /* that may be unsynced, whatever the durability: they are kept */

static bool waits_for_syncs(struct journal_store *s)
{
    return locked(s)->durability == DURABILITY_ALWAYS;
}

/* ---- groups that are not synced; holding the lock ---- */

static void keep(struct journal_store *s, struct journal_group *g)
{
    struct journal_logger *k = &s->logger;
    if (!k->first)
        k->since_us = clock_mono_us();
    g->next = NULL;
    *(k->tail ? &k->tail->next : &k->first) = g;
    k->tail = g;
    k->bytes += g->row.len;
}

/* Everything up to this ticket is durable, in the log or in the tables. */
static void release(struct journal_store *s, int64_t upto)
{
    struct journal_logger *k = &s->logger;
    for (struct journal_group *g = k->first; g && g->last <= upto; g = k->first) {
        k->first = g->next;
        k->bytes -= g->row.len;
        if (k->again == g)
            k->again = g->next;
        journal_group_free(g);
    }
    if (!k->first)
        k->tail = NULL;
}

static void synced(struct journal_store *s, int64_t upto)
{
    struct journal_shared *l = locked(s);
    if (upto > l->log.synced)
        l->log.synced = upto;
    release(s, upto);
    l->log.retry_us = 0;
    if (l->log.failing)
        l->log.failing = false, l->failures.failing = ST_OK;
    if (l->idle && l->frozen)
        pthread_cond_signal(&s->lock.work);
}

/* ---- failures; holding the lock ---- */

/* What was appended since the last sync may be there after a crash, and does not count. */
static bool is_void(const struct error *err)
{
    return err->code == ST_UNKNOWN || err->code == ST_LOST;
}

/* What the log still has is not appended again: it synced a part when it began a segment, and where a failure
   has left the epoch open it has what is unsynced, too. All else is, from the first on, whatever was appended
   again before. */
static void begin_again(struct journal_store *s)
{
    struct journal_logger *k = &s->logger;
    struct redo_info info;
    redo_info(s->redo, &info);
    if (info.durable > locked(s)->log.synced)
        locked(s)->log.synced = info.durable;
    release(s, info.durable);
    k->again = k->first;
    while (k->again && k->again->last <= info.last)
        k->again = k->again->next;
}

/* No reply waits for it: writers are refused until it works. */
static void keep_trying(struct journal_store *s, const struct error *err)
{
    struct journal_shared *l = locked(s);
    struct journal_failures *f = &l->failures;
    if (!l->log.failing)
        log_warning("the log cannot be written: writes are refused until it can", "status=%s error=\"%s\"",
                    status_name(err->code), err->text);
    f->why = *err;
    if (is_void(err)) /* nothing was done of what they ask for, whatever became of the group */
        f->why.code = ST_IO;
    begin_again(s);
    f->failing = f->why.code;
    f->times++;
    l->log.failing = true;
    l->log.retry_us = clock_mono_us() + WRITER_RETRY_US;
}

static void give_up(struct journal_store *s, struct journal_group *g, const struct error *err)
{
    struct journal_failures *f = &locked(s)->failures;
    f->failed = err->code;
    f->undone = *err;
    journal_group_free(g);
    s->logger.renew_us = 1;
}

/* ---- markers; holding the lock ---- */

/* Without the lock. A segment whose head says that the tables have it will do. */
static enum status write_marker(struct redo *r, int64_t upto, struct error *err)
{
    struct redo_info info;
    enum status st = redo_renew(r, err);
    if (st != ST_OK)
        return st;
    redo_info(r, &info);
    return info.last >= upto ? ST_OK : redo_append(r, REDO_OUTSIZED, upto, slice_of(NULL, 0), true, err);
}

/* An outsized change set is in the tables. As long as the log does not know of it nothing is appended behind
   it: who reads the log behind an older state of the tables (a backup) would miss it, and not notice. That is
   all the harm: a start finds it in the tables. */
static enum status append_marker(struct journal_store *s, struct error *err)
{
    struct journal_shared *l = locked(s);
    int64_t upto = l->log.marker;
    if (upto == 0)
        return ST_OK;
    if (upto > l->log.synced)
        l->log.synced = upto;
    release(s, upto);
    journal_unlock(s);
    enum status st = write_marker(s->redo, upto, err);
    journal_lock(s);
    if (st != ST_OK) {
        if (!s->logger.marker_us)
            log_warning(
                "the log does not know of a large change that is in the tables: writes fail until it does",
                "status=%s error=\"%s\"", status_name(st), err->text);
        s->logger.marker_us = clock_mono_us() + WRITER_RETRY_US;
        if (is_void(err)) /* of what waits behind it nothing was written */
            err->code = ST_IO;
        return st;
    }
    s->logger.marker_us = 0;
    if (l->log.marker == upto) /* else there is another one already */
        l->log.marker = 0;
    synced(s, upto);
    return ST_OK;
}

/* ---- what it does; holding the lock ---- */

/* The thread that writes the tables waits for this, or has set its time by what was there before. */
static void tell_writer(struct journal_store *s, bool was_level)
{
    const struct journal_shared *l = locked(s);
    bool much = l->behind_bytes >= s->options.max_bytes / 2 && !l->freeze_wanted;
    if (l->idle && (was_level || l->frozen || much))
        pthread_cond_signal(&s->lock.work);
}

static void append_next(struct journal_store *s)
{
    struct journal_shared *l = locked(s);
    struct journal_group *g = writer_take_group(s);
    struct error err;
    bool sync = waits_for_syncs(s), was_level = l->behind_bytes == 0;
    l->log.busy = true;
    size_t n = g->row.len;
    enum status st = append_marker(s, &err);
    if (st == ST_OK) {
        journal_unlock(s);
        journal_end(&g->row);
        st = redo_append(s->redo, REDO_GROUP, g->last, buf_slice(&g->row), sync, &err);
        journal_lock(s);
    }
    l->log.busy = false;
    if (st == ST_OK) {
        s->logger.renew_us = 0;
        writer_written(s, g, false);
        keep(s, g);
        if (sync)
            synced(s, g->last);
    } else if (sync) {
        give_up(s, g, &err);
    } else {
        g->row.len = n;
        writer_put_back(s, g);
        keep_trying(s, &err);
    }
    tell_writer(s, was_level);
}

/* One that was void, by the same number. */
static void append_again(struct journal_store *s)
{
    struct journal_group *g = s->logger.again;
    struct error err;
    journal_unlock(s);
    enum status st = redo_append(s->redo, REDO_GROUP, g->last, buf_slice(&g->row), false, &err);
    journal_lock(s);
    if (st == ST_OK)
        s->logger.again = g->next;
    else
        keep_trying(s, &err);
    writer_tell(s);
}

static void sync_log(struct journal_store *s)
{
    struct error err;
    int64_t upto = locked(s)->durable;
    journal_unlock(s);
    enum status st = redo_sync(s->redo, &err);
    journal_lock(s);
    if (st == ST_OK)
        synced(s, upto);
    else
        keep_trying(s, &err);
    writer_tell(s);
}

/* A group was given up, which may be in the log: clients are told that it is not in the data, so that it must
   not come back, also when nobody writes any more. */
static void renew(struct journal_store *s)
{
    struct error ignored; /* the next append tells, too */
    journal_unlock(s);
    enum status st = redo_renew(s->redo, &ignored);
    journal_lock(s);
    s->logger.renew_us = st == ST_OK ? 0 : clock_mono_us() + WRITER_RETRY_US;
}

/* ---- what is due when ---- */

/* Groups behind an outsized change set wait for it. */
static int64_t group_due(struct journal_store *s)
{
    const struct journal_shared *l = locked(s);
    if (l->frozen && l->frozen_outsized)
        return INT64_MAX;
    int64_t due = l->durable < l->log.sync_to && l->first ? 0 : writer_group_due(s);
    return due > l->log.retry_us ? due : l->log.retry_us;
}

static int64_t marker_due(struct journal_store *s)
{
    return locked(s)->log.marker ? s->logger.marker_us : INT64_MAX;
}

static int64_t sync_due(struct journal_store *s)
{
    const struct journal_shared *l = locked(s);
    const struct journal_logger *k = &s->logger;
    if (!k->first)
        return INT64_MAX;
    bool asked = l->log.sync_to > l->log.synced && l->durable >= l->log.sync_to;
    bool now = asked || l->stop || l->hurry || k->bytes >= SYNC_BYTES || l->log.failing;
    int64_t due = now ? 0 : l->durability == DURABILITY_EVERYSEC ? k->since_us + SYNC_US : INT64_MAX;
    return due > l->log.retry_us ? due : l->log.retry_us;
}

static bool do_something(struct journal_store *s, int64_t now)
{
    const struct journal_shared *l = locked(s);
    if (l->failures.failed != ST_OK || l->failures.over || l->log.busy) /* busy: the owner writes */
        return false;
    if (marker_due(s) <= now) {
        struct error ignored; /* whoever waits for it tries again, and is told */
        (void)(append_marker(s, &ignored) == ST_OK);
        writer_tell(s);
    } else if (s->logger.again) { /* nothing else before it */
        if (l->log.retry_us > now)
            return false;
        append_again(s);
    } else if (sync_due(s) <= now) {
        sync_log(s);
    } else if (group_due(s) <= now) {
        append_next(s);
        writer_tell(s);
    } else if (s->logger.renew_us && s->logger.renew_us <= now) {
        renew(s);
    } else {
        return false;
    }
    return true;
}

static int64_t next_due(struct journal_store *s)
{
    const struct journal_shared *l = locked(s);
    if (l->failures.failed != ST_OK || l->failures.over)
        return INT64_MAX;
    int64_t group = group_due(s), sync = sync_due(s), marker = marker_due(s), renew = s->logger.renew_us;
    int64_t due = group < sync ? group : sync;
    due = marker < due ? marker : due;
    return renew && renew < due ? renew : due;
}

void *logger_run(void *arg)
{
    struct journal_store *s = arg;
    journal_lock(s);
    struct journal_shared *l = locked(s);
    for (;;) {
        if (do_something(s, clock_mono_us()))
            continue;
        if (l->stop)
            break;
        l->log.idle = true;
        journal_wait(s, &s->lock.log, next_due(s));
        l->log.idle = false;
    }
    journal_unlock(s);
    return NULL;
}

void logger_release(struct journal_store *s)
{
    release(s, INT64_MAX);
}

/* ---- for the others; holding the lock ---- */

/* What is woken meanwhile finds the log busy, and is woken again if there is anything for it. */
bool logger_append_here(struct journal_store *s)
{
    const struct journal_shared *l = locked(s);
    bool fit = l->log.idle && l->first == l->tail && waits_for_syncs(s) && !s->logger.first && !l->log.marker;
    if (!fit || l->failures.failed != ST_OK || l->failures.over || group_due(s) > 0)
        return false;
    append_next(s);
    if (l->stop || l->hurry || l->log.sync_to > l->log.synced)
        logger_wake(s);
    return true;
}

void logger_wake(struct journal_store *s)
{
    if (s->redo)
        pthread_cond_signal(&s->lock.log);
}

void logger_ask_sync(struct journal_store *s, int64_t ticket)
{
    struct journal_shared *l = locked(s);
    if (l->log.sync_to >= ticket)
        return;
    l->log.sync_to = ticket;
    logger_wake(s);
}
