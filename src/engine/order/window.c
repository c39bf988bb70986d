#include "engine/order/window.h"

#include <assert.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "engine/order/blocks.h"

static uint32_t hash_of(struct slice name)
{
    return (uint32_t)hash_bytes(name, 0);
}

static struct window_item *item_new(struct window *w, double score, struct slice name)
{
    struct window_item *i = mem_alloc(sizeof *i + name.n);
    *i = (struct window_item){.link.hash = hash_of(name), .score = score, .nname = (uint32_t)name.n};
    if (name.n)
        memcpy(i->name, name.p, name.n);
    w->bytes += mem_size(i);
    return i;
}

static void item_free(struct window *w, struct window_item *i)
{
    w->bytes -= mem_size(i);
    mem_free(i);
}

/* One of those in order, at place i from the first, which is free. */
static void set_item(struct window *w, size_t i, double score, struct slice name)
{
    struct window_item *item = item_new(w, score, name);
    w->at[w->head + i] = item;
    map_add(&w->by_name, &item->link);
    w->n++;
}

static void drop_item(struct window *w, size_t i)
{
    struct window_item *item = w->at[w->head + i];
    map_remove(&w->by_name, &item->link);
    item_free(w, item);
    w->n--;
}

void window_release(struct window *w)
{
    for (size_t i = 0; i < w->n; i++)
        mem_free(w->at[w->head + i]);
    mem_free(w->mark);
    mem_free(w->at);
    map_release(&w->by_name);
    *w = (struct window){.reverse = w->reverse};
}

/* How an item stands to a place, in the direction of the window. */
static int compare(const struct window *w, const struct window_item *i, double score, struct slice name)
{
    int c = score_compare(i->score, window_name(i), score, name);
    return w->reverse ? -c : c;
}

bool window_covers(const struct window *w, double score, struct slice name)
{
    return w->whole || (w->mark && compare(w, w->mark, score, name) >= 0);
}

size_t window_before(const struct window *w, double score, struct slice name)
{
    size_t low = 0, high = w->n;
    if (w->n && compare(w, window_at(w, 0), score, name) >= 0) /* pops ask for the first one */
        return 0;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (compare(w, window_at(w, mid), score, name) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

const struct window_item *window_find(const struct window *w, struct slice name)
{
    uint32_t hash = hash_of(name);
    for (struct map_link *l = map_first(&w->by_name, hash); l; l = l->next)
        if (l->hash == hash && slice_eq(window_name((struct window_item *)l), name))
            return (struct window_item *)l;
    return NULL;
}

/* Room for one more behind the last item. */
static void make_room(struct window *w)
{
    if (w->head + w->n < w->cap)
        return;
    if (w->head > w->cap / 2) { /* most of the room is in front */
        memmove(w->at, w->at + w->head, w->n * sizeof(void *));
        w->head = 0;
        return;
    }
    size_t before = w->cap ? mem_size(w->at) : 0;
    w->cap = w->cap ? w->cap * 2 : 16;
    w->at = mem_realloc(w->at, w->cap * sizeof(void *));
    w->bytes += mem_size(w->at) - before;
}

void window_put(struct window *w, double score, struct slice name)
{
    if (!window_covers(w, score, name))
        return;
    size_t i = window_before(w, score, name);
    if (i < w->n / 2 && w->head) { /* the shorter side moves */
        struct window_item **first = w->at + --w->head;
        memmove(first, first + 1, i * sizeof(void *));
    } else {
        make_room(w);
        struct window_item **here = w->at + w->head + i;
        memmove(here + 1, here, (w->n - i) * sizeof(void *));
    }
    set_item(w, i, score, name);
}

void window_remove(struct window *w, double score, struct slice name)
{
    if (!window_covers(w, score, name))
        return;
    size_t i = window_before(w, score, name);
    if (i == w->n || compare(w, window_at(w, i), score, name) != 0)
        return;
    struct window_item **here = w->at + w->head + i;
    drop_item(w, i);
    if (i <= w->n / 2) { /* the shorter side moves */
        memmove(w->at + w->head + 1, w->at + w->head, i * sizeof(void *));
        w->head++;
    } else {
        memmove(here, here + 1, (w->n - i) * sizeof(void *));
    }
    if (w->n == 0)
        w->head = 0;
}

void window_add(struct window *w, double score, struct slice name)
{
    assert(!w->whole && !window_covers(w, score, name));
    assert(w->n == 0 || compare(w, window_at(w, w->n - 1), score, name) < 0);
    make_room(w);
    set_item(w, w->n, score, name);
}

/* The mark becomes the place of the last item. */
static void mark_last(struct window *w)
{
    const struct window_item *last = window_at(w, w->n - 1);
    if (w->mark)
        item_free(w, w->mark);
    w->mark = item_new(w, last->score, window_name(last));
}

void window_raise(struct window *w, bool whole)
{
    w->whole = whole;
    if (w->n)
        mark_last(w);
}

void window_cut(struct window *w, size_t n)
{
    assert(n > 0);
    if (w->n <= n)
        return;
    while (w->n > n)
        drop_item(w, w->n - 1);
    w->whole = false;
    mark_last(w);
}
