/* When the sweeper takes its steps, see sweeper.h. */
#include "server/sweeper.h"

#include "base/clock.h"
#include "base/log.h"
#include "engine/engine.h"
#include "server/retry.h"
#include "server/worker_internal.h"
#include "stats/latency.h"
#include "table/sweep.h"

#define STEP_US      1000 /* what a step may take */
#define MIN_ROWS     16
#define TRIES        3    /* of a step, soon one after the other, while it conflicts with other writers */
#define MUCH_ROWS    1000 /* a pass that is worth a line */
#define IDLE_DIVISOR 10   /* the pause shortens so much when no client had anything to do */
/* Of the time while clients are busy, a step may take one part in SHARE. A pass that has not come to its end
   for LONG_US is behind by more than that would ever make good, and the tables grow: then one in
   LONG_SHARE. */
#define SHARE      11
#define LONG_US    60000000
#define LONG_SHARE 4

/* Of builds of indexes. */
#define BUILD_STEP_US  1000
#define BUILD_LOOK_US  2000000 /* between two looks for something to build */
#define BUILD_TAKEN_US 1000000 /* so, while other servers build */
#define BUILD_HELD_US  20000   /* while nothing is to be done behind */
#define BUILD_FULL_US  5000    /* until the store may have caught up */
#define BUILD_TRIES    5

/* The next step takes as many rows as fit its time, by what the last one took. */
static void adapt(struct sweeper *s, int64_t took_us, uint64_t did, uint32_t max_rows)
{
    uint64_t rows = s->rows;
    if (took_us > STEP_US)
        rows = rows * STEP_US / (uint64_t)took_us;
    else if (took_us < STEP_US / 2 && did >= rows)
        rows *= 2;
    if (rows < MIN_ROWS)
        rows = MIN_ROWS;
    s->rows = rows > max_rows ? max_rows : (uint32_t)rows;
}

static void failed(struct worker *w, const char *what, int64_t *warned_us, const struct error *err)
{
    executor_note_failure(&w->executor, err->code);
    /* Another process writes: there is time. */
    bool contended = err->code == ST_BUSY || err->code == ST_CONFLICT;
    if (contended || !worker_may_warn(w, warned_us))
        return;
    char text[2 * sizeof err->text];
    log_warning(what, "status=%s error=%s", status_name(err->code), log_quote(text, sizeof text, err->text));
}

/* After a failed step: when the next one is due, soon while it only conflicts. */
static int64_t try_again(struct worker *w, int *tries, int most, int64_t otherwise_us,
                         const struct error *err)
{
    *tries = err->code == ST_CONFLICT && *tries + 1 < most ? *tries + 1 : 0;
    return *tries ? retry_pause_us(w, *tries) : otherwise_us;
}

static void pass_over(struct worker *w, int64_t now_us)
{
    struct sweeper *s = &w->sweeper;
    w->executor.stats.sweep_passes += s->pass_rows > 0;
    if (s->pass_rows >= MUCH_ROWS)
        log_debug("swept", "rows=%llu ms=%lld", (unsigned long long)s->pass_rows,
                  (long long)(now_us - s->pass_start_us) / 1000);
    s->pass_rows = 0;
}

/* How long the database is the clients' own after a step. */
static int64_t pause(const struct sweeper *s, int64_t pause_us, bool quiet, int64_t start, int64_t end)
{
    if (quiet)
        return pause_us / IDLE_DIVISOR;
    int64_t share = end - s->pass_start_us > LONG_US ? LONG_SHARE : SHARE;
    int64_t rest = (end - start) * (share - 1);
    return rest > pause_us ? rest : pause_us;
}

/* Dead rows, then those of tables that have expired; then numbers that dead rows have left. */
static enum status do_some(struct worker *w, bool *ret_more, uint64_t *ret_rows, struct error *err)
{
    struct sweeper *s = &w->sweeper;
    bool more = false, sparse = false;
    uint64_t rows = 0, moved = 0;
    enum status st = engine_sweep(w->executor.engine, s->rows, ret_more, ret_rows, err);
    if (st == ST_OK)
        st = tables_sweep(w->executor.engine, &w->executor.catalog, &s->after_table, s->rows, &more, &rows,
                          err);
    if (st == ST_OK)
        st = engine_renumber(w->executor.engine, s->rows, &sparse, &moved, err);
    *ret_more |= more || sparse;
    *ret_rows += rows + moved;
    return st;
}

int64_t sweeper_step(struct worker *w)
{
    struct sweeper *s = &w->sweeper;
    const struct config *config = worker_config(w);
    int64_t interval_us = (int64_t)config->sweep_interval_ms * 1000;
    if (!config->sweep || !w->executor.server->sweep_active || executor_only_reads(&w->executor) ||
        legs_primary_away(w))
        return interval_us;
    uint32_t max_rows = config->sweep_batch > 0 ? (uint32_t)config->sweep_batch : 1;
    if (s->rows == 0 || s->rows > max_rows)
        s->rows = max_rows < MIN_ROWS ? max_rows : MIN_ROWS;
    bool more = false;
    uint64_t did = 0;
    struct error err;
    int64_t start = clock_mono_us();
    if (do_some(w, &more, &did, &err) != ST_OK) {
        failed(w, "the sweeper failed", &s->warned_us, &err);
        return try_again(w, &s->tries, TRIES, interval_us, &err);
    }
    s->tries = 0;
    int64_t end = clock_mono_us();
    uint64_t threshold_ms = config->latency_monitor_threshold_ms;
    if (threshold_ms && (uint64_t)(end - start) >= threshold_ms * 1000)
        latency_add(w->executor.server->latency, "expire-cycle", (end - start) / 1000);
    if (s->pass_rows == 0)
        s->pass_start_us = start;
    s->pass_rows += did;
    bool quiet = s->batches == w->batches;
    s->batches = w->batches;
    adapt(s, end - start, did, max_rows);
    if (!more) {
        pass_over(w, end);
        return interval_us;
    }
    return pause(s, (int64_t)config->sweep_pause_ms * 1000, quiet, start, end);
}

/* ---- indexes ---- */

int64_t builder_step(struct worker *w)
{
    struct builder *b = &w->builder;
    enum build_outcome outcome;
    struct error err;
    if (!w->executor.server->sweep_active) /* DEBUG SET-ACTIVE-EXPIRE 0 */
        return BUILD_HELD_US;
    if (executor_only_reads(&w->executor) || legs_primary_away(w))
        return BUILD_LOOK_US;
    if (engine_full(w->executor.engine))
        return BUILD_FULL_US;
    int64_t start = clock_mono_us();
    if (walker_step(&b->walker, w->executor.engine, &w->executor.catalog, BUILD_STEP_US, &outcome, &err) !=
        ST_OK) {
        failed(w, "an index could not be built further", &b->warned_us, &err);
        b->walker.look |= err.code != ST_BUSY && err.code != ST_CONFLICT;
        return try_again(w, &b->tries, BUILD_TRIES, BUILD_LOOK_US, &err);
    }
    b->tries = 0;
    bool quiet = b->batches == w->batches;
    b->batches = w->batches;
    if (outcome == BUILD_IDLE || outcome == BUILD_TAKEN)
        return outcome == BUILD_IDLE ? BUILD_LOOK_US : BUILD_TAKEN_US;
    return quiet || outcome != BUILD_MORE ? 0 : clock_mono_us() - start;
}
