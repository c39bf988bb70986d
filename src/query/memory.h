/* How much memory a query takes of SQLite. SQLite has one allocator for the process, so it is wrapped once
   (query_count_memory): what a thread allocates while a budget is set there counts, and beyond it SQLite is
   told that there is no memory. Everybody else's calls, the store's sessions on the same thread included,
   pass through: whoever leaves the query for the view takes the budget off meanwhile. */
#ifndef LARDER_QUERY_MEMORY_H
#define LARDER_QUERY_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

struct memory_budget {
    int64_t used; /* what was freed that an earlier query had taken may make it negative */
    int64_t peak;
    int64_t max;
    bool exceeded;
};

/* From here on this thread's allocations count there; NULL: nowhere. Returns what was set before. */
struct memory_budget *memory_count(struct memory_budget *b);

#endif
