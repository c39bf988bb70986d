/* How many fields of one hash have expired: a count with the moment it is true for. What expired since then
   is counted and added, see coll_expire.c. */
#ifndef LARDER_ENGINE_EXPIRED_H
#define LARDER_ENGINE_EXPIRED_H

#include <stdint.h>

struct expired {
    int64_t fields;
    int64_t as_of; /* 0: not known */
};

static inline void expired_set(struct expired *e, int64_t fields, int64_t now)
{
    *e = (struct expired){fields, now};
}

/* The moment after which fields have to be counted so that the count is true for now. 0: all of them. */
static inline int64_t expired_since(const struct expired *e, int64_t now)
{
    return e->as_of < now ? e->as_of : 0;
}

/* more: how many fields expired after expired_since() and until now. */
static inline void expired_carry_on(struct expired *e, int64_t more, int64_t now)
{
    expired_set(e, expired_since(e, now) ? e->fields + more : more, now);
}

#endif
