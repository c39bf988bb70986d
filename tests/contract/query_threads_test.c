/* Query threads (query/threads.h) over a real database, with jobs that are no SQL: what they see while others
   write, every way in which one ends, and that nothing is left of any. The executor's loop is this program.
 */
#include <pthread.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/rand.h"
#include "config/config.h"
#include "contract/fixture.h"
#include "engine/engine.h"
#include "exec/executor.h"
#include "exec/session.h"
#include "journal/journal.h"
#include "query/threads.h"
#include "stats/stats.h"

#define PATIENCE_US 30000000
#define KEYS        500
#define AMOUNT      100

/* ---- a loop ---- */

/* A client, as far as waiting goes. */
struct waiting {
    struct session session; /* first */
    bool blocked, went_on;
};

static void block(struct session *c, int64_t deadline_us)
{
    (void)deadline_us;
    ((struct waiting *)c)->blocked = true;
}

static struct reply *reply_begin(struct session *c)
{
    (void)c;
    return NULL;
}

static void reply_end(struct session *c, int64_t wait)
{
    (void)wait;
    ((struct waiting *)c)->went_on = !c->state.blocked;
}

static const struct session_ops ops = {.block = block, .reply_begin = reply_begin, .reply_end = reply_end};

static struct {
    struct store *store;
    struct engine *engine;
    struct config config;
    struct server server;
    struct executor executor;
    struct error err;
    struct store_options reader; /* of the threads' sessions */
    pthread_mutex_t lock;
    struct {
        struct block_job *job;
        void (*fn)(struct executor *s, struct block_job *job);
    } over[2000];
    size_t nover;
    _Atomic int64_t alive; /* jobs */
} it;

static void job_over(struct executor *s, struct block_job *job,
                     void (*fn)(struct executor *, struct block_job *))
{
    (void)s;
    pthread_mutex_lock(&it.lock);
    it.over[it.nover].job = job;
    it.over[it.nover++].fn = fn;
    pthread_mutex_unlock(&it.lock);
}

static void pause_a_moment(void)
{
    const struct timespec t = {.tv_nsec = 200000};
    nanosleep(&t, NULL);
}

/* A turn: commits become durable, memtables are frozen, jobs end. */
static void turn(void)
{
    CHECK_OK(engine_progress(it.engine, &it.err), &it.err);
    for (;;) {
        pthread_mutex_lock(&it.lock);
        bool any = it.nover > 0;
        struct block_job *job = any ? it.over[it.nover - 1].job : NULL;
        void (*fn)(struct executor *, struct block_job *) = any ? it.over[--it.nover].fn : NULL;
        pthread_mutex_unlock(&it.lock);
        if (!any)
            return;
        fn(&it.executor, job);
    }
}

static void wait_for(const bool *what)
{
    int64_t until = clock_mono_us() + PATIENCE_US;
    while (!*what && clock_mono_us() < until) {
        turn();
        pause_a_moment();
    }
    CHECK(*what);
}

static struct waiting *new_client(void)
{
    struct waiting *w = mem_zalloc(sizeof *w);
    session_init(&w->session, &ops, true);
    w->session.id = server_next_id(&it.server);
    executor_add_session(&it.executor, &w->session);
    return w;
}

static void end_client(struct waiting *w)
{
    block_forget(&it.executor, &w->session);
    executor_remove_session(&it.executor, &w->session);
    session_release(&w->session);
    mem_free(w);
}

static struct query_stats stats(void)
{
    struct query_stats s;
    query_threads_stats(it.server.queries, &s);
    return s;
}

/* ---- the database ---- */

static enum status open_reader(void *arg, bool (*away)(void *arg), void *away_arg, struct store **ret,
                               struct error *err)
{
    struct store_options o = it.reader;
    (void)arg;
    o.away = away;
    o.away_arg = away_arg;
    return store_open(&o, ret, err);
}

static void start(uint32_t threads, uint64_t journal)
{
    struct store_options o = options();
    const struct journal_options j = {.max_bytes = journal, .lag_ms = 1000, .few_rows = 8};
    const struct engine_options e = {.databases = DATABASES, .cache_memory = 1 << 20};
    const struct query_threads_options q = {.threads = threads, .databases = DATABASES, .open = open_reader};
    o.url = alone_url();
    CHECK_OK(journal_store_open(&o, &j, &it.store, &it.err), &it.err);
    if (!it.store)
        exit(EXIT_FAILURE);
    CHECK_OK(engine_new(it.store, &e, &it.engine, &it.err), &it.err);
    it.reader = o;
    it.reader.read_only = it.reader.peeks = true;
    it.reader.beside = journal_store_writer(it.store);
    pthread_mutex_init(&it.lock, NULL);
    config_init(&it.config);
    server_init(&it.server);
    stats_init(&it.server);
    it.executor.job_over = job_over;
    executor_init(&it.executor, &it.server, &it.config, it.engine);
    it.server.queries = query_threads_new(&q);
}

static void end(void)
{
    query_threads_stop(it.server.queries);
    turn();
    CHECK_EQ(atomic_load(&it.alive), 0);
    query_threads_free(it.server.queries);
    executor_release(&it.executor);
    stats_release(&it.server);
    server_release(&it.server);
    config_release(&it.config);
    engine_free(it.engine);
    store_close(it.store);
    memset(&it, 0, sizeof it);
}

/* ---- jobs ---- */

struct test_job {
    struct query_job base; /* first */
    bool spins;            /* until it is told to end */
    int64_t total, count;
    _Atomic bool began;
};

static void *open_tools(void)
{
    return mem_zalloc(1);
}

static void close_tools(void *tools)
{
    mem_free(tools);
}

static enum status spin(struct test_job *j, struct error *err)
{
    while (!atomic_load(&j->base.cancel) && clock_mono_us() < j->base.deadline_us)
        pause_a_moment();
    return error_set(err, ST_BUSY, "told to end");
}

struct sum {
    int64_t total, count;
};

static enum status add(void *arg, struct slice key, const struct key_row *row)
{
    struct sum *sum = arg;
    int64_t n = 0;
    CHECK(num_parse_i64(row->value, &n));
    *(slice_is(key, "count") ? &sum->count : &sum->total) += n;
    return ST_OK;
}

/* Key by key: pages of a scan are many reads of the one snapshot. */
static enum status run(struct query_job *base, void *tools, struct engine *e, struct error *err)
{
    struct view *v = engine_view(e);
    struct test_job *j = (struct test_job *)base;
    CHECK(tools != NULL);
    atomic_store(&j->began, true);
    if (j->spins)
        return spin(j, err);
    struct sum sum = {0};
    for (int i = 0; i <= KEYS; i++) {
        char name[16];
        const struct row *row;
        if (i < KEYS)
            snprintf(name, sizeof name, "k%d", i);
        else
            snprintf(name, sizeof name, "count");
        enum status st = view_get(v, 0, slice_str(name), &row);
        if (st != ST_OK)
            return st;
        struct key_row k = {.value = row ? row_value(row) : SLICE("0")};
        CHECK_OK(add(&sum, slice_str(name), &k), err);
    }
    j->total = sum.total;
    j->count = sum.count;
    return ST_OK;
}

static void free_job(struct query_job *j)
{
    atomic_fetch_sub(&it.alive, 1);
    mem_free(j);
}

static const struct query_job_kind kind = {open_tools, close_tools, run, free_job};

/* The client's command: made, and (begins) its transaction stands. */
static struct test_job *ask(struct waiting *w, bool spins, bool begins)
{
    struct test_job *j = mem_zalloc(sizeof *j);
    struct call c = {.executor = &it.executor, .session = &w->session};
    atomic_fetch_add(&it.alive, 1);
    query_job_init(&j->base, &kind, &it.executor);
    j->spins = spins;
    CHECK(query_can_move(&c));
    query_job_begin(&j->base, &c);
    CHECK(c.moved && w->blocked && block_waits_for_job(&w->session));
    if (begins)
        block_start_jobs(&it.executor);
    return j;
}

/* It runs again, and takes what there is. */
static struct test_job *take(struct waiting *w)
{
    struct call c = {.executor = &it.executor, .session = &w->session};
    return (struct test_job *)query_job_of(&c, &kind);
}

static void wait_to_begin(struct test_job *j)
{
    int64_t until = clock_mono_us() + PATIENCE_US;
    while (!atomic_load(&j->began) && clock_mono_us() < until) {
        turn();
        pause_a_moment();
    }
    CHECK(atomic_load(&j->began));
}

/* ---- tests ---- */

static void put(const char *name, int64_t n)
{
    char *text = arena_alloc(view_arena(engine_view(it.engine)), 24);
    snprintf(text, 24, "%lld", (long long)n);
    CHECK_OK(view_set_string(engine_view(it.engine), 0, slice_str(name), slice_str(text), EXPIRE_NEVER),
             engine_error(it.engine));
}

static void write_amounts(const int64_t *amounts, const int *which, int n, int64_t count)
{
    struct error no_writes;
    CHECK_OK(engine_begin(it.engine, true, &no_writes, &it.err), &it.err);
    engine_enter(it.engine);
    for (int i = 0; i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, "k%d", which[i]);
        put(name, amounts[which[i]]);
    }
    put("count", count);
    engine_leave(it.engine, true);
    CHECK_OK(engine_commit(it.engine, NULL, &it.err), &it.err);
}

/* Each sum is of one state, and not of an older one than the client could know. */
static void jobs_see_one_state(void)
{
    static const uint64_t journals[] = {64 << 10, 0};
    static int64_t amounts[KEYS];
    static int all[KEYS];
    for (size_t m = 0; m < 2; m++) {
        new_place();
        start(2, journals[m]);
        struct rand rnd;
        rand_init(&rnd);
        for (int i = 0; i < KEYS; i++) {
            amounts[i] = AMOUNT;
            all[i] = i;
        }
        int64_t count = 1, until = clock_mono_us() + PATIENCE_US;
        write_amounts(amounts, all, KEYS, count);
        struct waiting *w[2] = {new_client(), new_client()};
        int64_t asked[2] = {0};
        for (int sums = 0; sums < 40 && clock_mono_us() < until;) {
            int two[2] = {(int)rand_below(&rnd, KEYS), (int)rand_below(&rnd, KEYS)};
            if (!engine_full(it.engine)) {
                amounts[two[0]]--;
                amounts[two[1]]++;
                write_amounts(amounts, two, 2, ++count);
            }
            turn();
            for (int i = 0; i < 2; i++) {
                struct test_job *j = take(w[i]);
                if (j) {
                    CHECK_OK(j->base.status, &j->base.err);
                    CHECK_EQ(j->base.end, QUERY_ENDED);
                    CHECK_EQ(j->total, KEYS * AMOUNT);
                    CHECK(j->count >= asked[i]);
                    block_forget_answer(&it.executor, &w[i]->session);
                    sums++;
                } else if (!block_waits_for_job(&w[i]->session)) {
                    ask(w[i], false, true);
                    asked[i] = count;
                }
            }
        }
        CHECK(stats().done >= 40);
        printf("    %lld commits, %llu jobs\n", (long long)count, (unsigned long long)stats().done);
        for (int i = 0; i < 2; i++)
            end_client(w[i]);
        end();
        leave_place();
    }
}

static void a_client_ends_its_job(void)
{
    start(1, 1 << 20);
    struct waiting *w = new_client();
    wait_to_begin(ask(w, true, true));
    block_give_up(&it.executor, &w->session, true);
    CHECK(w->went_on);
    CHECK_EQ(take(w)->base.end, QUERY_UNBLOCKED_BY_ERROR);
    block_forget_answer(&it.executor, &w->session);

    wait_to_begin(ask(w, true, true));
    end_client(w); /* disconnected */
    CHECK_EQ(stats().cancelled, 2);

    w = new_client(); /* the thread is free again */
    w->went_on = false;
    ask(w, false, true);
    wait_for(&w->went_on);
    CHECK_EQ(take(w)->base.end, QUERY_ENDED);
    end_client(w); /* before it has taken its answer */
    end();
}

static void a_job_that_is_taken_back_never_begins(void)
{
    start(1, 1 << 20);
    struct waiting *w = new_client();
    struct session_state was = session_keep(&w->session);
    ask(w, false, false);
    session_restore(&w->session, &was);
    session_let_go(&w->session);
    CHECK_EQ(atomic_load(&it.alive), 0);
    block_start_jobs(&it.executor);
    CHECK_EQ(stats().waiting + stats().running, 0);
    end_client(w);
    end();
}

static void time_is_up(void)
{
    start(1, 1 << 20);
    it.config.sql_timeout_ms = 20;
    struct waiting *w = new_client(), *behind = new_client();
    ask(w, true, true);
    it.config.sql_timeout_ms = 30;
    ask(behind, true, true); /* it comes to a thread when its time is over, or shortly before */
    wait_for(&w->went_on);
    CHECK_EQ(take(w)->base.end, QUERY_LATE);
    wait_for(&behind->went_on);
    CHECK_EQ(take(behind)->base.end, QUERY_LATE);
    CHECK_EQ(stats().timed_out, 2);
    end_client(w);
    end_client(behind);
    end();
}

static void one_that_waits_for_a_thread_can_leave(void)
{
    start(1, 1 << 20);
    struct waiting *w[4];
    struct test_job *first = NULL;
    for (int i = 0; i < 4; i++) {
        w[i] = new_client();
        struct test_job *j = ask(w[i], i == 0, true);
        if (i == 0)
            wait_to_begin(first = j);
    }
    CHECK_EQ(stats().waiting, 3);
    end_client(w[2]);
    end_client(w[3]); /* the last */
    CHECK_EQ(stats().waiting, 1);
    struct waiting *late = new_client();
    ask(late, false, true);
    end_client(w[0]);
    wait_for(&w[1]->went_on);
    wait_for(&late->went_on);
    CHECK_EQ(take(w[1])->base.end, QUERY_ENDED);
    CHECK_EQ(take(late)->base.end, QUERY_ENDED);
    end_client(w[1]);
    end_client(late);
    end();
}

#define MANY 1002

static void too_many_are_refused(void)
{
    static struct waiting *w[MANY];
    start(1, 1 << 20);
    for (int i = 0; i < MANY; i++) {
        w[i] = new_client();
        struct test_job *j = ask(w[i], true, true);
        if (i == 0)
            wait_to_begin(j);
    }
    CHECK_EQ(stats().refused, 1);
    CHECK_EQ(take(w[MANY - 1])->base.end, QUERY_REFUSED);
    for (int i = 0; i < MANY; i++)
        end_client(w[i]);
    end();
}

static void the_end_comes_while_jobs_run(void)
{
    start(2, 1 << 20);
    struct waiting *w[3];
    struct test_job *jobs[3];
    for (int i = 0; i < 3; i++) {
        w[i] = new_client();
        jobs[i] = ask(w[i], true, true);
    }
    wait_to_begin(jobs[0]);
    wait_to_begin(jobs[1]);
    block_end_jobs(&it.executor);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(take(w[i])->base.end, QUERY_SHUTDOWN);
        end_client(w[i]);
    }
    struct waiting *last = new_client(); /* nobody has told it */
    ask(last, true, true);
    query_threads_stop(it.server.queries);
    turn();
    end_client(last);
    end();
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    RUN(jobs_see_one_state);
    IN_NEW_PLACE(a_client_ends_its_job);
    IN_NEW_PLACE(a_job_that_is_taken_back_never_begins);
    IN_NEW_PLACE(time_is_up);
    IN_NEW_PLACE(one_that_waits_for_a_thread_can_leave);
    IN_NEW_PLACE(too_many_are_refused);
    IN_NEW_PLACE(the_end_comes_while_jobs_run);
    return check_done();
}
