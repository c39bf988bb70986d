/* Two sessions at once: what one sees of the other, who waits for whom, and what a failure leaves. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "selftest/selftest_internal.h"

enum status try_unseen(struct selftest *t, struct finding *f, struct error *err)
{
    int64_t v = 0;
    enum status st = plain_run(t->x, "BEGIN", err);
    if (st == ST_OK)
        st = plain_run(t->x, "UPDATE larder_scratch SET v = 5 WHERE n = 1", err);
    if (st == ST_OK)
        st = plain_number(t->y, "SELECT v FROM larder_scratch WHERE n = 1", &v, err);
    expect(f, st != ST_OK || v == 0, "what is not committed is seen by others");
    if (st == ST_OK)
        st = plain_run(t->x, "ROLLBACK", err);
    if (st == ST_OK)
        st = plain_number(t->y, "SELECT v FROM larder_scratch WHERE n = 1", &v, err);
    expect(f, st != ST_OK || v == 0, "a rollback leaves what was written");
    return st;
}

/* A server reads one key, another commits both, and the first reads the other key. */
enum status try_snapshot(struct selftest *t, struct finding *f, struct error *err)
{
    const struct slice one = SLICE("snap:1"), two = SLICE("snap:2");
    const struct key_ref ref = {.db = 0, .key = two};
    struct kept first = {0}, second = {0};
    enum status st = put_string(t->a, one, SLICE("old"), err);
    if (st == ST_OK)
        st = put_string(t->a, two, SLICE("old"), err);
    if (st == ST_OK)
        st = begin_with(t->b, STORE_READ, one, &first, err);
    if (st == ST_OK) {
        st = put_string(t->a, one, SLICE("new"), err);
        if (st == ST_OK)
            st = put_string(t->a, two, SLICE("new"), err);
        if (st == ST_OK)
            st = store_get_keys(t->b, &ref, 1, keep_row, &second, err);
        store_rollback(t->b);
    }
    if (st == ST_OK)
        expect(f, first.found && second.found && slice_is(second.row.value, "old"),
               "a transaction that reads sees what was committed after it began");
    if (st == ST_OK)
        st = get_string(t->b, two, &second, err);
    if (st == ST_OK)
        expect(f, slice_is(second.row.value, "new"),
               "what was committed is not seen by the next transaction");
    kept_release(&first);
    kept_release(&second);
    return st;
}

/* ---- who waits ---- */

/* Another thread begins to write what this one is about to change. */
struct second {
    struct selftest *t;
    pthread_t thread;
    struct kept seen;
    enum status status;
    struct error err;
};

static void *begin_second(void *arg)
{
    struct second *s = arg;
    s->status = begin_with(s->t->b, STORE_WRITE, SLICE("lost"), &s->seen, &s->err);
    if (s->status == ST_OK)
        store_rollback(s->t->b);
    return NULL;
}

/* Two servers add to what they have read: the second must see what the first has made of it. */
enum status try_lost_update(struct selftest *t, struct finding *f, struct error *err)
{
    struct kept mine = {0};
    struct second other = {.t = t};
    const struct timespec pause = {.tv_nsec = 50000000};
    enum status st = put_string(t->a, SLICE("lost"), SLICE("0"), err);
    if (st == ST_OK)
        st = begin_with(t->a, STORE_WRITE, SLICE("lost"), &mine, err);
    if (st == ST_OK && pthread_create(&other.thread, NULL, begin_second, &other) != 0)
        st = error_set(err, ST_INTERNAL, "cannot make a thread");
    if (st == ST_OK) {
        nanosleep(&pause, NULL); /* it should be waiting by now; if not, nothing is proven wrong */
        mine.row.value = SLICE("1");
        mine.row.version++;
        struct changes c = {.keys = &mine.row, .nkeys = 1};
        st = store_apply(t->a, &c, err);
        if (st == ST_OK)
            st = store_commit(t->a, err);
        else
            store_rollback(t->a);
        pthread_join(other.thread, NULL);
        if (st == ST_OK && other.status != ST_CONFLICT) {
            st = other.status;
            *err = other.err;
            expect(f, st != ST_OK || slice_is(other.seen.row.value, "1"),
                   "two servers that change one key see the same old value: updates are lost");
        }
    }
    kept_release(&mine);
    kept_release(&other.seen);
    return st;
}

enum status try_row_locks(struct selftest *t, struct finding *f, struct error *err)
{
    static const char update[] = "SELECT v FROM larder_scratch WHERE n = 1 FOR UPDATE";
    const char *share = t->x->dialect == REMOTE_POSTGRES
                            ? "SELECT v FROM larder_scratch WHERE n = 2 FOR SHARE"
                            : "SELECT v FROM larder_scratch WHERE n = 2 LOCK IN SHARE MODE";
    enum status second = ST_OK, st = plain_hurry(t->y, err);
    if (st == ST_OK)
        st = plain_run(t->x, "BEGIN", err);
    if (st == ST_OK)
        st = plain_run(t->x, update, err);
    if (st == ST_OK)
        st = plain_run(t->x, share, err);
    if (st == ST_OK)
        st = plain_run(t->y, "BEGIN", err);
    if (st == ST_OK)
        st = plain_run(t->y, share, err);
    if (st != ST_OK)
        return st;
    second = plain_run(t->y, update, err);
    expect(f, second != ST_OK, "FOR UPDATE does not keep a second session out");
    if (second != ST_OK && !kept_out(second))
        return second;
    st = plain_run(t->y, "ROLLBACK", err);
    if (st == ST_OK)
        st = plain_run(t->x, "ROLLBACK", err);
    return st == ST_OK ? plain_soon(t->y, update, err) : st;
}

/* Another thread waits for a row, so that two wait for each other. */
struct waiter {
    struct remote *c;
    pthread_t thread;
    enum status status;
    struct error err;
};

static void *wait_for_row(void *arg)
{
    struct waiter *w = arg;
    w->status = plain_run(w->c, "UPDATE larder_scratch SET v = v + 1 WHERE n = 2", &w->err);
    return NULL;
}

static enum status begin_and_update(struct remote *c, const char *update, struct error *err)
{
    enum status st = plain_run(c, "BEGIN", err);
    return st == ST_OK ? plain_run(c, update, err) : st;
}

/* Of two that wait for each other one is told so, as a conflict; the other goes on, and what was ended works
   when it is run again. */
enum status try_deadlock(struct selftest *t, struct finding *f, struct error *err)
{
    static const char one[] = "UPDATE larder_scratch SET v = v + 1 WHERE n = 1";
    static const char two[] = "UPDATE larder_scratch SET v = v + 1 WHERE n = 2";
    struct waiter w = {.c = t->x};
    struct error ignored;
    enum status st = begin_and_update(t->x, one, err);
    if (st == ST_OK)
        st = begin_and_update(t->y, two, err);
    if (st == ST_OK && pthread_create(&w.thread, NULL, wait_for_row, &w) != 0)
        st = error_set(err, ST_INTERNAL, "cannot make a thread");
    if (st != ST_OK)
        return st;
    enum status mine = plain_run(t->y, one, err);
    struct remote *ended = mine == ST_OK ? t->x : t->y, *other = mine == ST_OK ? t->y : t->x;
    if (mine != ST_OK)
        st = plain_run(t->y, "ROLLBACK", &ignored); /* the other waits for it */
    else
        st = plain_run(t->y, "COMMIT", &ignored);
    pthread_join(w.thread, NULL);
    if (!expect(f, mine != ST_OK || w.status != ST_OK,
                "two that change the same rows crosswise both go on") ||
        !expect(f, mine == ST_OK || w.status == ST_OK, "a deadlock ends both transactions") ||
        !expect(f, (mine == ST_OK ? w.status : mine) == ST_CONFLICT, "a deadlock is not told as one"))
        return ST_OK;
    if (st == ST_OK)
        st = plain_run(ended, "ROLLBACK", err);
    if (st == ST_OK && other == t->x)
        st = plain_run(other, "COMMIT", err);
    if (st == ST_OK)
        st = begin_and_update(ended, one, err);
    return st == ST_OK ? plain_run(ended, "COMMIT", err) : st;
}

/* A row that another session has just made is a conflict, which is run again, and no other failure. */
enum status try_duplicate(struct selftest *t, struct finding *f, struct error *err)
{
    static const char insert[] = "INSERT INTO larder_scratch (n, v) VALUES (9, 0)";
    enum status st = plain_run(t->x, insert, err);
    if (st != ST_OK)
        return st;
    enum status second = plain_run(t->y, insert, err);
    expect(f, second != ST_OK, "a primary key is there twice");
    expect(f, second == ST_OK || second == ST_CONFLICT,
           "a key that is there already is not told as a conflict");
    return ST_OK;
}

/* What a session had begun when it died is taken back, and its locks are free. */
enum status try_lost_session(struct selftest *t, struct finding *f, struct error *err)
{
    int64_t v = -1;
    enum status st = plain_hurry(t->y, err);
    if (st == ST_OK)
        st = begin_and_update(t->x, "UPDATE larder_scratch SET v = 100 WHERE n = 3", err);
    if (st != ST_OK)
        return st;
    plain_cut(t->x);
    st = plain_soon(t->y, "UPDATE larder_scratch SET v = v + 1 WHERE n = 3", err);
    if (st == ST_OK)
        st = plain_number(t->y, "SELECT v FROM larder_scratch WHERE n = 3", &v, err);
    else if (kept_out(st))
        return error_set(err, st, "the locks of a session that is gone stay");
    expect(f, st != ST_OK || v == 1, "what a session that is gone had not committed stays");
    return st;
}
