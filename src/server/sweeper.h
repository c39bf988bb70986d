/* When and how much the sweeper works: in steps of about a millisecond between batches, so that no client
   waits long for one, and less than a tenth of the time while clients are busy. And so the builder of indexes
   (table/build/walker.h), with about half of the time. */
#ifndef LARDER_SERVER_SWEEPER_H
#define LARDER_SERVER_SWEEPER_H

#include <stdbool.h>
#include <stdint.h>

#include "table/build/walker.h"

struct worker;

struct sweeper {
    uint32_t rows;      /* of the next step, found by measuring the last ones */
    uint64_t batches;   /* run so far, at the last step */
    uint64_t pass_rows; /* removed in this pass, over all steps since there was nothing to do */
    int64_t pass_start_us;
    int64_t after_table; /* the id of the table that the last step came to */
    int tries;           /* so many steps in a row conflicted with other writers */
    int64_t warned_us;   /* when a failure was last logged */
};

struct builder {
    struct walker walker;
    uint64_t batches;  /* run so far, at the last step */
    int tries;         /* so many steps in a row conflicted with other writers */
    int64_t warned_us; /* when a failure was last logged */
};

/* One step, if there is to be one at all. Returns after how many microseconds the next one is due. */
int64_t sweeper_step(struct worker *w);
int64_t builder_step(struct worker *w);

#endif
