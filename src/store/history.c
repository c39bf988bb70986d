#include "store/history.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/rand.h"

/* ---- one history ---- */

const char *history_text(const struct history *h, char out[HISTORY_TEXT])
{
    size_t n = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < h->n && n < HISTORY_TEXT; i++)
        n += (size_t)snprintf(out + n, HISTORY_TEXT - n, "%s%" PRIu32 ".%" PRIu32 "@%" PRIX64, i ? " " : "",
                              branch_number(h->at[i].id), h->at[i].id & UINT16_MAX, h->at[i].from);
    return out;
}

/* A number and the character behind it, which is skipped. */
static bool take_number(const char **p, int base, char behind, uint64_t max, uint64_t *ret)
{
    char *end;
    *ret = strtoull(*p, &end, base);
    bool good = end > *p && **p != '-' && **p != '+' && **p != ' ' && *ret <= max &&
                (*end == behind || (behind == ' ' && *end == '\0'));
    *p = end + (*end != '\0');
    return good;
}

bool history_read(struct slice text, struct history *ret)
{
    char copy[HISTORY_TEXT + 1];
    const char *p = copy;
    *ret = (struct history){0};
    if (text.n > HISTORY_TEXT)
        return false;
    snprintf(copy, sizeof copy, "%.*s", (int)text.n, text.n ? text.p : "");
    while (*p) {
        uint64_t number, mark, from;
        if (ret->n == HISTORY_BRANCHES || !take_number(&p, 10, '.', UINT16_MAX, &number) || number == 0 ||
            !take_number(&p, 10, '@', UINT16_MAX, &mark) || !take_number(&p, 16, ' ', UINT64_MAX, &from))
            return false;
        ret->at[ret->n++] = (struct branch){(uint32_t)(number << 16 | mark), from};
    }
    return true;
}

void history_add(struct history *h, uint32_t number, uint64_t from)
{
    uint16_t mark;
    rand_secure(&mark, sizeof mark);
    if (h->n == HISTORY_BRANCHES) {
        h->n--;
        for (uint32_t i = 0; i < h->n; i++)
            h->at[i] = h->at[i + 1];
    }
    h->at[h->n++] = (struct branch){(number & UINT16_MAX) << 16 | mark, from};
}

static uint32_t place_of(const struct history *h, uint32_t id)
{
    uint32_t i = 0;
    while (i < h->n && h->at[i].id != id)
        i++;
    return i;
}

bool history_has(const struct history *h, uint32_t id)
{
    return place_of(h, id) < h->n;
}

bool history_kept(const struct history *h, uint32_t id, uint64_t lsn)
{
    uint32_t i = place_of(h, id);
    if (i == h->n)
        return false;
    while (++i < h->n)
        if (lsn > h->at[i].from)
            return false;
    return true;
}

/* ---- what this process knows ---- */

struct known {
    struct known *next;
    uint64_t database;
    pthread_mutex_t lock; /* of history */
    struct history history;
    atomic_uint_fast32_t changes;
    atomic_int_fast64_t clock; /* the primary's, minus our monotonic one; 0: not known */
};

static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static struct known *all; /* under all_lock */

struct known *known_database(uint64_t database)
{
    pthread_mutex_lock(&all_lock);
    struct known *k = all;
    while (k && k->database != database)
        k = k->next;
    if (!k) {
        k = mem_zalloc(sizeof *k);
        k->database = database;
        pthread_mutex_init(&k->lock, NULL);
        k->next = all;
        all = k;
    }
    pthread_mutex_unlock(&all_lock);
    return k;
}

/* By the numbers of their last branches: which of two primaries was promoted later is told by them alone, if
   the first had no time to send the row of its branch to the second. */
static enum known_place compare(const struct history *known, const struct history *h)
{
    const struct branch *a = history_last(known), *b = history_last(h);
    if (!a || !b || a->id == b->id)
        return KNOWN_LATEST;
    if (branch_number(b->id) > branch_number(a->id))
        return KNOWN_LATEST;
    return history_has(known, b->id) ? KNOWN_OLD : KNOWN_APART;
}

enum known_place known_meet(struct known *k, const struct history *h)
{
    pthread_mutex_lock(&k->lock);
    enum known_place place = compare(&k->history, h);
    if (place == KNOWN_LATEST && h->n) {
        const struct branch *last = history_last(&k->history);
        if (!last || last->id != history_last(h)->id)
            atomic_fetch_add(&k->changes, 1);
        k->history = *h;
    }
    pthread_mutex_unlock(&k->lock);
    return place;
}

void known_history(struct known *k, struct history *ret)
{
    pthread_mutex_lock(&k->lock);
    *ret = k->history;
    pthread_mutex_unlock(&k->lock);
}

uint32_t known_changes(const struct known *k)
{
    return (uint32_t)atomic_load(&k->changes);
}

void known_set_clock(struct known *k, int64_t primary_us, int64_t mono_us)
{
    atomic_store_explicit(&k->clock, primary_us - mono_us, memory_order_relaxed);
}

int64_t known_clock(const struct known *k, int64_t mono_us)
{
    int64_t offset = atomic_load_explicit(&k->clock, memory_order_relaxed);
    return offset ? mono_us + offset : 0;
}
