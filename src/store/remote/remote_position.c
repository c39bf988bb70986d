/* clang-format off */
/* Positions of transactions: store/replicated.h has the promises, here is what keeps them.

   admitted: the snapshot has everything up to it.
     PostgreSQL  pg_last_wal_replay_lsn() is asked for in a segment of the pipeline before BEGIN, and a record
                 counts as replayed after it has been applied: what was replayed then is in a snapshot that is
                 taken later. (In one segment with it BEGIN would come too late to say what the snapshot is.)
     MariaDB     mysql.gtid_slave_pos, read in the snapshot: each replicated transaction writes its GTID there,
                 so the rows are exactly what the snapshot has.

   seen: the snapshot has nothing behind it.
     PostgreSQL  asked for behind the statement that takes the snapshot. Not pg_last_wal_replay_lsn() alone: a
                 commit can be seen a moment before its record counts as replayed. What the standby has received
                 and flushed (pg_last_wal_receive_lsn()) is at least what it is just replaying.
     MariaDB     the same rows.

   Primary, a transaction that only reads, behind the snapshot: what can be seen has been written to the log,
   though it need not be flushed, because others may commit with synchronous_commit = off:
   pg_current_wal_insert_lsn(); MariaDB writes the binary log before a commit can be seen: @@gtid_current_pos.
   The same of a transaction that could have written and changed nothing (SET ... NX of a key that is there),
   behind its ROLLBACK: it has no place in the log of its own, and has waited for no flush.

   Primary, behind COMMIT: pg_current_wal_flush_lsn() when the commit waited for the flush, else the insert
   position; @@last_gtid. It is told when the COMMIT before it was answered; if the question itself fails, the
   commit stands and its position is not known.

   The insert position stands behind the header of a page that has no record yet, where no standby ever comes
   to: that header is taken off. With it, it is the end of the last record, which a standby reaches when it
   has replayed that.

   A position costs no round trip of its own. The branch comes from larder_meta, on a replica in the snapshot.
   A crash of either side between any two statements ends the session with its transaction: nothing is
   remembered from one connection to the next but what this process knows of the database (store/history.h). */
/* clang-format on */
#include "store/remote/remote_position.h"

#include <stdio.h>

#include "base/clock.h"
#include "store/remote/remote_session.h"

#define LONG_HEADER  40 /* of the first page of a WAL segment */
#define SHORT_HEADER 24 /* of any other */

/* clang-format off */

#define PG_LSN(function) "coalesce((" function " - '0/0'::pg_lsn)::bigint, 0)"

/* Before a replica's snapshot: how far it is, and whether it still is a replica. */
static const char *const before_text[REMOTE_DIALECTS] = {
    [REMOTE_POSTGRES] = "SELECT " PG_LSN("pg_last_wal_replay_lsn()") ", pg_is_in_recovery()::int",
    [REMOTE_MARIADB] = "SELECT @@gtid_slave_pos, @@gtid_current_pos, @@server_id, @@read_only",
};
/* In it. */
static const char *const behind_text[REMOTE_DIALECTS] = {
    [REMOTE_POSTGRES] = "SELECT " PG_LSN("CASE WHEN pg_is_in_recovery() THEN greatest(pg_last_wal_replay_lsn(),"
                        " pg_last_wal_receive_lsn()) ELSE pg_current_wal_insert_lsn() END"),
    [REMOTE_MARIADB] = "SELECT domain_id, server_id, seq_no FROM mysql.gtid_slave_pos",
};
static const char lineage_text[] = "SELECT value FROM larder_meta WHERE name = 'lineage'";

/* What can be seen on a primary, and what a commit that waited for the log has left. */
static const char *const written_text[REMOTE_DIALECTS] = {
    [REMOTE_POSTGRES] = "SELECT " PG_LSN("pg_current_wal_insert_lsn()"),
    [REMOTE_MARIADB] = "SELECT @@gtid_current_pos",
};
static const char *const durable_text[REMOTE_DIALECTS] = {
    [REMOTE_POSTGRES] = "SELECT " PG_LSN("CASE WHEN current_setting('synchronous_commit') = 'off'"
                        " THEN pg_current_wal_insert_lsn() ELSE pg_current_wal_flush_lsn() END"),
    [REMOTE_MARIADB] = "SELECT @@gtid_current_pos",
};
static const char last_gtid_text[] = "SELECT @@last_gtid";

/* clang-format on */

/* ---- answers ---- */

static uint64_t end_of_record(const struct rposition *p, uint64_t lsn)
{
    if (!p->segment || !p->page)
        return lsn;
    if (lsn % p->segment == LONG_HEADER)
        return lsn - LONG_HEADER;
    return lsn % p->page == SHORT_HEADER && lsn % p->segment > p->page ? lsn - SHORT_HEADER : lsn;
}

static void take_gtids(struct rposition *p, struct slice text, struct position *ret)
{
    ret->kind = POSITION_GTID;
    if (!position_read_gtids(text, ret))
        p->wrong = "has more replication domains than Larder can follow";
}

static void take_place(struct rstore *s, const struct remote_row *row, struct position *ret)
{
    *ret = (struct position){0};
    if (!rtext_postgres(s)) {
        take_gtids(&s->pos, remote_bytes(row, 0), ret);
        return;
    }
    ret->kind = POSITION_LSN;
    ret->number = end_of_record(&s->pos, (uint64_t)remote_i64(row, 0));
}

/* A MariaDB that has transactions of its own is no replica, or not only: they are not in what it has
   replayed. */
static bool has_own(const struct position *slave, const struct position *current, uint32_t server)
{
    for (uint32_t i = 0; i < current->ndomains; i++) {
        struct position one = {.kind = POSITION_GTID, .ndomains = 1, .gtids = {current->gtids[i]}};
        if (one.gtids[0].server == server && !position_reached(slave, &one))
            return true;
    }
    return false;
}

static enum status take_before(void *arg, const struct remote_row *row)
{
    struct rstore *s = arg;
    take_place(s, row, &s->pos.at);
    s->pos.is_primary = rtext_postgres(s) ? remote_i64(row, 1) == 0 : remote_i64(row, 3) == 0;
    if (s->pos.use != USE_FULLY)
        return ST_OK;
    if (rtext_postgres(s)) {
        if (s->pos.is_primary)
            s->pos.wrong = "is no standby: it takes writes of its own";
        return ST_OK;
    }
    struct position current = {0};
    take_gtids(&s->pos, remote_bytes(row, 1), &current);
    if (has_own(&s->pos.at, &current, (uint32_t)remote_i64(row, 2)))
        s->pos.wrong = "has transactions that did not come from its primary";
    return ST_OK;
}

static enum status take_behind(void *arg, const struct remote_row *row)
{
    struct rstore *s = arg;
    struct position *to = &s->pos.behind;
    if (rtext_postgres(s)) {
        take_place(s, row, to);
        return ST_OK;
    }
    to->kind = POSITION_GTID;
    uint32_t before = to->ndomains;
    struct position_gtid g = {(uint32_t)remote_i64(row, 0), (uint32_t)remote_i64(row, 1),
                              (uint64_t)remote_i64(row, 2)};
    struct position one = {.kind = POSITION_GTID, .ndomains = 1, .gtids = {g}};
    position_add_gtid(to, g);
    if (to->ndomains == before && !position_reached(to, &one))
        s->pos.wrong = "has more replication domains than Larder can follow";
    return ST_OK;
}

static enum status take_written(void *arg, const struct remote_row *row)
{
    struct rstore *s = arg;
    take_place(s, row, &s->pos.behind);
    return ST_OK;
}

static enum status take_lineage(void *arg, const struct remote_row *row)
{
    struct rposition *p = &((struct rstore *)arg)->pos;
    struct slice text = remote_bytes(row, 0);
    snprintf(p->lineage, sizeof p->lineage, "%.*s", (int)text.n, text.n ? text.p : "");
    return ST_OK;
}

static void ask(struct rstore *s, const char *text, remote_row_fn *fn)
{
    struct request r = {.text = text, .fn = fn, .arg = s};
    remote_add(s->conn, &r);
}

static void forget(struct rposition *p)
{
    p->at = p->behind = (struct position){0};
    p->wrong = NULL;
    p->lineage[0] = '\0';
}

/* A position that was told, with what it is a position of. */
static struct position whole(const struct rposition *p, const struct position *told)
{
    struct position ret = *told;
    if (p->here.kind != told->kind || (told->kind == POSITION_GTID && told->ndomains == 0))
        return (struct position){0};
    ret.database = p->here.database;
    ret.timeline = p->here.timeline;
    return ret;
}

static struct position replayed(const struct rposition *p)
{
    if (p->is_primary && p->use != USE_FULLY) /* a server that only reads: this admits everything */
        return (struct position){0};
    return whole(p, p->here.kind == POSITION_LSN ? &p->at : &p->behind);
}

/* ---- a transaction ---- */

void rposition_before(struct rstore *s)
{
    struct rposition *p = &s->pos;
    p->seen = (struct position){0};
    if (!p->replica) /* it has everything */
        return;
    forget(p);
    p->admitted = (struct position){0};
    ask(s, before_text[s->conn->dialect], take_before);
    remote_part(s->conn);
}

void rposition_behind(struct rstore *s)
{
    if (s->pos.replica) {
        ask(s, behind_text[s->conn->dialect], take_behind);
        ask(s, lineage_text, take_lineage);
    } else if (s->pos.wanted) {
        ask(s, written_text[s->conn->dialect], take_written);
    }
}

enum status rposition_begun(struct rstore *s, struct error *err)
{
    struct rposition *p = &s->pos;
    if (!p->replica) {
        rposition_committed(s);
        return ST_OK;
    }
    enum status st = rposition_branch(s, err);
    if (st != ST_OK)
        return st;
    p->admitted = replayed(p);
    p->seen = whole(p, &p->behind);
    if (p->is_primary && p->here.kind == POSITION_GTID) /* what was replayed once is not all that it has */
        p->seen = p->admitted;
    return ST_OK;
}

bool rposition_promoted(const struct rstore *s)
{
    return s->pos.replica && s->pos.is_primary && s->pos.use == USE_TO_READ_OF_REPLICA;
}

int64_t rposition_clock(struct rstore *s, int64_t told_us)
{
    struct known *k = s->pos.known;
    int64_t now_us = clock_mono_us(), primary_us;
    if (!k)
        return told_us;
    if (s->pos.replica)
        return (primary_us = known_clock(k, now_us)) ? primary_us : told_us;
    known_set_clock(k, told_us, now_us);
    return told_us;
}

void rposition_commit(struct rstore *s)
{
    if (!s->pos.wanted || s->pos.replica)
        return;
    s->pos.behind = (struct position){0};
    if (!s->dirty)
        ask(s, written_text[s->conn->dialect], take_written);
    else if (!rtext_postgres(s))
        ask(s, last_gtid_text, take_written);
    else if (s->soon || s->asked == TXN_LAZY)
        ask(s, written_text[REMOTE_POSTGRES], take_written);
    else
        ask(s, durable_text[REMOTE_POSTGRES], take_written);
}

void rposition_committed(struct rstore *s)
{
    struct position told = whole(&s->pos, &s->pos.behind);
    if (s->pos.wanted)
        position_merge(&s->pos.seen, &told);
}

/* ---- the interface ---- */

static void want(struct store *base, bool on)
{
    rstore_of(base)->pos.wanted = on;
}

static void admitted(const struct store *base, struct position *ret)
{
    *ret = ((const struct rstore *)base)->pos.admitted;
}

static void seen(const struct store *base, struct position *ret)
{
    *ret = ((const struct rstore *)base)->pos.seen;
}

/* Between transactions. The lineage is read behind the position, as in a transaction. */
static enum status now(struct store *base, struct position *ret, struct error *err)
{
    struct rstore *s = rstore_of(base);
    struct rposition *p = &s->pos;
    enum status st = rstore_connected(s, err);
    if (st != ST_OK)
        return st;
    forget(p);
    if (p->replica) {
        ask(s, before_text[s->conn->dialect], take_before);
        ask(s, behind_text[s->conn->dialect], take_behind);
        ask(s, lineage_text, take_lineage);
    } else {
        ask(s, (s->soon ? written_text : durable_text)[s->conn->dialect], take_written);
    }
    st = rstore_run(s, err);
    if (st == ST_OK && p->replica)
        st = rposition_branch(s, err);
    if (st == ST_OK)
        *ret = p->replica && !p->is_primary ? replayed(p) : whole(p, &p->behind);
    return st;
}

static bool only_reads(const struct store *base)
{
    return ((const struct rstore *)base)->pos.replica;
}

const struct replicated_ops rposition_ops = {
    .want = want,
    .admitted = admitted,
    .seen = seen,
    .now = now,
    .judge = rposition_judge,
    .only_reads = only_reads,
};
