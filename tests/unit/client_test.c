/* What a re-run restores of a connection: all of its progress, its output, its place in the lists, and the
   replies that wait. */
#include "server/client.h"

#include <string.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "server/worker_internal.h"
#include "stats/stats.h"
#include "world.h"

static const struct protocol *const protocols[PROTOCOLS] = {&resp_protocol};

/* A worker whose loop does not run, and one client. */
struct fixture {
    struct world world;
    struct config config;
    struct workers workers;
    struct worker worker;
    struct client *client;
    int peer;
};

static bool start(struct fixture *f)
{
    int fds[2];
    if (!world_start(&f->world) ||
        !check_that(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0, __FILE__, __LINE__, "pair"))
        return false;
    struct worker *w = &f->worker;
    config_init(&f->config);
    f->workers.protocols = protocols;
    server_init(&f->workers.server);
    stats_init(&f->workers.server);
    executor_init(&w->executor, &f->workers.server, &f->config, f->world.engine);
    w->workers = &f->workers;
    w->base = event_base_new();
    f->client = client_new(w, (struct conn){.fd = fds[0], .number = 1, .local = true}, &resp_protocol);
    f->peer = fds[1];
    return true;
}

static void stop(struct fixture *f)
{
    struct worker *w = &f->worker;
    client_kill(f->client);
    client_free(f->client);
    close(f->peer);
    mem_free(w->flush.items);
    held_release(&w->held);
    worker_undo_release(&w->undo);
    event_base_free(w->base);
    executor_release(&w->executor);
    stats_release(&f->workers.server);
    server_release(&f->workers.server);
    config_release(&f->config);
    world_end(&f->world);
}

static void say(struct client *c, const char *text)
{
    buf_add_slice(&c->out, slice_str(text));
}

static void expect_output(const struct client *c, const char *text)
{
    if (!check_that(slice_eq(buf_slice(&c->out), slice_str(text)), __FILE__, __LINE__, "output"))
        printf("    %.*s, not %s\n", (int)c->out.len, c->out.p, text);
}

/* Every byte is another one afterwards: a member that is added later is among them. The state alone is one
   that there is, with its list. */
static void overwrite(struct client *c)
{
    client_pause(c, 1);
    enum client_state state = c->run.state;
    memset(&c->run, 1, sizeof c->run);
    c->run.state = state;
}

static void a_rerun_restores_every_member(void)
{
    struct fixture f = {0};
    REQUIRE(start(&f));
    struct client *c = f.client;
    struct worker *w = &f.worker;
    client_change_state(c, CLIENT_BATCHED);
    c->run.done = 7;
    c->run.shape = 3;
    c->run.queued_us = 4;
    say(c, "before ");
    struct client_progress was;
    memcpy(&was, &c->run, sizeof was);

    worker_undo_begin(w);
    worker_undo_keep(w, c);
    say(c, "meanwhile");
    overwrite(c);
    CHECK_EQ(w->paused.n, 1);
    CHECK(!c->conn.reading);
    worker_undo_take_back(w);
    CHECK(memcmp(&was, &c->run, sizeof was) == 0);
    CHECK_EQ(w->paused.n, 0);
    CHECK(c->conn.reading && !c->kept);
    expect_output(c, "before ");
    stop(&f);
}

static void what_stands_is_not_restored(void)
{
    struct fixture f = {0};
    REQUIRE(start(&f));
    struct client *c = f.client;
    struct worker *w = &f.worker;
    client_change_state(c, CLIENT_BATCHED);
    worker_undo_begin(w);
    worker_undo_keep(w, c);
    say(c, "it");
    c->run.done = 5;
    client_pause(c, 9);
    worker_undo_end(w);
    CHECK_EQ(c->run.done, 5);
    CHECK_EQ(c->run.pause_until_us, 9);
    CHECK_EQ(w->paused.n, 1);
    expect_output(c, "it");
    stop(&f);
}

static void the_dead_stay_dead(void)
{
    struct fixture f = {0};
    REQUIRE(start(&f));
    client_change_state(f.client, CLIENT_BATCHED);
    worker_undo_begin(&f.worker);
    worker_undo_keep(&f.worker, f.client);
    client_kill(f.client);
    worker_undo_take_back(&f.worker);
    CHECK_EQ(f.client->run.state, CLIENT_DEAD);
    CHECK_EQ(f.worker.dead.n, 1);
    stop(&f);
}

/* ---- replies that wait ---- */

static void reply(struct fixture *f, const char *text, int64_t ticket)
{
    size_t from = f->client->out.len;
    say(f->client, text);
    held_add(&f->worker, f->client, from, worker_ticket(&f->worker, ticket), 0);
}

static size_t lines(const struct client *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->out.len; i++)
        n += c->out.p[i] == '\n';
    return n;
}

/* Tickets far behind all that is durable. */
#define EARLIER 1000001
#define LATER   1000002

/* A transaction that reads what an earlier one has changed waits for the earlier one's ticket, behind a reply
   that does so too. Run again, each reply stands there once, and so does the error in its place. */
static void fail_after_rerun(int64_t from, const char *begins)
{
    struct fixture f = {0};
    REQUIRE(start(&f));
    struct client *c = f.client;
    struct worker *w = &f.worker;
    reply(&f, "+1\r\n", EARLIER);
    for (int back = 1; back >= 0; back--) {
        worker_undo_begin(w);
        worker_undo_keep(w, c);
        reply(&f, "+22\r\n", EARLIER);
        reply(&f, "+333\r\n", LATER);
        reply(&f, "+4444\r\n", LATER);
        if (back)
            worker_undo_take_back(w);
        else
            worker_undo_end(w);
        expect_output(c, back ? "+1\r\n" : "+1\r\n+22\r\n+333\r\n+4444\r\n");
        CHECK_EQ(held_free_output(w, c), 0);
    }
    struct error err;
    (void)error_set(&err, ST_IO, "no");
    held_fail(w, worker_ticket(w, from), &err);
    CHECK(c->out.len > strlen(begins) && memcmp(c->out.p, begins, strlen(begins)) == 0);
    CHECK_EQ(lines(c), 4);
    CHECK_EQ(c->run.held_first, 0);
    CHECK_EQ(held_free_output(w, c), c->out.len);
    stop(&f);
}

static void replies_that_wait_are_as_before(void)
{
    fail_after_rerun(LATER, "+1\r\n+22\r\n-");
    fail_after_rerun(EARLIER, "-");
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    RUN(a_rerun_restores_every_member);
    RUN(what_stands_is_not_restored);
    RUN(the_dead_stay_dead);
    RUN(replies_that_wait_are_as_before);
    return check_done();
}
