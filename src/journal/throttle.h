/* Admits writers at the rate at which room lasts until the pass that runs has ended: private to this folder.

   While the frozen memtable is brought into the tables the active one fills. Were it filled as fast as
   clients can, nothing could be written from then to the end of the pass, which may take seconds. So the
   share of the active one that is filled may be no more than the share of the pass that is over, and a bit. A
   writer that comes too early waits some milliseconds, however long the pass takes. A part of the room is
   kept for those who write little: they do not wait while it lasts, whatever others do.

   How far a pass is is told by the rows that are in, and in between by what a row took in the passes before.
   What is not rows has its time of the last pass: the wait for the checkpoint before it and sorting, and its
   commit. When that takes longer, it counts as nearer and nearer to its end. */
#ifndef LARDER_JOURNAL_THROTTLE_H
#define LARDER_JOURNAL_THROTTLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum throttle_phase {
    THROTTLE_IDLE,   /* nothing is frozen */
    THROTTLE_BEFORE, /* it is, and no row is in */
    THROTTLE_ROWS,
    THROTTLE_COMMIT
};

struct throttle {
    enum throttle_phase phase;
    size_t rows, done; /* of the frozen memtable, and those that are in */
    int64_t since_us;  /* the phase */
    int64_t step_us;   /* when `done` was last told */
    size_t step;       /* how many came with that */
    int64_t rows_us;   /* when the first row went in */
    /* What was learned from earlier passes: how long a phase takes, a row. */
    double before_us, row_us, commit_us;
};

/* A memtable of so many rows is frozen. */
void throttle_freeze(struct throttle *t, size_t rows, int64_t now);

/* Its rows go into the tables; so many are in; all of them, and the commit begins; it is over. Without
   `freeze` (a start had it) nothing happens. */
void throttle_begin(struct throttle *t, int64_t now);
void throttle_step(struct throttle *t, size_t done, int64_t now);
void throttle_commit(struct throttle *t, int64_t now);
void throttle_end(struct throttle *t, int64_t now);

/* It was undone, and will begin again. */
void throttle_again(struct throttle *t, int64_t now);

/* How much of the pass is over, from 0 to 1, as time. */
double throttle_over(const struct throttle *t, int64_t now);

/* Whether writers wait. filled: the share of what may be written before the pass has ended, 1: all of it. */
bool throttle_waits(const struct throttle *t, double filled, int64_t now);

/* Whether also those wait who write little. */
bool throttle_stops(const struct throttle *t, double filled, int64_t now);

#endif
