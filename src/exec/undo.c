/* What is taken back of sessions, see undo.h. */
#include "exec/undo.h"

#include <assert.h>

#include "engine/engine.h"
#include "engine/recent.h"
#include "exec/executor.h"

void undo_begin(struct executor *s)
{
    assert(!s->may_retry && !s->kept);
    s->random_before = s->random;
    s->may_retry = true;
}

void undo_keep(struct executor *s, struct session *c)
{
    if (c->kept)
        return;
    c->kept = true;
    c->before = session_keep(c);
    c->next_kept = s->kept;
    s->kept = c;
}

static void finish(struct executor *s, bool back)
{
    assert(s->may_retry);
    s->may_retry = false;
    for (struct session *c = s->kept, *next; c; c = next) {
        next = c->next_kept;
        c->kept = false;
        if (back && !c->gone)
            session_restore(c, &c->before);
        session_let_go(c);
    }
    s->kept = NULL;
}

void undo_take_back(struct executor *s)
{
    finish(s, true);
    books_empty(&s->books);
    for (uint32_t i = 0; i < s->nengines; i++)
        engine_drop_tally(s->engines[i]);
    if (s->recent)
        engine_drop_tally(recent_engine(s->recent));
    s->others_due = 0;
    s->random = s->random_before;
}

void undo_end(struct executor *s)
{
    finish(s, false);
}
