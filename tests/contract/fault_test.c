/* Every call of the store fails once, for every command. Whatever fails, each command either answers an error
   and has done nothing, or answers as it should and has done all of it; what is in memory is what is in the
   tables; and the next command works.

   Two stacks get the same commands: one whose store fails the Nth call, and a model that only gets the
   commands that answered no failure. Their answers and everything in their tables are then the same.

   With a journal it is the calls of its thread that fail, or those that commands read through. Some of the
   former are nobody's failure: what is in the journal comes into the tables later. */
#include <time.h>

#include "admin/check.h"
#include "base/clock.h"
#include "contract/fixture.h"
#include "contract/stack.h"

#define MAX_CALLS 3000
/* Without a journal there is one thread: ThreadSanitizer would see nothing, ten times as slowly. */
#ifdef __SANITIZE_THREAD__
#define ONLY_THREADS true
#else
#define ONLY_THREADS false
#endif

#define EACH   40 /* calls; of those behind them only some fail */
#define STRIDE 97
#define NOW_MS INT64_C(1700000000000)

static struct stack faulty, model;
static struct store *failing;                 /* the part of the faulty one that fails */
static const struct journal_options *journal; /* of the faulty one; NULL: it has none */
static char model_path[160];                  /* the faulty one is at place.path */

/* ---- what is in the tables ---- */

/* All that lives, without the numbers that depend on how often something was tried. */
static const char everything[] =
    "WITH k AS (SELECT d.db AS db, key, type, id, size, expire_at, value FROM larder_key"
    "  JOIN larder_db AS d ON d.number = larder_key.db WHERE type <> 0"
    "  AND (expire_at = 0 OR expire_at > 1700000000000))"
    " SELECT 'key', db, key, type, size, expire_at, value FROM k"
    " UNION ALL SELECT 'chunk', db, key, pos, length(c.value), hex(substr(c.value, 1, 9)), 0"
    "  FROM k JOIN larder_chunk AS c USING (id)"
    " UNION ALL SELECT 'field', db, key, field, h.value, h.expire_at, 0 FROM k JOIN larder_hash AS h USING "
    "(id)"
    " UNION ALL SELECT 'item', db, key, pos, l.value, 0, 0 FROM k JOIN larder_list AS l USING (id)"
    " UNION ALL SELECT 'member', db, key, member, 0, 0, 0 FROM k JOIN larder_set USING (id)"
    " UNION ALL SELECT 'score', db, key, member, score, 0, 0 FROM k JOIN larder_zset USING (id)"
    " UNION ALL SELECT 'count', db, (SELECT count(*) FROM k WHERE k.db = d.db), 0, 0, 0, 0"
    "  FROM larder_db AS d"
    " ORDER BY 1, 2, 3, 4, 5, 6, 7";

static void dump(const char *path, struct buf *out)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *st = NULL;
    CHECK_EQ(sqlite3_open(path, &db), SQLITE_OK);
    CHECK_EQ(sqlite3_prepare_v2(db, everything, -1, &st, NULL), SQLITE_OK);
    out->len = 0;
    while (st && sqlite3_step(st) == SQLITE_ROW) {
        for (int i = 0; i < 7; i++) {
            const void *p = sqlite3_column_blob(st, i);
            size_t n = (size_t)sqlite3_column_bytes(st, i);
            buf_addf(out, "%zu:", n);
            buf_add(out, p, n);
            buf_add(out, "|", 1);
        }
        buf_add(out, "\n", 1);
    }
    sqlite3_finalize(st);
    sqlite3_close(db);
}

static void compare_tables(void)
{
    static struct buf a, b;
    dump(place.path, &a);
    dump(model_path, &b);
    if (!slice_eq(buf_slice(&a), buf_slice(&b))) {
        FAIL("the tables are as the model's");
        printf("--- faulty\n%.*s--- model\n%.*s", (int)a.len, a.p, (int)b.len, b.p);
    }
    buf_release(&a);
    buf_release(&b);
}

static void check_database(void)
{
    char text[8192] = "";
    bool ok = false;
    struct error err;
    FILE *f = fmemopen(text, sizeof text, "w");
    CHECK_OK(store_check(place.path, f, &ok, &err), &err);
    fclose(f);
    if (!ok) {
        FAIL("the database is whole");
        printf("%s", text);
    }
}

/* ---- answers ---- */

static bool is_failure(struct slice reply)
{
    static const char *const codes[] = {"-MISCONF ",
                                        "-IOERR ",
                                        "-TRYAGAIN ",
                                        "-UNCERTAIN ",
                                        "-ERR The database failed: a command of this batch failed midway",
                                        "-EXECABORT "};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (reply.n >= strlen(codes[i]) && memcmp(reply.p, codes[i], strlen(codes[i])) == 0)
            return true;
    return false;
}

/* The length of the first value in s. */
static size_t value_length(struct slice s)
{
    const char *nl = memchr(s.p, '\n', s.n);
    size_t line = nl ? (size_t)(nl - s.p) + 1 : s.n;
    long n = strtol(s.p + 1, NULL, 10);
    if (s.p[0] == '$' && n >= 0)
        return line + (size_t)n + 2;
    if (s.p[0] == '*')
        for (; n > 0; n--)
            line += value_length(slice_of(s.p + line, s.n - line));
    return line;
}

static bool is_word(const char *line, const char *word)
{
    return slice_is(slice_of(line, strcspn(line, " ")), word);
}

/* The commands that did not fail, EXEC with all that is in its queue; *ret_failed counts the others. */
static size_t survivors(const char *const *lines, size_t n, const struct answers *a, const char **out,
                        size_t *ret_failed)
{
    size_t kept = 0, multi = 0;
    *ret_failed = 0;
    for (size_t i = 0; i < n; i++) {
        if (is_word(lines[i], "multi"))
            multi = kept;
        if (is_failure(answer(a, i))) {
            ++*ret_failed;
            if (is_word(lines[i], "exec"))
                kept = multi; /* the whole of it */
            continue;
        }
        if (is_word(lines[i], "exec")) {
            /* An array with one answer for each command of the queue. */
            struct slice r = answer(a, i);
            size_t at = (size_t)((const char *)memchr(r.p, '\n', r.n) - r.p) + 1;
            for (size_t j = multi + 1; j < kept; j++) {
                size_t len = value_length(slice_of(r.p + at, r.n - at));
                if (is_failure(slice_of(r.p + at, len)))
                    FAIL("a transaction is all or nothing");
                at += len;
            }
        }
        out[kept++] = lines[i];
    }
    return kept;
}

/* ---- a case ---- */

struct script {
    const char *name;
    bool only_cold;          /* large: its point is not to be in memory */
    const char *prepare[12]; /* a batch that does not fail; after FLUSHALL */
    const char *batch[12];   /* a batch that does */
};

static size_t count_lines(const char *const *lines)
{
    size_t n = 0;
    while (n < 12 && lines[n])
        n++;
    return n;
}

static void run_both(const char *const *lines, size_t n)
{
    struct answers a = {.n = 0}, b = {.n = 0};
    stack_run(&faulty, lines, n, &a);
    stack_run(&model, lines, n, &b);
    if (!slice_eq(buf_slice(&a.bytes), buf_slice(&b.bytes))) {
        FAIL("the answers are the model's");
        printf("--- faulty\n%.*s--- model\n%.*s", (int)a.bytes.len, a.bytes.p, (int)b.bytes.len, b.bytes.p);
    }
    buf_release(&a.bytes);
    buf_release(&b.bytes);
}

/* Everything that the view says about the keys that scripts use. */
static void compare_views(void)
{
    static const char *const keys[] = {"a", "b", "c", "h", "l", "s", "z", "big", "probe"};
    static const char *const asks[] = {"TYPE", "PTTL", "GET", "HLEN", "LRANGE", "SCARD", "ZRANGE", "STRLEN"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        char text[8][64];
        const char *lines[10];
        for (size_t j = 0; j < 8; j++) {
            bool range = strstr(asks[j], "RANGE") != NULL;
            snprintf(text[j], sizeof text[j], "%s %s%s", asks[j], keys[i], range ? " 0 -1" : "");
            lines[j] = text[j];
        }
        lines[8] = "DBSIZE";
        lines[9] = "SISMEMBER s m";
        run_both(lines, 10);
    }
}

/* Brings all into the tables; a call may still be on its way that was told to fail. */
static void drain(void)
{
    struct error err;
    for (int tries = 0; engine_sync(faulty.engine, &err) != ST_OK; tries++) {
        if (tries == 3) {
            CHECK_OK(err.code, &err);
            return;
        }
    }
}

/* Before each try: the same state in both, and for a cold try nothing of it in memory. */
static void prepare(const struct script *t, bool cold)
{
    static const char *const empty[] = {"UNWATCH", "SELECT 0", "FLUSHALL"};
    store_fault_set(failing, (struct store_fault){0});
    run_both(empty, 3);
    run_both(t->prepare, count_lines(t->prepare));
    if (failing == faulty.reads)
        drain();
    if (cold) /* somebody else's write: whatever is in memory is void */
        outside("PRAGMA synchronous = OFF; UPDATE larder_meta SET value = hex(randomblob(8)) WHERE name = "
                "'created'");
}

static void after(void)
{
    static const char *const probe[] = {"SELECT 0", "SET probe 1", "INCR probe", "RPUSH l tail",
                                        "HSET h tail 1"};
    store_fault_set(failing, (struct store_fault){0});
    compare_views();
    drain();
    compare_tables();
    compare_views();
    run_both(probe, 5);
    compare_views();
    drain();
    compare_tables();
}

/* The Nth call fails; false when there was no Nth call. */
static bool try_fault(const struct script *t, bool cold, struct store_fault f)
{
    struct answers a = {.n = 0}, b = {.n = 0};
    const char *kept[BATCH_MAX];
    size_t n = count_lines(t->batch), failed, nkept;
    prepare(t, cold);
    store_fault_set(failing, f);
    stack_run(&faulty, t->batch, n, &a);
    bool happened = fault_happened(failing);
    store_fault_set(failing, (struct store_fault){0});
    if (f.late) {
        /* The commit took effect although it said otherwise. */
        CHECK(happened);
        stack_run(&model, t->batch, n, &b);
    } else {
        nkept = survivors(t->batch, n, &a, kept, &failed);
        CHECK(journal ? !failed || happened : (failed > 0) == happened);
        stack_run(&model, kept, nkept, &b);
        for (size_t i = 0, j = 0; i < n && j < nkept; i++) {
            if (kept[j] != t->batch[i])
                continue;
            if (!is_word(kept[j], "exec") || nkept == n)
                CHECK_SLICE(answer(&a, i), answer(&b, j));
            j++;
        }
    }
    after();
    buf_release(&a.bytes);
    buf_release(&b.bytes);
    return happened;
}

static const struct script *script;

static uint64_t next_call(uint64_t nth)
{
    return nth < EACH ? nth + 1 : nth + STRIDE;
}

/* How many calls a batch takes: the last one is the commit. */
static uint64_t count_calls(const struct script *t, bool cold)
{
    struct answers a = {.n = 0}, b = {.n = 0};
    prepare(t, cold);
    store_fault_set(failing, (struct store_fault){0});
    stack_run(&faulty, t->batch, count_lines(t->batch), &a);
    uint64_t calls = fault_calls(failing);
    stack_run(&model, t->batch, count_lines(t->batch), &b);
    buf_release(&a.bytes);
    buf_release(&b.bytes);
    return calls;
}

/* What commands read through fails. Writing goes on: only they are to blame if something is left. */
static void fail_reads(void)
{
    char context[120];
    check.context = context;
    bool happened = true;
    for (uint64_t nth = 1; happened && nth < EACH / 4 && !check.checks_failed; nth++) {
        bool sticky = nth % 2;
        snprintf(context, sizeof context, "read %d%s of \"%.60s\" failing", (int)nth,
                 sticky ? " and all behind it" : "", script->name);
        happened =
            try_fault(script, true, (struct store_fault){.nth = nth, .status = ST_IO, .sticky = sticky});
    }
    check_database();
    check.context = NULL;
}

static void fail_every_call(void)
{
    char context[120];
    check.context = context;
    for (int cold = script->only_cold; cold < 2; cold++) {
        uint64_t calls = 0;
        bool happened = true;
        for (uint64_t nth = 1; happened && nth < MAX_CALLS && !check.checks_failed; nth = next_call(nth)) {
            snprintf(context, sizeof context, "call %d of \"%.60s\" failing, %s", (int)nth, script->name,
                     cold ? "cold" : "warm");
            happened = try_fault(script, cold, (struct store_fault){.nth = nth, .status = ST_FULL});
            if (happened)
                calls = nth;
        }
        CHECK(calls > 1 && !happened);
        /* From some call on, nothing works any more, until it does again. */
        for (uint64_t nth = 1; nth <= calls; nth = next_call(nth)) {
            snprintf(context, sizeof context, "call %d of \"%.60s\" and all after it failing", (int)nth,
                     script->name);
            (void)try_fault(script, cold, (struct store_fault){.nth = nth, .status = ST_IO, .sticky = true});
        }
        snprintf(context, sizeof context, "the commit of \"%.60s\" losing its answer", script->name);
        calls = count_calls(script, cold);
        (void)try_fault(script, cold, (struct store_fault){.nth = calls, .status = ST_UNKNOWN, .late = true});
    }
    check_database();
    check.context = NULL;
}

/* ---- a journal ---- */

static void fail_calls_of_the_thread(void)
{
    char context[120];
    check.context = context;
    for (int sticky = 0; sticky < 2; sticky++) {
        int quiet = 0; /* which calls there are is a matter of the moment */
        for (uint64_t nth = 1; quiet < 2 && nth < EACH && !check.checks_failed; nth++) {
            snprintf(context, sizeof context, "call %d%s of \"%.60s\" failing", (int)nth,
                     sticky ? " and all behind it" : "", script->name);
            bool happened = try_fault(script, false,
                                      (struct store_fault){.nth = nth, .status = ST_FULL, .sticky = sticky});
            quiet = happened ? 0 : quiet + 1;
        }
    }
    check_database();
    check.context = NULL;
}

/* ---- the sweeper ---- */

static void sweeps_fail_too(void)
{
    static const char *const dying[] = {"PSETEX a 100 v",
                                        "RPUSH l 1 2 3",
                                        "PEXPIRE l 100",
                                        "SET big @90000",
                                        "PEXPIRE big 100",
                                        "HSET h f 1 g 2",
                                        "HPEXPIRE h 100 FIELDS 1 f",
                                        "SADD s m",
                                        "DEL s",
                                        "SET b stays"};
    struct error err;
    static const struct script none = {.name = "none"};
    for (uint64_t nth = 1; nth < 60; nth++) {
        prepare(&none, false);
        clock_fake_us(NOW_MS * 1000 - 1000000);
        run_both(dying, 10);
        clock_fake_us(NOW_MS * 1000);
        store_fault_set(failing, (struct store_fault){.nth = nth, .status = ST_FULL});
        int failures = 0;
        for (int i = 0; i < 200; i++) {
            bool more = false, more_model = false;
            uint64_t rows;
            failures += engine_sweep(faulty.engine, 2, &more, &rows, &err) != ST_OK;
            CHECK_OK(engine_sweep(model.engine, 2, &more_model, &rows, &err), &err);
            if (!more && !more_model && i > 10 && failures == (int)fault_happened(failing))
                break;
        }
        bool happened = fault_happened(failing);
        CHECK_EQ(failures, happened);
        after();
        CHECK_EQ(check.checks_failed, 0);
        if (!happened || check.checks_failed)
            break;
    }
    check_database();
}

/* ---- scripts: what commands do to rows, in every way the store is used ---- */

static const struct script scripts[] = {
    {"strings",
     false,
     {"SET a 1", "SET b 2"},
     {"SET a 3", "INCR a", "APPEND b x", "GET a", "SETNX c 1", "GET b"}},
    {"many keys at once", false, {"SET a 1"}, {"MSET a 1 b 2 c 3", "MGET a b c", "DEL a b", "EXISTS a b c"}},
    {"expiry",
     false,
     {"SET a 1", "SET b 2 EX 100"},
     {"EXPIRE a 50", "PERSIST b", "GETEX a EX 10", "TTL b", "DBSIZE"}},
    {"long strings",
     false,
     {"SET big @200000"},
     {"SETRANGE big 70000 hello", "APPEND big @20000", "STRLEN big"}},
    {"a long string anew",
     false,
     {"SET big @100000"},
     {"SET big @150000", "GETRANGE big 10 20", "COPY big c"}},
    {"from short to long", false, {"SET big @60000"}, {"APPEND big @10000", "SETBIT big 9000000 1", "GET a"}},
    {"renaming", false, {"RPUSH l 1 2", "SET a 1"}, {"RENAME l b", "RENAME a l", "TYPE b", "RENAMENX b c"}},
    {"moving", false, {"SADD s m n", "SET a 1"}, {"MOVE s 1", "COPY a b DB 1", "DBSIZE"}},
    {"flushing", false, {"SET a 1", "HSET h f 1"}, {"FLUSHDB", "SET a 2", "DBSIZE", "GET h"}},
    {"swapping", false, {"SET a 1", "SADD s m"}, {"SWAPDB 0 1", "SET a 2", "SELECT 1", "GET a", "SELECT 0"}},
    {"lists",
     false,
     {"RPUSH l 1 2 3 4"},
     {"LPUSH l 0", "RPOP l", "LINSERT l BEFORE 2 x", "LSET l 0 y", "LREM l 1 x", "LRANGE l 0 -1"}},
    {"hashes", false, {"HSET h f 1 g 2 k 3"}, {"HSET h f 9 n 1", "HDEL h g", "HINCRBY h f 2", "HGETALL h"}},
    {"sets", false, {"SADD s m n o"}, {"SADD s p q", "SREM s m", "SMOVE s c n", "SCARD s", "SISMEMBER s q"}},
    {"sorted sets",
     false,
     {"ZADD z 1 a 2 b 3 c"},
     {"ZADD z 5 a 4 d", "ZREM z b", "ZINCRBY z 2 c", "ZRANGE z 0 -1 WITHSCORES", "ZPOPMIN z"}},
    {"emptying collections",
     false,
     {"RPUSH l 1", "SADD s m", "HSET h f 1"},
     {"LPOP l", "SREM s m", "HDEL h f", "DBSIZE"}},
    {"algebra",
     false,
     {"SADD s m n", "SADD c n o", "ZADD z 1 n"},
     {"SUNIONSTORE a s c", "ZUNIONSTORE b 2 z s", "SCARD a"}},
    {"a transaction",
     false,
     {"SET a 1", "RPUSH l 1"},
     {"MULTI", "INCR a", "RPUSH l 2", "SET b x", "EXEC", "GET a"}},
    {"a session behind a transaction that fails midway",
     true,
     {"SADD s m n o", "RPUSH l 1 2", "HSET h f 1 g 2"},
     {"MULTI", "SREM s m n", "LRANGE l 0 -1", "EXEC", "SELECT 1", "SET a 1", "MULTI", "SET b 1", "EXEC"}},
    {"rows behind a transaction that fails midway",
     true,
     {"SADD s m n o", "RPUSH l 1 2", "HSET h f 1 g 2"},
     {"MULTI", "SREM s m n", "LRANGE l 0 -1", "LRANGE a 0 -1", "HGETALL h", "EXEC", "SMEMBERS s",
      "SISMEMBER s m"}},
    {"a watched transaction",
     false,
     {"SET a 1"},
     {"WATCH a", "MULTI", "SET a 2", "HSET h f 1", "EXEC", "TYPE h"}},
    {"a transfer with a large hash between",
     true,
     {"HSET h =1100", "SET a 10", "SET b 10"},
     {"SET c 1", "MULTI", "DECRBY a 3", "HSET h 5 x new 1", "INCRBY b 3", "EXEC", "GET a", "GET c"}},
    {"a transaction that looks through its own rows",
     false,
     {"SET a 1", "RPUSH l 1"},
     {"INCR a", "MULTI", "INCR a", "RPUSH l 2", "KEYS *", "GET b", "HSET h f 1", "EXEC", "GET a", "SET c 1"}},
    {"a transaction of databases",
     false,
     {"SET a 1", "SADD s m"},
     {"MULTI", "SET a 2", "SWAPDB 0 1", "SADD c m", "FLUSHDB", "GET c", "SET b 3", "EXEC", "GET b"}},
    {"a transaction that changes the same again and again",
     false,
     {"SET a 1", "RPUSH l 1", "HSET h f 1"},
     {"INCR a", "MULTI", "INCR a", "APPEND a x", "DEL a", "RPUSH a 1", "RENAME a b", "HSET h f 2 g 3",
      "HDEL h f", "GET c", "RPUSH l 2", "EXEC"}},
    {"a transaction over what is large",
     true,
     {"ZADD z =1100", "SADD s #1100"},
     {"MULTI", "ZADD z 3 x", "ZRANK z 900", "SMOVE s c 9", "ZREM z 7", "EXEC", "ZCARD z"}},
    {"reading alone",
     false,
     {"SET a 1", "RPUSH l 1 2", "SET big @90000"},
     {"GET a", "LRANGE l 0 -1", "STRLEN big", "KEYS *"}},
    {"mistakes among writes", false, {"RPUSH l 1"}, {"SET a 1", "INCR l", "SET b", "GET l", "SET c 3"}},
    {"a large hash",
     true,
     {"HSET h =1100"},
     {"HSET h 5 x new 1", "HDEL h 7", "HGET h 5", "HLEN h", "HEXPIRE h 9 FIELDS 1 3"}},
    {"a large list",
     true,
     {"RPUSH l #1100"},
     {"LPUSH l x", "LINSERT l BEFORE 500 y", "RPOP l", "LREM l 1 700", "LLEN l"}},
    {"a large set", true, {"SADD s #1100"}, {"SADD s x 5", "SREM s 7", "SMOVE s c 9", "SCARD s"}},
    {"a large sorted set",
     true,
     {"ZADD z =1100"},
     {"ZADD z 3 x 99 5", "ZREM z 7", "ZRANK z 900", "ZREMRANGEBYRANK z 10 30", "ZCARD z"}},
    {"copying what is large",
     true,
     {"SADD s #1100", "SET big @90000"},
     {"COPY s a", "COPY big b", "SUNIONSTORE c s a", "SCARD c"}},
    {"few but huge items",
     true,
     {"HSET h f @400000 g @400000 k @400000"},
     {"HSET h f 1", "HDEL h g", "HGET h f", "HLEN h"}},
};

static bool open_stacks(const struct journal_options *j)
{
    struct store_options o = options();
    new_place();
    snprintf(model_path, sizeof model_path, "%s/model.db", place.folder);
    journal = j;
    o.url = place.path;
    o.busy_ms = 5000;
    if (j)
        o.durability = DURABILITY_ALWAYS;
    if (!stack_open(&faulty, &o, j))
        return false;
    failing = faulty.fault;
    o.url = model_path;
    o.durability = DURABILITY_OFF;
    return stack_open(&model, &o, NULL);
}

static void close_stacks(void)
{
    stack_close(&faulty);
    stack_close(&model);
    faulty = model = (struct stack){0};
    leave_place();
}

static bool without_threads(void)
{
    if (ONLY_THREADS)
        return true;
    if (!open_stacks(NULL))
        return false;
    for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
        script = &scripts[i];
        check_run(script->name, fail_every_call);
    }
    RUN(sweeps_fail_too);
    close_stacks();
    return true;
}

int main(int argc, char **argv)
{
    static const struct journal_options journals[] = {
        {.max_bytes = 1 << 20},                   /* all is journaled, and applied at once */
        {.max_bytes = 1 << 20, .few_rows = 1000}, /* most goes straight into the tables */
        {.max_bytes = 400},                       /* most is too large for the journal */
    };
    CHECK_MAIN(argc, argv);
    clock_fake_us(NOW_MS * 1000);
    if (!without_threads())
        return EXIT_FAILURE;
    for (size_t j = 0; j < sizeof journals / sizeof journals[0]; j++) {
        if (!open_stacks(&journals[j]))
            return EXIT_FAILURE;
        /* After a failure the thread pauses: each script over one of them is enough. */
        for (size_t i = j; i < sizeof scripts / sizeof scripts[0];
             i += sizeof journals / sizeof journals[0]) {
            script = &scripts[i];
            check_run(script->name, fail_calls_of_the_thread);
            failing = faulty.reads;
            check_run(script->name, fail_reads);
            failing = faulty.fault;
        }
        close_stacks();
    }
    return check_done();
}
