/* The branches of a database: how a history of failovers is written down, compared and asked.

   A failover cuts off what the former primary had not sent to the new one, and both may go on writing under
   the same numbers. So a position says on which branch it was taken. A branch is made by the first server of
   ours that comes to a new primary, before any position is told there: it has a number (PostgreSQL: the
   timeline; MariaDB: one more than the last), and a random part, because two standbys may both be promoted to
   timeline
   2. The history stands in larder_meta, so that replicas have it as of their snapshot.

   This process remembers the latest history of each database that it has met, whichever session met it: an
   old primary that comes back is known by it. */
#ifndef LARDER_STORE_HISTORY_H
#define LARDER_STORE_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

#define HISTORY_BRANCHES 16 /* the latest; positions on older ones count as lost */
#define HISTORY_TEXT     512

struct branch {
    uint32_t id;   /* its number, above 16 random bits; never 0 */
    uint64_t from; /* PostgreSQL: the LSN up to which it shares what the one before it wrote; 0: not known.
                      MariaDB: the server's number */
};

struct history {
    uint32_t n; /* 0: nothing is known */
    struct branch at[HISTORY_BRANCHES];
};

static inline uint32_t branch_number(uint32_t id)
{
    return id >> 16;
}

static inline const struct branch *history_last(const struct history *h)
{
    return h->n ? &h->at[h->n - 1] : NULL;
}

/* "1.48213@0 2.311@3000148", oldest first. */
const char *history_text(const struct history *h, char out[HISTORY_TEXT]);
bool history_read(struct slice text, struct history *ret);

/* A new branch at the end; the oldest goes when there is no room. */
void history_add(struct history *h, uint32_t number, uint64_t from);

bool history_has(const struct history *h, uint32_t id);

/* Whether what was written on a branch up to an LSN is still there on the last one. */
bool history_kept(const struct history *h, uint32_t id, uint64_t lsn);

/* ---- what this process knows ---- */

struct known; /* of one database; it lives as long as the process. Thread-safe */

struct known *known_database(uint64_t database);

enum known_place {
    KNOWN_LATEST, /* it is the latest that was known, or has become it */
    KNOWN_OLD,    /* the database has gone on elsewhere since */
    KNOWN_APART   /* it has left a history that we know, under the number of one that we know */
};

/* A primary's history, or a replica's. */
enum known_place known_meet(struct known *k, const struct history *h);

void known_history(struct known *k, struct history *ret);

/* Another number whenever the latest history has changed. */
uint32_t known_changes(const struct known *k);

/* The clock of the primary, by which keys expire on its replicas as well: what it told at a moment of our own
   monotonic clock; and what it tells now (0: it is not known). */
void known_set_clock(struct known *k, int64_t primary_us, int64_t mono_us);
int64_t known_clock(const struct known *k, int64_t mono_us);

#endif
