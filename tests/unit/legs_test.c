/* Transactions with a leg for each database that their calls read from: who answers which call, what happens
   when one of them cannot, and what sessions know afterwards.

   The primary and its two replicas are three SQLite files with different contents, so that an answer shows
   where it came from. What is known of the replicas is what the test says: the functions of
   replica/replicas.h are here. */
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "config/config.h"
#include "replica/replicas.h"
#include "server/protocol.h"
#include "server/workers.h"
#include "store/replicated.h"
#include "world.h"

#define DATABASES 3 /* the primary, and two replicas */

static const struct protocol *const protocols[PROTOCOLS] = {&resp_protocol};

/* ---- what is known of the replicas ---- */

static struct {
    atomic_int route[READ_MODES]; /* where reads of a mode go */
    atomic_int then; /* ... and, when a replica has failed, the eventual ones from then on; 0: the same */
    atomic_llong age_us;
    atomic_bool away;
    atomic_int routes, failed[DATABASES];
    atomic_ullong need; /* of the last one that was routed */
    atomic_ullong learned[DATABASES];
    atomic_ullong
        at[DATABASES];      /* how far each has got; the primary's counts its commits. 0: it does not tell */
    atomic_ullong received; /* by replicas, and not replayed */
    atomic_bool lost;
    _Atomic(struct store *) stores[DATABASES];
} known;

int replicas_route(struct replicas *r, struct consistency c, const struct position *need)
{
    (void)r;
    known.routes++;
    known.need = need ? need->number : 0;
    return known.route[c.mode];
}

int64_t replicas_age_us(struct replicas *r, const struct position *at)
{
    (void)r, (void)at;
    return known.age_us;
}

void replicas_learned(struct replicas *r, uint32_t i, const struct position *p)
{
    (void)r;
    known.learned[i] = p->number;
}

void replicas_failed(struct replicas *r, uint32_t i, bool hangs, const char *why)
{
    (void)r, (void)hangs, (void)why;
    known.failed[i]++;
    if (i && known.then)
        known.route[READ_EVENTUAL] = known.then;
}

bool replicas_primary_away(struct replicas *r)
{
    (void)r;
    return known.away;
}

uint32_t replicas_reached(struct replicas *r, const struct position *p)
{
    uint32_t n = 0;
    (void)r;
    for (int i = 1; i < DATABASES; i++)
        n += known.at[i] >= p->number;
    return n;
}

void replicas_set_max_lag(struct replicas *r, uint32_t ms)
{
    (void)r, (void)ms;
}

uint32_t replicas_count(const struct replicas *r)
{
    (void)r;
    return DATABASES - 1;
}

void replicas_primary(struct replicas *r, struct position *ret)
{
    (void)r;
    *ret = (struct position){.kind = POSITION_LSN, .database = 7, .number = known.at[0]};
}

void replicas_state(struct replicas *r, uint32_t i, struct replica_state *ret)
{
    (void)r;
    *ret = (struct replica_state){
        .host = "db", .port = (int)i, .place = "app on db", .why = "it is away", .age_us = known.age_us};
    ret->in_rotation = ret->connected = known.failed[i] == 0;
    ret->at = (struct position){.kind = POSITION_LSN, .database = 7, .number = known.at[i]};
    ret->behind = known.at[0] - known.at[i];
}

static int which(const struct store *s)
{
    int i = 0;
    while (known.stores[i] != s)
        i++;
    return i;
}

static void want(struct store *s, bool on)
{
    (void)s, (void)on;
}

static void tell(const struct store *s, struct position *ret)
{
    *ret = (struct position){.number = known.at[which(s)], .database = 7};
    ret->kind = ret->number ? POSITION_LSN : POSITION_NONE;
}

static void admitted(const struct store *s, struct position *ret)
{
    *ret = (struct position){0};
    if (which(s) > 0)
        tell(s, ret);
}

static enum status now(struct store *s, struct position *ret, struct error *err)
{
    (void)err;
    tell(s, ret);
    return ST_OK;
}

static enum status judge(struct store *s, const struct position *p, enum lineage *ret, struct error *err)
{
    (void)s, (void)p, (void)err;
    *ret = known.lost ? LINEAGE_LOST : LINEAGE_SAME;
    return ST_OK;
}

/* A replica may have received more than it has replayed. */
static void seen(const struct store *s, struct position *ret)
{
    tell(s, ret);
    if (which(s) > 0)
        ret->number += known.received;
}

static bool only_reads(const struct store *s)
{
    (void)s;
    return false;
}

static const struct replicated_ops positions = {want, admitted, seen, now, judge, only_reads};

/* ---- the service ---- */

struct service {
    struct world worlds[DATABASES];
    struct config config;
    struct workers *workers;
    pthread_t thread;
    char path[100];
    struct error err;
    int fd;
    struct buf heard;
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

/* Every database has a key `who` that names it. */
static bool open_database(struct service *s, int i)
{
    static const char *const names[DATABASES] = {"primary", "one", "two"};
    struct world *w = &s->worlds[i];
    if (!world_start(w) || !world_begin(w))
        return false;
    world_enter(w);
    CHECK_OK(view_set_string(w->view, 0, SLICE("who"), slice_str(names[i]), EXPIRE_NEVER), &w->err);
    engine_leave(w->engine, true);
    CHECK_OK(engine_commit(w->engine, NULL, &w->err), &w->err);
    w->store->far = true;
    w->store->contended = true;
    w->store->replicated = &positions;
    known.stores[i] = w->store;
    known.at[i] = 100;
    return true;
}

static int dial(const struct service *s)
{
    struct sockaddr_un sun = {.sun_family = AF_UNIX};
    struct timeval patience = {.tv_sec = 20};
    snprintf(sun.sun_path, sizeof sun.sun_path, "%s", s->path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0);
    CHECK(connect(fd, (struct sockaddr *)&sun, sizeof sun) == 0);
    return fd;
}

static bool start(struct service *s)
{
    static int dummy;
    *s = (struct service){0};
    memset(&known, 0, sizeof known);
    for (int i = 0; i < DATABASES; i++)
        if (!open_database(s, i))
            return false;
    snprintf(s->path, sizeof s->path, "%s/socket", s->worlds[0].folder);
    config_init(&s->config);
    set(s, "port", "0");
    set(s, "http-port", "0");
    set(s, "unixsocket", s->path);
    set(s, "sweep", "no");
    set(s, "failover-wait", "100ms");
    struct engine *const replicas[] = {s->worlds[1].engine, s->worlds[2].engine};
    if (!check_ok(workers_new(&s->config, protocols, &s->worlds[0].engine, 1, &s->workers, &s->err), &s->err,
                  __FILE__, __LINE__, "workers_new"))
        return false;
    workers_use_replicas(s->workers, (struct replicas *)&dummy, replicas, 2);
    if (!check_that(pthread_create(&s->thread, NULL, serve, s) == 0, __FILE__, __LINE__, "pthread_create"))
        return false;
    s->fd = dial(s);
    for (int i = 0; i < READ_MODES; i++)
        known.route[i] = 1;
    return true;
}

static void stop(struct service *s)
{
    close(s->fd);
    buf_release(&s->heard);
    workers_stop(s->workers);
    pthread_join(s->thread, NULL);
    workers_free(s->workers);
    config_release(&s->config);
    for (int i = 0; i < DATABASES; i++)
        world_end(&s->worlds[i]);
}

/* Sends commands (with semicolons between them) in one pipeline, and waits for the answers to all of them and
   to an ECHO behind them. Returns what was said, with its lines' ends as spaces. */
static const char *ask(struct service *s, const char *commands)
{
    struct buf text = {0};
    for (const char *p = commands; *p; p++)
        buf_add(&text, *p == ';' ? "\r\n" : p, *p == ';' ? 2 : 1);
    buf_add_slice(&text, SLICE("\r\nECHO <over>\r\n"));
    CHECK(send(s->fd, text.p, text.len, MSG_NOSIGNAL) == (ssize_t)text.len);
    buf_release(&text);
    s->heard.len = 0;
    static const char end[] = "$6\r\n<over>\r\n";
    while (s->heard.len < sizeof end - 1 || !memmem(s->heard.p, s->heard.len, end, sizeof end - 1)) {
        ssize_t got = recv(s->fd, buf_reserve(&s->heard, 65536), 65536, 0);
        if (!check_that(got > 0, __FILE__, __LINE__, commands))
            return "";
        s->heard.len += (size_t)got;
    }
    s->heard.len -= sizeof end - 1;
    buf_add(&s->heard, "", 1);
    for (char *p = s->heard.p; *p; p++)
        if (*p == '\r')
            memmove(p, p + 1, strlen(p));
    for (char *p = s->heard.p; *p; p++)
        if (*p == '\n')
            *p = ' ';
    return s->heard.p;
}

#define ASK(commands, answer)                                                                                \
    do {                                                                                                     \
        const char *heard = ask(&s, commands);                                                               \
        if (!check_that(strcmp(heard, answer) == 0, __FILE__, __LINE__, commands))                           \
            printf("    said: %s\n", heard);                                                                 \
    } while (0)

#define PRIMARY "$7 primary "
#define ONE     "$3 one "
#define TWO     "$3 two "

/* ---- who answers ---- */

static void modes(void)
{
    struct service s;
    if (!start(&s))
        return;
    known.route[READ_BOUNDED] = 2;
    ASK("GET who", PRIMARY);
    ASK("LARDER.READ EVENTUAL GET who;GET who;LARDER.READ BOUNDED 500 GET who;LARDER.READ STRONG GET who",
        ONE PRIMARY TWO PRIMARY);
    ASK("LARDER.CONSISTENCY EVENTUAL;GET who;SET a 1;GET who;LARDER.READ STRONG GET who",
        "+OK " ONE "+OK " ONE PRIMARY);
    ASK("MULTI;GET who;EXEC;GET who", "+OK +QUEUED *1 " PRIMARY ONE);
    ASK("GET who;LARDER.CONSISTENCY STRONG;GET who;READONLY;GET who;RESET;GET who",
        ONE "+OK " PRIMARY "+OK " ONE "+RESET " PRIMARY);
    ASK("LARDER.READ EVENTUAL EXISTS a;EXISTS a", ":0 :1 "); /* it was written to the primary alone */
    stop(&s);
}

static void long_pipeline(void)
{
    struct service s;
    struct buf commands = {0}, answers = {0};
    if (!start(&s))
        return;
    for (int i = 0; i < 1000; i++) {
        static const char *const asks[] = {"INCR n", "LARDER.READ EVENTUAL GET who", "GET who", "PING"};
        static const char *const says[] = {NULL, ONE, PRIMARY, "+PONG "};
        buf_addf(&commands, "%s%s", i ? ";" : "", asks[i % 4]);
        if (says[i % 4])
            buf_addf(&answers, "%s", says[i % 4]);
        else
            buf_addf(&answers, ":%d ", i / 4 + 1);
    }
    buf_add(&commands, "", 1);
    buf_add(&answers, "", 1);
    ASK(commands.p, answers.p);
    buf_release(&commands);
    buf_release(&answers);
    stop(&s);
}

/* ---- sessions ---- */

static void session(void)
{
    struct service s;
    if (!start(&s))
        return;
    known.at[0] = 200;
    ASK("LARDER.CONSISTENCY SESSION;GET who", "+OK " ONE);
    CHECK_EQ(known.need, 0);
    ASK("GET who", ONE); /* what it has seen is known by now */
    CHECK_EQ(known.need, 100);
    CHECK_EQ(known.learned[1], 100);
    /* Behind a write of the same pipeline all is on the primary, and so is what is read in the strong mode.
     */
    ASK("GET who;SET a 1;GET who", ONE "+OK " PRIMARY);
    CHECK_EQ(known.learned[0], 200);
    known.route[READ_SESSION] = 0;
    ASK("GET who", PRIMARY);
    CHECK_EQ(known.need, 200);
    /* Routed by what was known, and not admitted by what the leg tells: it goes to the primary, but the
       replica has not failed. */
    known.route[READ_SESSION] = 1;
    ASK("GET who;GET who", PRIMARY PRIMARY);
    CHECK_EQ(known.failed[1], 0);
    known.at[1] = 200;
    ASK("GET who;GET who", ONE ONE);
    /* One replica's snapshot for all of them. */
    int routes = known.routes;
    ASK("GET who;GET who;GET who", ONE ONE ONE);
    CHECK_EQ(known.routes, routes + 1);
    stop(&s);
}

/* What a client may have seen is what the replica has received; what the replica has is what it has replayed.
 */
static void received(void)
{
    struct service s;
    if (!start(&s))
        return;
    known.received = 50;
    ASK("LARDER.CONSISTENCY SESSION;GET who", "+OK " ONE);
    CHECK_EQ(known.learned[1], 100);
    ASK("GET who", PRIMARY);
    CHECK_EQ(known.need, 150);
    stop(&s);
}

/* Nobody knows where the write is: the primary, until it is known. */
static void unplaced(void)
{
    struct service s;
    if (!start(&s))
        return;
    known.at[0] = 0;
    ASK("LARDER.CONSISTENCY SESSION;SET a 1", "+OK +OK ");
    int routes = known.routes;
    ASK("GET who", PRIMARY);
    known.at[0] = 100;
    ASK("GET who", PRIMARY); /* this one has brought it */
    CHECK_EQ(known.routes, routes);
    ASK("GET who", ONE);
    CHECK_EQ(known.need, 100);
    stop(&s);
}

static void bounded(void)
{
    struct service s;
    if (!start(&s))
        return;
    known.age_us = 400000;
    ASK("LARDER.READ BOUNDED 500 GET who", ONE);
    ASK("LARDER.READ BOUNDED 300 GET who;LARDER.READ EVENTUAL GET who", PRIMARY ONE);
    stop(&s);
}

static void lost(void)
{
    struct service s;
    if (!start(&s))
        return;
    ASK("LARDER.CONSISTENCY SESSION;SET a 1", "+OK +OK ");
    known.lost = true;
    known.route[READ_SESSION] = 0;
    const char *told = "-LOSTWRITES a failover has lost writes that this client has seen acknowledged ";
    char both[256];
    snprintf(both, sizeof both, "%s", told);
    ASK("GET who", both);
    known.lost = false;
    ASK("GET who", PRIMARY); /* it has been told */
    stop(&s);
}

/* ---- failures ---- */

static void break_store(struct service *s, int i, struct store_fault f)
{
    f.status = f.status ? f.status : ST_IO;
    store_fault_set(s->worlds[i].store, f);
}

/* Every call of the replica's store fails once, and from then on: what was asked is answered by the primary,
   and what was written is written once. */
static void replica_fails(void)
{
    struct service s;
    if (!start(&s))
        return;
    int n = 0;
    ASK("RPUSH l a b", ":2 ");
    for (int sticky = 0; sticky < 2; sticky++) {
        for (uint64_t nth = 1; nth < 30; nth++) {
            char answer[128];
            break_store(&s, 1, (struct store_fault){.nth = nth, .sticky = sticky});
            snprintf(answer, sizeof answer, ":%d %s:%d *0 ", n + 1, PRIMARY, n + 2);
            const char *said =
                ask(&s, "INCR n;LARDER.READ EVENTUAL GET who;INCR n;LARDER.READ EVENTUAL KEYS x*");
            n += 2;
            bool happened = fault_happened(s.worlds[1].store);
            store_fault_set(s.worlds[1].store, (struct store_fault){0});
            if (!happened)
                break;
            if (!check_that(strcmp(said, answer) == 0, __FILE__, __LINE__, "answered by the primary"))
                printf("    nth %d sticky %d said: %s, not %s\n", (int)nth, sticky, said, answer);
        }
    }
    CHECK(n > 8);
    CHECK(known.failed[1] >= 4);
    stop(&s);
}

/* Its replay is in the way: that is no reason to leave it. */
static void replica_conflicts(void)
{
    struct service s;
    if (!start(&s))
        return;
    break_store(&s, 1, (struct store_fault){.nth = 1, .status = ST_CONFLICT});
    ASK("LARDER.READ EVENTUAL GET who;LARDER.READ EVENTUAL GET who", PRIMARY PRIMARY);
    CHECK_EQ(known.failed[1], 0);
    stop(&s);
}

static void primary_away(void)
{
    struct service s;
    if (!start(&s))
        return;
    break_store(&s, 0, (struct store_fault){.nth = 1, .sticky = true});
    ASK("LARDER.READ EVENTUAL GET who", ONE); /* the primary is not even asked */
    CHECK_EQ(known.failed[0], 0);
    /* Beside a write that is held, and fails in the end. */
    const char *said = ask(&s, "LARDER.READ EVENTUAL GET who;SET a 1;LARDER.READ EVENTUAL GET who");
    CHECK(strncmp(said, ONE "-IOERR ", strlen(ONE "-IOERR ")) == 0);
    CHECK(strstr(said, " " ONE) != NULL);
    CHECK(known.failed[0] > 0);
    known.route[READ_BOUNDED] = ROUTE_NONE;
    known.away = true;
    ASK("LARDER.READ BOUNDED 500 GET who;LARDER.READ EVENTUAL GET who",
        "-STALE no database that can be reached is recent enough for this read " ONE);
    /* One of the replicas as well: the other answers. */
    known.then = 2;
    break_store(&s, 1, (struct store_fault){.nth = 1});
    ASK("LARDER.READ EVENTUAL GET who", TWO);
    store_fault_set(s.worlds[0].store, (struct store_fault){0});
    known.away = false;
    ASK("SET a 1;GET a", "+OK $1 1 ");
    stop(&s);
}

static void *come_back(void *arg)
{
    struct service *s = arg;
    usleep(50000);
    store_fault_set(s->worlds[0].store, (struct store_fault){0});
    known.away = false;
    known.route[READ_SESSION] = 1;
    return NULL;
}

/* A failover within failover-wait is a pause, and no error; so is, for a session, within replica-wait. */
static void held(void)
{
    struct service s;
    pthread_t thread;
    if (!start(&s))
        return;
    set(&s, "failover-wait", "20s");
    set(&s, "replica-wait", "20s");
    known.away = true;
    CHECK(pthread_create(&thread, NULL, come_back, &s) == 0);
    ASK("SET a 1;GET a", "+OK $1 1 ");
    pthread_join(thread, NULL);
    /* The connection was lost, and is back when the transaction begins a second time, to read: the write is
       held as well. */
    break_store(&s, 0, (struct store_fault){.nth = 1});
    ASK("SET a 2;GET a", "+OK $1 2 ");
    known.route[READ_SESSION] = ROUTE_NONE;
    known.away = true;
    CHECK(pthread_create(&thread, NULL, come_back, &s) == 0);
    ASK("LARDER.READ SESSION GET who;PING", ONE "+PONG ");
    pthread_join(thread, NULL);
    stop(&s);
}

/* ---- what is told of them ---- */

static void told(void)
{
    struct service s;
    if (!start(&s))
        return;
    known.at[0] = 0x142;
    known.age_us = 1500001;
    known.failed[2] = 1;
    ASK("LARDER.READ EVENTUAL GET who;LARDER.READ SESSION GET who;LARDER.READ EVENTUAL GET who;GET who",
        ONE ONE ONE PRIMARY);
    ASK("ROLE", "*3 $6 master :322 *1 *3 $2 db $1 1 $3 100 ");
    const char *info = ask(&s, "INFO replication");
    static const char *const lines[] = {
        "role:master connected_slaves:1 slave0:ip=db,port=1,state=online,offset=100,lag=1 master_failover_",
        " master_repl_offset:322 ",
        " larder_read_consistency:strong larder_primary:up larder_primary_position:0/142 larder_replicas:2 ",
        " larder_replica1:place=app on db,connected=yes,in_rotation=yes,position=0/64,behind=222,lag_ms=1501,"
        "failures=0,left=0,why= ",
        " larder_replica2:place=app on db,connected=no,in_rotation=no,position=0/64,behind=222,lag_ms=1501,"
        "failures=0,left=0,why=it is away ",
        " larder_reads_strong:primary=1,replica1=0,replica2=0,memory=0 ",
        " larder_reads_session:primary=0,replica1=1,replica2=0,memory=0 ",
        " larder_reads_eventual:primary=0,replica1=2,replica2=0,memory=0 ",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        check.context = lines[i];
        CHECK(strstr(info, lines[i]));
    }
    stop(&s);
}

/* ---- WAIT ---- */

static void *replay(void *arg)
{
    (void)arg;
    usleep(50000);
    known.at[2] = 200;
    return NULL;
}

static void waits(void)
{
    struct service s;
    pthread_t thread;
    if (!start(&s))
        return;
    ASK("WAIT 2 0;WAIT 1 0", ":2 :2 "); /* nothing was written */
    known.at[0] = 200;
    ASK("SET a 1;WAIT 0 0;WAIT 1 1;PING", "+OK :0 :0 +PONG ");
    known.at[1] = 200;
    ASK("WAIT 1 0;WAIT 2 1;WAITAOF 1 2 1;WAITAOF 0 1 0", ":1 :1 *2 :1 :1 *2 :1 :1 ");
    int64_t began = clock_mono_us();
    ASK("WAIT 2 30;PING", ":1 +PONG ");
    CHECK(clock_mono_us() - began >= 30000);
    CHECK(pthread_create(&thread, NULL, replay, NULL) == 0);
    ASK("WAIT 2 0;SET b 1;WAITAOF 1 2 0;GET b", ":2 +OK *2 :1 :2 $1 1 ");
    pthread_join(thread, NULL);
    /* Inside of EXEC, what was written before it counts, and nothing is waited for. */
    ASK("MULTI;SET c 1;WAIT 2 0;WAITAOF 1 2 0;EXEC;WAIT 2 0",
        "+OK +QUEUED +QUEUED +QUEUED *3 +OK :2 *2 :1 :2 :2 ");
    stop(&s);
}

static uint64_t id_of(const char *said)
{
    return strtoull(said + 1, NULL, 10);
}

/* Another client ends the wait, with the count or with an error; a client that leaves has waited for nothing.
 */
static void waits_end(void)
{
    struct service s;
    if (!start(&s))
        return;
    known.at[0] = 200;
    struct service other = s;
    other.heard = (struct buf){0};
    static const char *const ends[][2] = {{"TIMEOUT", ":0\r\n"},
                                          {"ERROR", "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n"}};
    for (int i = 0; i < 2; i++) {
        char text[128], unblock[64];
        other.fd = dial(&s);
        uint64_t id = id_of(ask(&other, "CLIENT ID"));
        (void)ask(&other, "SET a 1");
        CHECK(send(other.fd, "WAIT 2 0\r\n", 10, MSG_NOSIGNAL) == 10);
        snprintf(unblock, sizeof unblock, "CLIENT UNBLOCK %llu %s", (unsigned long long)id, ends[i][0]);
        while (strcmp(ask(&s, unblock), ":1 ") != 0)
            usleep(1000);
        ssize_t got = recv(other.fd, text, sizeof text, 0);
        CHECK_SLICE(slice_of(text, got > 0 ? (size_t)got : 0), slice_str(ends[i][1]));
        CHECK(send(other.fd, "WAIT 2 0\r\n", 10, MSG_NOSIGNAL) == 10);
        close(other.fd);
    }
    ASK("PING", "+PONG ");
    buf_release(&other.heard);
    stop(&s);
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    log_set_level(LOG_ERROR); /* the failures are wanted */
    RUN(modes);
    RUN(long_pipeline);
    RUN(session);
    RUN(received);
    RUN(unplaced);
    RUN(bounded);
    RUN(lost);
    RUN(replica_fails);
    RUN(replica_conflicts);
    RUN(primary_away);
    RUN(held);
    RUN(told);
    RUN(waits);
    RUN(waits_end);
    return check_done();
}
