/* What goes on beside appending: giving segments up, making them ready, telling of them. */
#include <errno.h>

#include "base/mem.h"
#include "redo/redo_internal.h"
#include "redo/redo_state.h"

#define SYNC_EACH                                                                                            \
    (UINT64_C(2) * 1024 * 1024) /* bytes of zeros: a longer sync would hold up those of records */

uint64_t redo_next_spare(struct redo *r)
{
    pthread_mutex_lock(&r->lock);
    uint64_t k = ++r->spare_k;
    pthread_mutex_unlock(&r->lock);
    return k;
}

static uint64_t spare_bytes(const struct redo *r)
{
    uint64_t n = 0;
    for (const struct redo_segment *s = r->spares; s; s = s->next)
        n += s->bytes;
    return n;
}

/* ---- giving up ---- */

/* The oldest segment, if the tables have all of it; and whether it is worth keeping, beside so many bytes
   that are about to be spare. */
static struct redo_segment *next_to_go(struct redo *r, uint64_t spare, bool *ret_keep)
{
    pthread_mutex_lock(&r->lock);
    struct redo_segment *s = r->first;
    if (s == r->newest || s->last > atomic_load(&r->tables))
        s = NULL;
    if (s) {
        s->moving = true;
        *ret_keep = s->bytes <= r->segment_bytes && s->bytes >= atomic_load(&r->next_bytes) / 2 &&
                    spare + spare_bytes(r) + s->bytes <= r->keep_bytes;
    }
    pthread_mutex_unlock(&r->lock);
    return s;
}

/* Renames or removes what can go. *ret: those that were renamed; *ret_any: there were any. One that cannot be
   renamed stays the first, and is tried again. */
static enum status rename_all(struct redo *r, struct redo_segment **ret, bool *ret_any, struct error *err)
{
    bool keep;
    uint64_t spare = 0;
    for (struct redo_segment *s; (s = next_to_go(r, spare, &keep)); *ret_any = true) {
        bool kept;
        enum status st = redo_segment_recycle(r->path, s, keep, redo_next_spare(r), &kept, err);
        if (st != ST_OK)
            return st;
        pthread_mutex_lock(&r->lock);
        r->first = s->next;
        pthread_mutex_unlock(&r->lock);
        if (kept) {
            spare += s->bytes;
            s->moving = false;
            s->next = *ret;
            *ret = s;
        } else {
            redo_files->close(s->fd);
            mem_free(s);
        }
    }
    return ST_OK;
}

/* One sync for all: gaps that a crash leaves among them are no harm, because the tables have them. They are
   written again only when their old names are gone for good. */
enum status redo_applied(struct redo *r, int64_t seq, struct error *err)
{
    if (seq > atomic_load(&r->tables))
        atomic_store(&r->tables, seq);
    struct redo_segment *kept = NULL;
    bool any = false;
    enum status st = rename_all(r, &kept, &any, err);
    enum status synced = any ? redo_folder_sync(r->path, st == ST_OK ? err : NULL) : ST_OK;
    for (struct redo_segment *s = kept, *next; s; s = next) {
        next = s->next;
        if (synced != ST_OK) {
            redo_spare_drop(r->path, s);
            continue;
        }
        pthread_mutex_lock(&r->lock);
        s->next = r->spares;
        r->spares = s;
        pthread_mutex_unlock(&r->lock);
    }
    return st == ST_OK ? synced : st;
}

/* ---- making ready ---- */

/* One is made when there is none and a quarter of the current one is used. */
static bool needs_one(struct redo *r)
{
    pthread_mutex_lock(&r->lock);
    bool needs = !r->spares && atomic_load(&r->newest->end) > r->newest->bytes / 4;
    pthread_mutex_unlock(&r->lock);
    return needs;
}

static enum status drop_making(struct redo *r, enum status st)
{
    redo_spare_drop(r->path, r->making);
    r->making = NULL;
    return st;
}

static enum status sync_making(struct redo *r, struct error *err)
{
    if (redo_files->sync(r->making->fd) == 0)
        return ST_OK;
    char name[REDO_NAME_BYTES];
    int e = errno;
    redo_spare_name(r->path, r->making->number, name);
    return redo_fail(e, "sync", name, err);
}

enum status redo_prepare(struct redo *r, bool *ret_more, struct error *err)
{
    *ret_more = false;
    enum status st = ST_OK;
    if (!r->making) {
        if (!needs_one(r))
            return ST_OK;
        st = redo_spare_make(r->path, redo_next_spare(r), atomic_load(&r->next_bytes), &r->making, err);
        if (st != ST_OK)
            return st;
        r->made = 0;
    }
    uint64_t n;
    st = redo_spare_zero(r->path, r->making, r->made, &n, err);
    if (st != ST_OK)
        return drop_making(r, st);
    r->made += n;
    bool done = r->made == r->making->bytes;
    if (done || r->made % SYNC_EACH == 0)
        st = sync_making(r, err);
    if (st != ST_OK)
        return drop_making(r, st);
    if (done) {
        pthread_mutex_lock(&r->lock);
        r->making->next = r->spares;
        r->spares = r->making;
        pthread_mutex_unlock(&r->lock);
        r->making = NULL;
    }
    *ret_more = r->making || needs_one(r);
    return ST_OK;
}

/* ---- telling ---- */

void redo_info(struct redo *r, struct redo_info *ret)
{
    *ret = (struct redo_info){.sync_us = &r->sync_us};
    int64_t tables = atomic_load(&r->tables);
    pthread_mutex_lock(&r->lock);
    ret->durable = atomic_load(&r->durable);
    ret->last = atomic_load(&r->last);
    ret->appended = atomic_load(&r->appended);
    ret->on_disk = spare_bytes(r);
    for (const struct redo_segment *s = r->first; s; s = s->next) {
        ret->on_disk += s->bytes;
        if ((s == r->newest ? atomic_load(&r->last) : s->last) > tables)
            ret->bytes += atomic_load(&s->end) - REDO_BLOCK;
    }
    pthread_mutex_unlock(&r->lock);
}
