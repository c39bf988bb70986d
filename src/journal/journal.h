/* A store with a journal in front of its tables: how it is opened. How it works is told in jstore.h. */
#ifndef LARDER_JOURNAL_JOURNAL_H
#define LARDER_JOURNAL_JOURNAL_H

#include "store/store.h"

struct journal_options {
    uint64_t max_bytes; /* of changes that are not in the tables yet; 0: every commit goes into the tables */
    uint32_t lag_ms;    /* how long the tables may be behind */
    uint32_t few_rows;  /* when nothing waits, up to so many go straight into the tables */
    uint32_t lock_ms;   /* how long commits wait for a lock that another process holds ... */
    uint32_t away_ms;   /* ... and for a database server that cannot be reached */
};

/* Opens the database as store_open does, with a journal and a thread that writes: commits become durable
   later. What an earlier process left in the journal is brought into the tables first. */
enum status journal_store_open(const struct store_options *o, const struct journal_options *j,
                               struct store **ret, struct error *err) MUST_CHECK;

/* For store_options.replay. */
enum status journal_replay(struct store *s, const char *url, struct error *err) MUST_CHECK;

#endif
