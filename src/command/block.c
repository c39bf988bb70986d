#include "command/block.h"

#include <assert.h>
#include <math.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/num.h"
#include "command/announce.h"
#include "command/args.h"
#include "command/attempt.h"
#include "command/server.h"
#include "command/session.h"
#include "command/txn.h"

/* One key that one client waits for, in the queue of that key. */
struct wait {
    struct blocked *owner;
    struct queue *queue;
    struct wait *prev, *next;
};

/* The clients that wait for one key, in the order in which they blocked. */
struct queue {
    struct queue *bucket_next;
    uint64_t hash;
    uint32_t db;
    char *key;
    size_t nkey;
    struct wait *first, *last;
};

struct blocked {
    struct session *session;
    const struct command *cmd;
    struct slice *argv;
    int argc;
    enum row_type type;
    struct wait *waits;
    int nwaits;
    bool over; /* by what the running transaction did, which may be taken back: counts no more */
    struct arena arena;
};

struct blocking {
    struct queue **buckets;
    size_t nbuckets;
    size_t nqueues;
    uint32_t nclients;
};

struct blocking *blocking_new(void)
{
    struct blocking *b = mem_zalloc(sizeof *b);
    b->nbuckets = 64;
    b->buckets = mem_zalloc(b->nbuckets * sizeof *b->buckets);
    return b;
}

void blocking_free(struct blocking *b)
{
    if (!b)
        return;
    assert(b->nclients == 0 && b->nqueues == 0);
    mem_free(b->buckets);
    mem_free(b);
}

uint32_t blocking_clients(const struct blocking *b)
{
    return b->nclients;
}

/* ---- queues ---- */

static struct queue **find(struct blocking *b, uint32_t db, struct slice key, uint64_t hash)
{
    struct queue **q = &b->buckets[hash & (b->nbuckets - 1)];
    while (*q && !((*q)->hash == hash && (*q)->db == db && slice_eq(slice_of((*q)->key, (*q)->nkey), key)))
        q = &(*q)->bucket_next;
    return q;
}

static void grow(struct blocking *b)
{
    struct queue **old = b->buckets;
    size_t n = b->nbuckets;
    b->nbuckets *= 2;
    b->buckets = mem_zalloc(b->nbuckets * sizeof *b->buckets);
    for (size_t i = 0; i < n; i++) {
        for (struct queue *q = old[i], *next; q; q = next) {
            next = q->bucket_next;
            struct queue **bucket = &b->buckets[q->hash & (b->nbuckets - 1)];
            q->bucket_next = *bucket;
            *bucket = q;
        }
    }
    mem_free(old);
}

static struct queue *queue_for(struct blocking *b, uint32_t db, struct slice key)
{
    if (b->nqueues >= b->nbuckets)
        grow(b);
    uint64_t hash = hash_bytes(key, db);
    struct queue **place = find(b, db, key, hash);
    if (!*place) {
        struct queue *q = mem_zalloc(sizeof *q);
        *q = (struct queue){.hash = hash, .db = db, .key = mem_strndup(key), .nkey = key.n};
        *place = q;
        b->nqueues++;
    }
    return *place;
}

static void join(struct wait *w)
{
    struct queue *q = w->queue;
    w->prev = q->last;
    *(q->last ? &q->last->next : &q->first) = w;
    q->last = w;
}

static void leave(struct blocking *b, struct wait *w)
{
    struct queue *q = w->queue;
    *(w->prev ? &w->prev->next : &q->first) = w->next;
    *(w->next ? &w->next->prev : &q->last) = w->prev;
    if (q->first)
        return;
    *find(b, q->db, slice_of(q->key, q->nkey), q->hash) = q->bucket_next;
    b->nqueues--;
    mem_free(q->key);
    mem_free(q);
}

/* ---- waiting ---- */

bool block_timeout_arg(struct call *c, int i, int64_t *ret_us)
{
    long double seconds;
    if (!num_parse_long_double(c->argv[i], &seconds)) {
        reply_error(c->reply, "ERR timeout is not a float or out of range");
        return false;
    }
    /* What does not fit into milliseconds counts as negative, as in Redis. */
    long double ms = ceill(seconds * 1000);
    if (ms < 0 || ms > (long double)INT64_MAX) {
        reply_error(c->reply, "ERR timeout is negative");
        return false;
    }
    *ret_us = ms > (long double)(INT64_MAX / 4000) ? INT64_MAX / 4 : (int64_t)ms * 1000;
    return true;
}

bool block_wants(const struct call *c, struct slice key)
{
    return !c->serving || slice_eq(key, c->serving_key);
}

void block_on(struct call *c, enum row_type type, int first, int nkeys, int64_t timeout_us)
{
    if (c->serving)
        return;
    if (txn_running(c->session) || c->session->no_block) {
        reply_null_array(c->reply);
        return;
    }
    struct blocking *b = c->server->blocking;
    struct blocked *k = mem_zalloc(sizeof *k);
    *k = (struct blocked){
        .session = c->session, .cmd = c->cmd, .argc = c->argc, .type = type, .nwaits = nkeys};
    k->argv = arena_alloc(&k->arena, (size_t)c->argc * sizeof *k->argv);
    for (int i = 0; i < c->argc; i++)
        k->argv[i] = arena_copy(&k->arena, c->argv[i]);
    k->waits = mem_zalloc((size_t)nkeys * sizeof *k->waits);
    for (int i = 0; i < nkeys; i++) {
        k->waits[i] = (struct wait){.owner = k, .queue = queue_for(b, call_db(c), c->argv[first + i])};
        join(&k->waits[i]);
    }
    c->session->blocked = k;
    b->nclients++;
    view_watch_ready(c->view, true);
    c->session->ops->block(c->session, timeout_us ? clock_mono_us() + timeout_us : 0);
}

/* Takes it out of the queues. */
static void free_blocked(struct server *s, struct blocked *k)
{
    for (int i = 0; i < k->nwaits; i++)
        leave(s->blocking, &k->waits[i]);
    mem_free(k->waits);
    arena_release(&k->arena);
    mem_free(k);
}

/* Whether it may be needed again, because the running transaction may be. */
static bool is_kept(const struct blocked *k)
{
    return k->session->kept && k->session->kept->blocked == k;
}

void block_forget(struct server *s, struct session *c)
{
    struct blocked *k = c->blocked;
    if (!k)
        return;
    c->blocked = NULL;
    s->blocking->nclients--;
    if (s->blocking->nclients == 0)
        view_watch_ready(s->view, false);
    if (is_kept(k))
        k->over = true;
    else
        free_blocked(s, k);
}

void block_restore(struct server *s, struct session *c, struct blocked *was)
{
    if (c->blocked == was)
        return;
    block_forget(s, c);
    if (!was)
        return;
    was->over = false;
    c->blocked = was;
    s->blocking->nclients++;
    view_watch_ready(s->view, true);
}

void block_let_go(struct server *s, const struct session *c, struct blocked *was)
{
    if (was && was != c->blocked)
        free_blocked(s, was);
}

void block_give_up(struct server *s, struct session *c, bool error)
{
    struct reply *reply = c->ops->reply_begin(c);
    if (error)
        reply_error(reply, "UNBLOCKED client unblocked via CLIENT UNBLOCK");
    else
        reply_null_array(reply);
    block_forget(s, c);
    c->ops->reply_end(c, 0);
}

/* ---- serving ---- */

/* Runs a waiting command with the key that has something. True when it got its reply. */
static bool serve(struct server *s, struct blocked *k, struct slice key, const struct error *write_err)
{
    struct session *c = k->session;
    struct reply *reply = c->ops->reply_begin(c);
    size_t mark = reply->ops->mark(reply);
    struct slice *argv = k->argv;
    bool kept = is_kept(k); /* then it outlives the batch by itself */
    if (!kept)
        arena_adopt(view_arena(s->view), &k->arena);
    int64_t wait = command_serve(s, c, k->cmd, argv, k->argc, reply, key, write_err);
    bool served = reply->ops->mark(reply) != mark;
    if (served) {
        block_forget(s, c);
    } else if (!kept) {
        /* Still waiting: the arguments are needed for longer than this batch. */
        k->argv = arena_alloc(&k->arena, (size_t)k->argc * sizeof *k->argv);
        for (int i = 0; i < k->argc; i++)
            k->argv[i] = arena_copy(&k->arena, argv[i]);
    }
    c->ops->reply_end(c, wait);
    return served;
}

/* Serves the queue of one key while the key has what its clients wait for. */
static void serve_key(struct server *s, uint32_t db, struct slice key, const struct error *write_err)
{
    struct queue *q = *find(s->blocking, db, key, hash_bytes(key, db));
    for (struct wait *w = q ? q->first : NULL, *next; w; w = next) {
        struct blocked *k = w->owner;
        const struct row *row;
        if (view_get(s->view, db, key, &row) != ST_OK || !row)
            return;
        /* Serving w may end its wait for other keys too, but never another client's wait. */
        next = w->next;
        while (next && next->owner == k)
            next = next->next;
        if (row->type == k->type && !k->over)
            serve(s, k, key, write_err);
    }
}

/* Databases were exchanged: whatever anyone waits for may be there now. Serving ends waits, so the keys are
 * listed first. */
static void serve_all(struct server *s, const struct error *write_err)
{
    struct blocking *b = s->blocking;
    struct arena *arena = view_arena(s->view);
    struct key_ref *keys = arena_alloc(arena, b->nqueues * sizeof *keys);
    size_t n = 0;
    for (size_t i = 0; i < b->nbuckets; i++)
        for (const struct queue *q = b->buckets[i]; q; q = q->bucket_next)
            keys[n++] = (struct key_ref){q->db, arena_copy(arena, slice_of(q->key, q->nkey))};
    for (size_t i = 0; i < n; i++)
        serve_key(s, keys[i].db, keys[i].key, write_err);
}

void block_serve(struct server *s, const struct error *write_err)
{
    uint32_t db;
    struct slice key;
    bool all;
    while (s->blocking->nclients && view_next_ready(s->view, &db, &key, &all)) {
        if (all)
            serve_all(s, write_err);
        else
            serve_key(s, db, key, write_err);
    }
}

void block_announce(struct server *s)
{
    const struct blocking *b = s->blocking;
    for (size_t i = 0; i < b->nbuckets; i++)
        for (const struct queue *q = b->buckets[i]; q; q = q->bucket_next)
            for (const struct wait *w = q->first; w; w = w->next) /* between transactions: none is over */
                announce_keys(s->view, q->db, w->owner->cmd, w->owner->argv, w->owner->argc);
}

bool block_anything(struct server *s)
{
    const struct blocking *b = s->blocking;
    for (size_t i = 0; i < b->nbuckets; i++) {
        for (const struct queue *q = b->buckets[i]; q; q = q->bucket_next) {
            const struct row *row;
            if (view_get(s->view, q->db, slice_of(q->key, q->nkey), &row) != ST_OK)
                return false;
            for (const struct wait *w = row ? q->first : NULL; w; w = w->next)
                if (row->type == w->owner->type)
                    return true;
        }
    }
    return false;
}
