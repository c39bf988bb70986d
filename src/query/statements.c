/* Statements that SQLite has prepared: made, kept for the next time, compared with the tables as they are. */
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/vec.h"
#include "query/query_internal.h"

#define TRIES (TABLES_MAX + 8) /* each declares a table that the statement names */

void statement_uses(struct statement *s, const char *table)
{
    for (size_t i = 0; i < s->ntables; i++)
        if (strcasecmp(s->tables[i], table) == 0)
            return;
    VEC_PUSH(s->tables, s->ntables, s->tables_cap) = mem_strdup(table);
}

static void forget_tables(struct statement *s)
{
    for (size_t i = 0; i < s->ntables; i++)
        mem_free(s->tables[i]);
    s->ntables = 0;
}

void statement_release(struct statement *s)
{
    (void)sqlite3_finalize(s->stmt);
    forget_tables(s);
    mem_free(s->tables);
    mem_free(s->text);
    *s = (struct statement){0};
}

void statement_failed(struct query_engine *e, int rc)
{
    if (e->status != ST_OK || e->stop != STOP_NONE || e->fault.kind != FAULT_NONE)
        return;
    if (rc == SQLITE_NOMEM && e->budget.exceeded)
        (void)fault_set(&e->fault, FAULT_SQL, "the query takes more than sql-memory");
    else if (rc == SQLITE_NOMEM) /* which SQLite says of SQLITE_LIMIT_VDBE_OP, too */
        (void)fault_set(&e->fault, FAULT_SQL, "the statement has too many parts, or there is no memory");
    else if (rc == SQLITE_TOOBIG && e->q->limits.on_loop && !e->writing)
        e->stop = STOP_MOVE; /* elsewhere values may be longer */
    else if (rc == SQLITE_TOOBIG)
        (void)fault_set(&e->fault, FAULT_SQL, "a value, or the text, is too long");
    else
        (void)fault_set(&e->fault, FAULT_SQL, "%s", sqlite3_errmsg(e->db));
}

/* ---- preparing ---- */

/* The table that SQLite does not know, by its message. */
static bool missing_table(struct query_engine *e, char *ret, size_t cap)
{
    static const char says[] = "no such table: ";
    const char *message = sqlite3_errmsg(e->db);
    if (strncmp(message, says, sizeof says - 1) != 0)
        return false;
    message += sizeof says - 1;
    if (strncasecmp(message, "main.", 5) == 0)
        message += 5;
    if (strlen(message) >= cap)
        return false;
    memcpy(ret, message, strlen(message) + 1);
    return true;
}

static bool is_known_failure(const struct query_engine *e)
{
    return e->status != ST_OK || e->stop != STOP_NONE || e->fault.kind != FAULT_NONE;
}

/* False: it failed, and e says why. */
static bool prepare(struct query_engine *e, struct slice text, struct statement *s)
{
    char name[SCHEMA_NAME_MAX + 1];
    const char *tail;
    for (int i = 0; i < TRIES; i++) {
        forget_tables(s);
        s->off_loop = s->writes = false;
        e->preparing = s;
        int rc = sqlite3_prepare_v3(e->db, text.p, (int)text.n, SQLITE_PREPARE_PERSISTENT, &s->stmt, &tail);
        if (rc == SQLITE_OK) {
            s->length = (size_t)(tail - text.p);
            s->declared = e->declared;
            return true;
        }
        if (is_known_failure(e))
            return false;
        bool again =
            missing_table(e, name, sizeof name) ? declare_table(e, name) != NULL : declare_drop_stale(e);
        if (!again || is_known_failure(e)) {
            statement_failed(e, rc);
            return false;
        }
    }
    (void)fault_set(&e->fault, FAULT_SQL, "the statement names too many tables");
    return false;
}

/* ---- keeping ---- */

static struct statement *find_kept(struct query_engine *e, struct slice text)
{
    for (size_t i = 0; i < CACHE_STATEMENTS; i++) {
        struct statement *s = &e->cache[i];
        if (s->stmt && s->ntext == text.n && memcmp(s->text, text.p, text.n) == 0)
            return s;
    }
    return NULL;
}

/* The place that was used longest ago, emptied. */
static struct statement *make_room(struct query_engine *e)
{
    struct statement *oldest = &e->cache[0];
    for (size_t i = 1; i < CACHE_STATEMENTS; i++)
        if (e->cache[i].used < oldest->used)
            oldest = &e->cache[i];
    statement_release(oldest);
    return oldest;
}

static bool still_good(struct query_engine *e, const struct statement *s)
{
    for (size_t i = 0; i < s->ntables; i++) {
        struct query_table *t = declared_table(e, s->tables[i]);
        if (!t || !declared_still(e, t) || t->serial > s->declared)
            return false;
    }
    return true;
}

struct statement *statement_get(struct query_engine *e, struct slice text, struct statement *spare)
{
    bool keep = text.n <= CACHE_TEXT && !e->lax;
    struct statement *s = keep ? find_kept(e, text) : NULL;
    if (s && still_good(e, s)) {
        s->used = e->clock;
        e->preparing = s;
        return s;
    }
    if (is_known_failure(e))
        return NULL;
    if (s)
        statement_release(s);
    else
        s = keep ? make_room(e) : spare;
    if (!prepare(e, text, s)) {
        statement_release(s);
        return NULL;
    }
    if (keep && s->stmt) {
        s->text = mem_strndup(text);
        s->ntext = text.n;
        s->used = e->clock;
    }
    return s;
}

void statement_done(struct query_engine *e, struct statement *s)
{
    (void)sqlite3_reset(s->stmt);
    (void)sqlite3_clear_bindings(s->stmt);
    if (!s->text)
        statement_release(s);
    e->preparing = NULL;
}
