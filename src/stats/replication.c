#include "stats/replication.h"

#include <stdio.h>

#include "base/buf.h"
#include "exec/executor.h"
#include "proto/prometheus.h"
#include "proto/reply.h"
#include "replica/replicas.h"
#include "stats/sums.h"

static uint32_t count(const struct executor *s)
{
    return s->server->replicas ? replicas_count(s->server->replicas) : 0;
}

uint32_t replication_count(const struct executor *s, uint32_t *ret_in_rotation)
{
    struct replica_state r;
    uint32_t n = count(s);
    *ret_in_rotation = 0;
    for (uint32_t i = 1; i <= n; i++) {
        replicas_state(s->server->replicas, i, &r);
        *ret_in_rotation += r.in_rotation;
    }
    return n;
}

/* How far the primary has got, as a number that grows; 0 where nobody asks. */
static uint64_t primary_offset(const struct executor *s)
{
    struct position p = {.kind = POSITION_NONE};
    if (s->server->replicas)
        replicas_primary(s->server->replicas, &p);
    return position_offset(&p);
}

/* ---- INFO ---- */

/* As Redis tells of those that follow it: the ones that reads may go to. lag is in whole seconds there. */
static void add_slaves(const struct executor *s, struct buf *out)
{
    struct replica_state r;
    uint32_t n, shown = 0;
    replication_count(s, &n);
    buf_addf(out, "connected_slaves:%u\r\n", n);
    for (uint32_t i = 1; i <= count(s); i++) {
        replicas_state(s->server->replicas, i, &r);
        if (r.in_rotation && shown < n)
            buf_addf(out, "slave%u:ip=%s,port=%d,state=online,offset=%llu,lag=%lld\r\n", shown++, r.host,
                     r.port, (unsigned long long)position_offset(&r.at),
                     r.age_us == INT64_MAX ? -1LL : (long long)(r.age_us / 1000000));
    }
}

/* All of them, the reason last: it is a sentence. lag_ms is empty where it is not known. */
static void add_replica(const struct executor *s, uint32_t i, struct buf *out)
{
    struct replica_state r;
    char at[POSITION_TEXT];
    replicas_state(s->server->replicas, i, &r);
    buf_addf(out, "larder_replica%u:place=%s,connected=%s,in_rotation=%s,position=%s,behind=%llu,lag_ms=", i,
             r.place, r.connected ? "yes" : "no", r.in_rotation ? "yes" : "no", position_text(&r.at, at),
             (unsigned long long)r.behind);
    if (r.age_us != INT64_MAX)
        buf_addf(out, "%lld", (long long)((r.age_us + 999) / 1000));
    buf_addf(out, ",failures=%llu,left=%llu,why=%s\r\n", (unsigned long long)r.failures,
             (unsigned long long)r.left, r.in_rotation ? "" : r.why);
}

/* larder_reads_session:primary=12,replica1=7,memory=0 */
static void add_reads(const struct executor *s, const struct sums *t, struct buf *out)
{
    for (int mode = 0; mode < READ_MODES; mode++) {
        const uint64_t *served = t->stats.served[mode];
        buf_addf(out, "larder_reads_%s:primary=%llu", read_mode_name((enum read_mode)mode),
                 (unsigned long long)served[0]);
        for (uint32_t i = 1; i <= count(s); i++)
            buf_addf(out, ",replica%u=%llu", i, (unsigned long long)served[i]);
        buf_addf(out, ",memory=%llu\r\n", (unsigned long long)served[READ_FROM_MEMORY]);
    }
}

static void add_replicas(const struct executor *s, struct buf *out)
{
    struct position p;
    char at[POSITION_TEXT], mode[CONSISTENCY_TEXT];
    replicas_primary(s->server->replicas, &p);
    buf_addf(out, "larder_read_consistency:%s\r\n", consistency_text(s->config->read_consistency, mode));
    buf_addf(out, "larder_primary:%s\r\n", replicas_primary_away(s->server->replicas) ? "away" : "up");
    buf_addf(out, "larder_primary_position:%s\r\n", position_text(&p, at));
    buf_addf(out, "larder_replicas:%u\r\n", count(s));
    for (uint32_t i = 1; i <= count(s); i++)
        add_replica(s, i, out);
}

/* Of a server that only reads: the database that it reads stands for the master. */
static void add_master(const struct executor *s, struct buf *out)
{
    struct replica_state r;
    replicas_state(s->server->replicas, 0, &r);
    buf_addf(out,
             "role:slave\r\n"
             "master_host:%s\r\n"
             "master_port:%d\r\n"
             "master_link_status:%s\r\n"
             "master_last_io_seconds_ago:%d\r\n"
             "master_sync_in_progress:0\r\n"
             "slave_read_repl_offset:%llu\r\n"
             "slave_repl_offset:%llu\r\n"
             "slave_priority:100\r\n"
             "slave_read_only:1\r\n"
             "replica_announced:1\r\n",
             r.host, r.port, r.connected ? "up" : "down", r.connected ? 0 : -1,
             (unsigned long long)position_offset(&r.at), (unsigned long long)position_offset(&r.at));
}

static bool is_slave(const struct executor *s)
{
    return s->server->replicas && executor_only_reads(s);
}

void replication_info(const struct executor *s, const struct sums *t, struct buf *out)
{
    if (is_slave(s))
        add_master(s, out);
    else
        buf_addf(out, "role:master\r\n");
    add_slaves(s, out);
    buf_addf(out,
             "master_failover_state:no-failover\r\n"
             "master_replid:%s\r\n"
             "master_replid2:0000000000000000000000000000000000000000\r\n"
             "master_repl_offset:%llu\r\n"
             "second_repl_offset:-1\r\n"
             "repl_backlog_active:0\r\n"
             "repl_backlog_size:0\r\n"
             "repl_backlog_first_byte_offset:0\r\n"
             "repl_backlog_histlen:0\r\n",
             s->server->run_id, (unsigned long long)primary_offset(s));
    if (s->server->replicas)
        add_replicas(s, out);
    if (s->server->replicas || s->recent) /* reads may be served elsewhere than by the primary */
        add_reads(s, t, out);
}

/* ---- ROLE ---- */

static void role_of_slave(const struct executor *s, struct reply *reply)
{
    struct replica_state r;
    replicas_state(s->server->replicas, 0, &r);
    reply_array(reply, 5);
    reply_bulk_str(reply, "slave");
    reply_bulk_str(reply, r.host);
    reply_integer(reply, r.port);
    reply_bulk_str(reply, r.connected ? "connected" : "connect");
    reply_integer(reply, (int64_t)position_offset(&r.at));
}

void replication_role(const struct executor *s, struct reply *reply)
{
    struct replica_state states[REPLICAS_MAX];
    uint32_t n = 0;
    if (is_slave(s)) {
        role_of_slave(s, reply);
        return;
    }
    for (uint32_t i = 1; i <= count(s); i++) {
        replicas_state(s->server->replicas, i, &states[n]);
        n += states[n].in_rotation;
    }
    reply_array(reply, 3);
    reply_bulk_str(reply, "master");
    reply_integer(reply, (int64_t)primary_offset(s));
    reply_array(reply, n);
    for (uint32_t i = 0; i < n; i++) {
        reply_array(reply, 3);
        reply_bulk_str(reply, states[i].host);
        reply_bulk_i64(reply, states[i].port);
        reply_bulk_i64(reply, (int64_t)position_offset(&states[i].at));
    }
}

/* ---- metrics ---- */

enum replica_metric { IN_ROTATION, CONNECTED, LAG, BEHIND, FAILURES, LEFT };

static const struct {
    const char *name, *help;
    enum prom_type type;
} replica_metrics[] = {
    [IN_ROTATION] = {"larder_replica_in_rotation", "1: reads may go to this replica.", PROM_GAUGE},
    [CONNECTED] = {"larder_replica_connected", "1: the last check has reached it.", PROM_GAUGE},
    [LAG] = {"larder_replica_lag_seconds", "At most how old what it has is; not told while unknown.",
             PROM_GAUGE},
    [BEHIND] = {"larder_replica_behind",
                "How far it is behind the primary: bytes of the log (PostgreSQL), transactions (MariaDB).",
                PROM_GAUGE},
    [FAILURES] = {"larder_replica_failures_total", "Checks and transactions that have failed on it.",
                  PROM_COUNTER},
    [LEFT] = {"larder_replica_left_total", "Times that it has left the rotation.", PROM_COUNTER},
};

static void add_sample(struct prom *p, enum replica_metric which, const struct replica_state *r)
{
    const struct prom_label *labels = PROM_LABELS({"replica", r->place});
    switch (which) {
    case IN_ROTATION:
        prom_u64(p, labels, r->in_rotation);
        break;
    case CONNECTED:
        prom_u64(p, labels, r->connected);
        break;
    case LAG:
        if (r->age_us != INT64_MAX)
            prom_seconds(p, labels, (uint64_t)r->age_us);
        break;
    case BEHIND:
        prom_u64(p, labels, r->behind);
        break;
    case FAILURES:
        prom_u64(p, labels, r->failures);
        break;
    case LEFT:
        prom_u64(p, labels, r->left);
        break;
    }
}

static void add_served(const struct executor *s, const struct sums *t, struct prom *p)
{
    struct replica_state r;
    prom_family(p, "larder_reads_total", PROM_COUNTER,
                "Calls that only read, by their mode and by where they were served from.");
    for (int mode = 0; mode < READ_MODES; mode++) {
        const char *name = read_mode_name((enum read_mode)mode);
        const uint64_t *served = t->stats.served[mode];
        prom_u64(p, PROM_LABELS({"mode", name}, {"from", "primary"}), served[0]);
        for (uint32_t i = 1; i <= count(s); i++) {
            replicas_state(s->server->replicas, i, &r);
            prom_u64(p, PROM_LABELS({"mode", name}, {"from", r.place}), served[i]);
        }
        prom_u64(p, PROM_LABELS({"mode", name}, {"from", "memory"}), served[READ_FROM_MEMORY]);
    }
}

void replication_metrics(const struct executor *s, const struct sums *t, struct prom *p)
{
    struct replica_state r;
    for (size_t k = 0; k < sizeof replica_metrics / sizeof *replica_metrics; k++) {
        prom_family(p, replica_metrics[k].name, replica_metrics[k].type, replica_metrics[k].help);
        for (uint32_t i = 1; i <= count(s); i++) {
            replicas_state(s->server->replicas, i, &r);
            add_sample(p, (enum replica_metric)k, &r);
        }
    }
    prom_family(p, "larder_primary_away", PROM_GAUGE,
                "1: the primary of a database with replicas does not answer.");
    if (s->server->replicas)
        prom_u64(p, NULL, replicas_primary_away(s->server->replicas));
    add_served(s, t, p);
}
