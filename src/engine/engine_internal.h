/* What the files of the engine share. */
#ifndef LARDER_ENGINE_ENGINE_INTERNAL_H
#define LARDER_ENGINE_ENGINE_INTERNAL_H

#include "engine/engine.h"
#include "engine/view_internal.h"
#include "store/deferred.h"
#include "store/shared.h"

struct engine {
    struct store *store;
    struct view view;
    struct engine_stats stats;
    struct engine_tally tally;
    struct error call_err;
    uint64_t steps, steps_dirty; /* of the running call: how many are over, how many of those wrote */
    uint64_t marked_dirty;       /* how many had, at the mark */
    bool in_write;               /* the running transaction may write */
    unsigned field_steps;        /* in a row */
    struct {
        struct expiry_place place; /* up to where expired keys have been removed, when known */
        bool known;
        uint64_t rows; /* removed since it was forgotten ... */
        int64_t at_us; /* ... the last of them then */
    } swept;
    bool keeps;  /* something is kept in step with hashes, or may be: the store sweeps no expired keys */
    bool unsure; /* memory may be behind the tables: a commit's outcome or the databases are not known */
    uint64_t connection;   /* of the store, when a batch last began */
    bool later;            /* commits become durable after they have returned */
    int64_t last;          /* the ticket of the last commit */
    bool failed;           /* the last write was, or could not begin ... */
    int64_t failed_behind; /* ... and nothing behind this ticket has become durable since */
    struct store_progress progress;
};

/* Reads what there is to know of the databases. */
enum status engine_load_dbs(struct engine *e, struct error *err) MUST_CHECK;

/* What every transaction begins with; on failure it has ended. changed: another process has written. */
enum status engine_begun(struct engine *e, bool changed, struct error *err) MUST_CHECK;

/* Drops what memory need not have until what it has fits the budget. */
void engine_keep_budget(struct engine *e);

#endif
