/* What the suites of store/store.h share: each test runs over every implementation, in a database of its own.
 */
#ifndef LARDER_TESTS_CONTRACT_SUITE_H
#define LARDER_TESTS_CONTRACT_SUITE_H

#include "contract/fixture.h"
#include "store/deferred.h"
#include "store/fault.h"
#include "store/shared.h"

static inline enum status open_plain(struct store **ret, struct error *err)
{
    struct store_options o = options();
    return store_open(&o, ret, err);
}

static inline enum status open_decorated(struct store **ret, struct error *err)
{
    struct store *inner;
    enum status st = open_plain(&inner, err);
    if (st == ST_OK)
        *ret = fault_new(inner);
    return st;
}

/* Behind a journal, progress is made after every commit, as the engine does it: so that tables are frozen and
   applied all the time. */
static struct store_ops stepping_ops;
static enum status (*journaled_commit)(struct store *s, struct error *err);

static inline enum status commit_and_progress(struct store *s, struct error *err)
{
    struct store_progress p;
    enum status st = journaled_commit(s, err);
    return st == ST_OK ? store_progress(s, &p, err) : st;
}

static inline enum status open_journaled(struct journal_options j, struct store **ret, struct error *err)
{
    struct store_options o = options();
    o.url = alone_url();
    enum status st = journal_store_open(&o, &j, ret, err);
    if (st != ST_OK)
        return st;
    stepping_ops = *(*ret)->ops;
    journaled_commit = stepping_ops.commit;
    stepping_ops.commit = commit_and_progress;
    (*ret)->ops = &stepping_ops;
    return ST_OK;
}

/* What was committed stays in memory until there is nothing else to do. */
static inline enum status open_patient(struct store **ret, struct error *err)
{
    return open_journaled((struct journal_options){.max_bytes = 1 << 20, .lag_ms = 1000}, ret, err);
}

/* It is on its way into the tables at once. */
static inline enum status open_hasty(struct store **ret, struct error *err)
{
    return open_journaled((struct journal_options){.max_bytes = 1 << 20}, ret, err);
}

/* Most change sets are too large for the journal. */
static inline enum status open_tiny(struct store **ret, struct error *err)
{
    return open_journaled((struct journal_options){.max_bytes = 200}, ret, err);
}

/* All go straight into the tables. */
static inline enum status open_direct(struct store **ret, struct error *err)
{
    return open_journaled((struct journal_options){.max_bytes = 0}, ret, err);
}

static const struct implementation {
    const char *name;
    enum status (*open)(struct store **ret, struct error *err);
    bool journaled;
    bool on_servers; /* too, where a database of its own for each test takes a while */
} implementations[] = {
    {"plain", open_plain, false, true},
    {"through the fault decorator", open_decorated, false, false},
    {"behind a journal that is applied at leisure", open_patient, true, false},
    {"behind a journal that is applied at once", open_hasty, true, true},
    {"behind a journal that is too small", open_tiny, true, true},
    {"behind no journal, by a thread", open_direct, true, false},
};

static const struct implementation *impl;
static struct store *s;
static struct error err;

/* Whether two numbers of a row are the same, as far as a row keeps it: in memory it has another one. */
static inline bool same_seq(int64_t a, int64_t b)
{
    return a == b || (impl->journaled && a >= STORE_PROVISIONAL && b < STORE_PROVISIONAL);
}

static inline void reopen(void)
{
    store_close(s);
    s = NULL;
    CHECK_OK(impl->open(&s, &err), &err);
    if (!s)
        exit(EXIT_FAILURE);
}

/* Every byte, in a string; and strings that something might take for their end. */
static inline const char *every_byte(void)
{
    static char all[256];
    for (int i = 0; i < 256; i++)
        all[i] = (char)i;
    return all;
}

static inline size_t hostile(struct slice out[8])
{
    out[0] = SLICE("");
    out[1] = SLICE("\0");
    out[2] = SLICE("\0\0");
    out[3] = SLICE("a\0b");
    out[4] = SLICE("\xff\xfe\x80 not UTF-8 \xc3");
    out[5] = SLICE("\xff\xff\xff");
    out[6] = SLICE("' OR 1=1 --%s");
    out[7] = slice_of(every_byte(), 256);
    return 8;
}

static inline void expect_dead(uint32_t db, int64_t now, int64_t want_keys, int64_t want_expires)
{
    int64_t keys = -1, expires = -1;
    CHECK_OK(store_count_dead(s, db, now, &keys, &expires, &err), &err);
    CHECK_EQ(keys, want_keys);
    CHECK_EQ(expires, want_expires);
}

/* One test in a new database. */
static inline void contract(const char *name, void (*test)(void))
{
    new_place();
    CHECK_OK(impl->open(&s, &err), &err);
    if (!s)
        exit(EXIT_FAILURE);
    check_run(name, test);
    store_close(s);
    s = NULL;
    leave_place();
}

#define CONTRACT(test) contract(#test, test)

/* Runs the tests of a function over every implementation. */
static inline void every_implementation(void (*tests)(void))
{
    for (size_t i = 0; i < sizeof implementations / sizeof implementations[0]; i++) {
        impl = &implementations[i];
        if (server_url() && !impl->on_servers)
            continue;
        printf("%s\n", impl->name);
        tests();
    }
}

#endif
