/* Reads CSV (RFC 4180): fields between commas, in double quotes where they hold commas, quotes (doubled) or
   ends of lines; lines end with \n or \r\n. A byte order mark in front is passed over. */
#ifndef LARDER_CLI_CSV_H
#define LARDER_CLI_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/slice.h"

struct csv_field {
    size_t at, n; /* in bytes of the record */
    bool quoted;  /* so that "" is told from nothing */
};

/* Zero-initialised but for f. */
struct csv {
    FILE *f;
    struct buf bytes; /* of the record that was read last, without quotes */
    struct csv_field *fields;
    size_t n, cap;
    size_t line; /* where the record began, from 1 */
    size_t next_line;
    size_t read; /* bytes of the file so far */
    int back[3]; /* that were read ahead, the next one last */
    int nback;
    const char *error;
};

/* The next record; empty lines are passed over. False: the end, or error says what is wrong. */
bool csv_next(struct csv *c);
struct slice csv_field(const struct csv *c, size_t i);
void csv_release(struct csv *c);

#endif
