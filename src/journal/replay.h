/* What a process left in the journal when it ended. */
#ifndef LARDER_JOURNAL_REPLAY_H
#define LARDER_JOURNAL_REPLAY_H

#include "memtable/memtable.h"
#include "journal/run.h"
#include "redo/redo.h"
#include "store/store.h"

struct journal_past {
    struct store *third;  /* a session for the applier, or NULL */
    int64_t last;         /* the highest seq that the journal has ever had */
    int64_t applied;      /* up to which the tables have it: all of it, unless ... */
    struct memtable *mem; /* ... there was no room; then what they lack, else NULL */
    int64_t next_seq;     /* provisional ones in there are below */
    size_t bytes;         /* of its rows in the journal */
    struct error why;     /* there was no room; without an error the log has it (redo_start.h) */
    struct journal_run run;
    struct redo *redo; /* the log from here on, or NULL */
};

/* Brings what the journal holds into the tables. url is for people. */
enum status replay_all(struct store *writer, const char *url, struct journal_past *ret,
                       struct error *err) MUST_CHECK;

/* The same, but when there is no room for it in a file, ret->mem has it, the caller's to free, and that is no
   failure. */
enum status replay_or_keep(struct store *writer, const char *url, struct journal_past *ret,
                           struct error *err) MUST_CHECK;

/* One row of the journal into a memtable; its bytes are copied. Nothing of one that is damaged. */
enum status replay_row(struct memtable *m, int64_t seq, struct slice row, struct error *err) MUST_CHECK;

/* The same; *next_seq is raised above the numbers of its keys. */
enum status replay_row_numbers(struct memtable *m, int64_t seq, struct slice row, int64_t *next_seq,
                               struct error *err) MUST_CHECK;

/* All of a memtable into the tables, within the running transaction. */
enum status replay_apply(struct store *writer, const struct memtable *m, struct error *err) MUST_CHECK;

#endif
