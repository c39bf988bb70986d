/* The statistics of all executors of the process, added up: for INFO, MEMORY and the metrics, whose commands
   run while the workers stand still. What is still in the books counts. */
#ifndef LARDER_STATS_SUMS_H
#define LARDER_STATS_SUMS_H

#include "engine/engine.h"
#include "exec/executor.h"
#include "script/interp.h"
#include "store/store.h"

struct sums {
    struct executor_stats stats; /* peak_memory: the highest */
    struct error_counts errors;
    struct engine_stats engine;
    uint64_t unsaved; /* changes since SAVE last succeeded */
    struct cache_stats cache;
    size_t cache_budget;
    struct engine_memory memory;
    size_t client_memory;
    uint32_t nsessions, nwaiters, njob_waiters;
};

/* What scripts take. A worker's libraries are those that it has seen last: of all workers, the most. */
struct script_sums {
    uint64_t vm[INTERPS]; /* bytes of all interpreters of a kind */
    uint64_t scripts, script_bytes;
    uint64_t libraries, functions, library_bytes;
};
struct script_sums sums_scripts(const struct server *all);

void sums_gather(struct server *all, struct sums *ret);

/* What the database says, as s has it, with what all connections to it count. */
enum status sums_store(const struct executor *s, struct store_info *ret, struct error *err) MUST_CHECK;

struct command_sums {
    uint64_t calls, us, rejected, failed;
};
struct command_sums sums_command(const struct executor *s, int index);

/* The times of a command's calls. The thread of s may ask at any time. */
void sums_command_times(const struct executor *s, int index, struct histogram_view *add_to);

#endif
