/* A store that fails on purpose: it passes every call on to another one, whose capabilities it has, and lets
   the Nth fail. For tests. */
#ifndef LARDER_STORE_FAULT_H
#define LARDER_STORE_FAULT_H

#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"

struct store_fault {
    uint64_t nth;       /* the call that fails, counted from 1; 0: none */
    enum status status; /* how */
    bool syncs;         /* only calls of store_sync count */
    bool sticky;        /* every later call fails as well, until store_fault_set says otherwise */
    bool late;          /* the call is carried out first, and then said to have failed: a commit whose answer
                           got lost (ST_UNKNOWN), changes that were applied only in part */
};

/* Owns inner from here on. */
struct store *fault_new(struct store *inner);

/* Starts counting calls anew. Closing and rolling back cannot fail and are not counted. */
void store_fault_set(struct store *s, struct store_fault f);

/* Calls since store_fault_set. */
uint64_t fault_calls(struct store *s);

/* From now on store_connection tells of another connection. */
void fault_reconnect(struct store *s);

/* Whether the call came that had to fail. */
bool fault_happened(struct store *s);

#endif
