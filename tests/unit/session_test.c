/* What a re-run, and an EXEC that the database fails, restore of a session: all of its state, whatever has
   happened to it, and what the state points to. */
#include "exec/session.h"

#include <string.h>

#include "exec/executor.h"
#include "exec/txn.h"
#include "exec/undo.h"
#include "stats/stats.h"
#include "stats/sums.h"
#include "world.h"

struct fixture {
    struct world world;
    struct config config;
    struct server server;
    struct executor executor;
    struct session session;
};

static const struct session_ops no_socket = {0};

static bool start(struct fixture *f)
{
    if (!world_start(&f->world))
        return false;
    config_init(&f->config);
    server_init(&f->server);
    stats_init(&f->server);
    executor_init(&f->executor, &f->server, &f->config, f->world.engine);
    session_init(&f->session, &no_socket, true);
    executor_add_session(&f->executor, &f->session);
    return true;
}

static void stop(struct fixture *f)
{
    executor_remove_session(&f->executor, &f->session);
    session_release(&f->session);
    executor_release(&f->executor);
    stats_release(&f->server);
    server_release(&f->server);
    config_release(&f->config);
    world_end(&f->world);
}

static void set_name(struct session *s, const char *name)
{
    session_set_text(s, SESSION_NAME, slice_str(name));
}

static const char *name_of(const struct session *s)
{
    return session_text(s, SESSION_NAME);
}

/* None of the members is zero. */
static void fill(struct fixture *f)
{
    struct session *s = &f->session;
    s->state.db = 2;
    s->state.resp = 3;
    s->state.no_evict = true;
    s->state.reply_mode = SESSION_REPLY_SKIP;
    s->state.last = command_find(SLICE("get"));
    session_set_text(s, SESSION_NAME, SLICE("name"));
    session_set_text(s, SESSION_LIB_NAME, SLICE("lib"));
    session_set_text(s, SESSION_LIB_VER, SLICE("1.2"));
    s->state.txn.spoilt = s->state.txn.writes = s->state.txn.outside = s->state.txn.stops_workers = true;
    s->state.txn.phase = TXN_OPEN;
    s->state.txn.nqueue = 5;
}

/* Every byte is another one afterwards: a member that is added later is among them. */
static void overwrite(struct fixture *f)
{
    executor_set_monitor(&f->executor, &f->session, true); /* as the bytes say */
    memset(&f->session.state, 1, sizeof f->session.state);
}

static void a_rerun_restores_every_member(void)
{
    struct fixture f = {0};
    REQUIRE(start(&f));
    fill(&f);
    struct session_state was;
    memcpy(&was, &f.session.state, sizeof was);

    undo_begin(&f.executor);
    undo_keep(&f.executor, &f.session);
    overwrite(&f);
    undo_take_back(&f.executor);
    CHECK(memcmp(&was, &f.session.state, sizeof was) == 0);
    CHECK_EQ(f.executor.nmonitors, 0);
    CHECK_EQ(f.session.copies, 0);
    stop(&f);
}

static void a_failed_exec_restores_every_member(void)
{
    struct fixture f = {0};
    REQUIRE(start(&f));
    fill(&f);
    const struct session_state was = session_keep(&f.session);
    overwrite(&f);
    session_restore(&f.session, &was);
    session_let_go(&f.session);
    CHECK(memcmp(&was, &f.session.state, sizeof was) == 0);
    CHECK_EQ(f.server.nmonitors, 0);
    stop(&f);
}

static void names_live_as_long_as_a_copy_has_them(void)
{
    struct fixture f = {0};
    struct session *s = &f.session;
    REQUIRE(start(&f));
    set_name(s, "before");
    for (int back = 0; back < 2; back++) {
        undo_begin(&f.executor);
        undo_keep(&f.executor, s);
        set_name(s, "one");
        const struct session_state inner = session_keep(s);
        set_name(s, "two");
        session_restore(s, &inner);
        session_let_go(s);
        CHECK_STR(name_of(s), "one");
        (void)session_keep(s);
        set_name(s, "three");
        session_let_go(s);
        CHECK_STR(name_of(s), "three");
        if (back)
            undo_take_back(&f.executor);
        else
            undo_end(&f.executor);
        CHECK_STR(name_of(s), "three"); /* of the first round */
    }
    session_reset(s, true);
    CHECK_STR(name_of(s), "");
    CHECK(s->words == NULL);
    stop(&f);
}

static void the_books_of_a_rerun_are_empty(void)
{
    struct fixture f = {0};
    struct executor *s = &f.executor;
    REQUIRE(start(&f));
    for (int back = 1; back >= 0; back--) {
        undo_begin(s);
        int get = command_index(command_find(SLICE("get")));
        books_add_call(&s->books, get, 7);
        books_count(&s->books, BOOKS_FAILED, (uint32_t)get);
        books_count(&s->books, BOOKS_HTTP_ANSWER, 404);
        executor_note_error(s, "WRONGTYPE");
        stats_post(s); /* not while it may be run again */
        CHECK_EQ(s->stats.commands, 0);
        if (back)
            undo_take_back(s);
        else
            undo_end(s);
        stats_post(s);
        CHECK_EQ(s->stats.commands, !back);
        CHECK_EQ(s->stats.errors, !back);
        CHECK_EQ(s->stats.http_answers[404], !back);
        CHECK_EQ(s->command_stats[get].failed, !back);
        CHECK_EQ(s->errors.n, !back);
    }
    stop(&f);
}

/* A script that runs a million commands: all are told, with little memory. */
static void many_calls_fit_the_books(void)
{
    struct fixture f = {0};
    struct executor *s = &f.executor;
    REQUIRE(start(&f));
    int get = command_index(command_find(SLICE("get"))), set = command_index(command_find(SLICE("set")));
    uint64_t us = 0;
    for (int i = 0; i < 1000000; i++) {
        books_add_call(&s->books, i % 3 ? get : set, i % 100);
        us += i % 3 ? (uint64_t)i % 100 : 0;
        books_count(&s->books, i % 2 ? BOOKS_FAILED : BOOKS_REJECTED, (uint32_t)set);
    }
    CHECK(s->books.cap_calls <= 131072 && s->books.cap_events <= 131072);
    CHECK_EQ(books_calls(&s->books), 1000000);
    CHECK_EQ(sums_command(s, get).calls, 666666);
    CHECK_EQ(sums_command(s, get).us, us);
    stats_post(s);
    CHECK_EQ(s->stats.commands, 1000000);
    CHECK_EQ(sums_command(s, get).calls, 666666);
    CHECK_EQ(sums_command(s, get).us, us);
    CHECK_EQ(sums_command(s, set).failed, 500000);
    CHECK_EQ(sums_command(s, set).rejected, 500000);
    CHECK_EQ(books_calls(&s->books), 0);
    stop(&f);
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    RUN(a_rerun_restores_every_member);
    RUN(a_failed_exec_restores_every_member);
    RUN(names_live_as_long_as_a_copy_has_them);
    RUN(the_books_of_a_rerun_are_empty);
    RUN(many_calls_fit_the_books);
    return check_done();
}
