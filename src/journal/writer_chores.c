/* What the thread does beside groups and passes: what the owner asks for, rows of the journal that are not
   needed any more, syncs that no reply waits for, and a look at the connection. */
#include "base/clock.h"
#include "journal/writer.h"

#define DROP_ROWS 16 /* of the journal, with a group */

/* ---- the journal's rows ---- */

enum status writer_drop_rows(struct journal_store *s, struct error *err)
{
    bool *more = &s->thread.dropping;
    return *more ? store_journal_drop(s->writer, writer_applied(s), DROP_ROWS, more, err) : ST_OK;
}

void writer_drop_idly(struct journal_store *s)
{
    struct error err;
    journal_unlock(s);
    enum status st = writer_begin(s, STORE_WRITE_LAZY, &err);
    if (st == ST_OK)
        st = writer_end(s, writer_drop_rows(s, &err), &err);
    journal_lock(s);
    if (st != ST_OK)
        locked(s)->retry_us = clock_mono_us() + WRITER_RETRY_US;
}

/* ---- the log's segments ---- */

/* A step of making the next one ready; without room for it the logger finds that out when it needs one. */
void writer_prepare_log(struct journal_store *s)
{
    struct error ignored;
    bool more = false;
    journal_unlock(s);
    enum status st = redo_prepare(s->redo, &more, &ignored);
    journal_lock(s);
    s->thread.preparing = st == ST_OK && more;
}

/* ---- what the owner asks for ---- */

/* Another durability. From where replies leave before their commit is written, groups record how far they
   are: larder_meta says so before the first of those replies, and that it is over behind the last one. A log
   says that by itself. */
static enum status change_durability(struct journal_store *s, enum durability d, int64_t durable,
                                     struct error *err)
{
    bool records = !s->redo && s->run.database && d != DURABILITY_ALWAYS;
    bool last = records || s->redo; /* with a log the session has one durability, whatever that is */
    enum status st = last ? ST_OK : store_set_durability(s->writer, d, err);
    if (st == ST_OK && records != s->thread.records && (st = writer_begin(s, STORE_WRITE, err)) == ST_OK) {
        st = records ? run_record(s->writer, &s->run, durable, err) : run_all(s->writer, err);
        st = writer_end(s, st, err);
    }
    if (st != ST_OK)
        return st;
    s->thread.records = records;
    return records ? store_set_durability(s->writer, d, err) : ST_OK;
}

void writer_run_job(struct journal_store *s)
{
    struct journal_shared *l = locked(s);
    enum journal_job job = l->job;
    enum durability d = l->durability;
    int64_t durable = l->durable;
    struct error err = {.code = ST_OK};
    journal_unlock(s);
    enum status st = job == JOB_SYNC ? writer_sync(s, &err) : change_durability(s, d, durable, &err);
    journal_lock(s);
    if (st == ST_OK && job == JOB_SYNC)
        writer_synced(s);
    else if (st == ST_OK)
        s->kept.going_by = s->redo ? DURABILITY_ALWAYS : d;
    else
        (void)writer_is_over(s, st, &err);
    l->job = JOB_NONE;
    l->job_status = st;
    l->job_error = err;
    writer_tell(s);
}

/* Trash, and rows that servers which share the tables have marked as deleted. What has expired is the
   owner's: memory may have it newer. */
struct sweep_budget writer_sweep_budget(struct journal_store *s)
{
    const struct journal_shared *l = locked(s);
    return (struct sweep_budget){
        .now = EXPIRE_DELETED,
        .max_rows = l->sweep.rows,
        .dbs = l->sweep.dbs,
        .ndbs = l->sweep.ndbs,
    };
}

void writer_swept(struct journal_store *s, enum status st, const struct sweep_result *r)
{
    struct journal_shared *l = locked(s);
    l->sweep.rows = 0;
    if (st != ST_OK)
        return;
    l->sweep.result.deleted += r->deleted;
    l->sweep.result.items += r->items;
    l->sweep.result.more = r->more;
}

void writer_sweep(struct journal_store *s)
{
    struct sweep_budget b = writer_sweep_budget(s);
    struct sweep_result r;
    struct error err;
    journal_unlock(s);
    writer_writes_begin(s);
    enum status st = store_sweep(s->writer, &b, &r, &err);
    writer_writes_end(s);
    journal_lock(s);
    writer_swept(s, st, &r);
}

/* ---- the database server ---- */

void writer_sync_idly(struct journal_store *s)
{
    struct error err;
    journal_unlock(s);
    enum status st = writer_sync(s, &err);
    journal_lock(s);
    s->kept.unsynced_us = clock_mono_us();
    if (st == ST_OK)
        writer_synced(s);
    else
        (void)writer_is_over(s, st, &err);
}

void writer_look(struct journal_store *s)
{
    struct error err;
    journal_unlock(s);
    enum status st = writer_begin(s, STORE_READ, &err);
    if (st == ST_OK)
        store_rollback(s->writer);
    journal_lock(s);
    struct journal_shared *l = locked(s);
    l->looked_us = clock_mono_us();
    if (writer_is_over(s, st, &err) || st != ST_OK || l->failures.failing == ST_OK)
        return;
    l->failures.failing = ST_OK;
    writer_tell(s);
}
