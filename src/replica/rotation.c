/* What a check means. A replica comes into rotation after three good checks in a row and leaves it at once
   when it hangs, lags, is no replica of this primary (any more), or when a worker had to give up on it; for
   other failures, after three. A check is good when the replica answers, is on the primary's branch and is at
   most replica-max-lag behind the newest sample. While the primary is away that stays as it was: eventual
   reads go on, and ages, which count from now, grow.

   What a failover leaves behind are positions of two histories whose numbers cannot be compared. So the ring
   begins anew, and no replica is in rotation until it has replayed the row
   that the new primary's branch begins with. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "replica/replicas_internal.h"
#include "store/history.h"

#define PRIMARY_TIMEOUT_US 1000000 /* a primary is not given up as easily as a replica */

/* ---- replicas ---- */

static void tell(const struct replicas *r, uint32_t i, const char *what)
{
    const struct node *x = &r->nodes[i];
    char place[200], why[300];
    log_warning(what, "replica=%s reason=%s", log_quote(place, sizeof place, x->place),
                log_quote(why, sizeof why, x->why));
}

/* It is not read from. The log has it once, and again only for another reason; that one which was of no use
   cannot be reached either is none. */
static void leave(struct replicas *r, uint32_t i, enum verdict verdict, const char *why)
{
    struct node *x = &r->nodes[i];
    bool was_in = x->in, same = x->told && (verdict == AWAY || strcmp(x->why, why) == 0);
    x->verdict = verdict;
    snprintf(x->why, sizeof x->why, "%s", why);
    x->in = false;
    x->good = 0;
    x->left += was_in;
    if (same || verdict == FEW_GOOD || (x->told & 1u << verdict))
        return;
    x->told |= 1u << verdict;
    tell(r, i, was_in ? "a replica is not read from any more" : "a replica is not read from");
}

static void join(struct replicas *r, uint32_t i)
{
    struct node *x = &r->nodes[i];
    char place[200];
    x->in = true;
    x->verdict = FIT;
    x->told = 0;
    x->why[0] = '\0';
    log_info("a replica is read from", "replica=%s", log_quote(place, sizeof place, x->place));
}

/* How far it is behind the newest sample; INT64_MAX: further than the oldest one. */
static int64_t lag_of(const struct replicas *r, const struct node *x)
{
    const struct ring *ring = &r->ring;
    return x->reached == INT64_MIN ? INT64_MAX : ring->samples[ring->n - 1].asked - x->reached;
}

static enum verdict judge(const struct replicas *r, const struct position *at, char *why, size_t cap)
{
    const struct position *primary = &r->nodes[0].at;
    if (primary->kind == POSITION_NONE) {
        snprintf(why, cap, "the primary has not been reached yet");
        return FEW_GOOD;
    }
    if (primary->kind != at->kind || primary->database != at->database) {
        snprintf(why, cap, "it has another database than the primary");
        return FOREIGN;
    }
    if (primary->timeline != at->timeline) {
        snprintf(why, cap, "it has not replayed what the primary began with, or has left its history");
        return DIVERGED;
    }
    return FIT;
}

static void replica_answer(struct replicas *r, uint32_t i, const struct answer *a)
{
    struct node *x = &r->nodes[i];
    char why[sizeof x->why];
    x->connected = true;
    x->bad = 0;
    x->checked = a->asked;
    x->took = a->answered - a->asked;
    x->at = a->at;
    x->reached = ring_reached(&r->ring, &a->at);
    enum verdict verdict = judge(r, &a->at, why, sizeof why);
    if (verdict != FIT) {
        x->reached = INT64_MIN;
        leave(r, i, verdict, why);
        return;
    }
    if (r->ring.n == 0) /* since a failover: nothing to compare with yet */
        return;
    int64_t lag = lag_of(r, x);
    if (lag > r->max_lag) {
        if (lag == INT64_MAX)
            snprintf(why, sizeof why, "how far it is behind is not known yet");
        else
            snprintf(why, sizeof why, "it is %lld ms behind", (long long)(lag / 1000));
        leave(r, i, LAGS, why);
        return;
    }
    if (x->in)
        return;
    x->verdict = FEW_GOOD;
    snprintf(x->why, sizeof x->why, "it has not answered often enough yet");
    if (x->good && a->asked - x->counted < CHECK_US / 2)
        return;
    x->counted = a->asked;
    if (++x->good >= FEW_CHECKS)
        join(r, i);
}

/* ---- the primary ---- */

static void primary_failure(struct replicas *r, enum failure how, const char *why)
{
    struct node *x = &r->nodes[0];
    char place[200], text[300];
    snprintf(x->why, sizeof x->why, "%s", why);
    x->good = 0;
    if (how == FAILED && x->bad < FEW_CHECKS)
        return;
    x->left += x->in;
    x->in = false;
    if (x->told)
        return;
    x->told = 1;
    log_warning("the primary is away", "primary=%s reason=%s", log_quote(place, sizeof place, x->place),
                log_quote(text, sizeof text, why));
}

static void forget_positions(struct replicas *r)
{
    r->ring.n = 0;
    for (uint32_t i = 1; i <= r->n; i++) {
        r->nodes[i].reached = INT64_MIN;
        if (r->nodes[i].in)
            leave(r, i, DIVERGED, "another server is the primary now: it has to replay that first");
    }
}

/* Whether what a primary says is taken: a later branch than the last one, or the same. The store refuses an
   old primary when it connects; one that came to be it while we were connected is known by its branch. */
static bool take_branch(struct replicas *r, const struct position *at)
{
    const struct position was = r->nodes[0].at;
    if (was.kind == POSITION_NONE || was.timeline == at->timeline)
        return true;
    if (was.database == at->database && branch_number(at->timeline) < branch_number(was.timeline))
        return false;
    log_warning("failover: another server is the primary", "branch=%u before=%u", branch_number(at->timeline),
                branch_number(was.timeline));
    forget_positions(r);
    return true;
}

static void primary_answer(struct replicas *r, const struct answer *a)
{
    struct node *x = &r->nodes[0];
    char place[200];
    if (!take_branch(r, &a->at)) {
        rotation_failure(r, 0, UNFIT, "it is not the primary any more: another one has taken over");
        return;
    }
    x->connected = x->in = true;
    x->bad = 0;
    x->good++;
    x->checked = a->asked;
    x->took = a->answered - a->asked;
    x->at = a->at;
    x->why[0] = '\0';
    if (!r->read_only) /* else it is a replica: what its primary has is not known */
        ring_add(&r->ring, a->asked, &a->at);
    for (uint32_t i = 1; i <= r->n; i++)
        if (r->nodes[i].at.timeline == a->at.timeline)
            r->nodes[i].reached = ring_reached(&r->ring, &r->nodes[i].at);
    if (x->told)
        log_info("the primary is back", "primary=%s", log_quote(place, sizeof place, x->place));
    x->told = 0;
}

/* ---- for the others ---- */

void rotation_answer(struct replicas *r, uint32_t i, const struct answer *a)
{
    if (i)
        replica_answer(r, i, a);
    else
        primary_answer(r, a);
}

void rotation_failure(struct replicas *r, uint32_t i, enum failure how, const char *why)
{
    struct node *x = &r->nodes[i];
    x->failures++;
    x->bad++;
    x->connected = how == UNFIT;
    x->good = 0;
    if (i == 0)
        primary_failure(r, how, why);
    else if (how != FAILED || x->bad >= FEW_CHECKS)
        leave(r, i, how == UNFIT ? REFUSED : AWAY, why);
}

void rotation_learned(struct replicas *r, uint32_t i, const struct position *p)
{
    struct node *x = &r->nodes[i];
    if (!position_reached(p, &x->at) || p->timeline != r->nodes[0].at.timeline)
        return;
    x->at = *p;
    if (i && x->in)
        x->reached = ring_reached(&r->ring, p);
}

bool rotation_has(const struct replicas *r, uint32_t i, int64_t now)
{
    const struct node *x = &r->nodes[i];
    int64_t timeout = i == 0 && r->timeout < PRIMARY_TIMEOUT_US ? PRIMARY_TIMEOUT_US : r->timeout;
    return x->in && now - x->checked <= FEW_CHECKS * CHECK_US + timeout;
}
