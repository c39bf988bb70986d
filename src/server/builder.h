/* Builds indexes behind (table/build/build.h): when and how much. The first worker takes the steps, each a
   transaction of its own of a millisecond or two between batches, and about half of the time at most while
   clients are busy.

   Which indexes there are to build is looked for when the server starts, when a command says that there may
   be one (executor->builds_asked), and now and then: another server may have ended before its work was done,
   and a commit may have failed after it was accepted. */
#ifndef LARDER_SERVER_BUILDER_H
#define LARDER_SERVER_BUILDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

struct worker;
struct build_job;

struct builder {
    uint64_t walker;
    bool look; /* the list may not be whole */
    struct arena names;
    struct build_job *jobs;
    size_t njobs, cap, at;
    bool decides;      /* the next step is durable when it is committed */
    uint32_t rows;     /* of the next step, found by measuring the last ones */
    uint64_t batches;  /* run so far, at the last step */
    int tries;         /* so many steps in a row conflicted with other writers */
    int64_t warned_us; /* when a failure was last logged */
};

void builder_init(struct builder *b);
void builder_release(struct builder *b);

/* One step, if there is anything to do. Returns after how many microseconds the next one is due. */
int64_t builder_step(struct worker *w);

#endif
