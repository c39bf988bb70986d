#include "journal/redo_start.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/rand.h"
#include "journal/redo_state.h"

#define SEGMENTS     16 /* of a full log, at least */
#define SEGMENT_MAX  ((uint64_t)64 << 20)
#define LIKELY_BYTES 256 /* of a log that hold one row that no other has */

/* ---- what an earlier process left ---- */

struct reading {
    struct journal_past *past;
    size_t groups;
    size_t likely; /* rows */
    struct error *err;
};

static enum status take_record(void *arg, const struct redo_record *r)
{
    struct reading *to = arg;
    struct journal_past *past = to->past;
    if (r->kind == REDO_OUTSIZED) /* the tables had it before the log said so */
        return error_set(to->err, ST_CORRUPT, "the tables lack change %lld, which the log says they have",
                         (long long)r->seq);
    if (!past->mem) {
        past->mem = memtable_new(to->likely);
        past->next_seq = STORE_PROVISIONAL;
    }
    to->groups++;
    past->last = r->seq;
    past->bytes += r->payload.n;
    return replay_row_numbers(past->mem, r->seq, r->payload, &past->next_seq, to->err);
}

/* What a person can do about a log that cannot be read to its end. */
static void advise(const char *url, struct error *err)
{
    struct error what = *err;
    (void)redo_refuse(err, what.code, what.text, "larder check --salvage", url);
}

static enum status read_log(const struct redo_state *state, const struct redo_found *found, const char *url,
                            struct journal_past *past, struct error *err)
{
    struct reading r = {.past = past, .likely = found->bytes / LIKELY_BYTES, .err = err};
    int64_t start = clock_mono_us();
    enum status st = redo_each(state->file.path, &state->id, state->applied, take_record, &r, err);
    if (st == ST_CORRUPT)
        advise(url, err);
    if (st != ST_OK) {
        memtable_free(past->mem);
        past->mem = NULL;
    } else if (past->mem) {
        log_info("read the log", "groups=%zu bytes=%zu ms=%lld", r.groups, past->bytes,
                 (long long)(clock_mono_us() - start) / 1000);
    }
    return st;
}

static enum status read_state(struct store *writer, struct redo_state *ret, struct error *err)
{
    enum status st = store_begin(writer, STORE_READ, NULL, NULL, err);
    if (st != ST_OK)
        return st;
    st = redo_state_read(writer, ret, err);
    store_rollback(writer);
    return st;
}

/* Whatever there is, and what the tables lack of it. */
static enum status look(struct store *writer, const char *url, struct redo_state *state,
                        struct redo_found *found, struct journal_past *past, struct error *err)
{
    enum redo_verdict verdict = REDO_NONE;
    enum status st = read_state(writer, state, err);
    if (st == ST_OK) {
        st = redo_find(state->file.path, state->known ? &state->id : NULL, found, err);
        if (st == ST_CORRUPT)
            advise(url, err);
    }
    if (st == ST_OK)
        st = redo_judge(state, found, url, &verdict, err);
    if (st != ST_OK)
        return st;
    if (verdict == REDO_COPY)
        log_warning("the database is a copy without a log: writes that were only in that are not here",
                    "applied=%lld", (long long)state->applied);
    if (verdict == REDO_OURS)
        return read_log(state, found, url, past, err);
    return found->any ? redo_remove(state->file.path, err) : ST_OK;
}

/* No room to begin: what the log holds waits in memory. */
static void put_off(struct journal_past *past, const struct error *why)
{
    past->why = *why;
    log_warning(
        past->mem ? "there is no room for a log on the disk: reads are served, writes are refused"
                  : "there is no room for a log on the disk: the tables do without one until the next start",
        "bytes=%zu error=\"%s\"", past->bytes, why->text);
}

/* ---- a new log ---- */

/* larder_meta says that the log of this id is open, or (NULL) that none is. Synced. */
static enum status tell(struct store *writer, const struct redo_id *id, struct error *err)
{
    enum status st = store_begin(writer, STORE_WRITE, NULL, NULL, err);
    if (st != ST_OK)
        return st;
    st = id ? redo_state_open(writer, id, err) : redo_state_close(writer, err);
    if (st == ST_OK)
        st = store_commit(writer, err);
    else
        store_rollback(writer);
    return st == ST_OK ? store_sync(writer, err) : st;
}

static enum status begin(struct store *writer, const struct redo_state *state, uint64_t log_max,
                         struct journal_past *past, struct error *err)
{
    struct redo_options o = {.path = state->file.path,
                             .old = state->id,
                             .from = past->last + 1,
                             .tables = past->applied,
                             .segment_bytes =
                                 log_max / SEGMENTS < SEGMENT_MAX ? log_max / SEGMENTS : SEGMENT_MAX,
                             .keep_bytes = log_max / 2}; /* a pass leaves so much for the next one */
    struct error ignored;
    rand_secure(o.id.bytes, sizeof o.id.bytes);
    enum status st = redo_open(&o, &past->redo, err);
    if (st != ST_OK)
        return st;
    st = tell(writer, &o.id, err);
    if (st != ST_OK) {
        (void)redo_close(past->redo, false, &ignored);
        past->redo = NULL;
    }
    return st;
}

enum status redo_start(struct store *writer, const char *url, uint64_t log_max, struct journal_past *past,
                       struct error *err)
{
    struct redo_state state;
    struct redo_found found;
    enum status st = store_sync(writer, err); /* the schema's version, for older programs */
    if (st == ST_OK)
        st = look(writer, url, &state, &found, past, err);
    if (st != ST_OK)
        return st;
    st = begin(writer, &state, log_max, past, err);
    if (st == ST_FULL) {
        put_off(past, err);
        return ST_OK;
    }
    if (st != ST_OK) {
        memtable_free(past->mem);
        past->mem = NULL;
    }
    return st;
}

/* ---- without a log, and the end of one ---- */

/* One transaction. */
static enum status bring_in(struct store *writer, const struct journal_past *past, struct error *err)
{
    enum status st = store_begin(writer, STORE_WRITE, NULL, NULL, err);
    if (st != ST_OK)
        return st;
    if (past->mem)
        st = replay_apply(writer, past->mem, err);
    if (st == ST_OK)
        st = store_journal_applied(writer, past->last, err);
    if (st == ST_OK)
        st = redo_state_close(writer, err);
    if (st == ST_OK)
        st = store_commit(writer, err);
    else
        store_rollback(writer);
    return st == ST_OK ? store_sync(writer, err) : st;
}

enum status redo_apply_all(struct store *writer, const char *url, struct journal_past *past,
                           struct error *err)
{
    struct redo_state state;
    struct redo_found found;
    enum status st = look(writer, url, &state, &found, past, err);
    if (st != ST_OK || (!found.any && !state.open))
        return st;
    st = bring_in(writer, past, err);
    if (st == ST_FULL) {
        put_off(past, err);
        return ST_OK;
    }
    memtable_free(past->mem);
    past->mem = NULL;
    past->applied = past->last;
    return st == ST_OK ? redo_remove(state.file.path, err) : st;
}

enum status redo_end(struct store *writer, struct redo *r, bool everything, struct error *err)
{
    struct error ignored;
    enum status st = everything ? store_sync(writer, err) : ST_OK;
    if (st == ST_OK && everything)
        st = tell(writer, NULL, err);
    bool remove = everything && st == ST_OK;
    enum status closed = redo_close(r, remove, st == ST_OK ? err : &ignored);
    return st == ST_OK ? closed : st;
}
