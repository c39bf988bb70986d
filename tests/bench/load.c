/* A closed-loop load on a RESP server, for what redis-benchmark cannot do: a mix of reads and writes, a fixed
   time, a rate that is not exceeded, and latency percentiles over all of it. Each connection sends `pipeline`
   commands, waits for all replies, and goes on.

     load PORT CLIENTS PIPELINE SECONDS KEYS VALUE_BYTES READ_PERCENT [PREFIX [WRITE [RATE [EVERY]]]]

   WRITE: set (default), incr, hset (fields of one hash), lpush (one list), zadd (members of one sorted set),
     mix (of twenty 12 set, 1 set of 4 KB, 3 hset, 2 zadd, 2 lpush), row (ROW.PUT of a row of the table
   `bench`, which has a TEXT id and name, an INTEGER city and age), multi (what an application does for the
   same by hand: MULTI, HSET of a hash, SADD to the set of its city, ZADD to the ages, EXEC). RATE: operations
   per second at most, 0 for as many as can be had. EVERY: seconds from one report to the next; without it
   there is one, at the end.

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

struct conn {
    int fd;
    int waiting; /* replies still to come */
    int64_t sent_at;
    char *in;
    size_t have;
};

struct load {
    int clients, pipeline, keys, value_bytes, read_percent;
    const char *prefix, *write;
    int lines; /* of the replies to one operation */
    double rate, every;
    int64_t start_us;
    uint64_t begun; /* operations that were sent */
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

#define MULTI_LINES 8 /* of its replies: OK, three times QUEUED, an array of three numbers */

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
    if (strcmp(write, "incr") == 0) {
        n += (size_t)sprintf(out + n, "*2\r\n$4\r\nINCR\r\n");
        return n + add_word(out + n, key, nkey);
    }
    if (strcmp(write, "hset") == 0) {
        n += (size_t)sprintf(out + n, "*4\r\n$4\r\nHSET\r\n$6\r\nmyhash\r\n");
        n += add_word(out + n, key, nkey);
    } else if (strcmp(write, "zadd") == 0) {
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

/* Whether another round would be more than the rate allows. */
static int too_fast(const struct load *l)
{
    return l->rate > 0 && (double)l->begun > l->rate * (double)(now_us() - l->start_us) / 1e6;
}

static void send_round(struct load *l, struct conn *c)
{
    static char out[MAX_PIPELINE * 8192];
    size_t n = 0;
    for (int i = 0; i < l->pipeline; i++) {
        char key[128];
        uint64_t k = next_random(l) % (uint64_t)l->keys;
        int nkey = snprintf(key, sizeof key, "%s%012llu", l->prefix, (unsigned long long)k);
        if ((int)(next_random(l) % 100) < l->read_percent)
            n += (size_t)sprintf(out + n, "*2\r\n$3\r\nGET\r\n$%d\r\n%s\r\n", nkey, key);
        else
            n += add_write(l, out + n, key, nkey, next_random(l));
    }
    l->begun += (uint64_t)l->pipeline;
    c->waiting = l->pipeline * l->lines;
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

static void receive(struct load *l, struct conn *c)
{
    ssize_t k = read(c->fd, c->in + c->have, IN_BYTES - c->have);
    if (k <= 0)
        die("read");
    c->have += (size_t)k;
    size_t used = 0, n;
    while (c->waiting && (n = reply_bytes(c->in + used, c->have - used)) > 0) {
        l->errors += c->in[used] == '-';
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
    if (!too_fast(l))
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

int main(int argc, char **argv)
{
    if (argc < 8) {
        fprintf(stderr, "usage: load PORT CLIENTS PIPELINE SECONDS KEYS VALUE_BYTES READ_PERCENT "
                        "[PREFIX [WRITE [RATE [EVERY]]]]\n");
        return 2;
    }
    int port = atoi(argv[1]);
    double seconds = atof(argv[4]);
    struct load l = {.clients = atoi(argv[2]),
                     .pipeline = atoi(argv[3]),
                     .keys = atoi(argv[5]),
                     .value_bytes = atoi(argv[6]),
                     .read_percent = atoi(argv[7]),
                     .prefix = argc > 8 ? argv[8] : "key:",
                     .write = argc > 9 ? argv[9] : "set",
                     .rate = argc > 10 ? atof(argv[10]) : 0,
                     .every = argc > 11 ? atof(argv[11]) : 0,
                     .rnd = 88172645463325252u};
    l.lines = strcmp(l.write, "multi") == 0 ? MULTI_LINES : 1;
    if (l.pipeline > MAX_PIPELINE || l.value_bytes > LARGE_BYTES || l.clients < 1 || l.keys < 1)
        return 2;
    l.histogram = calloc(BUCKETS, sizeof *l.histogram);
    memset(l.value, 'x', LARGE_BYTES);
    int ep = epoll_create1(0);
    struct conn *conns = l.conns = calloc((size_t)l.clients, sizeof *conns);
    for (int i = 0; i < l.clients; i++) {
        conns[i] = (struct conn){.fd = dial(port), .in = malloc(IN_BYTES)};
        struct epoll_event e = {.events = EPOLLIN, .data.ptr = &conns[i]};
        epoll_ctl(ep, EPOLL_CTL_ADD, conns[i].fd, &e);
    }
    int64_t end = l.start_us = l.since_us = now_us();
    end += (int64_t)(seconds * 1e6);
    for (int i = 0; i < l.clients; i++)
        send_round(&l, &conns[i]);
    while (now_us() < end) {
        struct epoll_event e[64];
        int n = epoll_wait(ep, e, 64, l.rate > 0 ? 1 : 100);
        for (int i = 0; i < n; i++)
            receive(&l, e[i].data.ptr);
        for (int i = 0; l.rate > 0 && i < l.clients && !too_fast(&l); i++)
            if (conns[i].waiting == 0)
                send_round(&l, &conns[i]);
        if (l.every > 0 && (double)(now_us() - l.since_us) >= l.every * 1e6)
            report(&l);
    }
    if (l.rounds || l.every <= 0)
        report(&l);
    return 0;
}
