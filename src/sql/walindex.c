#include "sql/walindex.h"

#include <string.h>

#define REGION  32768   /* as SQLite maps the index */
#define VERSION 3007000 /* the only one so far */

const volatile void *walindex_find(sqlite3_file *db)
{
    volatile void *at = NULL;
    if (!db || !db->pMethods || db->pMethods->iVersion < 2 ||
        db->pMethods->xShmMap(db, 0, REGION, 0, &at) != SQLITE_OK || !at)
        return NULL;
    return *(const volatile uint32_t *)at == VERSION ? at : NULL;
}

struct wal_header walindex_read(const volatile void *at)
{
    const volatile uint64_t *from = at;
    struct wal_header h;
    for (size_t i = 0; i < sizeof h.words / sizeof h.words[0]; i++)
        h.words[i] = __atomic_load_n(&from[i], __ATOMIC_ACQUIRE);
    return h;
}

bool walindex_equal(const struct wal_header *a, const struct wal_header *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

/* ---- turns ---- */

void wal_turns_init(struct wal_turns *t)
{
    *t = (struct wal_turns){0};
    pthread_mutex_init(&t->lock, NULL);
}

void wal_turns_release(struct wal_turns *t)
{
    pthread_mutex_destroy(&t->lock);
}

/* Counts what is there and was not left by this connection. Holding the lock. */
static void look(struct wal_turns *t)
{
    struct wal_header now = walindex_read(t->at);
    t->others += t->known && !walindex_equal(&now, &t->end);
    t->end = now;
}

void wal_turns_begin(struct wal_turns *t, sqlite3_file *db)
{
    pthread_mutex_lock(&t->lock);
    if (!t->at)
        t->at = walindex_find(db);
    if (t->at)
        look(t);
    t->inside = true;
    pthread_mutex_unlock(&t->lock);
}

void wal_turns_end(struct wal_turns *t)
{
    pthread_mutex_lock(&t->lock);
    if (t->at && t->inside) {
        t->end = walindex_read(t->at);
        t->known = true;
    }
    t->inside = false;
    pthread_mutex_unlock(&t->lock);
}

void wal_turns_forget(struct wal_turns *t)
{
    pthread_mutex_lock(&t->lock);
    t->at = NULL;
    t->known = t->inside = false;
    pthread_mutex_unlock(&t->lock);
}

bool wal_turns_others(struct wal_turns *t, uint64_t *seen, bool *ret_others)
{
    pthread_mutex_lock(&t->lock);
    bool known = t->known;
    if (known && !t->inside)
        look(t);
    *ret_others = t->others != *seen;
    *seen = t->others;
    pthread_mutex_unlock(&t->lock);
    return known;
}
