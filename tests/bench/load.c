/* A closed-loop load on a RESP server, for what redis-benchmark cannot do: a mix of reads and writes, a fixed
   time, a rate that is not exceeded, and latency percentiles over all of it. Each connection sends `pipeline`
   commands, waits for all replies, and goes on.

     load PORT CLIENTS PIPELINE SECONDS KEYS VALUE_BYTES READ_PERCENT
          [PREFIX [WRITE [RATE [EVERY]]]] [NAME=...]

   WRITE: set (default), incr, mset (ten keys), hset, hdel (fields of one hash), lpush, rpop, lpop, lmove (one
     list, from its right to its left), sadd, srem, spop (members of one set), zadd, zrem, zpopmin, zpopmax
   (of one sorted set), mix (of twenty 12 set, 1 set of 4 KB, 3 hset, 2 zadd, 2 lpush), row (ROW.PUT of a row
   of the table `bench`, which has a TEXT id and name, an INTEGER city and age), multi (what an application
   does for the same by hand: MULTI, HSET of a hash, SADD to the set of its city, ZADD to the ages, EXEC),
   delay (a queue of what is due later: PIPELINE times ZADD with a random score, then a ZRANGEBYSCORE of as
   many at the front, where each connection has a place of its own, and a ZREM of those that the last one
   found; a member that came and went is an operation). RATE: operations per second at most, 0 for as many as
   can be had. EVERY: seconds from one report to the next; without it there is one, at the end.

   Names: count=N: ends after N operations at the latest. sequence=1: keys are taken one after the other, each
   once. sequence=2: each once, in no order. seed=N: other random keys than those of another run.

   A report is a JSON line: operations per second and latencies of a round trip in microseconds, since the
   last one; waiting_us is the age of the oldest round trip that has not ended. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MAX_PIPELINE 256
#define IN_BYTES     (1 << 20)
#define BUCKETS      4000000 /* one for each microsecond up to four seconds */
#define LARGE_BYTES  4096    /* the large values of a mix */
#define MAX_KEY      128
#define MSET_KEYS    10

struct conn {
    int fd;
    int waiting; /* replies still to come */
    int64_t sent_at;
    char *in;
    size_t have;
    int found; /* members that the last look at the front of a delay queue answered */
    char (*front)[MAX_KEY];
};

struct load {
    int clients, pipeline, keys, value_bytes, read_percent, sequence;
    const char *prefix, *write;
    int replies; /* to one operation */
    double rate, every;
    int64_t start_us;
    uint64_t begun, count; /* operations that were sent, and that may be; no count: as many as time allows */
    uint64_t rnd;
    char value[LARGE_BYTES + 1];
    struct conn *conns;

    /* since the last report */
    int64_t since_us;
    uint32_t *histogram;
    uint64_t rounds, errors;
    int64_t longest_us;
};

static int64_t now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static uint64_t next_random(struct load *l)
{
    l->rnd ^= l->rnd << 13;
    l->rnd ^= l->rnd >> 7;
    l->rnd ^= l->rnd << 17;
    return l->rnd;
}

static void die(const char *what)
{
    fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int dial(int port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int one = 1;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof a) != 0)
        die("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

static void send_all(int fd, const char *p, size_t n)
{
    while (n) {
        ssize_t k = write(fd, p, n);
        if (k <= 0)
            die("write");
        p += k;
        n -= (size_t)k;
    }
}

static size_t add_word(char *out, const char *word, int n)
{
    return (size_t)sprintf(out, "$%d\r\n%.*s\r\n", n, n, word);
}

/* One of CITIES and an age, the value as a name. */
#define CITIES 1000

static size_t add_row(const struct load *l, char *out, const char *key, int nkey, uint64_t random)
{
    size_t n = (size_t)sprintf(
        out, "*12\r\n$7\r\nROW.PUT\r\n$5\r\nbench\r\n$6\r\nFIELDS\r\n$1\r\n4\r\n$2\r\nid\r\n");
    n += add_word(out + n, key, nkey);
    n += (size_t)sprintf(out + n, "$4\r\nname\r\n");
    n += add_word(out + n, l->value, l->value_bytes);
    return n + (size_t)sprintf(out + n, "$4\r\ncity\r\n$3\r\n%03u\r\n$3\r\nage\r\n$6\r\n%06u\r\n",
                               (unsigned)(random % CITIES), (unsigned)(random / CITIES % 1000000));
}

#define MULTI_REPLIES 5 /* OK, three times QUEUED, an array of three numbers */

static size_t add_multi(const struct load *l, char *out, const char *key, int nkey, uint64_t random)
{
    unsigned city = (unsigned)(random % CITIES), age = (unsigned)(random / CITIES % 1000000);
    size_t n = (size_t)sprintf(out, "*1\r\n$5\r\nMULTI\r\n*8\r\n$4\r\nHSET\r\n");
    n += add_word(out + n, key, nkey);
    n += (size_t)sprintf(out + n, "$4\r\nname\r\n");
    n += add_word(out + n, l->value, l->value_bytes);
    n += (size_t)sprintf(out + n, "$4\r\ncity\r\n$3\r\n%03u\r\n$3\r\nage\r\n$6\r\n%06u\r\n", city, age);
    n += (size_t)sprintf(out + n, "*3\r\n$4\r\nSADD\r\n$8\r\ncity:%03u\r\n", city);
    n += add_word(out + n, key, nkey);
    n += (size_t)sprintf(out + n, "*4\r\n$4\r\nZADD\r\n$4\r\nages\r\n$6\r\n%06u\r\n", age);
    n += add_word(out + n, key, nkey);
    return n + (size_t)sprintf(out + n, "*1\r\n$4\r\nEXEC\r\n");
}

static int next_key(struct load *l, char *key, uint64_t position)
{
    uint64_t k = l->sequence ? position : next_random(l);
    if (l->sequence == 2)
        k *= 2654435761u; /* a prime: another one for each below the number of keys */
    return snprintf(key, MAX_KEY, "%s%012llu", l->prefix, (unsigned long long)(k % (uint64_t)l->keys));
}

static size_t add_mset(struct load *l, char *out, uint64_t position)
{
    char key[MAX_KEY];
    size_t n = (size_t)sprintf(out, "*%d\r\n$4\r\nMSET\r\n", 1 + 2 * MSET_KEYS);
    for (int i = 0; i < MSET_KEYS; i++) {
        int nkey = next_key(l, key, position * MSET_KEYS + (uint64_t)i);
        n += add_word(out + n, key, nkey);
        n += add_word(out + n, l->value, l->value_bytes);
    }
    return n;
}

/* Writes that name nothing but their key, and those that name a member as well. */
static const struct simple_write {
    const char *name, *command;
    int named;
} simple_writes[] = {
    {"rpop", "*2\r\n$4\r\nRPOP\r\n$6\r\nmylist\r\n", 0},
    {"lpop", "*2\r\n$4\r\nLPOP\r\n$6\r\nmylist\r\n", 0},
    {"lmove", "*5\r\n$5\r\nLMOVE\r\n$6\r\nmylist\r\n$6\r\nmylist\r\n$5\r\nRIGHT\r\n$4\r\nLEFT\r\n", 0},
    {"spop", "*2\r\n$4\r\nSPOP\r\n$5\r\nmyset\r\n", 0},
    {"zpopmin", "*2\r\n$7\r\nZPOPMIN\r\n$6\r\nmyzset\r\n", 0},
    {"zpopmax", "*2\r\n$7\r\nZPOPMAX\r\n$6\r\nmyzset\r\n", 0},
    {"sadd", "*3\r\n$4\r\nSADD\r\n$5\r\nmyset\r\n", 1},
    {"srem", "*3\r\n$4\r\nSREM\r\n$5\r\nmyset\r\n", 1},
    {"hdel", "*3\r\n$4\r\nHDEL\r\n$6\r\nmyhash\r\n", 1},
    {"zrem", "*3\r\n$4\r\nZREM\r\n$6\r\nmyzset\r\n", 1},
    {"incr", "*2\r\n$4\r\nINCR\r\n", 1},
};

/* 0: it is none of those. */
static size_t add_simple(const char *write, char *out, const char *key, int nkey)
{
    for (size_t i = 0; i < sizeof simple_writes / sizeof *simple_writes; i++) {
        const struct simple_write *w = &simple_writes[i];
        if (strcmp(write, w->name) != 0)
            continue;
        size_t n = (size_t)sprintf(out, "%s", w->command);
        return w->named ? n + add_word(out + n, key, nkey) : n;
    }
    return 0;
}

/* Which write comes next, and how large it is. */
static const char *choose(const struct load *l, uint64_t random, int *ret_bytes)
{
    static const char *const mix[20] = {"hset", "hset", "hset", "zadd", "zadd", "lpush", "lpush", "large"};
    *ret_bytes = l->value_bytes;
    if (strcmp(l->write, "mix") != 0)
        return l->write;
    const char *write = mix[random / 1000000 % 20];
    if (write && strcmp(write, "large") == 0)
        *ret_bytes = LARGE_BYTES;
    return write ? write : "set";
}

static size_t add_write(const struct load *l, char *out, const char *key, int nkey, uint64_t random)
{
    char score[32];
    int nscore = snprintf(score, sizeof score, "%llu", (unsigned long long)(random % 1000000)), bytes;
    const char *write = choose(l, random, &bytes);
    size_t n = 0;
    if (strcmp(write, "row") == 0)
        return add_row(l, out, key, nkey, random);
    if (strcmp(write, "multi") == 0)
        return add_multi(l, out, key, nkey, random);
    if ((n = add_simple(write, out, key, nkey)) > 0)
        return n;
    if (strcmp(write, "hset") == 0) {
        n += (size_t)sprintf(out + n, "*4\r\n$4\r\nHSET\r\n$6\r\nmyhash\r\n");
        n += add_word(out + n, key, nkey);
    } else if (strcmp(write, "zadd") == 0 || strcmp(write, "delay") == 0) {
        n += (size_t)sprintf(out + n, "*4\r\n$4\r\nZADD\r\n$6\r\nmyzset\r\n");
        n += add_word(out + n, score, nscore);
        return n + add_word(out + n, key, nkey);
    } else if (strcmp(write, "lpush") == 0) {
        n += (size_t)sprintf(out + n, "*3\r\n$5\r\nLPUSH\r\n$6\r\nmylist\r\n");
    } else {
        n += (size_t)sprintf(out + n, "*3\r\n$3\r\nSET\r\n");
        n += add_word(out + n, key, nkey);
    }
    return n + add_word(out + n, l->value, bytes);
}

/* Whether another round would be more than the rate or the count allows. */
static int too_many(const struct load *l)
{
    if (l->count && l->begun >= l->count)
        return 1;
    return l->rate > 0 && (double)l->begun > l->rate * (double)(now_us() - l->start_us) / 1e6;
}

/* What a worker of a delay queue sends behind its new members: a look at its place of the front, and the end
   of what it found there the last time. */
static size_t add_front(struct load *l, struct conn *c, char *out)
{
    char limit[32];
    int nlimit = snprintf(limit, sizeof limit, "%lld", (long long)(c - l->conns) * l->pipeline);
    size_t n = 0;
    c->waiting = l->pipeline + 1;
    if (c->found) {
        n += (size_t)sprintf(out, "*%d\r\n$4\r\nZREM\r\n$6\r\nmyzset\r\n", 2 + c->found);
        for (int i = 0; i < c->found; i++)
            n += add_word(out + n, c->front[i], (int)strlen(c->front[i]));
        c->waiting++;
        c->found = 0;
    }
    n += (size_t)sprintf(out + n, "*7\r\n$13\r\nZRANGEBYSCORE\r\n$6\r\nmyzset\r\n$4\r\n-inf\r\n$4\r\n+inf\r\n"
                                  "$5\r\nLIMIT\r\n");
    n += add_word(out + n, limit, nlimit);
    nlimit = snprintf(limit, sizeof limit, "%d", l->pipeline);
    return n + add_word(out + n, limit, nlimit);
}

static void send_round(struct load *l, struct conn *c)
{
    static char out[MAX_PIPELINE * 8192];
    int delay = strcmp(l->write, "delay") == 0;
    size_t n = 0;
    for (int i = 0; i < l->pipeline; i++) {
        char key[MAX_KEY];
        int nkey = next_key(l, key, l->begun + (uint64_t)i);
        if ((int)(next_random(l) % 100) < l->read_percent)
            n += (size_t)sprintf(out + n, "*2\r\n$3\r\nGET\r\n$%d\r\n%s\r\n", nkey, key);
        else if (strcmp(l->write, "mset") == 0)
            n += add_mset(l, out + n, l->begun + (uint64_t)i);
        else
            n += add_write(l, out + n, key, nkey, next_random(l));
    }
    l->begun += (uint64_t)l->pipeline;
    c->waiting = l->pipeline * l->replies;
    if (delay)
        n += add_front(l, c, out + n);
    c->sent_at = now_us();
    send_all(c->fd, out, n);
}

/* Bytes of the first whole reply (a line or a bulk), 0 when it is not whole yet. */
static size_t reply_bytes(const char *p, size_t n)
{
    const char *end = memchr(p, '\n', n);
    if (!end)
        return 0;
    size_t line = (size_t)(end - p) + 1;
    if (*p != '$' || p[1] == '-')
        return line;
    size_t whole = line + (size_t)strtoul(p + 1, NULL, 10) + 2;
    return whole <= n ? whole : 0;
}

/* An array is followed by its items; what a delay queue's worker is answered in bulks is to be removed. */
static void note_reply(struct load *l, struct conn *c, const char *reply, size_t n)
{
    l->errors += *reply == '-';
    if (*reply == '*' && reply[1] != '-')
        c->waiting += atoi(reply + 1);
    if (*reply != '$' || reply[1] == '-' || !c->front || c->found == l->pipeline)
        return;
    const char *body = (const char *)memchr(reply, '\n', n) + 1;
    size_t size = (size_t)(reply + n - 2 - body);
    if (size < MAX_KEY)
        snprintf(c->front[c->found++], MAX_KEY, "%.*s", (int)size, body);
}

static void receive(struct load *l, struct conn *c)
{
    ssize_t k = read(c->fd, c->in + c->have, IN_BYTES - c->have);
    if (k <= 0)
        die("read");
    c->have += (size_t)k;
    size_t used = 0, n;
    while (c->waiting && (n = reply_bytes(c->in + used, c->have - used)) > 0) {
        note_reply(l, c, c->in + used, n);
        used += n;
        c->waiting--;
    }
    memmove(c->in, c->in + used, c->have - used);
    c->have -= used;
    if (c->waiting)
        return;
    int64_t us = now_us() - c->sent_at;
    l->histogram[us < BUCKETS ? us : BUCKETS - 1]++;
    l->rounds++;
    if (us > l->longest_us)
        l->longest_us = us;
    if (!too_many(l))
        send_round(l, c);
}

static int64_t percentile(const struct load *l, double p)
{
    uint64_t seen = 0;
    for (int64_t us = 0; us < BUCKETS; us++) {
        seen += l->histogram[us];
        if ((double)seen >= (double)l->rounds * p / 100)
            return us;
    }
    return BUCKETS;
}

static void report(struct load *l)
{
    int64_t now = now_us(), waiting = 0;
    for (int i = 0; i < l->clients; i++)
        if (l->conns[i].waiting && now - l->conns[i].sent_at > waiting)
            waiting = now - l->conns[i].sent_at;
    double operations = (double)l->rounds * l->pipeline;
    printf("{\"ops\": %.0f, \"errors\": %llu, \"p50_us\": %lld, \"p99_us\": %lld, \"p999_us\": %lld, "
           "\"max_us\": %lld, \"waiting_us\": %lld}\n",
           operations * 1e6 / (double)(now - l->since_us), (unsigned long long)l->errors,
           (long long)percentile(l, 50), (long long)percentile(l, 99), (long long)percentile(l, 99.9),
           (long long)l->longest_us, (long long)waiting);
    fflush(stdout);
    memset(l->histogram, 0, BUCKETS * sizeof *l->histogram);
    l->rounds = l->errors = 0;
    l->longest_us = 0;
    l->since_us = now;
}

/* The arguments NAME=... at the end; how many others there are. */
static int named(struct load *l, int argc, char **argv)
{
    while (argc > 1 && strchr(argv[argc - 1], '=')) {
        const char *word = argv[--argc], *value = strchr(word, '=') + 1;
        if (strncmp(word, "count=", 6) == 0)
            l->count = strtoull(value, NULL, 10);
        else if (strncmp(word, "sequence=", 9) == 0)
            l->sequence = atoi(value);
        else if (strncmp(word, "seed=", 5) == 0)
            l->rnd += strtoull(value, NULL, 10) * 0x9E3779B97F4A7C15u;
        else
            return 0;
    }
    return argc;
}

static struct conn *dial_all(const struct load *l, int ep, int port)
{
    struct conn *conns = calloc((size_t)l->clients, sizeof *conns);
    for (int i = 0; i < l->clients; i++) {
        conns[i] = (struct conn){.fd = dial(port), .in = malloc(IN_BYTES)};
        if (strcmp(l->write, "delay") == 0)
            conns[i].front = malloc((size_t)l->pipeline * MAX_KEY);
        struct epoll_event e = {.events = EPOLLIN, .data.ptr = &conns[i]};
        epoll_ctl(ep, EPOLL_CTL_ADD, conns[i].fd, &e);
    }
    return conns;
}

static int all_answered(const struct load *l)
{
    for (int i = 0; i < l->clients; i++)
        if (l->conns[i].waiting)
            return 0;
    return 1;
}

int main(int argc, char **argv)
{
    struct load l = {.rnd = 88172645463325252u};
    argc = named(&l, argc, argv);
    if (argc < 8) {
        fprintf(stderr, "usage: load PORT CLIENTS PIPELINE SECONDS KEYS VALUE_BYTES READ_PERCENT "
                        "[PREFIX [WRITE [RATE [EVERY]]]] [count=N] [sequence=1|2] [seed=N]\n");
        return 2;
    }
    int port = atoi(argv[1]);
    double seconds = atof(argv[4]);
    l.clients = atoi(argv[2]);
    l.pipeline = atoi(argv[3]);
    l.keys = atoi(argv[5]);
    l.value_bytes = atoi(argv[6]);
    l.read_percent = atoi(argv[7]);
    l.prefix = argc > 8 ? argv[8] : "key:";
    l.write = argc > 9 ? argv[9] : "set";
    l.rate = argc > 10 ? atof(argv[10]) : 0;
    l.every = argc > 11 ? atof(argv[11]) : 0;
    l.replies = strcmp(l.write, "multi") == 0 ? MULTI_REPLIES : 1;
    if (l.pipeline > MAX_PIPELINE || l.value_bytes > LARGE_BYTES || l.clients < 1 || l.keys < 1)
        return 2;
    l.histogram = calloc(BUCKETS, sizeof *l.histogram);
    memset(l.value, 'x', LARGE_BYTES);
    int ep = epoll_create1(0);
    l.conns = dial_all(&l, ep, port);
    int64_t end = l.start_us = l.since_us = now_us();
    end += (int64_t)(seconds * 1e6);
    for (int i = 0; i < l.clients && !too_many(&l); i++)
        send_round(&l, &l.conns[i]);
    while (now_us() < end && !(l.count && l.begun >= l.count && all_answered(&l))) {
        struct epoll_event e[64];
        int n = epoll_wait(ep, e, 64, l.rate > 0 ? 1 : 100);
        for (int i = 0; i < n; i++)
            receive(&l, e[i].data.ptr);
        for (int i = 0; l.rate > 0 && i < l.clients && !too_many(&l); i++)
            if (l.conns[i].waiting == 0)
                send_round(&l, &l.conns[i]);
        if (l.every > 0 && (double)(now_us() - l.since_us) >= l.every * 1e6)
            report(&l);
    }
    if (l.rounds || l.every <= 0)
        report(&l);
    return 0;
}
