/* Gaps of sorted sets: stretches by score in which nothing lives, although the tables may still have rows
   there that memory knows to be gone. A queue pops from an end, and its removals are applied later: without
   this each pop would walk over the rows of all the pops before it.

   A gap is true of what the memtables and the tables say together, so that applying a memtable changes
   nothing about it. What does:

     a member is put there     gaps_put: the gap is divided
     changes are undone        gaps_clear: what was removed may live again
     somebody else has written gaps_clear

   A scan that has to pass many rows before it finds one that lives learns a gap from where it began up to
   there; the next one that begins within it asks the tables only from its far end on. Gaps are known in
   memory alone, by the owner's thread, and forgetting one costs time and nothing else. */
#ifndef LARDER_JOURNAL_GAPS_H
#define LARDER_JOURNAL_GAPS_H

#include <stdbool.h>
#include <stdint.h>

#include "store/scan.h"

struct gaps;

/* rows: how many a scan has to pass before a gap is worth remembering. */
struct gaps *gaps_new(uint32_t rows);
void gaps_free(struct gaps *g);
void gaps_clear(struct gaps *g);

/* Whether a scan that has passed so many rows should tell of it. */
bool gaps_worth(const struct gaps *g, uint32_t passed);

/* The member of a row is at its place now. */
void gaps_put(struct gaps *g, const struct item_row *row);

/* Whether the member that was once at a place, where a gap begins or ends, has left it. */
typedef bool gap_left_fn(void *arg, double score, struct slice name);

/* A scan by score needs to see only so much of the tables: its bound at the end where it begins moves to the
   far end of the gap that it begins in. Names in it are valid until the gaps change. False: nothing of its
   range is left. */
bool gaps_narrow(struct gaps *g, struct item_scan *q, gap_left_fn *left, void *arg);

/* A scan by score has found nothing alive from where it began up to this row; NULL: up to the end of its
   range. */
void gaps_learn(struct gaps *g, const struct item_scan *q, const struct item_row *first);

#endif
