/* MariaDB, over libmariadb. Its protocol has no pipeline that the library would let us use, but it takes
   several statements in one text, and answers them one after the other: what remote_add queues is written
   into one text, values and all, and goes out in one packet. The connection's character set is binary, so
   bytes are bytes; strict mode makes errors of what would be warnings. */
#include <assert.h>
#include <ctype.h>
#include <errmsg.h>
#include <errno.h>
#include <math.h>
#include <mysql.h>
#include <mysqld_error.h>
#include <poll.h>
#include <float.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/vec.h"
#include "sql/galera.h"
#include "sql/remote_internal.h"

#define MAX_COLUMNS  24
#define PACKET_BYTES (4u << 20) /* a packet is closed when it has grown so large */

/* A statement that was written into the text: a request with many rows may become several. */
struct written {
    struct request request;
    size_t packet; /* its number */
    bool last;     /* of its request */
};

struct mariadb {
    struct remote base;
    MYSQL *conn;
    struct buf text;
    size_t *ends; /* of packets in the text */
    size_t nends, ends_cap;
    struct written *written;
    size_t nwritten, written_cap;
    struct buf expanded; /* a request's text with our prefix */
    size_t max_packet;   /* that the server takes */
    int64_t changed;     /* by the statements of one request so far */
    bool posted;         /* a packet has been sent whose answer has not been read */
    bool tls;            /* is asked for */
    bool several;        /* hosts to choose from */
    bool read_only;      /* this one cannot be written to */
};

static struct mariadb *mariadb_of(struct remote *c)
{
    return (struct mariadb *)c;
}

/* ---- failures ---- */

static const struct failure {
    unsigned code;
    enum status status;
} codes[] = {
    {ER_DUP_ENTRY, ST_CONFLICT},
    {ER_LOCK_DEADLOCK, ST_CONFLICT},
    {ER_CHECKREAD, ST_CONFLICT},
    {ER_DATA_OUT_OF_RANGE, ST_CONFLICT}, /* how a statement of ours says that it finds another state */
    {ER_LOCK_WAIT_TIMEOUT, ST_BUSY},
    {ER_STATEMENT_TIMEOUT, ST_BUSY},
    {ER_CON_COUNT_ERROR, ST_IO},
    {ER_TOO_MANY_USER_CONNECTIONS, ST_IO},
    {ER_DISK_FULL, ST_FULL},
    {ER_RECORD_FILE_FULL, ST_FULL},
    {ER_OPTION_PREVENTS_STATEMENT, ST_READONLY},
    {ER_ACCESS_DENIED_ERROR, ST_DENIED},
    {ER_DBACCESS_DENIED_ERROR, ST_DENIED},
    {ER_TABLEACCESS_DENIED_ERROR, ST_DENIED},
    {ER_COLUMNACCESS_DENIED_ERROR, ST_DENIED},
    {ER_SPECIFIC_ACCESS_DENIED_ERROR, ST_DENIED},
    {ER_PROCACCESS_DENIED_ERROR, ST_DENIED},
    {ER_BINLOG_CREATE_ROUTINE_NEED_SUPER, ST_DENIED},
    {ER_NO_SUCH_TABLE, ST_MISSING},
    {ER_BAD_DB_ERROR, ST_MISSING},
    {ER_NET_PACKET_TOO_LARGE, ST_INVALID},
    {ER_DATA_TOO_LONG, ST_INVALID},
    {ER_CRASHED_ON_USAGE, ST_CORRUPT},
};

/* What else a node of a Galera cluster says. A transaction that stood in the way of another node's is ended,
   and says so at whatever it does next; its savepoint has gone with it. */
static const struct failure galera_codes[] = {
    {ER_QUERY_INTERRUPTED, ST_CONFLICT},
    {ER_SP_DOES_NOT_EXIST, ST_CONFLICT},
    {ER_ERROR_DURING_COMMIT, ST_IO},
    {ER_UNKNOWN_COM_ERROR, ST_IO}, /* the node does not belong to the cluster at the moment */
};

static enum status fail(struct mariadb *m, struct error *err)
{
    unsigned code = mysql_errno(m->conn);
    enum status st = ST_INTERNAL;
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (codes[i].code == code)
            st = codes[i].status;
    if (code >= CR_MIN_ERROR || code == ER_SERVER_SHUTDOWN || code == ER_CONNECTION_KILLED ||
        code == ER_NORMAL_SHUTDOWN) {
        m->base.lost = true;
        st = ST_IO;
    }
    if (code == ER_LOCK_WAIT_TIMEOUT && !m->base.exclusive) /* it is run again: remote_lock.c */
        st = ST_CONFLICT;
    if (st == ST_READONLY && m->several) /* another has taken its place: look for it */
        m->base.lost = true;
    for (size_t i = 0; m->base.galera.on && i < sizeof galera_codes / sizeof galera_codes[0]; i++)
        if (galera_codes[i].code == code)
            st = galera_codes[i].status;
    m->base.lost |= m->base.galera.on && code == ER_UNKNOWN_COM_ERROR;
    m->base.deadlock = code == ER_LOCK_DEADLOCK;
    return error_set(err, st, "%s: %.180s", m->base.place, mysql_error(m->conn));
}

/* ---- writing statements ---- */

static void write_bytes(struct buf *out, struct slice s)
{
    char *p = buf_reserve(out, 2 * s.n + 2);
    *p++ = '\'';
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (c == '\'' || c == '\\' || c == '\0')
            *p++ = '\\';
        *p++ = c ? c : '0';
    }
    *p++ = '\'';
    out->len = (size_t)(p - out->p);
}

/* MariaDB has no infinities: they become the largest numbers (a table that must tell them apart keeps their
   bits). */
static void write_double(struct buf *out, double v)
{
    if (isinf(v))
        v = v > 0 ? DBL_MAX : -DBL_MAX;
    char text[40];
    int n = snprintf(text, sizeof text, "%.17g", v);
    buf_add(out, text, (size_t)n);
    if (!memchr(text, 'e', (size_t)n))
        buf_add(out, "e0", 2);
}

static void write_i64(struct buf *out, int64_t v)
{
    char text[NUM_I64_CHARS];
    buf_add(out, text, num_format_i64(text, v));
}

static void write_value(struct buf *out, const struct request *r, int i, size_t row)
{
    assert(i >= 0 && i < r->nparams);
    const struct param *p = &r->params[i];
    switch (p->kind) {
    case PARAM_I64:
        write_i64(out, p->many ? p->i64s[row] : p->i64);
        break;
    case PARAM_DOUBLE:
        write_double(out, p->many ? p->dbls[row] : p->dbl);
        break;
    case PARAM_BYTES:
        write_bytes(out, p->many ? p->slices[row] : p->bytes);
        break;
    }
}

/* Writes a part of a text with the values of one row; ?0 is how many rows the statement has, behind them. */
static void write_part(struct buf *out, struct slice part, const struct request *r, size_t row)
{
    for (size_t i = 0; i < part.n;) {
        const char *mark = memchr(part.p + i, '?', part.n - i);
        size_t n = mark ? (size_t)(mark - part.p) - i : part.n - i;
        buf_add(out, part.p + i, n);
        i += n;
        if (!mark)
            break;
        int number = 0;
        for (i++; i < part.n && isdigit((unsigned char)part.p[i]); i++)
            number = number * 10 + (part.p[i] - '0');
        if (number == 0)
            write_i64(out, (int64_t)r->nrows);
        else
            write_value(out, r, number - 1, row);
    }
}

static size_t packet_start(const struct mariadb *m)
{
    return m->nends ? m->ends[m->nends - 1] : 0;
}

static void end_packet(struct mariadb *m)
{
    if (m->text.len > packet_start(m))
        VEC_PUSH(m->ends, m->nends, m->ends_cap) = m->text.len;
}

/* Before a statement: in a packet that has room. */
static void begin_statement(struct mariadb *m)
{
    if (m->text.len - packet_start(m) >= PACKET_BYTES)
        end_packet(m);
    if (m->text.len > packet_start(m))
        buf_add(&m->text, ";", 1);
}

static void end_statement(struct mariadb *m, const struct request *r, size_t rows, bool last)
{
    struct written *w = &VEC_PUSH(m->written, m->nwritten, m->written_cap);
    *w = (struct written){.request = *r, .packet = m->nends, .last = last};
    w->request.nrows = rows;
}

/* Behind a statement: it fails unless that one has changed all its rows, each of which counts 2 then, and one
   that was inserted 1. So what is queued behind it, a COMMIT perhaps, is not run. */
static void write_guard(struct mariadb *m, size_t rows)
{
    const struct request guard = {.text = NULL};
    begin_statement(m);
    buf_addf(&m->text, "SELECT 9223372036854775807 + (ROW_COUNT() <> %zu)", 2 * rows);
    end_statement(m, &guard, 1, true);
}

/* {sep|body}: body for each row; in several statements when one would grow too large. */
static void write_rows(struct mariadb *m, const struct request *r, struct slice head, struct slice sep,
                       struct slice body, struct slice tail)
{
    for (size_t row = 0; row < r->nrows;) {
        begin_statement(m);
        write_part(&m->text, head, r, 0);
        size_t first = row;
        do {
            if (row > first)
                buf_add_slice(&m->text, sep);
            write_part(&m->text, body, r, row++);
        } while (row < r->nrows && m->text.len - packet_start(m) < PACKET_BYTES);
        struct request these = *r;
        these.nrows = row - first;
        write_part(&m->text, tail, &these, 0);
        end_statement(m, r, row - first, row == r->nrows);
        if (r->guarded)
            write_guard(m, row - first);
    }
}

static void add(struct remote *c, const struct request *r)
{
    struct mariadb *m = mariadb_of(c);
    m->expanded.len = 0;
    remote_expand(c, slice_str(r->text), &m->expanded);
    struct slice text = buf_slice(&m->expanded);
    const char *open = memchr(text.p, '{', text.n);
    if (!open) {
        begin_statement(m);
        write_part(&m->text, text, r, 0);
        end_statement(m, r, 1, true);
        return;
    }
    const char *end = text.p + text.n;
    const char *bar = memchr(open, '|', (size_t)(end - open)),
               *close = memchr(open, '}', (size_t)(end - open));
    assert(bar && close && bar < close);
    write_rows(m, r, slice_of(text.p, (size_t)(open - text.p)), slice_of(open + 1, (size_t)(bar - open - 1)),
               slice_of(bar + 1, (size_t)(close - bar - 1)), slice_of(close + 1, (size_t)(end - close - 1)));
}

/* ---- answers ---- */

static enum status hand_out(struct mariadb *m, MYSQL_RES *res, const struct request *q)
{
    struct slice cells[MAX_COLUMNS];
    struct remote_row row = {.cells = cells, .n = (int)mysql_num_fields(res)};
    MYSQL_ROW r;
    (void)m;
    assert(row.n <= MAX_COLUMNS);
    while ((r = mysql_fetch_row(res))) {
        const unsigned long *lengths = mysql_fetch_lengths(res);
        for (int i = 0; i < row.n; i++)
            cells[i] = slice_of(r[i], r[i] ? lengths[i] : 0);
        enum status st = q->fn(q->arg, &row);
        if (st != ST_OK)
            return st;
    }
    return ST_OK;
}

/* How many rows an INSERT ... ON DUPLICATE KEY UPDATE inserted: one counts 1, one that was changed 2, and one
   that was there as it should be 0. Of several rows the server tells besides how many it changed. */
static int64_t inserted(struct mariadb *m, size_t rows)
{
    int64_t counted = (int64_t)mysql_affected_rows(m->conn);
    if (rows == 1)
        return counted == 1;
    const char *info = mysql_info(m->conn), *duplicates = info ? strstr(info, "Duplicates: ") : NULL;
    return duplicates ? counted - 2 * strtoll(duplicates + 12, NULL, 10) : counted;
}

/* The rows of an answer; NULL for one that has none. Where the connection breaks off within the rows the
   library forgets that there were to be any: only its error tells that from a statement without rows. */
static enum status take_result(struct mariadb *m, MYSQL_RES **ret, struct error *err)
{
    *ret = mysql_store_result(m->conn);
    if (!*ret && (mysql_field_count(m->conn) > 0 || mysql_errno(m->conn) != 0))
        return fail(m, err);
    return ST_OK;
}

static enum status take_answer(struct mariadb *m, const struct written *w, struct error *err)
{
    const struct request *q = &w->request;
    MYSQL_RES *res;
    enum status st = take_result(m, &res, err);
    if (st != ST_OK)
        return st;
    if (res) {
        st = q->fn ? hand_out(m, res, q) : ST_OK;
        mysql_free_result(res);
        return st;
    }
    m->changed += (int64_t)mysql_affected_rows(m->conn);
    if (w->last) {
        if (q->ret_changed)
            *q->ret_changed = m->changed;
        m->changed = 0;
    }
    if (q->must_change && inserted(m, q->nrows) != 0)
        st = error_set(err, q->unchanged, "%s: %s", m->base.place, q->must_change);
    return st;
}

/* Reads past what is left of a packet's answers after a callback failed, or a row was not there to be
   changed. */
static void skip_answers(struct mariadb *m)
{
    struct error ignored;
    MYSQL_RES *res;
    while (!m->base.lost && mysql_next_result(m->conn) == 0)
        if (take_result(m, &res, &ignored) == ST_OK)
            mysql_free_result(res);
}

/* A statement that wants its rows to be there makes NULL of what must not be NULL where they are not. */
static enum status fail_statement(struct mariadb *m, const struct request *q, struct error *err)
{
    if (q->must_change && mysql_errno(m->conn) == ER_BAD_NULL_ERROR)
        return error_set(err, q->unchanged, "%s: %s", m->base.place, q->must_change);
    return fail(m, err);
}

/* Waits for the answer to what was sent. The library's own time-outs are whole seconds. */
static enum status await_answer(struct mariadb *m, struct error *err)
{
    struct pollfd fd = {(int)mysql_get_socket(m->conn), POLLIN, 0};
    if (m->base.timeout_ms == 0)
        return ST_OK;
    return remote_wait(&m->base, &fd, clock_mono_us() + (int64_t)m->base.timeout_ms * 1000, err);
}

static enum status run_packet(struct mariadb *m, size_t packet, struct slice text, size_t *next,
                              struct error *err)
{
    if (text.n >= m->max_packet)
        return error_set(err, ST_INVALID, "%s: %zu bytes at once, but max_allowed_packet is %zu",
                         m->base.place, text.n, m->max_packet);
    m->base.round_trips++;
    if (mysql_send_query(m->conn, text.p, text.n) != 0)
        return fail_statement(m, &m->written[*next].request, err);
    enum status came = await_answer(m, err);
    if (came != ST_OK)
        return came;
    if (mysql_read_query_result(m->conn))
        return fail_statement(m, &m->written[*next].request, err);
    for (;;) {
        enum status st = take_answer(m, &m->written[(*next)++], err);
        if (st != ST_OK) {
            skip_answers(m);
            return st;
        }
        if (*next == m->nwritten || m->written[*next].packet != packet)
            return ST_OK;
        if (mysql_next_result(m->conn) != 0)
            return fail_statement(m, &m->written[*next].request, err);
    }
}

/* The answer of what was posted; of no interest but for a lost connection. */
static void take_posted(struct mariadb *m)
{
    struct error ignored;
    if (!m->posted)
        return;
    m->posted = false;
    if (await_answer(m, &ignored) == ST_OK && mysql_read_query_result(m->conn))
        (void)(fail(m, &ignored) == ST_OK);
}

static void post(struct remote *c)
{
    struct mariadb *m = mariadb_of(c);
    take_posted(m);
    if (!c->lost && m->nwritten == 1 && mysql_send_query(m->conn, m->text.p, m->text.len) == 0)
        m->posted = true;
    else
        c->lost = true;
    m->text.len = 0;
    m->nends = m->nwritten = 0;
}

static enum status run(struct remote *c, struct error *err)
{
    struct mariadb *m = mariadb_of(c);
    take_posted(m);
    if (c->lost)
        return error_set(err, ST_IO, "%s: not connected", c->place);
    end_packet(m);
    enum status st = ST_OK;
    size_t next = 0, start = 0;
    m->changed = 0;
    for (size_t i = 0; st == ST_OK && i < m->nends; i++) {
        st = run_packet(m, i, slice_of(m->text.p + start, m->ends[i] - start), &next, err);
        start = m->ends[i];
    }
    m->text.len = 0;
    m->nends = m->nwritten = 0;
    buf_shrink(&m->text, PACKET_BYTES);
    return st;
}

static enum status script(struct remote *c, const char *text, struct error *err)
{
    struct mariadb *m = mariadb_of(c);
    struct buf expanded = {0};
    remote_expand(c, slice_str(text), &expanded);
    enum status st = ST_OK;
    if (mysql_real_query(m->conn, expanded.p, expanded.len) != 0)
        st = fail(m, err);
    int more = 0;
    while (st == ST_OK && more == 0) {
        MYSQL_RES *res;
        st = take_result(m, &res, err);
        if (st != ST_OK)
            break;
        mysql_free_result(res);
        more = mysql_next_result(m->conn);
        if (more > 0)
            st = fail(m, err);
    }
    buf_release(&expanded);
    return st;
}

static bool idle(struct remote *c)
{
    struct mariadb *m = mariadb_of(c);
    take_posted(m);
    if (c->lost)
        return false;
    struct pollfd fd = {(int)mysql_get_socket(m->conn), POLLIN, 0};
    if (poll(&fd, 1, 0) != 0) /* unasked, the server sends only that it ends the connection */
        c->lost = true;
    return !c->lost;
}

static int socket_of(const struct remote *c)
{
    return (int)mysql_get_socket(((const struct mariadb *)c)->conn);
}

/* ---- connecting ---- */

static void disconnect(struct remote *c)
{
    struct mariadb *m = mariadb_of(c);
    if (m->conn)
        mysql_close(m->conn);
    buf_release(&m->text);
    buf_release(&m->expanded);
    mem_free(m->ends);
    mem_free(m->written);
    mem_free(m);
}

/* The library verifies the chain of a certificate when it has an authority to look for, and the name besides
   when it is told to. */
static enum status set_tls(struct mariadb *m, const struct url *u, struct error *err)
{
    const char *mode = url_param(u, "ssl-mode"), *ca = url_param(u, "ssl-ca");
    my_bool yes = 1;
    bool named = mode && strcmp(mode, "verify-identity") == 0;
    bool chain = mode && strcmp(mode, "verify-ca") == 0;
    m->tls = named || chain || (mode && strcmp(mode, "required") == 0);
    if (mode && !m->tls && strcmp(mode, "preferred") != 0 && strcmp(mode, "disabled") != 0)
        return error_set(
            err, ST_INVALID,
            "ssl-mode=%s: known are disabled, preferred, required, verify-ca and verify-identity", mode);
    if (chain && !ca)
        return error_set(err, ST_INVALID, "ssl-mode=verify-ca: ssl-ca must say whose certificates are good");
    if (mode && strcmp(mode, "disabled") == 0)
        return ST_OK;
    mysql_ssl_set(m->conn, url_param(u, "ssl-key"), url_param(u, "ssl-cert"), ca, NULL, NULL);
    if (m->tls)
        mysql_options(m->conn, MYSQL_OPT_SSL_ENFORCE, &yes);
    if (named)
        mysql_options(m->conn, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &yes);
    return ST_OK;
}

/* The library goes on without TLS when the server has none. */
static enum status check_tls(struct mariadb *m, struct error *err)
{
    if (!m->tls || mysql_get_ssl_cipher(m->conn))
        return ST_OK;
    return error_set(err, ST_DENIED, "%s: the server does not offer TLS, and the URL asks for it",
                     m->base.place);
}

static enum status known_params(const struct url *u, struct error *err)
{
    static const char *const known[] = {"prefix", "mode",     "socket", "ssl-mode",
                                        "ssl-ca", "ssl-cert", "ssl-key"};
    for (int i = 0; i < u->nparams; i++) {
        size_t k = 0;
        while (k < sizeof known / sizeof known[0] && strcmp(u->params[i].name, known[k]) != 0)
            k++;
        if (k == sizeof known / sizeof known[0])
            return error_set(
                err, ST_INVALID,
                "%s: known parameters are mode, prefix, socket, ssl-mode, ssl-ca, ssl-cert and ssl-key",
                u->params[i].name);
    }
    return ST_OK;
}

static enum status connect_to(struct mariadb *m, const struct remote_options *o, const struct url *u,
                              const struct url_host *h, struct error *err)
{
    unsigned connect_s = o->connect_ms / 1000 ? o->connect_ms / 1000 : 1;
    unsigned answer_s = (o->timeout_ms + 999) / 1000;
    unsigned port = h && h->port ? (unsigned)strtoul(h->port, NULL, 10) : 0;
    const char *socket = url_param(u, "socket");
    const char *password = u->password ? u->password : getenv("MYSQL_PWD");
    m->conn = mysql_init(NULL);
    if (!m->conn)
        return error_set(err, ST_INTERNAL, "libmariadb cannot be used");
    mysql_options(m->conn, MYSQL_READ_DEFAULT_GROUP, "larder");
    mysql_options(m->conn, MYSQL_SET_CHARSET_NAME, "binary");
    mysql_options(m->conn, MYSQL_OPT_CONNECT_TIMEOUT, &connect_s);
    mysql_options(m->conn, MYSQL_OPT_READ_TIMEOUT, &answer_s);
    mysql_options(m->conn, MYSQL_OPT_WRITE_TIMEOUT, &answer_s);
    enum status st = set_tls(m, u, err);
    if (st == ST_OK && !mysql_real_connect(m->conn, h && h->name[0] ? h->name : NULL, u->user, password,
                                           u->database, port, socket, CLIENT_MULTI_STATEMENTS)) {
        st = fail(m, err);
        m->base.lost = false;
    }
    if (st == ST_OK)
        st = check_tls(m, err);
    if (st != ST_OK) {
        mysql_close(m->conn);
        m->conn = NULL;
    }
    return st;
}

static enum status take_settings(void *arg, const struct remote_row *row)
{
    struct mariadb *m = arg;
    m->max_packet = (size_t)remote_i64(row, 0);
    m->read_only = remote_i64(row, 1) != 0;
    return ST_OK;
}

/* A node of a Galera cluster has to be whole, and cannot keep other servers out. */
static enum status set_up_galera(struct mariadb *m, struct error *err)
{
    if (m->base.exclusive)
        return error_set(
            err, ST_INVALID,
            "%s is a node of a Galera cluster, where no server can have the tables for itself: its"
            " locks hold on one node alone; leave mode=exclusive out",
            m->base.place);
    enum status st = galera_check(&m->base, err);
    if (st == ST_OK)
        st = galera_set_up(&m->base, err);
    size_t n = strlen(m->base.server);
    snprintf(m->base.server + n, sizeof m->base.server - n, " galera");
    return st;
}

static enum status set_up(struct mariadb *m, struct error *err)
{
    char text[512];
    unsigned seconds = (m->base.timeout_ms + 999) / 1000;
    snprintf(text, sizeof text,
             "SET NAMES binary, sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', autocommit = 1,"
             " innodb_lock_wait_timeout = %u, eq_range_index_dive_limit = 2, time_zone = '+00:00'"
             /* which others do not know, and take for a comment */
             "/*M!100600 , max_statement_time = %u, idle_transaction_timeout = %u,"
             " in_predicate_conversion_threshold = 0 */",
             seconds, seconds, remote_idle_ms(&m->base) / 1000);
    m->max_packet = SIZE_MAX;
    remote_add_text(&m->base, text);
    remote_add_text(&m->base, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
    struct request settings = {
        .text = "SELECT @@max_allowed_packet, @@read_only", .fn = take_settings, .arg = m};
    remote_add(&m->base, &settings);
    galera_ask(&m->base);
    snprintf(m->base.server, sizeof m->base.server, "mariadb %.40s", mysql_get_server_info(m->conn));
    m->base.server[strcspn(m->base.server, "-")] = '\0';
    enum status st = run(&m->base, err);
    return st == ST_OK && m->base.galera.on ? set_up_galera(m, err) : st;
}

/* One that can only be read is passed over when there are others; for a replica, one that is none. */
static enum status try_host(struct mariadb *m, const struct remote_options *o, const struct url *u,
                            const struct url_host *h, struct error *err)
{
    enum status st = connect_to(m, o, u, h, err);
    if (st != ST_OK)
        return st;
    st = set_up(m, err);
    if (st == ST_OK && m->several && !o->any && m->read_only != o->replica)
        st = error_set(err, ST_IO, "%s: no host %s", m->base.place,
                       o->replica ? "is a replica" : "can be written to");
    if (st != ST_OK) {
        mysql_close(m->conn);
        m->conn = NULL;
        m->text.len = 0;
        m->nends = m->nwritten = 0;
        m->base.lost = false;
    }
    return st;
}

static const struct remote_ops mariadb_ops = {
    .close = disconnect,
    .add = add,
    .run = run,
    .script = script,
    .idle = idle,
    .post = post,
    .socket = socket_of,
};

enum status mariadb_open(const struct remote_options *o, const struct url *u, struct remote **ret,
                         struct error *err)
{
    struct mariadb *m = mem_zalloc(sizeof *m);
    m->base.ops = &mariadb_ops;
    m->base.dialect = REMOTE_MARIADB;
    enum status st = remote_init(&m->base, o, u, err);
    if (st == ST_OK)
        st = known_params(u, err);
    if (st == ST_OK && !u->database)
        st = error_set(err, ST_INVALID, "the URL of the store names no database: mysql://USER@HOST/DATABASE");
    if (st == ST_OK) {
        m->several = u->nhosts > 1;
        m->base.host = o->first_host;
        st = try_host(m, o, u, u->nhosts ? &u->hosts[o->first_host % u->nhosts] : NULL, err);
        for (int i = 1; st != ST_OK && i < u->nhosts; i++) {
            m->base.host = o->first_host + i;
            st = try_host(m, o, u, &u->hosts[m->base.host % u->nhosts], err);
        }
    }
    if (st != ST_OK) {
        disconnect(&m->base);
        return st;
    }
    *ret = &m->base;
    return ST_OK;
}
