/* How far long work is, on stderr: a bar that moves on a terminal, a line now and then elsewhere. */
#ifndef LARDER_CLI_PROGRESS_H
#define LARDER_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
    const char *what; /* "loaded" */
    uint64_t total;   /* of `done` in progress_tell; 0: not known */
    bool quiet, terminal;
    int64_t begun_us, told_us;
};

void progress_begin(struct progress *p, const char *what, uint64_t total, bool quiet);
void progress_tell(struct progress *p, uint64_t rows, uint64_t done);

/* The last line: how many rows in which time. */
void progress_end(struct progress *p, uint64_t rows);

#endif
