#include "query/memory.h"

#include <sqlite3.h>
#include <stddef.h>

#include "query/query.h"

static sqlite3_mem_methods plain; /* SQLite's own */
static _Thread_local struct memory_budget *budget;

struct memory_budget *memory_count(struct memory_budget *b)
{
    struct memory_budget *was = budget;
    budget = b;
    return was;
}

static bool has_room(struct memory_budget *b, int more)
{
    if (b->used + more <= b->max)
        return true;
    b->exceeded = true;
    return false;
}

static void took(struct memory_budget *b, int64_t n)
{
    b->used += n;
    if (b->used > b->peak)
        b->peak = b->used;
}

static void *counting_malloc(int n)
{
    struct memory_budget *b = budget;
    if (!b)
        return plain.xMalloc(n);
    void *p = has_room(b, n) ? plain.xMalloc(n) : NULL;
    if (p)
        took(b, plain.xSize(p));
    return p;
}

static void counting_free(void *p)
{
    if (budget && p)
        budget->used -= plain.xSize(p);
    plain.xFree(p);
}

static void *counting_realloc(void *old, int n)
{
    struct memory_budget *b = budget;
    if (!b)
        return plain.xRealloc(old, n);
    int was = plain.xSize(old);
    void *p = has_room(b, n - was) ? plain.xRealloc(old, n) : NULL;
    if (p)
        took(b, (int64_t)plain.xSize(p) - was);
    return p;
}

void query_count_memory(void)
{
    sqlite3_mem_methods counting;
    if (sqlite3_config(SQLITE_CONFIG_GETMALLOC, &plain) != SQLITE_OK)
        return; /* SQLite is in use already, or counts are on */
    counting = plain;
    counting.xMalloc = counting_malloc;
    counting.xFree = counting_free;
    counting.xRealloc = counting_realloc;
    (void)sqlite3_config(SQLITE_CONFIG_MALLOC, &counting);
}
