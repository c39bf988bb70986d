/* A transaction that the database fails in the middle of: besides the rows, which fault_test.c looks at, its
   session, whoever watches what it wrote, and the books are as if it had not run. Over any store. */
#include "base/clock.h"
#include "contract/fixture.h"
#include "contract/stack.h"

#define MAX_CALLS 200

static struct stack k;
static struct session watcher;

static void run(struct session *s, const char *const *lines, size_t n, struct answers *a)
{
    stack_run_as(&k, s, lines, n, a);
}

static bool starts_with(struct slice s, const char *text)
{
    return s.n >= strlen(text) && memcmp(s.p, text, strlen(text)) == 0;
}

#define LINES(...)                                                                                           \
    (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)

/* None of the answers is an error. */
static void run_well(struct session *s, const char *const *lines, size_t n)
{
    struct answers a = {.n = 0};
    run(s, lines, n, &a);
    for (size_t i = 0; i < n; i++)
        if (answer(&a, i).n == 0 || answer(&a, i).p[0] == '-')
            FAIL(lines[i]);
    buf_release(&a.bytes);
}

static void expect(struct session *s, const char *line, const char *want)
{
    struct answers a = {.n = 0};
    run(s, LINES(line), &a);
    CHECK_SLICE(answer(&a, 0), slice_str(want));
    buf_release(&a.bytes);
}

/* The same rows each time, and none of them in memory. */
static void prepare(void)
{
    store_fault_set(k.fault, (struct store_fault){0});
    run_well(&watcher, LINES("UNWATCH", "SELECT 0"));
    run_well(&k.session, LINES("CLIENT REPLY ON", "HELLO 2", "CLIENT NO-EVICT OFF", "CLIENT SETNAME before",
                               "CLIENT SETINFO LIB-NAME none", "UNWATCH", "SELECT 0"));
    run_well(&k.session, LINES("FLUSHALL", "SET a 10", "SET b 10", "HSET h =1100"));
    if (!server_url())
        outside("PRAGMA synchronous = OFF; UPDATE larder_meta SET value = hex(randomblob(8)) WHERE name = "
                "'created'");
}

/* Every call fails in turn, until there is no such call. fn: what to look at when EXEC was undone. */
static void each_failure(const char *const *lines, size_t n, size_t exec, void (*fn)(void))
{
    char context[80];
    int undone = 0;
    bool happened = true;
    check.context = context;
    for (uint64_t nth = 1; happened && nth < MAX_CALLS && !check.checks_failed; nth++) {
        struct answers a = {.n = 0};
        snprintf(context, sizeof context, "call %d failing", (int)nth);
        prepare();
        run_well(&watcher, LINES("WATCH appears"));
        run_well(&k.session, LINES("WATCH a"));
        store_fault_set(k.fault, (struct store_fault){.nth = nth, .status = ST_IO});
        run(&k.session, lines, n, &a);
        happened = fault_happened(k.fault);
        store_fault_set(k.fault, (struct store_fault){0});
        if (happened && starts_with(answer(&a, exec), "-EXECABORT Transaction discarded because of a failure "
                                                      "of the database: IOERR ")) {
            undone++;
            fn();
        } else if (happened && !starts_with(answer(&a, exec), "-")) {
            FAIL("a failure is told");
        }
        buf_release(&a.bytes);
    }
    CHECK(undone > 1 && !happened);
    check.context = NULL;
}

/* ---- the session ---- */

static void as_before(void)
{
    const struct session *s = &k.session;
    CHECK_EQ(s->state.db, 0);
    CHECK_EQ(s->state.resp, 2);
    CHECK_EQ(s->state.reply_mode, SESSION_REPLY_ON);
    CHECK(!s->state.no_evict);
    CHECK_STR(session_text(s, SESSION_NAME), "before");
    CHECK_STR(session_text(s, SESSION_LIB_NAME), "none");
    CHECK(s->state.txn.txn == NULL && s->copies == 0); /* neither in MULTI nor watching */
    expect(&k.session, "GET a", "$2\r\n10\r\n");
    expect(&k.session, "GET b", "$2\r\n10\r\n");
}

static void sessions_go_back(void)
{
    each_failure(LINES("MULTI", "CLIENT SETNAME one", "CLIENT SETNAME two", "HELLO 3", "DECRBY a 3",
                       "CLIENT SETINFO LIB-NAME lib", "SELECT 1", "CLIENT NO-EVICT ON", "GET b", "SELECT 0",
                       "HSET h 5 x", "INCRBY b 3", "CLIENT REPLY OFF", "SELECT 1", "GET b", "EXEC"),
                 15, as_before);
}

static void keeps_what_was_done_well(void)
{
    prepare();
    run_well(&k.session,
             LINES("MULTI", "CLIENT SETNAME one", "CLIENT SETNAME two", "SELECT 1", "INCR n", "EXEC"));
    CHECK_STR(session_text(&k.session, SESSION_NAME), "two");
    CHECK_EQ(k.session.state.db, 1);
    expect(&k.session, "GET n", "$1\r\n1\r\n");
}

/* ---- who watches ---- */

static void watches_nothing_new(void)
{
    run_well(&watcher, LINES("MULTI", "PING"));
    expect(&watcher, "EXEC", "*1\r\n+PONG\r\n");
}

static void watchers_are_not_disturbed(void)
{
    each_failure(LINES("MULTI", "SET appears 1", "DEL appears", "HSET h 5 x", "GET b", "EXEC"), 5,
                 watches_nothing_new);
}

/* A key that appears and is gone again within it, in a database that then is another one. */
static void watchers_learn_of_every_step(void)
{
    prepare();
    run_well(&watcher, LINES("WATCH appears"));
    run_well(&k.session, LINES("MULTI", "SET appears 1", "DEL appears", "SWAPDB 0 1", "EXEC"));
    run_well(&watcher, LINES("MULTI", "PING"));
    expect(&watcher, "EXEC", "*-1\r\n");
}

/* ---- the books ---- */

static void counts_no_changes(void)
{
    static const char *const lines[] = {"MULTI", "INCR a", "INCR a", "HSET h 5 x", "INCR b", "EXEC"};
    prepare();
    uint64_t dirty_was = engine_get_stats(k.engine)->dirty;
    run_well(&k.session, lines, 6);
    CHECK_EQ(engine_get_stats(k.engine)->dirty, dirty_was + 4);
    for (uint64_t nth = 2; nth < 5; nth++) {
        struct answers a = {.n = 0};
        prepare();
        dirty_was = engine_get_stats(k.engine)->dirty;
        store_fault_set(k.fault, (struct store_fault){.nth = nth, .status = ST_IO});
        run(&k.session, lines, 6, &a);
        store_fault_set(k.fault, (struct store_fault){0});
        if (starts_with(answer(&a, 5), "-EXECABORT "))
            CHECK_EQ(engine_get_stats(k.engine)->dirty, dirty_was);
        buf_release(&a.bytes);
    }
}

int main(int argc, char **argv)
{
    struct store_options o;
    CHECK_MAIN(argc, argv);
    new_place();
    o = options();
    o.busy_ms = 5000;
    if (!stack_open(&k, &o, NULL))
        return EXIT_FAILURE;
    session_init(&watcher, &no_socket, true);
    watcher.id = server_next_id(&k.server);
    executor_add_session(&k.executor, &watcher);
    RUN(sessions_go_back);
    RUN(keeps_what_was_done_well);
    RUN(watchers_are_not_disturbed);
    RUN(watchers_learn_of_every_step);
    RUN(counts_no_changes);
    executor_remove_session(&k.executor, &watcher);
    session_release(&watcher);
    stack_close(&k);
    leave_place();
    return check_done();
}
