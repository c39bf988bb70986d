#include "sql/features.h"

#include <stddef.h>

#define STATEMENTS 3
#define TRIALS     3

/* A number of ours that nobody locks for himself: any number of sessions may try at once. */
#define PG_KEY "(1818324576::bigint << 32)"
#define MD_KEY "CONCAT('larder try ', CONNECTION_ID())"

/* A feature is there when none of its statements fails and so many of them answer 1. */
static const struct trial {
    size_t member; /* of struct remote_features */
    int ones;
    const char *texts[REMOTE_DIALECTS][STATEMENTS]; /* NULL at the first: the dialect has none */
} trials[TRIALS] = {
    {offsetof(struct remote_features, locks),
     3,
     {[REMOTE_POSTGRES] = {"SELECT pg_try_advisory_lock_shared(" PG_KEY ")::int",
                           "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted"
                           " AND pid = pg_backend_pid() AND classid = 1818324576 AND objid = 0",
                           "SELECT pg_advisory_unlock_shared(" PG_KEY ")::int"},
      [REMOTE_MARIADB] = {"SELECT GET_LOCK(" MD_KEY ", 0)",
                          "SELECT IS_USED_LOCK(" MD_KEY ") = CONNECTION_ID()",
                          "SELECT RELEASE_LOCK(" MD_KEY ")"}}},
    {offsetof(struct remote_features, listen),
     1,
     {[REMOTE_POSTGRES] = {"LISTEN larder_try",
                           "SELECT count(*) FROM pg_listening_channels() AS c WHERE c = 'larder_try'",
                           "UNLISTEN larder_try"}}},
    {offsetof(struct remote_features, skip_locked),
     0,
     {[REMOTE_POSTGRES] = {"SELECT 1 FROM larder_meta WHERE name = '' FOR UPDATE SKIP LOCKED"},
      [REMOTE_MARIADB] = {"SELECT 1 FROM larder_meta WHERE name = '' FOR UPDATE SKIP LOCKED"}}},
};

static enum status count_one(void *arg, const struct remote_row *row)
{
    *(int *)arg += remote_i64(row, 0) == 1;
    return ST_OK;
}

static void add_trial(struct remote *c, const struct trial *t, int *ones)
{
    *ones = 0;
    for (int i = 0; i < STATEMENTS && t->texts[c->dialect][i]; i++) {
        struct request r = {.text = t->texts[c->dialect][i], .fn = count_one, .arg = ones};
        remote_add(c, &r);
        remote_part(c); /* LISTEN counts from the end of its transaction on */
    }
}

/* A failure that says: there is no such thing. */
static bool says_no(const struct remote *c, enum status st)
{
    return !c->lost && (st == ST_INTERNAL || st == ST_DENIED || st == ST_MISSING || st == ST_INVALID);
}

static void conclude(const struct remote *c, const struct trial *t, bool ran, int ones,
                     struct remote_features *ret)
{
    bool has = t->texts[c->dialect][0] && ran && ones == t->ones;
    *(bool *)((char *)ret + t->member) = has;
}

enum status remote_try_features(struct remote *c, struct remote_features *ret, struct error *err)
{
    int ones[TRIALS];
    for (int i = 0; i < TRIALS; i++)
        add_trial(c, &trials[i], &ones[i]);
    enum status st = remote_run(c, err);
    for (int i = 0; st == ST_OK && i < TRIALS; i++)
        conclude(c, &trials[i], true, ones[i], ret);
    if (st == ST_OK || !says_no(c, st))
        return st;
    for (int i = 0; i < TRIALS; i++) { /* which of them was it? */
        add_trial(c, &trials[i], &ones[i]);
        st = remote_run(c, err);
        if (st != ST_OK && !says_no(c, st))
            return st;
        conclude(c, &trials[i], st == ST_OK, ones[i], ret);
    }
    return ST_OK;
}
