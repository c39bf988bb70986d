/* PostgreSQL, over libpq. Statements are prepared when first used, in the round trip that uses them, with
   binary parameters and results. The connection is in pipeline mode all the time: what remote_add queues goes
   out as the socket takes it, and one sync message ends each run. Prepared statements are in an array and no
   base/map: they are few, none is ever taken out, and its place is a statement's name at the server. */
#include <assert.h>
#include <endian.h>
#include <libpq-fe.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/vec.h"
#include "sql/postgres_internal.h"
#include "sql/remote_internal.h"

enum { OID_BYTEA = 17, OID_INT8 = 20, OID_FLOAT8 = 701 };
enum { OID_BYTEA_ARRAY = 1001, OID_INT8_ARRAY = 1016, OID_FLOAT8_ARRAY = 1022 };

#define MAX_COLUMNS 24

struct prepared {
    uint64_t hash;
    char *text;
    bool known; /* to the server */
};

/* What an answer is awaited for. */
struct awaited {
    struct request request; /* its parameters are not looked at any more */
    int prepares;           /* a statement's number, or -1: runs one */
    bool sync;              /* the end of a run */
};

struct postgres {
    struct remote base;
    PGconn *conn;
    struct prepared *prepared;
    size_t nprepared, prepared_cap;
    struct awaited *awaited;
    size_t nawaited, awaited_cap;
    size_t nposted;    /* of those, were posted */
    struct buf params; /* of the request that is being added */
    bool unsent;       /* a statement could not even be queued */
};

static struct postgres *postgres_of(struct remote *c)
{
    return (struct postgres *)c;
}

/* ---- failures ---- */

static enum status lost(struct postgres *p, struct error *err)
{
    p->base.lost = true;
    return postgres_fail(err, ST_IO, p->base.place, PQerrorMessage(p->conn));
}

static const struct {
    char state[6]; /* an SQLSTATE, or how it begins */
    enum status status;
} states[] = {
    {"23505", ST_CONFLICT}, /* unique_violation: another session has just made it */
    {"40001", ST_CONFLICT}, /* serialization_failure */
    {"40P01", ST_CONFLICT}, /* deadlock_detected */
    {"22012", ST_CONFLICT}, /* division_by_zero: how a statement of ours says that it finds another state */
    {"55P03", ST_BUSY},     /* lock_not_available */
    {"57014", ST_BUSY},     /* query_canceled: the statement's time was up */
    {"53100", ST_FULL},     {"25006", ST_READONLY}, {"42501", ST_DENIED},  {"28", ST_DENIED},
    {"42P01", ST_MISSING},  {"3D000", ST_MISSING},  {"3F000", ST_MISSING}, {"57P", ST_IO},
    {"08", ST_IO},          {"58", ST_IO},          {"53", ST_IO},         {"XX001", ST_CORRUPT},
    {"XX002", ST_CORRUPT},  {"54", ST_INVALID},     {"22", ST_INVALID},
};

static enum status status_of(const char *state)
{
    for (size_t i = 0; state && i < sizeof states / sizeof states[0]; i++)
        if (strncmp(state, states[i].state, strlen(states[i].state)) == 0)
            return states[i].status;
    return ST_INTERNAL;
}

static enum status result_error(struct postgres *p, const PGresult *r, struct error *err)
{
    if (PQstatus(p->conn) == CONNECTION_BAD)
        return lost(p, err);
    const char *state = PQresultErrorField(r, PG_DIAG_SQLSTATE);
    if (state && (strcmp(state, "26000") == 0 || strcmp(state, "42P05") == 0))
        return postgres_no_session(err, p->base.place); /* a statement was prepared in another one */
    return postgres_fail(err, status_of(state), p->base.place, PQresultErrorMessage(r));
}

/* ---- parameters ---- */

static void add_u32(struct buf *b, size_t v)
{
    uint32_t be = htobe32((uint32_t)v);
    buf_add(b, &be, sizeof be);
}

static void add_u64(struct buf *b, uint64_t v)
{
    v = htobe64(v);
    buf_add(b, &v, sizeof v);
}

static void add_double(struct buf *b, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    add_u64(b, bits);
}

static Oid type_of(const struct param *p)
{
    static const Oid one[] = {[PARAM_I64] = OID_INT8, [PARAM_DOUBLE] = OID_FLOAT8, [PARAM_BYTES] = OID_BYTEA};
    static const Oid many[] = {
        [PARAM_I64] = OID_INT8_ARRAY, [PARAM_DOUBLE] = OID_FLOAT8_ARRAY, [PARAM_BYTES] = OID_BYTEA_ARRAY};
    return p->many ? many[p->kind] : one[p->kind];
}

static Oid element_of(const struct param *p)
{
    struct param one = {.kind = p->kind};
    return type_of(&one);
}

/* An array in binary: one dimension, no NULLs. */
static void add_array(struct buf *b, const struct param *p, size_t n)
{
    add_u32(b, n ? 1 : 0);
    add_u32(b, 0);
    add_u32(b, element_of(p));
    if (n == 0)
        return;
    add_u32(b, n);
    add_u32(b, 1);
    for (size_t i = 0; i < n; i++) {
        if (p->kind == PARAM_BYTES) {
            add_u32(b, p->slices[i].n);
            buf_add_slice(b, p->slices[i]);
            continue;
        }
        add_u32(b, 8);
        if (p->kind == PARAM_I64)
            add_u64(b, (uint64_t)p->i64s[i]);
        else
            add_double(b, p->dbls[i]);
    }
}

static void add_param(struct buf *b, const struct param *p, size_t nrows)
{
    if (p->many)
        add_array(b, p, nrows);
    else if (p->kind == PARAM_I64)
        add_u64(b, (uint64_t)p->i64);
    else if (p->kind == PARAM_DOUBLE)
        add_double(b, p->dbl);
    else
        buf_add_slice(b, p->bytes);
}

/* ---- queueing ---- */

static struct awaited *await(struct postgres *p, int prepares)
{
    struct awaited *a = &VEC_PUSH(p->awaited, p->nawaited, p->awaited_cap);
    *a = (struct awaited){.prepares = prepares};
    return a;
}

/* The number of a statement, which is prepared on the way when the server does not know it yet. */
static int prepare(struct postgres *p, const struct request *r)
{
    struct slice text = slice_str(r->text);
    uint64_t hash = hash_bytes(text, 0);
    size_t i = 0;
    while (i < p->nprepared && !(p->prepared[i].hash == hash && strcmp(p->prepared[i].text, r->text) == 0))
        i++;
    if (i == p->nprepared)
        VEC_PUSH(p->prepared, p->nprepared, p->prepared_cap) =
            (struct prepared){hash, mem_strndup(text), false};
    if (p->prepared[i].known)
        return (int)i;

    Oid types[REMOTE_PARAMS];
    char name[16];
    struct buf expanded = {0};
    for (int k = 0; k < r->nparams; k++)
        types[k] = type_of(&r->params[k]);
    snprintf(name, sizeof name, "larder%zu", i);
    remote_expand(&p->base, text, &expanded);
    buf_add(&expanded, "", 1);
    if (PQsendPrepare(p->conn, name, expanded.p, r->nparams, types)) {
        p->prepared[i].known = true;
        await(p, (int)i);
    } else {
        p->unsent = true;
    }
    buf_release(&expanded);
    return (int)i;
}

static void add(struct remote *c, const struct request *r)
{
    struct postgres *p = postgres_of(c);
    size_t start[REMOTE_PARAMS];
    const char *values[REMOTE_PARAMS];
    int lengths[REMOTE_PARAMS], formats[REMOTE_PARAMS];
    char name[16];
    assert(r->nparams <= REMOTE_PARAMS);
    if (c->lost || p->unsent)
        return;
    int statement = prepare(p, r);
    p->params.len = 0;
    for (int i = 0; i < r->nparams; i++) {
        start[i] = p->params.len;
        add_param(&p->params, &r->params[i], r->nrows);
        lengths[i] = (int)(p->params.len - start[i]);
        formats[i] = 1;
    }
    buf_reserve(&p->params, 1); /* so that a value without bytes is not NULL */
    for (int i = 0; i < r->nparams; i++)
        values[i] = p->params.p + start[i];
    snprintf(name, sizeof name, "larder%d", statement);
    if (PQsendQueryPrepared(p->conn, name, r->nparams, values, lengths, formats, 1))
        await(p, -1)->request = *r;
    else
        p->unsent = true;
    buf_shrink(&p->params, 1 << 20);
}

/* ---- answers ---- */

/* Sends and receives until a result is there. */
static enum status wait_result(struct postgres *p, int64_t deadline, struct error *err)
{
    for (;;) {
        int unsent = PQflush(p->conn);
        if (unsent < 0)
            return lost(p, err);
        if (unsent == 0 && !PQisBusy(p->conn))
            return ST_OK;
        struct pollfd fd = {PQsocket(p->conn), (short)(unsent ? POLLIN | POLLOUT : POLLIN), 0};
        enum status st = remote_wait(&p->base, &fd, deadline, err);
        if (st != ST_OK)
            return st;
        if ((fd.revents & ~POLLOUT) && !PQconsumeInput(p->conn))
            return lost(p, err);
    }
}

static enum status hand_out(const PGresult *r, const struct request *q)
{
    struct slice cells[MAX_COLUMNS];
    struct remote_row row = {.cells = cells, .n = PQnfields(r), .binary = true};
    int n = PQntuples(r);
    assert(row.n <= MAX_COLUMNS);
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < row.n; k++)
            cells[k] = PQgetisnull(r, i, k) ? (struct slice){NULL, 0}
                                            : slice_of(PQgetvalue(r, i, k), (size_t)PQgetlength(r, i, k));
        enum status st = q->fn(q->arg, &row);
        if (st != ST_OK)
            return st;
    }
    return ST_OK;
}

static enum status take_rows(struct postgres *p, PGresult *r, const struct request *q, struct error *err)
{
    int64_t changed = strtoll(PQcmdTuples(r), NULL, 10);
    if (q->ret_changed)
        *q->ret_changed = changed;
    if (q->must_change && changed != (int64_t)(q->nrows ? q->nrows : 1))
        return error_set(err, q->unchanged, "%s: %s", p->base.place, q->must_change);
    return q->fn ? hand_out(r, q) : ST_OK;
}

/* One result of the statement that is next. */
static enum status take_result(struct postgres *p, PGresult *r, const struct awaited *a, struct error *err)
{
    switch (PQresultStatus(r)) {
    case PGRES_TUPLES_OK:
    case PGRES_COMMAND_OK:
    case PGRES_EMPTY_QUERY:
        return a->prepares >= 0 ? ST_OK : take_rows(p, r, &a->request, err);
    case PGRES_PIPELINE_ABORTED:
        if (a->prepares >= 0)
            p->prepared[a->prepares].known = false;
        return error_set(err, ST_INTERNAL, "%s: not run", p->base.place);
    default:
        if (a->prepares >= 0)
            p->prepared[a->prepares].known = false;
        return result_error(p, r, err);
    }
}

/* The answers of everything awaited. The first failure counts; the others are its consequences. What was
   posted before is not asked for any more. */
static enum status take_all(struct postgres *p, int64_t deadline, struct error *err)
{
    enum status first = ST_OK;
    struct error later = {.code = ST_OK};
    for (size_t i = 0; i < p->nawaited;) {
        const struct awaited *a = &p->awaited[i];
        struct error *where = first == ST_OK ? err : &later;
        enum status st = wait_result(p, deadline, where);
        if (st != ST_OK)
            return first != ST_OK ? first : st;
        PGresult *r = PQgetResult(p->conn);
        if (!r || a->sync) { /* that was all of this statement */
            if (a->sync && i < p->nposted)
                first = ST_OK; /* nobody asks for it any more */
            PQclear(r);
            i++;
            continue;
        }
        st = take_result(p, r, a, where);
        if (first == ST_OK)
            first = st;
        PQclear(r);
        if (p->base.lost)
            return first;
    }
    return first;
}

static void add_sync(struct postgres *p)
{
    if (!p->unsent && PQpipelineSync(p->conn))
        await(p, -1)->sync = true;
    else
        p->unsent = true;
}

static enum status run(struct remote *c, struct error *err)
{
    struct postgres *p = postgres_of(c);
    if (c->lost)
        return error_set(err, ST_IO, "%s: not connected", c->place);
    if (p->nawaited == p->nposted && !p->unsent)
        return ST_OK;
    int64_t deadline = clock_mono_us() + (int64_t)c->timeout_ms * 1000;
    add_sync(p);
    if (p->unsent)
        return lost(p, err);
    c->round_trips++;
    enum status st = take_all(p, deadline, err);
    p->nawaited = p->nposted = 0;
    return st;
}

static void post(struct remote *c)
{
    struct postgres *p = postgres_of(c);
    if (c->lost || p->nawaited == p->nposted)
        return;
    add_sync(p);
    if (p->unsent || PQflush(p->conn) < 0)
        c->lost = true;
    p->nposted = p->nawaited;
}

static void part(struct remote *c)
{
    struct postgres *p = postgres_of(c);
    if (!c->lost && p->nawaited > p->nposted)
        add_sync(p);
}

static enum status script(struct remote *c, const char *text, struct error *err)
{
    struct postgres *p = postgres_of(c);
    struct buf expanded = {0};
    enum status st = ST_OK;
    assert(p->nawaited == 0);
    if (c->lost || !PQexitPipelineMode(p->conn))
        return lost(p, err);
    remote_expand(c, slice_str(text), &expanded);
    buf_add(&expanded, "", 1);
    PGresult *r = PQexec(p->conn, expanded.p);
    ExecStatusType s = PQresultStatus(r);
    if (s != PGRES_COMMAND_OK && s != PGRES_TUPLES_OK && s != PGRES_EMPTY_QUERY)
        st = result_error(p, r, err);
    PQclear(r);
    buf_release(&expanded);
    if (!c->lost && !PQenterPipelineMode(p->conn))
        return lost(p, err);
    return st;
}

static bool idle(struct remote *c)
{
    struct postgres *p = postgres_of(c);
    struct pollfd fd = {PQsocket(p->conn), POLLIN, 0};
    while (!c->lost && poll(&fd, 1, 0) > 0) /* behind a farewell is the end */
        c->lost = !PQconsumeInput(p->conn) || PQstatus(p->conn) == CONNECTION_BAD;
    return !c->lost;
}

static int socket_of(const struct remote *c)
{
    return PQsocket(((const struct postgres *)c)->conn);
}

/* Takes those answers to what was posted that are there: libpq does not look behind them. */
static void take_posted(struct postgres *p)
{
    struct error ignored;
    size_t n = 0;
    while (n < p->nposted && !PQisBusy(p->conn)) {
        const struct awaited *a = &p->awaited[n];
        PGresult *r = PQgetResult(p->conn);
        if (r && !a->sync)
            (void)(take_result(p, r, a, &ignored) == ST_OK);
        n += !r || a->sync;
        PQclear(r);
    }
    if (n == 0)
        return;
    p->nposted -= n;
    p->nawaited -= n;
    memmove(p->awaited, p->awaited + n, p->nawaited * sizeof *p->awaited);
}

/* What it has sent itself does not count. */
static bool notified(struct remote *c)
{
    struct postgres *p = postgres_of(c);
    bool any = false;
    if (!idle(c))
        return false;
    take_posted(p);
    for (PGnotify *n; (n = PQnotifies(p->conn)); PQfreemem(n))
        any |= n->be_pid != PQbackendPID(p->conn);
    return any;
}

/* ---- connecting ---- */

static void ignore_notice(void *arg, const char *message)
{
    (void)arg;
    (void)message;
}

static void disconnect(struct remote *c)
{
    struct postgres *p = postgres_of(c);
    PQfinish(p->conn);
    for (size_t i = 0; i < p->nprepared; i++)
        mem_free(p->prepared[i].text);
    mem_free(p->prepared);
    mem_free(p->awaited);
    buf_release(&p->params);
    mem_free(p);
}

/* Plans that look rows up by an index, whatever the statistics say of tables that have just been filled. */
static enum status set_up(struct postgres *p, const char *schema, struct error *err)
{
    char text[512];
    snprintf(text, sizeof text,
             "SET plan_cache_mode = force_generic_plan; SET jit = off; SET enable_seqscan = off;"
             "SET enable_hashjoin = off; SET enable_mergejoin = off; SET statement_timeout = %u;"
             "SET default_transaction_isolation = 'read committed'; SET client_min_messages = error;"
             "SET idle_in_transaction_session_timeout = %u; SET extra_float_digits = 1%s%s",
             p->base.timeout_ms, remote_idle_ms(&p->base), schema ? "; SET search_path = " : "",
             schema ? schema : "");
    if (PQsetnonblocking(p->conn, 1) != 0 || !PQenterPipelineMode(p->conn))
        return lost(p, err);
    enum status st = script(&p->base, text, err);
    const char *version = PQparameterStatus(p->conn, "server_version");
    snprintf(p->base.server, sizeof p->base.server, "postgresql %.*s",
             (int)strcspn(version ? version : "?", " "), version ? version : "?");
    return st;
}

static const struct remote_ops postgres_ops = {
    .close = disconnect,
    .add = add,
    .run = run,
    .script = script,
    .idle = idle,
    .post = post,
    .part = part,
    .socket = socket_of,
    .notified = notified,
};

enum status postgres_open(const struct remote_options *o, const struct url *u, struct remote **ret,
                          struct error *err)
{
    struct postgres *p = mem_zalloc(sizeof *p);
    const char *schema = url_param(u, "schema");
    p->base.ops = &postgres_ops;
    p->base.dialect = REMOTE_POSTGRES;
    enum status st = remote_init(&p->base, o, u, err);
    if (st == ST_OK && schema && (!remote_plain_name(schema) || strlen(schema) > 60))
        st = error_set(err, ST_INVALID, "schema=%s: small letters, digits and underscores are possible",
                       schema);
    if (st == ST_OK)
        st = postgres_connect(o, u, p->base.place, &p->conn, err);
    if (st == ST_OK) {
        PQsetNoticeProcessor(p->conn, ignore_notice, NULL);
        snprintf(p->base.schema, sizeof p->base.schema, "%s", schema ? schema : "");
        st = set_up(p, schema, err);
    }
    if (st != ST_OK) {
        disconnect(&p->base);
        return st;
    }
    *ret = &p->base;
    return ST_OK;
}
