/* What every store's sweep keeps account of: what is left of a step's budget, and which key rows it has
   removed from which logical database. How rows are found and removed is the stores' own business. */
#ifndef LARDER_STORE_SWEEP_H
#define LARDER_STORE_SWEEP_H

#include "store/store.h"

struct sweep_tally {
    const struct sweep_budget *budget;
    struct sweep_result *result;
    int64_t *counted; /* for each of budget->dbs: rows taken off */
    uint32_t left;    /* of budget->max_rows */
};

void sweep_begin(struct sweep_tally *t, const struct sweep_budget *b, struct sweep_result *ret);

/* Ends a step that went as st says: b, which it began with, and the result tell what was done, or that
   nothing was. Returns st. */
enum status sweep_end(struct sweep_tally *t, const struct sweep_budget *b, enum status st) MUST_CHECK;

void sweep_spend(struct sweep_tally *t, uint64_t rows);

/* Counts a key row that is about to be removed, and tells the owner of the budget. */
enum status sweep_take(struct sweep_tally *t, const struct key_row *k) MUST_CHECK;

/* ST_CORRUPT when the number of a flushed database is in use. */
enum status sweep_check_flushed(const struct sweep_tally *t, int64_t number, struct error *err) MUST_CHECK;

#endif
