/* The statistics of all servers of the process, added up: for INFO, MEMORY and the metrics, whose commands
   run while the workers stand still. */
#ifndef LARDER_COMMAND_TOTALS_H
#define LARDER_COMMAND_TOTALS_H

#include "command/server.h"
#include "engine/engine.h"

struct totals {
    struct server_stats stats; /* peak_memory: the highest */
    struct error_counts errors;
    struct engine_stats engine;
    uint64_t unsaved; /* changes since SAVE last succeeded */
    struct cache_stats cache;
    size_t cache_budget;
    struct engine_memory memory;
    size_t client_memory;
    uint32_t nsessions, nwaiters;
};

void totals_gather(struct commons *all, struct totals *ret);

/* What the database says, as s has it, with what all connections to it count. */
enum status totals_store(const struct server *s, struct store_info *ret, struct error *err) MUST_CHECK;

struct command_totals {
    uint64_t calls, us, rejected, failed;
};
struct command_totals totals_command(const struct commons *all, int index);

/* The times of a command's calls. Any thread may ask at any time. */
void totals_command_times(const struct commons *all, int index, struct histogram_view *add_to);

#endif
