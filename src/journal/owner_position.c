/* Positions of a store that one process has for itself: memory has everything that was committed, so whoever
   asks has all that it may need. What a token is for here is to be found again behind a restart, and to be
   told apart from what a crash has taken along (run.h). */
#include "journal/owner.h"

static void want(struct store *base, bool on)
{
    (void)base;
    (void)on;
}

static void everything(const struct store *base, struct position *ret)
{
    (void)base;
    *ret = (struct position){0};
}

static void last_commit(const struct store *base, struct position *ret)
{
    const struct journal_store *s = (const struct journal_store *)base;
    *ret = (struct position){.kind = POSITION_SEQUENCE,
                             .timeline = history_last(&s->run.history)->id,
                             .database = s->run.database,
                             .number = run_number(&s->run, s->owner.last_ticket)};
}

static enum status now(struct store *base, struct position *ret, struct error *err)
{
    (void)err;
    last_commit(base, ret);
    return ST_OK;
}

static enum status judge(struct store *base, const struct position *p, enum lineage *ret, struct error *err)
{
    const struct journal_run *r = &journal_store_of(base)->run;
    (void)err;
    if (p->kind == POSITION_NONE)
        *ret = LINEAGE_SAME;
    else if (p->kind != POSITION_SEQUENCE || p->database != r->database)
        *ret = LINEAGE_FOREIGN;
    else
        *ret = history_kept(&r->history, p->timeline, p->number) ? LINEAGE_SAME : LINEAGE_LOST;
    return ST_OK;
}

static bool only_reads(const struct store *base)
{
    (void)base;
    return false;
}

const struct replicated_ops owner_replicated_ops = {
    .want = want,
    .admitted = everything,
    .seen = last_commit,
    .now = now,
    .judge = judge,
    .only_reads = only_reads,
};
