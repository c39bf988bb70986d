/* Which database a session is connected to, and which branch of its history (store/history.h).

   The database: a random number in larder_meta (`database_id`), made by the first server that finds none, the
   same on replicas. A dump takes it along, and where it is brought back the log is another: so PostgreSQL's
   positions are of that number, the cluster's system identifier, and the oids of the database and of
   larder_meta, which only copies of the files share. MariaDB has nothing like that: docs/consistency.md says
   what is to be done behind a restored dump.

   The branch: a server that connects to a primary compares the last one in larder_meta (`lineage`) with the
   primary's timeline, or with its server number if it was a replica before; where they differ it adds one, in
   a transaction, before it tells any position there. Of two servers that do so at once one finds that the row
   has changed, and takes what it finds. A crash before the commit leaves no row: the next server adds it. On
   PostgreSQL the point where the new branch left the old one is in the timeline's history file, for roles
   that may read it; else it is what the new primary has replayed last, until it is started again. That it was
   not is known by pg_last_xact_replay_timestamp(), which only a standby sets: recovery from a crash does not.
   What cannot be known is 0, and everything on the branch before it counts as lost.

   Refused: a primary whose branch has a lower number than one that this process has met (an old primary that
   has come back), or the same number and another random part (two were promoted to the same timeline; which
   one is to go on is for a person to say, by starting Larder anew). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/rand.h"
#include "base/vec.h"
#include "store/remote/remote_session.h"

#define TRIES 4 /* to add a branch, while others do */

struct identity {
    struct rstore *store;
    int64_t number;   /* PostgreSQL: the timeline, 0 on a standby. MariaDB: the server's number */
    int64_t places;   /* PostgreSQL: oids */
    int64_t system;   /* PostgreSQL: of the cluster */
    int64_t database; /* larder_meta's; 0: none */
    int64_t replayed; /* PostgreSQL: where the timeline began; 0: not known */
    bool reads_files; /* this role may */
    bool replicated;  /* MariaDB: it is, or was, a replica */
    bool read_only;   /* MariaDB: it says so */
    bool crowded;     /* MariaDB: has more domains than there is room for */
};

/* clang-format off */

#define META(name) "(SELECT value FROM larder_meta WHERE name = '" name "')"

static const char *const identity_text[REMOTE_DIALECTS] = {
    [REMOTE_POSTGRES] =
        "SELECT " META("lineage") ", " META("database_id") "::bigint, CASE WHEN pg_is_in_recovery() THEN 0"
        " ELSE ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::bigint END,"
        " (SELECT system_identifier FROM pg_control_system()),"
        " ('larder_meta'::regclass::oid::bigint << 32)"
        "  | (SELECT oid::bigint FROM pg_database WHERE datname = current_database()),"
        " CASE WHEN pg_last_xact_replay_timestamp() IS NOT NULL"
        "  THEN (pg_last_wal_replay_lsn() - '0/0'::pg_lsn)::bigint ELSE 0 END,"
        " has_function_privilege('pg_read_file(text)', 'EXECUTE')::int,"
        " pg_size_bytes(current_setting('wal_segment_size')), current_setting('wal_block_size')::bigint",
    [REMOTE_MARIADB] =
        "SELECT " META("lineage") ", CAST(" META("database_id") " AS SIGNED), @@server_id, @@gtid_slave_pos,"
        " @@gtid_binlog_state, @@read_only",
};
static const char *const number_text[REMOTE_DIALECTS] = {
    [REMOTE_POSTGRES] = "INSERT INTO larder_meta (name, value) VALUES ('database_id', $1::text)"
                        " ON CONFLICT DO NOTHING",
    [REMOTE_MARIADB] = "INSERT IGNORE INTO larder_meta (name, value) VALUES ('database_id', ?1)",
};
static const char *const lineage_text[REMOTE_DIALECTS] = {
    [REMOTE_POSTGRES] = "INSERT INTO larder_meta AS m (name, value) VALUES ('lineage', convert_from($2, 'UTF8'))"
                        " ON CONFLICT (name) DO UPDATE SET value = excluded.value"
                        " WHERE m.value = convert_from($1, 'UTF8')",
    [REMOTE_MARIADB] = "INSERT INTO larder_meta (name, value) VALUES ('lineage', ?2)"
                       " ON DUPLICATE KEY UPDATE value = IF(value = ?1, VALUES(value), value)",
};

/* clang-format on */

/* ---- asking ---- */

/* "0-1-42,0-2-7": how much the server has of what each of them wrote. */
static void keep_gtids(struct rposition *p, struct slice text)
{
    while (text.n > 0) {
        const char *comma = memchr(text.p, ',', text.n);
        size_t n = comma ? (size_t)(comma - text.p) : text.n;
        struct position one = {.kind = POSITION_GTID};
        if (position_read_gtids(slice_of(text.p, n), &one) && one.ndomains == 1)
            VEC_PUSH(p->kept, p->nkept, p->kept_cap) = one.gtids[0];
        n += comma != NULL;
        text = slice_of(text.p + n, text.n - n);
    }
}

static enum status take_identity(void *arg, const struct remote_row *row)
{
    struct identity *i = arg;
    struct rposition *p = &i->store->pos;
    struct slice lineage = remote_bytes(row, 0);
    struct position ignored;
    snprintf(p->lineage, sizeof p->lineage, "%.*s", (int)lineage.n, lineage.n ? lineage.p : "");
    i->database = remote_i64(row, 1);
    i->number = remote_i64(row, 2);
    if (rtext_postgres(i->store)) {
        i->system = remote_i64(row, 3);
        i->places = remote_i64(row, 4);
        i->replayed = remote_i64(row, 5);
        i->reads_files = remote_i64(row, 6) != 0;
        p->segment = (uint64_t)remote_i64(row, 7);
        p->page = (uint64_t)remote_i64(row, 8);
        return ST_OK;
    }
    i->replicated = remote_bytes(row, 3).n > 0;
    i->read_only = remote_i64(row, 5) != 0;
    i->crowded = !position_read_gtids(remote_bytes(row, 3), &ignored);
    p->nkept = 0;
    keep_gtids(p, remote_bytes(row, 3));
    keep_gtids(p, remote_bytes(row, 4));
    return ST_OK;
}

static enum status ask_identity(struct rstore *s, struct identity *i, struct error *err)
{
    struct request r = {.text = identity_text[s->conn->dialect], .fn = take_identity, .arg = i};
    *i = (struct identity){.store = s};
    remote_add(s->conn, &r);
    return rstore_run(s, err);
}

/* ---- the database ---- */

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) + 0x9e3779b97f4a7c15u;
    h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9u;
    h = (h ^ h >> 27) * 0x94d049bb133111ebu;
    return h ^ h >> 31;
}

static uint64_t database_of(const struct identity *i)
{
    if (i->database == 0 || !rtext_postgres(i->store))
        return (uint64_t)i->database;
    uint64_t h = mix(mix((uint64_t)i->database, (uint64_t)i->system), (uint64_t)i->places);
    return h ? h : 1;
}

static enum status number_database(struct rstore *s, struct error *err)
{
    int64_t number;
    rand_secure(&number, sizeof number);
    const struct param p = param_i64((number & INT64_MAX) | 1);
    struct request r = {.text = number_text[s->conn->dialect], .params = &p, .nparams = 1};
    remote_add(s->conn, &r);
    return rstore_run(s, err);
}

/* ---- the branch ---- */

static enum status take_file(void *arg, const struct remote_row *row)
{
    char **ret = arg;
    mem_free(*ret);
    *ret = mem_strndup(remote_bytes(row, 0));
    return ST_OK;
}

/* Lines of a timeline's history file: the timelines before it, and where each was left. */
static bool add_by_file(struct history *h, uint32_t known, uint32_t timeline, const char *text)
{
    uint32_t parents[64], n = 0;
    uint64_t ends[64];
    for (const char *p = text; p && *p && n < 64; p = strchr(p, '\n')) {
        char *end;
        p += *p == '\n';
        parents[n] = (uint32_t)strtoul(p, &end, 10);
        if (end == p)
            continue;
        uint64_t high = strtoul(end, &end, 16);
        if (*end == '/')
            ends[n++] = high << 32 | strtoul(end + 1, NULL, 16);
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t child = i + 1 < n ? parents[i + 1] : timeline;
        if (child > known)
            history_add(h, child, ends[i]);
    }
    return n > 0;
}

static bool read_file(struct rstore *s, struct history *h, uint32_t known, uint32_t timeline)
{
    char query[96];
    char *text = NULL;
    struct error ignored;
    snprintf(query, sizeof query, "SELECT pg_read_file('pg_wal/%08" PRIX32 ".history')", timeline);
    struct request r = {.text = query, .fn = take_file, .arg = &text};
    remote_add(s->conn, &r);
    bool found = rstore_run(s, &ignored) == ST_OK && text && add_by_file(h, known, timeline, text);
    s->failed = ST_OK;
    mem_free(text);
    return found;
}

static void add_timeline(struct rstore *s, const struct identity *i, struct history *h)
{
    uint32_t known = h->n ? branch_number(history_last(h)->id) : 0, timeline = (uint32_t)i->number;
    if (h->n == 0 || timeline < known) {
        history_add(h, timeline, 0);
        return;
    }
    if (i->reads_files && read_file(s, h, known, timeline))
        return;
    if (timeline > known + 1) /* where those in between began nobody knows */
        history_add(h, timeline - 1, 0);
    history_add(h, timeline, (uint64_t)i->replayed);
}

/* The number of the branch that this primary is on, and whether larder_meta has to be told of it. */
static uint32_t number_of(const struct identity *i, const struct history *h, bool *ret_new)
{
    const struct branch *last = history_last(h);
    uint32_t number = last ? branch_number(last->id) : 0;
    if (rtext_postgres(i->store)) {
        *ret_new = number != (uint32_t)i->number;
        return (uint32_t)i->number;
    }
    *ret_new = !last || (i->replicated && last->from != (uint64_t)i->number);
    return number + *ret_new;
}

static enum status refuse_old(const struct rstore *s, uint32_t number, const struct history *known,
                              struct error *err)
{
    uint32_t latest = branch_number(history_last(known)->id);
    if (number < latest)
        return error_set(err, ST_INVALID,
                         "%s is an old primary: the database has gone on elsewhere, on timeline %" PRIu32
                         ", and this server is on %" PRIu32,
                         s->conn->place, latest, number);
    return error_set(
        err, ST_INVALID,
        "%s is on another history than the primary before it: two servers were promoted to timeline"
        " %" PRIu32 ". If this one is to go on, start Larder again",
        s->conn->place, number);
}

/* Of a primary, before anything is written there. */
static enum status check_old(struct rstore *s, uint32_t number, bool is_new, const struct history *h,
                             struct error *err)
{
    struct history known;
    known_history(s->pos.known, &known);
    if (known.n == 0)
        return ST_OK;
    uint32_t id = history_last(&known)->id, latest = branch_number(id);
    if (number > latest || (number == latest && !is_new && history_last(h)->id == id))
        return ST_OK;
    return refuse_old(s, number, &known, err);
}

static enum status add_branch(struct rstore *s, const struct identity *i, struct history *h, uint32_t number,
                              struct error *err)
{
    char text[HISTORY_TEXT];
    if (rtext_postgres(s))
        add_timeline(s, i, h);
    else
        history_add(h, number, (uint64_t)i->number);
    history_text(h, text); /* it has room in a column of 512 bytes */
    const struct param p[] = {param_bytes(slice_str(s->pos.lineage)), param_bytes(slice_str(text))};
    struct request r = {.text = lineage_text[s->conn->dialect], .params = p, .nparams = 2};
    remote_add_text(s->conn, rtext(s, R_BEGIN));
    remote_add_text(s->conn, rtext(s, R_NOW));
    remote_add(s->conn, &r);
    remote_add_text(s->conn, "COMMIT");
    enum status st = rstore_run(s, err);
    if (st == ST_OK && h->n > 1)
        log_info("the database has a new branch", "place=\"%s\" lineage=\"%s\"", s->conn->place, text);
    return st;
}

/* Of a primary. */
static enum status enter_primary(struct rstore *s, struct identity *i, bool writes, struct error *err)
{
    struct rposition *p = &s->pos;
    for (int tries = 0; tries < TRIES; tries++) {
        struct history h;
        bool is_new;
        if (!history_read(slice_str(p->lineage), &h))
            return error_set(err, ST_CORRUPT, "%s: larder_meta has a lineage that cannot be read",
                             s->conn->place);
        uint32_t number = number_of(i, &h, &is_new);
        enum status st = check_old(s, number, is_new, &h, err);
        if (st != ST_OK || !is_new || !writes)
            return st;
        st = add_branch(s, i, &h, number, err);
        if (st == ST_OK)
            st = ask_identity(s, i, err);
        if (st != ST_OK)
            return st;
    }
    return error_set(err, ST_IO, "%s: its lineage does not stand still", s->conn->place);
}

/* ---- entering ---- */

static enum status ignore_row(void *arg, const struct remote_row *row)
{
    (void)arg;
    (void)row;
    return ST_OK;
}

/* What a MariaDB replica's role must be allowed to read, so that it is known what a snapshot has. */
static enum status may_read_gtids(struct rstore *s, struct error *err)
{
    struct request r = {.text = "SELECT seq_no FROM mysql.gtid_slave_pos LIMIT 1", .fn = ignore_row};
    if (rtext_postgres(s))
        return ST_OK;
    remote_add(s->conn, &r);
    enum status st = rstore_run(s, err);
    s->failed = ST_OK;
    if (st != ST_DENIED)
        return st;
    return error_set(err, ST_DENIED,
                     "%s: to read from a replica, GRANT SELECT ON mysql.gtid_slave_pos is needed",
                     s->conn->place);
}

static enum status not_a_replica(const struct identity *i, struct error *err)
{
    const char *place = i->store->conn->place;
    if (i->store->pos.use != USE_FULLY)
        return ST_OK;
    if (i->crowded)
        return error_set(err, ST_INVALID, "%s has more than %d replication domains", place, POSITION_DOMAINS);
    if (rtext_postgres(i->store) ? i->number != 0 : !i->replicated)
        return error_set(err, ST_INVALID, "%s is no replica: it takes writes of its own", place);
    if (i->database == 0 || !i->store->pos.lineage[0])
        return error_set(err, ST_IO, "%s: its primary has not been opened by this version yet", place);
    return ST_OK;
}

/* This role may not write, or nobody may: positions are told where others have written the rows. */
static bool cannot_write(enum status st)
{
    return st == ST_DENIED || st == ST_READONLY;
}

static void enter_database(struct rstore *s, const struct identity *i)
{
    struct rposition *p = &s->pos;
    uint64_t database = database_of(i);
    p->here = (struct position){0};
    p->admitted = p->seen = p->here;
    p->read[0] = '\0';
    p->wrong = NULL;
    if (database == 0)
        return;
    p->here.kind = rtext_postgres(s) ? POSITION_LSN : POSITION_GTID;
    p->here.database = database;
    p->known = known_database(database);
}

enum status rposition_enter(struct rstore *s, bool writes, struct error *err)
{
    struct identity i;
    enum status st = ask_identity(s, &i, err);
    if (st == ST_OK && i.database == 0 && writes) {
        st = number_database(s, err);
        if (cannot_write(st))
            st = ST_OK;
        if (st == ST_OK)
            st = ask_identity(s, &i, err);
    }
    if (st != ST_OK)
        return st;
    enter_database(s, &i);
    s->pos.is_primary = rtext_postgres(s) ? i.number != 0 : !i.read_only;
    if (s->pos.replica && (st = not_a_replica(&i, err)) == ST_OK)
        st = may_read_gtids(s, err);
    if (st != ST_OK)
        return st;
    if (s->pos.here.kind == POSITION_NONE)
        return ST_OK;
    bool standby = rtext_postgres(s) && i.number == 0;
    if (!s->pos.replica && !standby)
        st = enter_primary(s, &i, writes, err);
    s->failed = ST_OK;
    if (cannot_write(st))
        st = ST_OK;
    if (st != ST_OK)
        return st;
    if (!s->pos.lineage[0]) {
        s->pos.here = (struct position){0};
        return ST_OK;
    }
    return rposition_branch(s, err);
}

enum status rposition_branch(struct rstore *s, struct error *err)
{
    struct rposition *p = &s->pos;
    const struct rstore *primary = (const struct rstore *)p->primary;
    struct history h;
    if (p->wrong)
        return error_set(err, ST_INVALID, "%s %s", s->conn->place, p->wrong);
    if (p->here.kind == POSITION_NONE) /* nobody has written which database this is */
        return ST_OK;
    if (primary && primary->pos.here.kind != POSITION_NONE && primary->pos.here.database != p->here.database)
        return error_set(err, ST_INVALID, "%s is a replica of another database", s->conn->place);
    uint32_t changes = known_changes(p->known);
    if (strcmp(p->lineage, p->read) == 0 && changes == p->changes)
        return ST_OK;
    if (!history_read(slice_str(p->lineage), &h) || h.n == 0)
        return error_set(err, ST_CORRUPT, "%s: larder_meta has a lineage that cannot be read",
                         s->conn->place);
    if (known_meet(p->known, &h) == KNOWN_APART)
        return error_set(err, ST_INVALID, "%s is on a branch that the database has left", s->conn->place);
    memcpy(p->read, p->lineage, sizeof p->read);
    p->changes = known_changes(p->known);
    p->here.timeline = history_last(&h)->id;
    return ST_OK;
}

/* ---- judging ---- */

static bool has_gtid(const struct rposition *p, const struct position_gtid *g)
{
    for (size_t i = 0; i < p->nkept; i++)
        if (p->kept[i].domain == g->domain && p->kept[i].server == g->server && p->kept[i].seq >= g->seq)
            return true;
    return false;
}

enum status rposition_judge(struct store *base, const struct position *p, enum lineage *ret,
                            struct error *err)
{
    struct rstore *s = rstore_of(base);
    const struct rposition *q = &s->pos;
    struct history h;
    *ret = LINEAGE_SAME;
    if (p->kind == POSITION_NONE)
        return ST_OK;
    if (!q->known) {
        enum status st = rstore_connected(s, err);
        if (st != ST_OK)
            return st;
    }
    if (q->here.kind == POSITION_NONE)
        return error_set(err, ST_IO, "the database tells no positions");
    if (p->kind != q->here.kind || p->database != q->here.database) {
        *ret = LINEAGE_FOREIGN;
        return ST_OK;
    }
    known_history(s->pos.known, &h);
    uint32_t latest = history_last(&h)->id;
    if (p->timeline == latest)
        return ST_OK;
    if (q->replica && !history_has(&h, p->timeline) && branch_number(p->timeline) > branch_number(latest))
        return ST_OK; /* the replica has not come that far */
    if (p->kind == POSITION_LSN && !history_kept(&h, p->timeline, p->number))
        *ret = LINEAGE_LOST;
    for (uint32_t i = 0; p->kind == POSITION_GTID && i < p->ndomains; i++)
        if (!has_gtid(q, &p->gtids[i]))
            *ret = LINEAGE_LOST;
    return ST_OK;
}
