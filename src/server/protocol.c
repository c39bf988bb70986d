#include "server/protocol.h"

#include "server/worker_internal.h"

/* What the clients of a protocol have in common, or NULL. */
static const struct protocol_shared *shared(const struct worker *w, int which)
{
    const struct protocol *p = w->workers->protocols[which];
    return p ? p->shared : NULL;
}

void protocols_start(struct worker *w)
{
    for (int i = 0; i < PROTOCOLS; i++)
        if (shared(w, i))
            shared(w, i)->start(&w->executor);
}

void protocols_end(struct worker *w)
{
    for (int i = 0; i < PROTOCOLS; i++)
        if (shared(w, i))
            shared(w, i)->end(&w->executor);
}

void protocols_settle(struct worker *w)
{
    for (int i = 0; i < PROTOCOLS; i++)
        if (shared(w, i))
            shared(w, i)->settle(&w->executor);
}

void protocols_fail(struct worker *w, int64_t from, const struct error *err)
{
    for (int i = 0; i < PROTOCOLS; i++)
        if (shared(w, i))
            shared(w, i)->fail(&w->executor, from, err);
}

void protocols_mark(struct worker *w, uint64_t ret[PROTOCOLS])
{
    for (int i = 0; i < PROTOCOLS; i++)
        ret[i] = shared(w, i) ? shared(w, i)->mark(&w->executor) : 0;
}

void protocols_rewind(struct worker *w, const uint64_t marks[PROTOCOLS])
{
    for (int i = 0; i < PROTOCOLS; i++)
        if (shared(w, i))
            shared(w, i)->rewind(&w->executor, marks[i]);
}
