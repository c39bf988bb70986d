/* The walker of a server (build.h): which indexes there are to build, and one step after the other.

   Which there are is looked for when the server starts, when a command says that there may be one
   (executor->builds_asked), and now and then: another server may have ended before its work was done, and a
   commit may have failed after it was accepted. */
#ifndef LARDER_TABLE_BUILD_WALKER_H
#define LARDER_TABLE_BUILD_WALKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "engine/engine.h"
#include "table/build/build.h"

struct walker_job;

struct walker {
    uint64_t number; /* its own */
    bool look;       /* the list may not be whole */
    struct arena names;
    struct walker_job *jobs;
    size_t njobs, cap, at;
    bool decides;  /* the next step is durable when it is committed */
    uint32_t rows; /* of the next step, found by measuring the last ones */
};

void walker_init(struct walker *w);
void walker_release(struct walker *w);

/* One step of about target_us, in a transaction of its own between batches. BUILD_IDLE: there is nothing to
   build; BUILD_TAKEN: others build all that there is. *catalog is made when it is needed. */
enum status walker_step(struct walker *w, struct engine *e, struct catalog **catalog, int64_t target_us,
                        enum build_outcome *ret, struct error *err) MUST_CHECK;

#endif
