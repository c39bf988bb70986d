/* Connections to PostgreSQL: what the URL says, who refuses us, and whether what is at the other end is one
   session.

   A connection pooler that gives each transaction another session of the database (PgBouncer: pool_mode =
   transaction) cannot work: locks, prepared statements, settings and LISTEN belong to sessions. It does not
   tell, and for as long as it has one client everything looks as if it worked. So it is found out. One that
   speaks to the database itself is told the number of the process that serves it. A pooler tells a number of
   its own; then a second connection is made, and the two take turns. If ever one of them meets the process of
   the other, or another than before, sessions are shared. With an idle pool that is so at the first try,
   because a pooler gives away what was used last. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "sql/postgres_internal.h"
#include "sql/remote_internal.h"

#define TURNS    8       /* of two connections, to find out whether they share sessions */
#define PROBE_US 2000000 /* what the second one may take for all of them */

enum status postgres_fail(struct error *err, enum status code, const char *place, const char *text)
{
    if (strncmp(text, "ERROR:  ", 8) == 0 || strncmp(text, "FATAL:  ", 8) == 0)
        text += 8;
    size_t n = strcspn(text, "\n");
    return error_set(err, code, "%s: %.*s", place, (int)(n > 180 ? 180 : n), text);
}

enum status postgres_no_session(struct error *err, const char *place)
{
    return error_set(
        err, ST_INVALID,
        "%.60s: a connection pooler gives every transaction another session. Larder needs sessions of "
        "its own: set pool_mode = session (PgBouncer), or name PostgreSQL itself in the URL",
        place);
}

/* ---- what the URL says ---- */

/* libpq's options, in pairs. */
struct conninfo {
    PQconninfoOption *parsed;
    const char *names[64], *values[64];
    char seconds[16];
};

/* Of several hosts. */
static const char *wanted_host(const struct remote_options *o)
{
    if (!o->replica)
        return "read-write";
    return o->any ? "prefer-standby" : "standby";
}

/* The URL is libpq's to read but for our own parameters; what it does not say gets our defaults. */
static enum status read_url(const struct remote_options *o, const struct url *u, const char *place,
                            struct conninfo *ret, struct error *err)
{
    char *url = mem_strdup(o->url), *why = NULL;
    int n = 0;
    url_remove_param(url, "prefix");
    url_remove_param(url, "schema");
    url_remove_param(url, "mode");
    ret->parsed = PQconninfoParse(url, &why);
    mem_free(url);
    if (!ret->parsed) {
        enum status st = postgres_fail(err, ST_INVALID, place, why ? why : "the URL cannot be read");
        PQfreemem(why);
        return st;
    }
    snprintf(ret->seconds, sizeof ret->seconds, "%u", o->connect_ms / 1000 > 2 ? o->connect_ms / 1000 : 2);
    ret->names[n] = "connect_timeout", ret->values[n++] = ret->seconds;
    ret->names[n] = "application_name", ret->values[n++] = "larder";
    ret->names[n] = "client_encoding", ret->values[n++] = "UTF8";
    if (u->nhosts > 1)
        ret->names[n] = "target_session_attrs", ret->values[n++] = wanted_host(o);
    for (PQconninfoOption *i = ret->parsed; i->keyword && n < 63; i++)
        if (i->val)
            ret->names[n] = i->keyword, ret->values[n++] = i->val;
    ret->names[n] = NULL, ret->values[n] = NULL;
    return ST_OK;
}

/* ---- connecting step by step ---- */

/* Waits until there is something to read or to write. False: not before the deadline. */
static bool ready(const PGconn *conn, bool reads, int64_t deadline)
{
    int64_t left = (deadline - clock_mono_us() + 999) / 1000;
    struct pollfd fd = {PQsocket(conn), reads ? POLLIN : POLLOUT, 0};
    return left > 0 && poll(&fd, 1, (int)left) != 0;
}

/* A connection that stands, or has failed, or has not come that far by then. */
static PGconn *connect_by(const struct conninfo *info, int64_t deadline)
{
    PGconn *conn = PQconnectStartParams(info->names, info->values, 0);
    PostgresPollingStatusType want = PGRES_POLLING_WRITING;
    if (!conn || PQstatus(conn) == CONNECTION_BAD)
        return conn;
    PQsetErrorVerbosity(conn, PQERRORS_SQLSTATE);
    while ((want == PGRES_POLLING_READING || want == PGRES_POLLING_WRITING) &&
           ready(conn, want == PGRES_POLLING_READING, deadline))
        want = PQconnectPoll(conn);
    return conn;
}

/* The SQLSTATEs of a server that answers and refuses. */
static bool says_no(const char *state)
{
    return strncmp(state, "28", 2) == 0 || strncmp(state, "3D", 2) == 0 || strncmp(state, "42501", 5) == 0;
}

/* libpq tells why a connection failed in words only, unless it is asked for SQLSTATEs in their place. */
bool postgres_refuses(const struct remote_options *o, const struct url *u)
{
    struct conninfo info;
    struct error ignored;
    if (read_url(o, u, "", &info, &ignored) != ST_OK)
        return false;
    PGconn *conn = connect_by(&info, clock_mono_us() + (int64_t)o->connect_ms * 1000);
    const char *fatal = strstr(PQerrorMessage(conn), "FATAL:  ");
    bool refused = fatal && says_no(fatal + 8);
    PQfinish(conn);
    PQconninfoFree(info.parsed);
    return refused;
}

/* ---- poolers ---- */

/* The number in the last result; 0: it could not be had by then, -1: it was refused. */
static int64_t take_number(PGconn *conn, int64_t deadline)
{
    int64_t number = 0;
    for (;;) {
        while (PQisBusy(conn))
            if (!ready(conn, true, deadline) || !PQconsumeInput(conn))
                return 0;
        PGresult *r = PQgetResult(conn);
        if (!r)
            return number;
        if (PQresultStatus(r) == PGRES_TUPLES_OK)
            number = strtoll(PQgetvalue(r, 0, 0), NULL, 10);
        else if (PQresultStatus(r) != PGRES_COMMAND_OK)
            number = -1;
        PQclear(r);
    }
}

/* Which process of the database serves this connection now. */
static int64_t who_serves(PGconn *conn, int64_t deadline)
{
    return PQsendQuery(conn, "BEGIN; SELECT pg_backend_pid(); COMMIT") ? take_number(conn, deadline) : 0;
}

/* Takes turns with a second connection, until a deadline: a pool that keeps sessions may have none left. */
static enum status take_turns(PGconn *first, PGconn *second, const struct remote_options *o, int64_t deadline,
                              const char *place, struct error *err)
{
    int64_t own = 0, others = 0;
    for (int i = 0; i < TURNS; i++) {
        int64_t b = who_serves(second, deadline);
        if (b == 0)
            return ST_OK;
        int64_t a = who_serves(first, clock_mono_us() + (int64_t)o->timeout_ms * 1000);
        if (a == 0)
            return error_set(err, ST_IO, "%s: no answer within %u ms", place, o->timeout_ms);
        if (a < 0 || b < 0 || a == b || (own && (a != own || b != others)))
            return postgres_no_session(err, place);
        own = a;
        others = b;
    }
    return ST_OK;
}

/* Whether the connection is one session. */
static enum status check_session(PGconn *conn, const struct remote_options *o, const struct conninfo *info,
                                 const char *place, struct error *err)
{
    int64_t number = who_serves(conn, clock_mono_us() + (int64_t)o->timeout_ms * 1000);
    if (number == 0)
        return error_set(err, ST_IO, "%s: no answer within %u ms", place, o->timeout_ms);
    if (number == PQbackendPID(conn))
        return ST_OK;
    if (number < 0) /* pool_mode = statement takes no transactions */
        return postgres_no_session(err, place);
    int64_t deadline = clock_mono_us() + PROBE_US;
    PGconn *second = connect_by(info, deadline);
    enum status st = ST_OK;
    if (PQstatus(second) == CONNECTION_OK)
        st = take_turns(conn, second, o, deadline, place, err);
    PQfinish(second);
    return st;
}

enum status postgres_connect(const struct remote_options *o, const struct url *u, const char *place,
                             PGconn **ret, struct error *err)
{
    struct conninfo info;
    enum status st = read_url(o, u, place, &info, err);
    if (st != ST_OK)
        return st;
    *ret = PQconnectdbParams(info.names, info.values, 0);
    if (PQstatus(*ret) != CONNECTION_OK)
        st = postgres_fail(err, ST_IO, place, PQerrorMessage(*ret));
    else if (!o->again)
        st = check_session(*ret, o, &info, place, err);
    PQconninfoFree(info.parsed);
    return st;
}
