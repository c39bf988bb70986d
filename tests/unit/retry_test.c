/* Transactions that others are in the way of: whichever call of the store says so, clients get what they
   would have got, the books say what they would have said, and nothing happens twice.

   A scenario is a list of lines, each for one client: commands that are sent at once, in one pipeline. It is
   played without a failure first, and then with the 1st, 2nd, ... call of the store failing once. */
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/buf.h"
#include "base/log.h"
#include "config/config.h"
#include "http/http_client.h"
#include "server/workers.h"
#include "world.h"

#define CLIENTS 4
#define CONTROL (CLIENTS - 1)

static const struct protocol *const protocols[PROTOCOLS] = {&resp_protocol, &http_protocol};

struct service {
    struct world world;
    struct config config;
    struct workers *workers;
    pthread_t thread;
    char path[100];
    struct error err;
    int fds[CLIENTS];
    struct buf heard[CLIENTS]; /* all that each client was told */
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

static int free_port(void)
{
    struct sockaddr_in sin = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof sin;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(bind(fd, (struct sockaddr *)&sin, n) == 0);
    CHECK(getsockname(fd, (struct sockaddr *)&sin, &n) == 0);
    close(fd);
    return ntohs(sin.sin_port);
}

static int dial(const struct service *s, bool http)
{
    struct sockaddr_un sun = {.sun_family = AF_UNIX};
    struct sockaddr_in sin = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    snprintf(sun.sun_path, sizeof sun.sun_path, "%s", s->path);
    sin.sin_port = htons((uint16_t)workers_http_port(s->workers));
    int fd = socket(http ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct timeval patience = {.tv_sec = 20};
    CHECK(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0);
    CHECK(connect(fd, http ? (struct sockaddr *)&sin : (struct sockaddr *)&sun,
                  http ? sizeof sin : sizeof sun) == 0);
    return fd;
}

static bool start(struct service *s)
{
    char port[16];
    *s = (struct service){0};
    if (!world_start(&s->world))
        return false;
    s->world.store->contended = true;
    snprintf(s->path, sizeof s->path, "%s/socket", s->world.folder);
    config_init(&s->config);
    snprintf(port, sizeof port, "%d", free_port());
    set(s, "port", "0");
    set(s, "bind", "127.0.0.1");
    set(s, "http-port", port);
    set(s, "unixsocket", s->path);
    set(s, "sweep", "no");
    set(s, "slowlog-log-slower-than", "0");
    if (!check_ok(workers_new(&s->config, protocols, &s->world.engine, 1, &s->workers, &s->err), &s->err,
                  __FILE__, __LINE__, "workers_new") ||
        !check_that(pthread_create(&s->thread, NULL, serve, s) == 0, __FILE__, __LINE__, "pthread_create"))
        return false;
    for (int i = 0; i < CLIENTS; i++)
        s->fds[i] = -1;
    return true;
}

static void stop(struct service *s)
{
    for (int i = 0; i < CLIENTS; i++) {
        if (s->fds[i] >= 0)
            close(s->fds[i]);
        buf_release(&s->heard[i]);
    }
    workers_stop(s->workers);
    pthread_join(s->thread, NULL);
    workers_free(s->workers);
    config_release(&s->config);
    world_end(&s->world);
}

/* ---- talking ---- */

static void say(struct service *s, int who, const char *text)
{
    if (s->fds[who] < 0)
        s->fds[who] = dial(s, false);
    CHECK(send(s->fds[who], text, strlen(text), MSG_NOSIGNAL) == (ssize_t)strlen(text));
}

/* Listens until a client has been told the text, or that is all. */
static void hear(struct service *s, int who, const char *until)
{
    struct buf *in = &s->heard[who];
    size_t from = in->len > 64 ? in->len - 64 : 0;
    while (!until || !in->len || !memmem(in->p + from, in->len - from, until, strlen(until))) {
        ssize_t got = recv(s->fds[who], buf_reserve(in, 65536), 65536, 0);
        if (got <= 0) {
            CHECK(got == 0 && !until);
            return;
        }
        in->len += (size_t)got;
    }
}

/* Commands with semicolons between them, on lines of their own. Returns how many. */
static size_t add_lines(struct buf *out, const char *commands)
{
    size_t n = 1;
    for (const char *p = commands; *p; p++) {
        if (*p != ';') {
            buf_add(out, p, 1);
            continue;
        }
        buf_add(out, "\r\n", 2);
        n++;
    }
    return n;
}

/* Sends commands that are only queued, and so have answers of one line. */
static void ask_to_queue(struct service *s, int who, const char *commands)
{
    struct buf text = {0};
    size_t n = add_lines(&text, commands);
    buf_add(&text, "\r\n", 3);
    say(s, who, text.p);
    buf_release(&text);
    for (struct buf *in = &s->heard[who]; n > 0; n--) {
        size_t from = in->len;
        for (char c = 0; c != '\n' && recv(s->fds[who], &c, 1, 0) == 1;)
            buf_add(in, &c, 1);
        CHECK(in->len > from);
    }
}

/* Sends commands and an ECHO, whose answer is the last. */
static void ask(struct service *s, int who, const char *commands)
{
    static int asked;
    char last[32];
    struct buf text = {0};
    add_lines(&text, commands);
    snprintf(last, sizeof last, "<%08d>", asked = (asked + 1) % 100000000);
    buf_addf(&text, "\r\nECHO %s\r\n", last);
    buf_add(&text, "", 1);
    say(s, who, text.p);
    hear(s, who, last);
    s->heard[who].len -= strlen(last) + 2; /* with its CR LF: it is another each time */
    buf_release(&text);
}

/* Waits until so many clients are something. */
static void await(struct service *s, const char *what, int n)
{
    char wanted[64];
    snprintf(wanted, sizeof wanted, "%s:%d\r\n", what, n);
    for (int i = 0; i < 2000; i++) {
        s->heard[CONTROL].len = 0;
        ask(s, CONTROL, "INFO clients");
        struct slice told = buf_slice(&s->heard[CONTROL]);
        if (memmem(told.p, told.n, wanted, strlen(wanted)))
            return;
        usleep(1000);
    }
    (void)check_that(false, __FILE__, __LINE__, "clients are what they should be");
}

/* ---- what must not differ ---- */

/* The counters that tell how often something happened; not how long it took. */
static void add_books(struct service *s, struct buf *out)
{
    static const char *const wanted[] = {"cmdstat_", "errorstat_", "keyspace_", "total_error_replies"};
    s->heard[CONTROL].len = 0;
    ask(s, CONTROL, "INFO everything");
    struct slice text = buf_slice(&s->heard[CONTROL]);
    for (const char *p = text.p, *end = text.p + text.n, *next; p < end; p = next) {
        next = memchr(p, '\n', (size_t)(end - p));
        next = next ? next + 1 : end;
        bool take = false;
        for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
            take |= strncmp(p, wanted[i], strlen(wanted[i])) == 0;
        if (!take || strncmp(p, "cmdstat_info", 12) == 0 || strncmp(p, "cmdstat_echo", 12) == 0)
            continue;
        const char *usec = memmem(p, (size_t)(next - p), ",usec=", 6);
        const char *rest = memmem(p, (size_t)(next - p), ",rejected", 9);
        buf_add(out, p, (size_t)((usec ? usec : next) - p));
        if (usec && rest)
            buf_add(out, rest, (size_t)(next - rest));
    }
}

struct scenario {
    const char *name;
    const char *lines[12]; /* "0 GET a;GET b": client 0 asks; "0*MULTI;SET a b": it queues; "0~...": it
                              blocks; "!": calls fail from here */
    const char *look;      /* how it is looked at afterwards */
    bool slowlog;          /* as long as it would have been */
};

/* As a new server, but for what has been deleted. */
static void begin_anew(struct service *s)
{
    for (int i = 0; i < CLIENTS; i++) {
        if (s->fds[i] >= 0)
            close(s->fds[i]);
        s->fds[i] = -1;
        s->heard[i].len = 0;
    }
    await(s, "connected_clients", 1);
    ask(s, CONTROL, "FLUSHALL;CONFIG RESETSTAT;SLOWLOG RESET");
}

/* Plays a scenario with the nth call failing, 0: none. What was heard and counted goes to out. False: it did
   not come to that many calls. */
static bool play(struct service *s, const struct scenario *c, uint64_t nth, struct buf *out)
{
    int blocked = 0;
    begin_anew(s);
    for (size_t i = 0; c->lines[i]; i++) {
        const char *line = c->lines[i];
        if (line[0] == '!') {
            store_fault_set(s->world.store, (struct store_fault){.nth = nth, .status = ST_CONFLICT});
        } else if (line[1] == '~') {
            char text[256];
            snprintf(text, sizeof text, "%s\r\n", line + 2);
            say(s, line[0] - '0', text);
            await(s, "blocked_clients", ++blocked);
        } else if (line[1] == '*') {
            ask_to_queue(s, line[0] - '0', line + 2);
        } else {
            ask(s, line[0] - '0', line + 2);
        }
    }
    bool happened = fault_happened(s->world.store);
    store_fault_set(s->world.store, (struct store_fault){0});
    for (int i = 0; i < CONTROL; i++) {
        if (s->fds[i] < 0)
            continue;
        ask(s, i, "PING");
        buf_addf(out, "client %d:\n", i);
        buf_add_slice(out, buf_slice(&s->heard[i]));
    }
    add_books(s, out);
    s->heard[CONTROL].len = 0;
    ask(s, CONTROL, c->look);
    if (c->slowlog)
        ask(s, CONTROL, "SLOWLOG LEN");
    buf_add_slice(out, buf_slice(&s->heard[CONTROL]));
    return happened;
}

/* Where they differ, with what is before it. */
static void expect_same(const struct buf *prefetch, const struct buf *got)
{
    size_t i = 0;
    while (i < prefetch->len && i < got->len && prefetch->p[i] == got->p[i])
        i++;
    if (check_that(i == prefetch->len && i == got->len, __FILE__, __LINE__, "the same"))
        return;
    size_t from = i > 200 ? i - 200 : 0;
    printf("---- expected\n%.*s\n---- got\n%.*s\n",
           (int)(prefetch->len - from < 300 ? prefetch->len - from : 300), prefetch->p + from,
           (int)(got->len - from < 300 ? got->len - from : 300), got->p + from);
}

static void as_if_nothing_happened(const struct scenario *c)
{
    struct service s;
    struct buf prefetch = {0};
    uint64_t nth = 1;
    REQUIRE(start(&s));
    (void)play(&s, c, 0, &prefetch);
    for (bool happened = true; happened && nth < 60; nth++) {
        struct buf got = {0};
        char context[96];
        snprintf(context, sizeof context, "%s, call %llu", c->name, (unsigned long long)nth);
        check.context = context;
        happened = play(&s, c, nth, &got);
        expect_same(&prefetch, &got);
        buf_release(&got);
        check.context = NULL;
    }
    CHECK(nth > 3 && nth < 60);
    buf_release(&prefetch);
    stop(&s);
}

static const struct scenario scenarios[] = {
    {"rows of every kind",
     {"0 SET a 1;RPUSH l x y", "!",
      "0 INCR a;GET a;SET new v EX 100;HSET h f v g w;HINCRBY h n 3;RPUSH l z;LPOP l;SADD s a b;SPOP none;"
      "ZADD z 1 m 2 n;ZRANGE z 0 -1;INCR h;NOSUCH x;GET;SELECT 1;SET b 2;SELECT 0;RENAME new newer;COPY a c;"
      "SORT l BY w_* STORE sorted;DEL a;DBSIZE;EXISTS a b c;INCR a"},
     "GET a;TTL newer;HGETALL h;LRANGE l 0 -1;SMEMBERS s;ZRANGE z 0 -1;LRANGE sorted 0 -1;DBSIZE",
     true},
    {"EXEC of a queue that was there",
     {"0*SET k 1;WATCH k;MULTI;INCR k;SELECT 1;INCR n;GET none", "!",
      "0 EXEC;GET n;MULTI;INCR n;DISCARD;MULTI;INCR n;EXEC;SELECT 0;GET k"},
     "GET k;SELECT 1;GET n",
     true},
    {"a queue that grows",
     {"0*SET k 1;WATCH k;MULTI;INCR k", "!", "0 INCR other;SELECT 1;INCR n;EXEC;INCR n", "0 EXEC"},
     "MGET k other",
     false},
    {"WATCH and EXEC at once",
     {"0 SET k 1", "!",
      "0 INCR k;WATCH k;MULTI;INCR k;EXEC;WATCH k none;INCR k;MULTI;GET k;EXEC;WATCH none;UNWATCH;GET k"},
     "GET k",
     true},
    {"a watched key that another changes",
     {"0 SET k 1;WATCH k gone", "1 PING", "!", "1 SET gone x;DEL gone;INCR other", "0 MULTI;GET k;EXEC"},
     "MGET k gone other",
     false},
    {"blocked clients in their order",
     {"0~BLPOP l 0", "1~BLPOP l m 0", "!", "2 INCR n;RPUSH l a;INCR n;RPUSH m b c;LLEN m;GET n"},
     "LRANGE l 0 -1;LRANGE m 0 -1;GET n",
     false},
    {"a client that blocks, and others that are served",
     {"0~BLMOVE l t LEFT RIGHT 0", "!", "1 RPUSH t z;RPUSH l a b;BLPOP l 0;GET x;LRANGE t 0 -1", "2 SET y 1"},
     "LRANGE l 0 -1;LRANGE t 0 -1",
     false},
    {"a client that goes on behind its block",
     {"0~BZPOPMIN z 0\r\nSET after 1\r\nINCR after", "!", "1 ZADD z 5 m;GET after", "1 INCR n"},
     "GET after;GET n",
     false},
    {"a session that changes",
     {"0 CLIENT SETNAME first;CLIENT REPLY ON", "!",
      "0 INCR n;CLIENT GETNAME;HSET h f v;HGETALL h;CLIENT REPLY SKIP;HELLO 3;HGETALL h;CLIENT SETNAME "
      "second;CLIENT GETNAME;"
      "CLIENT SETINFO LIB-NAME lib;SELECT 2;INCR n;CLIENT REPLY SKIP;INCR n;INCR n;RESET;INCR n;CLIENT "
      "GETNAME;"
      "CLIENT REPLY OFF;INCR n;CLIENT REPLY ON;GET n;AUTH wrong;AUTH a b"},
     "GET n;SELECT 2;GET n",
     true},
    {"what administers the server runs once",
     {"0 SET a 1", "!",
      "0 INCR a;CONFIG SET maxclients 500;INCR a;CONFIG GET maxclients;SLOWLOG RESET;INCR a;CLIENT NO-EVICT "
      "on;GET a"},
     "GET a",
     true},
};

static void each_scenario(void)
{
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
        as_if_nothing_happened(&scenarios[i]);
}

/* ---- HTTP ---- */

/* The ids of batches that nobody waited for have a secret in them. */
static void hide_ids(struct buf *b)
{
    for (char *p = b->p; b->len && (p = memmem(p, (size_t)(b->p + b->len - p), "0000", 4));) {
        char *end = b->p + b->len;
        for (; p < end && ((*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'f')); p++)
            *p = 'x';
    }
}

static void add_request(struct buf *out, const char *what, const char *body, bool last)
{
    buf_addf(out, "%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n%s\r\n%s", what, strlen(body),
             last ? "Connection: close\r\n" : "", body);
}

static bool play_http(uint64_t nth, struct buf *out)
{
    struct buf text = {0};
    struct service s;
    if (!check_that(start(&s), __FILE__, __LINE__, "start"))
        return false;
    s.fds[0] = dial(&s, true);
    ask(&s, CONTROL, "PING");
    store_fault_set(s.world.store, (struct store_fault){.nth = nth, .status = ST_CONFLICT});
    add_request(&text, "PUT /keys/a", "7", false);
    add_request(&text, "GET /keys/a", "", false);
    add_request(&text, "POST /batch",
                "{\"async\":true,\"operations\":[{\"op\":\"incr\",\"key\":\"a\"},"
                "{\"op\":\"rpush\",\"key\":\"l\",\"args\":[\"x\"]}]}",
                false);
    add_request(&text, "POST /pipeline", "[[\"INCR\",\"a\"],[\"GET\",\"none\"],[\"INCR\"]]", false);
    add_request(&text, "POST /multi-exec", "[[\"INCR\",\"a\"],[\"RPUSH\",\"l\",\"y\"]]", false);
    add_request(&text, "HEAD /keys/a", "", true);
    buf_add(&text, "", 1);
    say(&s, 0, text.p);
    buf_release(&text);
    hear(&s, 0, NULL);
    bool happened = fault_happened(s.world.store);
    store_fault_set(s.world.store, (struct store_fault){0});
    hide_ids(&s.heard[0]);
    buf_add_slice(out, buf_slice(&s.heard[0]));
    add_books(&s, out);
    s.heard[CONTROL].len = 0;
    ask(&s, CONTROL, "GET a;LRANGE l 0 -1");
    buf_add_slice(out, buf_slice(&s.heard[CONTROL]));
    stop(&s);
    return happened;
}

static void http(void)
{
    struct buf prefetch = {0};
    uint64_t nth = 1;
    (void)play_http(0, &prefetch);
    if (!check_that(memmem(prefetch.p, prefetch.len, "202 Accepted", 12) != NULL, __FILE__, __LINE__, "202"))
        printf("%.*s\n", (int)prefetch.len, prefetch.p);
    for (bool happened = true; happened && nth < 60; nth++) {
        struct buf got = {0};
        happened = play_http(nth, &got);
        expect_same(&prefetch, &got);
        buf_release(&got);
    }
    CHECK(nth > 3 && nth < 60);
    buf_release(&prefetch);
}

/* ---- monitors ---- */

static size_t count(const struct buf *in, const char *word)
{
    size_t n = 0;
    for (const char *p = in->p; (p = memmem(p, (size_t)(in->p + in->len - p), word, strlen(word))); p++)
        n++;
    return n;
}

/* They hear of each command once. */
static void monitors(void)
{
    struct service s;
    bool happened = true;
    REQUIRE(start(&s));
    for (uint64_t nth = 1; happened && nth < 60; nth++) {
        begin_anew(&s);
        ask(&s, 1, "MONITOR");
        store_fault_set(s.world.store, (struct store_fault){.nth = nth, .status = ST_CONFLICT});
        ask(&s, 0, "SET a 1;INCR a;MULTI;INCR a;EXEC;GET a");
        happened = fault_happened(s.world.store);
        store_fault_set(s.world.store, (struct store_fault){0});
        ask(&s, 0, "GET end");
        hear(&s, 1, "\"GET\" \"end\"");
        CHECK_EQ(count(&s.heard[1], "\"SET\""), 1);
        CHECK_EQ(count(&s.heard[1], "\"INCR\""), 2);
        CHECK_EQ(count(&s.heard[1], "\"EXEC\""), 1);
    }
    stop(&s);
}

/* ---- no end of it ---- */

/* When others are always in the way, clients are told in the end, and nothing of it is there. */
static void bounded(void)
{
    struct service s;
    REQUIRE(start(&s));
    ask(&s, 0, "WATCH none");
    say(&s, 2, "BLPOP l 0\r\n");
    await(&s, "blocked_clients", 1);
    store_fault_set(s.world.store, (struct store_fault){.nth = 1, .status = ST_CONFLICT, .sticky = true});
    s.heard[1].len = 0;
    ask(&s, 1, "PING;SET none 1;RPUSH l a");
    CHECK(memmem(s.heard[1].p, s.heard[1].len, "-TRYAGAIN ", 10) != NULL);
    CHECK(s.heard[1].len > 7 && memcmp(s.heard[1].p, "+PONG\r\n", 7) == 0);
    store_fault_set(s.world.store, (struct store_fault){0});
    s.heard[0].len = 0;
    ask(&s, 0, "MULTI;EXISTS none l;EXEC");
    CHECK(memmem(s.heard[0].p, s.heard[0].len, "*1\r\n:0\r\n", 8) != NULL); /* it was not touched */
    ask(&s, 1, "RPUSH l b");
    hear(&s, 2, "$1\r\nb\r\n");
    CHECK(memmem(s.heard[2].p, s.heard[2].len, "$1\r\na\r\n", 7) == NULL);
    stop(&s);
}

/* ---- while a batch is pending ---- */

/* From here on every call of the store conflicts, and a batch that writes is pending until it has been tried
   often enough, some dozens of milliseconds. */
static void begin_conflicts(struct service *s)
{
    store_fault_set(s->world.store, (struct store_fault){.nth = 1, .status = ST_CONFLICT, .sticky = true});
}

static void await_conflict(struct service *s)
{
    for (int i = 0; i < 2000 && !fault_happened(s->world.store); i++)
        usleep(500);
    CHECK(fault_happened(s->world.store));
}

static bool heard(const struct service *s, int who, const char *what)
{
    return s->heard[who].len && memmem(s->heard[who].p, s->heard[who].len, what, strlen(what));
}

/* It was told what has happened: the counter is there, or another writer was in the way to the end. */
static void expect_told(struct service *s, int who, const char *look)
{
    hear(s, who, "\r\n");
    bool counted = heard(s, who, ":1\r\n");
    CHECK(counted || heard(s, who, "-TRYAGAIN "));
    s->heard[CONTROL].len = 0;
    ask(s, CONTROL, look);
    CHECK(heard(s, CONTROL, counted ? "$1\r\n1\r\n" : "$-1\r\n"));
}

/* Connections are accepted, and what they send is not forgotten; nobody's commands overtake the batch. */
static void others_wait(void)
{
    struct service s;
    REQUIRE(start(&s));
    ask(&s, CONTROL, "PING");
    begin_conflicts(&s);
    say(&s, 0, "INCR n\r\n");
    await_conflict(&s);
    say(&s, 1, "INCR other\r\n");
    say(&s, 0, "INCR more\r\n");
    usleep(3000);
    store_fault_set(s.world.store, (struct store_fault){0});
    hear(&s, 1, "\r\n");
    expect_told(&s, 0, "GET n");
    hear(&s, 0, "\r\n:1\r\n"); /* of the command that came later */
    CHECK(heard(&s, 1, ":1\r\n") || heard(&s, 1, "-TRYAGAIN "));
    stop(&s);
}

/* A client that goes away has sent what it has sent; what it leaves behind is freed when the batch ends. */
static void clients_go(void)
{
    struct service s;
    REQUIRE(start(&s));
    for (int i = 0; i < 5; i++) {
        begin_anew(&s);
        say(&s, 1, "BLPOP l 0\r\n");
        await(&s, "blocked_clients", 1);
        begin_conflicts(&s);
        say(&s, 0, "RPUSH l a b\r\nINCR n\r\n");
        await_conflict(&s);
        close(s.fds[0]);
        close(s.fds[1]);
        s.fds[0] = s.fds[1] = -1;
        if (i % 2)
            usleep(2000);
        store_fault_set(s.world.store, (struct store_fault){0});
        await(&s, "connected_clients", 1);
        await(&s, "blocked_clients", 0);
        s.heard[CONTROL].len = 0;
        ask(&s, CONTROL, "GET n;LLEN l");
        CHECK(heard(&s, CONTROL, "$1\r\n1\r\n:1\r\n") || heard(&s, CONTROL, "$1\r\n1\r\n:2\r\n") ||
              heard(&s, CONTROL, "$-1\r\n:0\r\n"));
    }
    stop(&s);
}

/* Who waits for a key gives up in time, and who is paused goes on when the pause is over. */
static void time_goes_on(void)
{
    struct service s;
    REQUIRE(start(&s));
    ask(&s, 1, "SET a 0");
    s.heard[1].len = 0;
    say(&s, 2, "BLPOP l 0.01\r\n");
    ask(&s, CONTROL, "CLIENT PAUSE 20 WRITE");
    say(&s, 1, "GET a\r\nINCR a\r\nGET a\r\n");
    hear(&s, 1, "$1\r\n0\r\n");
    begin_conflicts(&s);
    say(&s, 0, "GET n\r\nINCR n\r\n");
    await_conflict(&s);
    hear(&s, 2, "*-1\r\n");
    store_fault_set(s.world.store, (struct store_fault){0});
    ask(&s, 1, "PING");
    CHECK(heard(&s, 1, "$1\r\n0\r\n:1\r\n$1\r\n1\r\n+PONG") || heard(&s, 1, "-TRYAGAIN "));
    hear(&s, 0, "\r\n");
    stop(&s);
}

/* A request that is to be answered soon says so when it cannot be run in time. */
static void deadlines(void)
{
    struct service s;
    struct buf text = {0};
    REQUIRE(start(&s));
    ask(&s, CONTROL, "PING");
    s.fds[0] = dial(&s, true);
    begin_conflicts(&s);
    add_request(&text, "POST /batch", "{\"timeout_ms\":5,\"operations\":[{\"op\":\"incr\",\"key\":\"a\"}]}",
                true);
    buf_add(&text, "", 1);
    say(&s, 0, text.p);
    buf_release(&text);
    hear(&s, 0, NULL);
    CHECK(heard(&s, 0, "503 Service Unavailable") && heard(&s, 0, "\"timeout\""));
    store_fault_set(s.world.store, (struct store_fault){0});
    s.heard[CONTROL].len = 0;
    ask(&s, CONTROL, "EXISTS a");
    CHECK(heard(&s, CONTROL, ":0\r\n"));
    stop(&s);
}

/* What was sent is answered before the server ends. */
static void the_end(void)
{
    struct service s;
    REQUIRE(start(&s));
    ask(&s, CONTROL, "PING");
    begin_conflicts(&s);
    say(&s, 0, "INCR n\r\nPING\r\n");
    await_conflict(&s);
    workers_stop(s.workers);
    usleep(3000);
    store_fault_set(s.world.store, (struct store_fault){0});
    hear(&s, 0, NULL);
    CHECK(heard(&s, 0, ":1\r\n+PONG\r\n") || (heard(&s, 0, "-TRYAGAIN ") && heard(&s, 0, "+PONG\r\n")));
    stop(&s);
}

static void pending(void)
{
    others_wait();
    clients_go();
    time_goes_on();
    deadlines();
    the_end();
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    log_set_level(LOG_ERROR); /* the failures are wanted */
    RUN(each_scenario);
    RUN(http);
    RUN(monitors);
    RUN(bounded);
    RUN(pending);
    return check_done();
}
