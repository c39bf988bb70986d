/* Several servers at once, for a moment: what must hold of the sum of what they do. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rand.h"
#include "selftest/selftest_internal.h"

#define ACCOUNTS 8
#define WRITERS  3
#define EACH     INT64_C(100) /* what an account has at first */
#define TRIES    200
#define ROUNDS   20

/* ---- rows with a number ---- */

struct number {
    char name[16];
    struct key_row row;
    int64_t value;
    bool found;
};

static void name_number(struct number *n, const char *kind, unsigned i)
{
    *n = (struct number){.found = false};
    snprintf(n->name, sizeof n->name, "%s:%u", kind, i);
}

struct numbers {
    struct number *at;
    size_t n;
};

static enum status take_number(void *arg, const struct key_row *row)
{
    struct numbers *all = arg;
    char text[24];
    for (size_t i = 0; i < all->n; i++) {
        struct number *n = &all->at[i];
        if (!slice_eq(row->key, slice_str(n->name)))
            continue;
        snprintf(text, sizeof text, "%.*s", (int)(row->value.n < 23 ? row->value.n : 23), row->value.p);
        n->row = *row;
        n->value = strtoll(text, NULL, 10);
        n->found = true;
    }
    return ST_OK;
}

/* Begins a transaction that uses all of them, and reads them. */
static enum status begin_numbers(struct store *s, enum store_txn kind, struct number *at, size_t n,
                                 struct error *err)
{
    struct key_ref refs[ACCOUNTS];
    struct numbers all = {at, n};
    for (size_t i = 0; i < n; i++) {
        refs[i] = (struct key_ref){.db = 0, .key = slice_str(at[i].name)};
        at[i].found = false;
    }
    const struct store_declared d = {.keys = refs, .nkeys = n, .fn = take_number, .arg = &all};
    return store_begin(s, kind, &d, NULL, err);
}

/* Writes those of the first `n` that have a new value, and commits. */
static enum status commit_numbers(struct store *s, struct number *at, size_t n, struct error *err)
{
    struct key_row rows[ACCOUNTS];
    char texts[ACCOUNTS][24];
    for (size_t i = 0; i < n; i++) {
        int64_t version = at[i].found ? at[i].row.version + 1 : 1;
        snprintf(texts[i], sizeof texts[i], "%lld", (long long)at[i].value);
        rows[i] = (struct key_row){.key = slice_str(at[i].name),
                                   .type = ROW_STRING,
                                   .seq = at[i].found ? at[i].row.seq : 0,
                                   .value = slice_str(texts[i]),
                                   .version = version};
    }
    struct changes c = {.keys = rows, .nkeys = n};
    enum status st = store_apply(s, &c, err);
    if (st == ST_OK)
        return store_commit(s, err);
    store_rollback(s);
    return st;
}

/* Sets all of them to a value, in one transaction. */
static enum status set_numbers(struct store *s, struct number *at, size_t n, int64_t value, struct error *err)
{
    enum status st = ST_CONFLICT;
    for (int i = 0; st == ST_CONFLICT && i < TRIES; i++) {
        st = begin_numbers(s, STORE_WRITE, at, n, err);
        for (size_t k = 0; k < n; k++)
            at[k].value = value;
        if (st == ST_OK)
            st = commit_numbers(s, at, n, err);
    }
    return st;
}

static enum status sum_numbers(struct store *s, struct number *at, size_t n, int64_t *ret_values,
                               int64_t *ret_versions, struct error *err)
{
    enum status st = begin_numbers(s, STORE_READ, at, n, err);
    if (st != ST_OK)
        return st;
    store_rollback(s);
    *ret_values = *ret_versions = 0;
    for (size_t i = 0; i < n; i++) {
        *ret_values += at[i].found ? at[i].value : 0;
        *ret_versions += at[i].found ? at[i].row.version : 0;
    }
    return ST_OK;
}

/* ---- write skew ---- */

struct skewed {
    struct store *store;
    unsigned own; /* of the two */
    pthread_t thread;
    enum status status;
    struct error err;
};

/* Takes its own away if both are there: two at once must not. */
static void *take_own(void *arg)
{
    struct skewed *s = arg;
    struct number both[2];
    s->status = ST_CONFLICT;
    for (int i = 0; s->status == ST_CONFLICT && i < TRIES; i++) {
        name_number(&both[0], "skew", s->own);
        name_number(&both[1], "skew", 1 - s->own);
        s->status = begin_numbers(s->store, STORE_WRITE, both, 2, &s->err);
        if (s->status != ST_OK)
            continue;
        if (both[0].value + both[1].value < 2) {
            store_rollback(s->store);
            continue;
        }
        both[0].value = 0;
        s->status = commit_numbers(s->store, both, 1, &s->err);
    }
    return NULL;
}

enum status try_write_skew(struct selftest *t, struct finding *f, struct error *err)
{
    enum status st = ST_OK;
    for (int i = 0; st == ST_OK && f->verdict == VERDICT_HOLDS && i < ROUNDS; i++) {
        struct number both[2];
        struct skewed other = {.store = t->b, .own = 1}, mine = {.store = t->a, .own = 0};
        int64_t sum, versions;
        name_number(&both[0], "skew", 0);
        name_number(&both[1], "skew", 1);
        st = set_numbers(t->a, both, 2, 1, err);
        if (st == ST_OK && pthread_create(&other.thread, NULL, take_own, &other) != 0)
            st = error_set(err, ST_INTERNAL, "cannot make a thread");
        if (st != ST_OK)
            return st;
        take_own(&mine);
        pthread_join(other.thread, NULL);
        st = mine.status != ST_OK ? mine.status : other.status;
        *err = mine.status != ST_OK ? mine.err : other.err;
        if (st == ST_OK)
            st = sum_numbers(t->a, both, 2, &sum, &versions, err);
        if (st == ST_OK)
            expect(f, sum >= 1, "two servers change different keys by what they read of both: write skew");
    }
    return st;
}

/* ---- the load ---- */

struct worker {
    const struct selftest *t;
    pthread_t thread;
    bool reads;
    bool started;
    int64_t until_us;
    uint64_t done, conflicts;
    bool torn; /* a reader saw a part of a transaction */
    enum status status;
    struct error err;
};

/* Moves a part of one account to another. */
static enum status transfer(struct store *s, struct rand *r, struct error *err)
{
    struct number two[2];
    unsigned from = (unsigned)rand_below(r, ACCOUNTS), to = (unsigned)rand_below(r, ACCOUNTS - 1);
    to += to >= from;
    int64_t n = (int64_t)rand_below(r, 10);
    name_number(&two[0], "account", from);
    name_number(&two[1], "account", to);
    enum status st = begin_numbers(s, STORE_WRITE, two, 2, err);
    if (st != ST_OK)
        return st;
    if (!two[0].found || !two[1].found) {
        store_rollback(s);
        return error_set(err, ST_LOST, "a key that was committed is not there");
    }
    two[0].value -= n;
    two[1].value += n;
    return commit_numbers(s, two, 2, err);
}

/* Looks at all of them at once. */
static enum status look(struct store *s, struct worker *w, struct error *err)
{
    struct number all[ACCOUNTS];
    int64_t sum, versions;
    for (unsigned i = 0; i < ACCOUNTS; i++)
        name_number(&all[i], "account", i);
    enum status st = sum_numbers(s, all, ACCOUNTS, &sum, &versions, err);
    w->torn |= st == ST_OK && sum != ACCOUNTS * EACH;
    return st;
}

static void *work(void *arg)
{
    struct worker *w = arg;
    struct store *s = NULL;
    struct rand r;
    rand_init(&r);
    w->status = scratch_store(w->t->scratch.url, true, &s, &w->err);
    while (w->status == ST_OK && clock_mono_us() < w->until_us && !*w->t->stop) {
        enum status st = w->reads ? look(s, w, &w->err) : transfer(s, &r, &w->err);
        w->conflicts += st == ST_CONFLICT;
        w->done += st == ST_OK;
        if (st != ST_CONFLICT)
            w->status = st;
    }
    store_close(s);
    return NULL;
}

enum status try_load(struct selftest *t, struct finding *f, struct error *err)
{
    struct worker workers[WRITERS + 1] = {0};
    struct number all[ACCOUNTS];
    int64_t sum, versions, before;
    uint64_t done = 0, conflicts = 0;
    for (unsigned i = 0; i < ACCOUNTS; i++)
        name_number(&all[i], "account", i);
    enum status st = set_numbers(t->a, all, ACCOUNTS, EACH, err);
    if (st == ST_OK)
        st = sum_numbers(t->b, all, ACCOUNTS, &sum, &before, err);
    for (int i = 0; st == ST_OK && i <= WRITERS; i++) {
        struct worker *w = &workers[i];
        *w = (struct worker){.t = t, .reads = i == WRITERS, .until_us = clock_mono_us() + t->load_us};
        w->started = pthread_create(&w->thread, NULL, work, w) == 0;
        if (!w->started)
            st = error_set(err, ST_INTERNAL, "cannot make a thread");
    }
    for (int i = 0; i <= WRITERS; i++) {
        struct worker *w = &workers[i];
        if (!w->started)
            continue;
        pthread_join(w->thread, NULL);
        done += w->reads ? 0 : w->done;
        conflicts += w->conflicts;
        expect(f, !w->torn, "a reader sees a part of a transaction");
        if (st == ST_OK && (st = w->status) != ST_OK)
            *err = w->err;
    }
    if (st == ST_OK)
        st = sum_numbers(t->b, all, ACCOUNTS, &sum, &versions, err);
    if (st != ST_OK)
        return st;
    expect(f, sum == ACCOUNTS * EACH, "a sum that every transaction keeps has changed");
    expect(f, versions - before == 2 * (int64_t)done, "updates that were acknowledged are lost");
    if (f->verdict == VERDICT_HOLDS)
        snprintf(f->text, sizeof f->text, "%llu transactions of %d servers, %llu run again",
                 (unsigned long long)done, WRITERS, (unsigned long long)conflicts);
    return ST_OK;
}
