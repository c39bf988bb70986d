/* Spreads writeback: a file that is written at length is handed to the disk piece by piece as it is written,
   and one piece is on its way at a time. Else the system collects hundreds of megabytes and
   writes them at the next sync, and whoever syncs another file of that disk meanwhile waits behind them.

   It makes nothing durable: that is the sync which follows. Failures are that sync's to tell, too: they are
   remembered for each descriptor, so that this one is nobody else's. */
#ifndef LARDER_SQL_PACE_H
#define LARDER_SQL_PACE_H

#include <stdint.h>

/* Called after each piece, by the thread that writes: there may be something else to do that cannot wait
   until all is written. */
struct meanwhile {
    void (*fn)(void *arg); /* or NULL */
    void *arg;
};

struct pace {
    int fd;                /* -1: nothing is spread */
    int64_t bytes;         /* written since the last piece was handed over ... */
    int64_t from, to;      /* ... and where they are */
    int64_t last, last_to; /* the piece that is on its way */
    struct meanwhile meanwhile;
};

/* Nothing was written yet. */
struct pace pace_of(int fd, struct meanwhile m);

/* n bytes have been written to the file at this place. */
void pace_wrote(struct pace *p, int64_t at, int64_t n);

#endif
