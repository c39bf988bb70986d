/* The log while it is in use: beginning, appending, syncing, ending. Which thread may do what is in redo.h.
 */
#include "redo/redo.h"

#include <assert.h>
#include <errno.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "redo/redo_internal.h"
#include "redo/redo_state.h"

#define CHECK_NAMES_US 1000000

/* ---- files taken away ---- */

static enum status say_gone(struct redo *r, struct error *err)
{
    return error_set(err, ST_IO,
                     "a file of the database's redo log, or the database itself, %s while it was in use",
                     r->cut ? "was cut short" : "was removed or replaced");
}

/* Behind a sync: what was synced is still in a file that has a name. */
static bool is_whole(struct redo *r)
{
    struct redo_stat sb;
    if (redo_files->stat(r->current->fd, &sb) != 0)
        return false;
    r->cut = sb.size < r->current->bytes;
    return !r->cut && sb.links > 0;
}

static bool database_is_there(struct redo *r)
{
    struct redo_stat sb;
    return !r->db_known ||
           (redo_files->stat_name(r->path, &sb) == 0 && sb.inode == r->db_inode && sb.device == r->db_device);
}

/* The names of all segments, if all, or of the one that is written. The list's own thread adds to it alone,
   and redo_applied takes away from the front: under the lock the names are looked at, too, but only here. */
static bool names_are_ours(struct redo *r, bool all)
{
    if (!database_is_there(r))
        return false;
    if (!all)
        return redo_segment_is_there(r->path, r->current);
    bool ok = true;
    pthread_mutex_lock(&r->lock);
    for (struct redo_segment *s = r->first; s && ok; s = s->next)
        ok = s->moving || redo_segment_is_there(r->path, s);
    pthread_mutex_unlock(&r->lock);
    return ok;
}

/* ---- segments ---- */

static struct redo_segment *take_spare(struct redo *r, uint64_t need)
{
    pthread_mutex_lock(&r->lock);
    struct redo_segment **at = &r->spares;
    while (*at && (*at)->bytes < need)
        at = &(*at)->next;
    struct redo_segment *s = *at;
    if (s)
        *at = s->next;
    pthread_mutex_unlock(&r->lock);
    return s;
}

/* None was ready: a small one, so that the append waits for as little as possible. */
static enum status make_now(struct redo *r, uint64_t need, struct redo_segment **ret, struct error *err)
{
    uint64_t bytes = REDO_FIRST_BYTES < r->segment_bytes ? REDO_FIRST_BYTES : r->segment_bytes;
    if (bytes < need)
        bytes = need;
    struct redo_segment *s;
    enum status st = redo_spare_make(r->path, redo_next_spare(r), bytes, &s, err);
    if (st != ST_OK)
        return st;
    for (uint64_t at = 0, n; st == ST_OK && at < bytes; at += n)
        st = redo_spare_zero(r->path, s, at, &n, err);
    if (st == ST_OK)
        *ret = s;
    else
        redo_spare_drop(r->path, s);
    return st;
}

/* What a new segment begins with. */
struct beginning {
    uint64_t epoch;
    int64_t from, last;           /* last: the last that counts, `from` - 1 unless there are copies */
    const struct redo_tail *tail; /* records to copy, or NULL */
};

static enum status write_record(struct redo *r, struct redo_segment *s, struct redo_frame *f,
                                struct slice payload, struct error *err);

static enum status read_payload(struct redo *r, const struct redo_entry *e, char *ret, struct error *err)
{
    char name[REDO_NAME_BYTES];
    size_t got;
    redo_segment_name(r->path, r->newest->number, name);
    enum status st = redo_file_read(r->newest->fd, name, ret, e->length, e->at, &got, err);
    if (st == ST_OK && got < e->length)
        st = error_set(err, ST_IO, "%s was cut short while it was in use", name);
    return st;
}

/* Reads the records from the newest segment, writes them into s, which follows. */
static enum status copy_tail(struct redo *r, struct redo_segment *s, struct redo_frame *f,
                             const struct redo_tail *tail, struct error *err)
{
    struct buf b = {0};
    enum status st = ST_OK;
    for (size_t i = 0; i < tail->len && st == ST_OK; i++) {
        const struct redo_entry *e = &tail->items[i];
        b.len = 0;
        char *p = buf_reserve(&b, e->length + 1);
        st = read_payload(r, e, p, err);
        f->before = f->crc;
        f->seq = e->seq;
        f->kind = e->kind;
        if (st == ST_OK)
            st = write_record(r, s, f, slice_of(p, e->length), err);
    }
    buf_release(&b);
    return st;
}

/* Writes everything into the spare segment s that is to be the next one. *ret_crc: of its last record. */
static enum status fill(struct redo *r, struct redo_segment *s, const struct beginning *b, uint32_t *ret_crc,
                        struct error *err)
{
    struct redo_head h = {.id = r->id,
                          .before = r->before,
                          .number = r->next_number,
                          .epoch = b->epoch,
                          .from = b->from,
                          .tables = atomic_load(&r->tables),
                          .copied = b->last};
    enum status st = redo_spare_head(r->path, s, &h, err);
    s->crc = h.crc;
    atomic_store(&s->end, REDO_BLOCK);
    struct redo_frame f = {
        .crc = h.crc, .epoch = b->epoch, .number = h.number, .durable = b->from - 1, .tables = h.tables};
    if (st == ST_OK && b->tail)
        st = copy_tail(r, s, &f, b->tail, err);
    *ret_crc = f.crc;
    return st;
}

/* A new segment that has room for a record of so many bytes. Its head's sync covers zeros and copies, too. */
static enum status begin(struct redo *r, const struct beginning *b, uint64_t record, struct error *err)
{
    uint64_t need = 2 * REDO_BLOCK + record + (b->tail ? b->tail->bytes : 0);
    struct redo_segment *s = take_spare(r, need);
    enum status st = s ? ST_OK : make_now(r, need, &s, err);
    if (st != ST_OK)
        return st;
    uint32_t crc;
    st = fill(r, s, b, &crc, err);
    if (st != ST_OK) {
        redo_spare_drop(r->path, s);
        return st;
    }
    st = redo_spare_begin(r->path, s, r->next_number, err);
    if (st != ST_OK) {
        r->over = true; /* a crash may leave it: what the segment before it got from now on would be void */
        return st;
    }
    if (r->current) /* else larder_meta will know it by its id */
        redo_segment_end(r->current, r->next_number);
    uint64_t twice = 2 * atomic_load(&r->next_bytes);
    atomic_store(&r->next_bytes, twice < r->segment_bytes ? twice : r->segment_bytes);
    pthread_mutex_lock(&r->lock);
    s->next = NULL;
    if (r->newest) {
        r->newest->last = b->last;
        r->newest->next = s;
    } else {
        r->first = s;
    }
    r->newest = s;
    pthread_mutex_unlock(&r->lock);
    r->current = s;
    r->next_number++;
    r->epoch = b->epoch;
    r->crc = crc;
    atomic_store(&r->last, b->last);
    atomic_store(&r->durable, b->last);
    r->over = false;
    return ST_OK;
}

/* ---- syncing ---- */

/* Nothing since the last sync counts. What was said to be appended must be appended again. */
static void end_epoch(struct redo *r)
{
    int64_t durable = atomic_load(&r->durable);
    if (r->last > durable && r->last > r->lost)
        r->lost = r->last;
    r->last = durable;
    r->over = true;
}

/* upto: the record that was written last. */
static enum status sync_current(struct redo *r, int64_t upto, struct error *err)
{
    int64_t start = clock_mono_us();
    if (redo_files->sync(r->current->fd) != 0) {
        int e = errno;
        end_epoch(r);
        char name[REDO_NAME_BYTES];
        redo_segment_name(r->path, r->current->number, name);
        (void)redo_fail(e, "sync", name, err);
        return err ? (err->code = ST_UNKNOWN) : ST_UNKNOWN;
    }
    int64_t now = clock_mono_us();
    histogram_add(&r->sync_us, (uint64_t)(now - start));
    bool look = now - r->checked_us >= CHECK_NAMES_US;
    if (!is_whole(r) || (look && !names_are_ours(r, false))) {
        end_epoch(r);
        r->gone = true;
        (void)say_gone(r, err);
        return err ? (err->code = ST_UNKNOWN) : ST_UNKNOWN;
    }
    if (look)
        r->checked_us = now;
    atomic_store(&r->durable, upto);
    return ST_OK;
}

static bool has_lost(const struct redo *r)
{
    return r->lost > r->last && r->lost > atomic_load(&r->tables);
}

static enum status say_lost(struct error *err)
{
    return error_set(err, ST_LOST, "what was written to the redo log has not reached the disk");
}

enum status redo_sync(struct redo *r, struct error *err)
{
    if (has_lost(r))
        return say_lost(err);
    return r->last == atomic_load(&r->durable) ? ST_OK : sync_current(r, r->last, err);
}

/* ---- appending ---- */

/* Takes care that the current segment has room, and that it is a good one. */
static enum status make_ready(struct redo *r, int64_t seq, uint64_t record, struct error *err)
{
    int64_t tables = atomic_load(&r->tables);
    bool full = atomic_load(&r->current->end) + record > r->current->bytes - REDO_BLOCK;
    bool level = tables >= r->last && tables >= r->lost;
    if (r->gone && level && database_is_there(r)) {
        r->gone = r->cut = false; /* nothing of it is needed any more */
        end_epoch(r);
    } else if (r->gone || ((r->over || full) && !names_are_ours(r, true))) {
        r->gone = true;
        return say_gone(r, err);
    }
    enum status st = ST_OK;
    if (r->over) {
        int64_t durable = atomic_load(&r->durable), last = tables > durable ? tables : durable;
        st = begin(r, &(struct beginning){r->epoch + 1, last + 1, last, NULL}, record, err);
    } else if (full) {
        /* The next segment's head says that this one is whole. */
        if (r->last != atomic_load(&r->durable))
            st = sync_current(r, r->last, err);
        if (st == ST_OK)
            st = begin(r, &(struct beginning){r->epoch, r->last + 1, r->last, NULL}, record, err);
    }
    if (st == ST_OK && has_lost(r) && seq > r->lost)
        return say_lost(err);
    return st;
}

/* Behind the last one; sets f's length and crc. */
static enum status write_record(struct redo *r, struct redo_segment *s, struct redo_frame *f,
                                struct slice payload, struct error *err)
{
    static char zeros[REDO_BLOCK];
    f->length = (uint32_t)payload.n;
    unsigned char header[REDO_RECORD_BYTES];
    redo_frame_encode(f, payload, header);
    uint64_t size = REDO_RECORD_BYTES + payload.n, all = redo_round_up(size), written;
    struct iovec v[3] = {
        {header, sizeof header}, {(void *)(uintptr_t)payload.p, payload.n}, {zeros, all - size}};
    int e = redo_file_write(s->fd, v, 3, atomic_load(&s->end), &written);
    if (e == 0) {
        atomic_fetch_add(&s->end, all);
        return ST_OK;
    }
    char name[REDO_NAME_BYTES];
    redo_segment_name(r->path, f->number, name);
    enum status st = redo_fail(e, "write", name, err);
    if (st == ST_IO || written >= size)
        st = ST_UNKNOWN; /* only padding may be missing, or nobody knows */
    if (err)
        err->code = st;
    return st;
}

enum status redo_append(struct redo *r, enum redo_kind kind, int64_t seq, struct slice payload, bool sync,
                        struct error *err)
{
    uint64_t all = redo_round_up(REDO_RECORD_BYTES + payload.n);
    if (payload.n > REDO_MAX_PAYLOAD)
        return error_set(err, ST_INVALID, "a record of the redo log would be too long");
    enum status st = make_ready(r, seq, all, err);
    if (st != ST_OK)
        return st;
    if (seq <= r->last)
        return error_set(err, ST_INTERNAL, "a record of the redo log goes back");
    struct redo_segment *s = r->current;
    struct redo_frame f = {.before = r->crc,
                           .epoch = r->epoch,
                           .number = s->number,
                           .seq = seq,
                           .durable = atomic_load(&r->durable),
                           .tables = atomic_load(&r->tables),
                           .kind = kind};
    st = write_record(r, s, &f, payload, err);
    if (st != ST_OK) {
        end_epoch(r);
        return st;
    }
    if (sync)
        st = sync_current(r, seq, err);
    if (st != ST_OK)
        return st;
    atomic_fetch_add(&r->appended, all);
    r->crc = f.crc;
    r->last = seq;
    return ST_OK;
}

enum status redo_renew(struct redo *r, struct error *err)
{
    return r->over ? make_ready(r, 0, 0, err) : ST_OK;
}

/* ---- beginning and ending ---- */

/* Segments of the log that was there are kept until the tables have what is before `from`. */
static enum status keep_old(struct redo *r, const struct redo_heads *h, int64_t from, struct error *err)
{
    for (size_t i = 0; i < h->len; i++) {
        char name[REDO_NAME_BYTES];
        redo_segment_name(r->path, h->items[i].number, name);
        int fd = redo_files->open(name, REDO_OPEN_WRITE);
        struct redo_stat sb;
        if (fd < 0 || redo_files->stat(fd, &sb) != 0) {
            int e = errno;
            if (fd >= 0)
                redo_files->close(fd);
            return redo_fail(e, "open", name, err);
        }
        struct redo_segment *s = mem_zalloc(sizeof *s);
        *s = (struct redo_segment){.fd = fd,
                                   .number = h->items[i].number,
                                   .bytes = sb.size,
                                   .inode = sb.inode,
                                   .device = sb.device,
                                   .end = sb.size,
                                   .last = (i + 1 < h->len ? h->items[i + 1].from : from) - 1};
        if (r->newest)
            r->newest->next = s;
        else
            r->first = s;
        r->newest = s;
        r->epoch = h->items[i].epoch > r->epoch ? h->items[i].epoch : r->epoch;
        r->next_number = s->number + 1;
    }
    return ST_OK;
}

static enum status open_log(struct redo *r, const struct redo_options *o, struct error *err)
{
    struct redo_heads h;
    enum status st = redo_spares_remove(r->path, &r->spare_k, err);
    if (st == ST_OK)
        st = redo_heads_read(r->path, &h, err);
    if (st != ST_OK)
        return st;
    struct redo_tail tail = {0};
    st = redo_check_id(r->path, &h, &o->old, err);
    if (st == ST_OK && h.len) /* a start that was killed may have left names that the system alone knows */
        st = redo_folder_sync(r->path, err);
    if (st == ST_OK)
        st = keep_old(r, &h, o->from, err);
    if (st == ST_OK)
        st = redo_tail_read(r->path, &h, o->from, o->tables, &tail, err);
    if (h.len)
        r->before = h.items[h.len - 1].id;
    mem_free(h.items);
    struct beginning b = {r->epoch + 1, o->from, o->from - 1, &tail};
    if (tail.len) {
        b.from = tail.proven + 1;
        b.last = tail.items[tail.len - 1].seq;
    }
    if (st == ST_OK)
        st = begin(r, &b, 0, err);
    mem_free(tail.items);
    return st;
}

static void free_log(struct redo *r)
{
    for (struct redo_segment *s = r->first, *next; s; s = next) {
        next = s->next;
        redo_files->close(s->fd);
        mem_free(s);
    }
    for (struct redo_segment *s = r->spares, *next; s; s = next) {
        next = s->next;
        redo_spare_drop(r->path, s);
    }
    if (r->making)
        redo_spare_drop(r->path, r->making);
    pthread_mutex_destroy(&r->lock);
    mem_free(r->path);
    mem_free(r);
}

enum status redo_open(const struct redo_options *o, struct redo **ret, struct error *err)
{
    struct redo *r = mem_zalloc(sizeof *r);
    pthread_mutex_init(&r->lock, NULL);
    r->path = mem_strdup(o->path);
    r->id = o->id;
    r->before = o->old;
    r->segment_bytes = redo_round_up(o->segment_bytes > 2 * REDO_BLOCK ? o->segment_bytes : 2 * REDO_BLOCK);
    r->keep_bytes = o->keep_bytes;
    atomic_store(&r->next_bytes, REDO_FIRST_BYTES < r->segment_bytes ? REDO_FIRST_BYTES : r->segment_bytes);
    atomic_store(&r->tables, o->tables);
    r->next_number = 1;
    struct redo_stat sb;
    if (redo_files->stat_name(o->path, &sb) == 0) {
        r->db_known = true;
        r->db_inode = sb.inode;
        r->db_device = sb.device;
    }
    r->checked_us = clock_mono_us();
    enum status st = open_log(r, o, err);
    if (st != ST_OK)
        free_log(r);
    else
        *ret = r;
    return st;
}

enum status redo_close(struct redo *r, bool remove, struct error *err)
{
    if (!r)
        return ST_OK;
    char *path = mem_strdup(r->path);
    free_log(r);
    enum status st = remove ? redo_remove(path, err) : ST_OK;
    mem_free(path);
    return st;
}
