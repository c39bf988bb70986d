/* The worker under a database that fails: a pipeline's replies stay in order, those that rely on the commit
   become errors when it fails, the others are answered, and what a client was told is what is there. */
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/buf.h"
#include "base/log.h"
#include "config/config.h"
#include "http/http_client.h"
#include "server/workers.h"
#include "world.h"

static const struct protocol *const protocols[PROTOCOLS] = {&resp_protocol, &http_protocol};

struct service {
    struct world world;
    struct config config;
    struct workers *workers;
    pthread_t thread;
    char path[100];
    struct error err;
};

static void *serve(void *arg)
{
    struct service *s = arg;
    CHECK_OK(workers_run(s->workers, &s->err), &s->err);
    return NULL;
}

static void set(struct service *s, const char *name, const char *value)
{
    CHECK_OK(config_set(&s->config, config_find(slice_str(name)), slice_str(value), NULL, &s->err), &s->err);
}

static bool start(struct service *s)
{
    *s = (struct service){0};
    if (!world_start(&s->world))
        return false;
    snprintf(s->path, sizeof s->path, "%s/socket", s->world.folder);
    config_init(&s->config);
    set(s, "port", "0");
    set(s, "unixsocket", s->path);
    set(s, "sweep", "no");
    return check_ok(workers_new(&s->config, protocols, &s->world.engine, 1, &s->workers, &s->err), &s->err,
                    __FILE__, __LINE__, "workers_new") &&
           check_that(pthread_create(&s->thread, NULL, serve, s) == 0, __FILE__, __LINE__, "pthread_create");
}

static void stop(struct service *s)
{
    workers_stop(s->workers);
    pthread_join(s->thread, NULL);
    workers_free(s->workers);
    config_release(&s->config);
    world_end(&s->world);
}

static int dial(const struct service *s)
{
    struct sockaddr_un sun = {.sun_family = AF_UNIX};
    snprintf(sun.sun_path, sizeof sun.sun_path, "%s", s->path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct timeval patience = {.tv_sec = 20};
    CHECK(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0);
    CHECK(connect(fd, (struct sockaddr *)&sun, sizeof sun) == 0);
    return fd;
}

/* Sends inline commands and reads as many replies; each is one line here, a bulk its two. */
static void ask(int fd, const char *commands, char replies[][256], int n)
{
    CHECK(send(fd, commands, strlen(commands), MSG_NOSIGNAL) == (ssize_t)strlen(commands));
    struct buf in = {0};
    size_t at = 0;
    for (int i = 0; i < n; i++) {
        bool second = false;
        replies[i][0] = '\0';
        for (;;) {
            const char *end = at < in.len ? memchr(in.p + at, '\n', in.len - at) : NULL;
            if (!end) {
                ssize_t got = recv(fd, buf_reserve(&in, 4096), 4096, 0);
                if (!check_that(got > 0, __FILE__, __LINE__, "a reply")) {
                    buf_release(&in);
                    return;
                }
                in.len += (size_t)got;
                continue;
            }
            struct slice line = slice_of(in.p + at, (size_t)(end - in.p) - at - 1);
            at += line.n + 2;
            if (!second && line.p[0] == '$' && line.n > 1 && line.p[1] != '-') {
                second = true;
                continue;
            }
            snprintf(replies[i], 256, "%.*s", (int)line.n, line.p);
            break;
        }
    }
    CHECK_EQ(at, in.len);
    buf_release(&in);
}

static void expect_one(int fd, const char *command, const char *reply)
{
    char replies[1][256];
    ask(fd, command, replies, 1);
    CHECK_STR(replies[0], reply);
}

static bool failed(const char *reply)
{
    return reply[0] == '-';
}

/* One pipeline with the nth call of the store failing. False when it no longer comes to that many calls. */
static bool try_nth(struct service *s, int fd, uint64_t nth, struct store_fault f)
{
    char replies[7][256], context[64], value[32], command[320];
    f.nth = nth;
    snprintf(context, sizeof context, "nth=%llu status=%s", (unsigned long long)nth, status_name(f.status));
    check.context = context;
    expect_one(fd, "SET a old\r\n", "+OK");
    expect_one(fd, "DEL b\r\n", ":0");
    snprintf(value, sizeof value, "v%llu", (unsigned long long)nth);
    snprintf(command, sizeof command, "PING\r\nGET a\r\nSET a %s\r\nECHO x\r\nGET a\r\nINCR b\r\nPING y\r\n",
             value);
    store_fault_set(s->world.store, f);
    ask(fd, command, replies, 7);
    bool happened = fault_happened(s->world.store);
    store_fault_set(s->world.store, (struct store_fault){0});

    CHECK_STR(replies[0], "+PONG");
    CHECK(failed(replies[1]) || strcmp(replies[1], "old") == 0);
    CHECK_STR(replies[3], "x");
    CHECK_STR(replies[6], "y");
    bool wrote = strcmp(replies[2], "+OK") == 0;
    CHECK(wrote || failed(replies[2]));
    CHECK(failed(replies[4]) || strcmp(replies[4], wrote ? value : "old") == 0);
    bool counted = strcmp(replies[5], ":1") == 0;
    CHECK(counted || failed(replies[5]));
    if (!happened)
        CHECK(wrote && counted);
    /* what was said is what is there, in memory and in the tables */
    if (f.status != ST_UNKNOWN) {
        expect_one(fd, "GET a\r\n", wrote ? value : "old");
        expect_one(fd, "GET b\r\n", counted ? "1" : "$-1");
    }
    ask(fd, "DEL b\r\n", replies, 1);
    CHECK(!failed(replies[0]));
    check.context = NULL;
    return happened;
}

static void every_failure(struct store_fault f)
{
    struct service s;
    REQUIRE(start(&s));
    int fd = dial(&s);
    uint64_t nth = 1;
    while (nth < 100 && try_nth(&s, fd, nth, f))
        nth++;
    CHECK(nth > 3 && nth < 100);
    close(fd);
    stop(&s);
}

static void one_call_fails(void)
{
    static const enum status kinds[] = {ST_IO, ST_FULL, ST_BUSY, ST_READONLY};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        every_failure((struct store_fault){.status = kinds[i]});
}

static void every_later_call_fails(void)
{
    every_failure((struct store_fault){.status = ST_IO, .sticky = true});
}

static void outcome_unknown(void)
{
    every_failure((struct store_fault){.status = ST_UNKNOWN, .late = true});
}

/* A failed batch of two clients: each gets its own replies, rewritten. */
static void two_clients(void)
{
    struct service s;
    char replies[3][256];
    REQUIRE(start(&s));
    int a = dial(&s), b = dial(&s);
    expect_one(a, "SET k 0\r\n", "+OK");
    /* both wait in the pause, and then run in one batch */
    expect_one(a, "CLIENT PAUSE 200 WRITE\r\n", "+OK");
    CHECK(send(b, "INCR k\r\nPING b\r\n", 16, MSG_NOSIGNAL) == 16);
    store_fault_set(s.world.store, (struct store_fault){.nth = 2, .status = ST_IO, .sticky = true});
    ask(a, "PING a\r\nINCR k\r\nECHO z\r\n", replies, 3);
    CHECK_STR(replies[0], "a");
    CHECK(failed(replies[1]));
    CHECK_STR(replies[2], "z");
    ask(b, "", replies, 2);
    CHECK(failed(replies[0]));
    CHECK_STR(replies[1], "b");
    store_fault_set(s.world.store, (struct store_fault){0});
    expect_one(a, "GET k\r\n", "0");
    close(a);
    close(b);
    stop(&s);
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    log_set_level(LOG_ERROR); /* the failures are wanted */
    RUN(one_call_fails);
    RUN(every_later_call_fails);
    RUN(outcome_unknown);
    RUN(two_clients);
    return check_done();
}
