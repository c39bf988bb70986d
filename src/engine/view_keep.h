/* Who keeps something in step with hashes, as a view remembers it (view_keep.c). */
#ifndef LARDER_ENGINE_VIEW_KEEP_H
#define LARDER_ENGINE_VIEW_KEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "engine/row.h"

struct view;
struct view_keeper;

struct view_keep {
    const struct view_keeper *by;
    enum { KEEP_NOTHING, KEEP_UNKNOWN, KEEP_SOME } state; /* whether there is anything that it keeps */
    uint64_t epoch;                                       /* how often what is known of that was forgotten */
    unsigned alone; /* so many transactions that write are alone with the tables from here on ... */
    bool is_alone;  /* ... and the running one is */
    bool writes;    /* it may write: what it reads is not all of one state (of a shared store) */
};

/* Something may be kept; when not, nothing is. */
static inline bool keep_any(const struct view_keep *k)
{
    return k->state != KEEP_NOTHING;
}

/* What is known of that may not be so any more. */
static inline void keep_forget(struct view_keep *k)
{
    k->state = k->by ? KEEP_UNKNOWN : KEEP_NOTHING;
    k->epoch++;
}

/* Of a shared store: a batch that may write looks at what is kept, and may have to be alone. */
void view_peek_kept(struct view *v);

/* Before the row of a key becomes another one: tells the keeper. */
enum status view_keep_key(struct view *v, const struct row *was, const struct key_row *now) MUST_CHECK;

/* A change of a row of the database with this number was undone. */
void view_note_undone(struct view *v, uint32_t number);

#endif
