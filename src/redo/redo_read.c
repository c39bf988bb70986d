/* Reading a log that nobody writes: what is there, and what of it counts. Nothing is changed, and whatever
   stands in the files, reading ends.

   Of a segment count the records from the first on that follow each other, up to the lowest `from` of a later
   segment. A segment is not needed, and not read, when the tables have everything before the next one's
   `from`. So segments that a crash has left behind while they were given up, with gaps between them, do no
   harm. */
#include <errno.h>

#include "base/mem.h"
#include "base/vec.h"
#include "redo/redo_internal.h"

#define WINDOW (UINT64_C(1024) * 1024)

/* ---- heads ---- */

/* One that was there a moment ago, and is not: beside a server that has brought its records into the tables.
 */
static enum status open_failed(int e, const char *name, struct error *err)
{
    enum status st = redo_fail(e, "open", name, err);
    if (e == ENOENT)
        st = err->code = ST_MISSING;
    return st;
}

static enum status read_head(const char *path, uint64_t number, struct redo_head *ret, struct error *err)
{
    char name[REDO_NAME_BYTES];
    redo_segment_name(path, number, name);
    int fd = redo_files->open(name, REDO_OPEN_READ);
    if (fd < 0)
        return open_failed(errno, name, err);
    unsigned char block[REDO_BLOCK];
    size_t n;
    enum status st = redo_file_read(fd, name, block, sizeof block, 0, &n, err);
    redo_files->close(fd);
    if (st == ST_OK)
        st = redo_head_decode(block, n, name, ret, err);
    if (st == ST_OK && ret->number != number)
        st = error_set(err, ST_CORRUPT, "%s is not what its name says: it was segment %llu of a redo log",
                       name, (unsigned long long)ret->number);
    return st;
}

enum status redo_heads_read(const char *path, struct redo_heads *ret, struct error *err)
{
    uint64_t *numbers;
    enum status st = redo_list(path, &numbers, &ret->len, NULL, NULL, err);
    if (st != ST_OK)
        return st;
    ret->items = mem_zalloc((ret->len + 1) * sizeof *ret->items);
    for (size_t i = 0; i < ret->len && st == ST_OK; i++)
        st = read_head(path, numbers[i], &ret->items[i], err);
    mem_free(numbers);
    if (st != ST_OK)
        mem_free(ret->items);
    return st;
}

/* What later segments leave valid of segment i: records below this. */
static int64_t limit_of(const struct redo_heads *h, size_t i)
{
    int64_t limit = INT64_MAX;
    for (size_t j = i + 1; j < h->len; j++)
        if (h->items[j].from < limit)
            limit = h->items[j].from;
    return limit;
}

/* ---- one segment ---- */

struct reader {
    char name[REDO_NAME_BYTES];
    const struct redo_head *head;
    int fd;
    uint64_t size;    /* of the file, as far as it belongs to the segment */
    unsigned char *p; /* bytes of it ... */
    size_t cap, n;
    uint64_t start; /* ... from here on */
};

static enum status open_reader(struct reader *x, const char *path, const struct redo_head *head,
                               struct error *err)
{
    *x = (struct reader){.head = head};
    redo_segment_name(path, head->number, x->name);
    x->fd = redo_files->open(x->name, REDO_OPEN_READ);
    struct redo_stat sb;
    if (x->fd < 0 || redo_files->stat(x->fd, &sb) != 0) {
        int e = errno;
        if (x->fd >= 0)
            redo_files->close(x->fd);
        return open_failed(e, x->name, err);
    }
    x->size = sb.size < head->bytes ? sb.size : head->bytes;
    return ST_OK;
}

static void close_reader(struct reader *x)
{
    redo_files->close(x->fd);
    mem_free(x->p);
}

/* n bytes at this place, until the next call; NULL if the segment ends before. */
static enum status look(struct reader *x, uint64_t at, uint64_t n, const unsigned char **ret,
                        struct error *err)
{
    *ret = NULL;
    if (at > x->size || n > x->size - at)
        return ST_OK;
    if (at < x->start || at + n > x->start + x->n) {
        size_t want = (size_t)(n > WINDOW ? n : x->size - at < WINDOW ? x->size - at : WINDOW);
        if (want > x->cap) {
            mem_free(x->p);
            x->p = mem_alloc(want);
            x->cap = want;
        }
        x->n = 0;
        x->start = at;
        enum status st = redo_file_read(x->fd, x->name, x->p, want, at, &x->n, err);
        if (st != ST_OK)
            return st;
        if (x->n < n) {
            x->size = at; /* it has become shorter */
            return ST_OK;
        }
    }
    *ret = x->p + (at - x->start);
    return ST_OK;
}

/* The record at this place, if there is one of this segment that is whole; *ret_payload is valid until the
   next look. */
static enum status record_at(struct reader *x, uint64_t at, struct redo_frame *f, struct slice *ret_payload,
                             bool *ret_valid, struct error *err)
{
    const unsigned char *p;
    *ret_valid = false;
    enum status st = look(x, at, REDO_RECORD_BYTES, &p, err);
    if (st != ST_OK || !p || !redo_frame_decode(p, f))
        return st;
    if (f->number != x->head->number || f->epoch != x->head->epoch)
        return ST_OK;
    st = look(x, at, (uint64_t)REDO_RECORD_BYTES + f->length, &p, err);
    if (st != ST_OK || !p)
        return st;
    *ret_payload = slice_of(p + REDO_RECORD_BYTES, f->length);
    *ret_valid = redo_frame_verify(p, f, *ret_payload);
    return ST_OK;
}

static uint64_t behind(uint64_t at, const struct redo_frame *f)
{
    return at + redo_round_up((uint64_t)REDO_RECORD_BYTES + f->length);
}

/* Behind a hole: whether the head or a record tells that one was durable which is not there. */
static enum status find_claim(struct reader *x, uint64_t at, int64_t last, int64_t limit, struct error *err)
{
    int64_t claimed = x->head->copied;
    for (bool valid; at < x->size && (claimed < limit ? claimed : limit - 1) <= last;) {
        struct redo_frame f;
        struct slice payload;
        enum status st = record_at(x, at, &f, &payload, &valid, err);
        if (st != ST_OK)
            return st;
        if (valid && f.durable > claimed)
            claimed = f.durable;
        at = valid ? behind(at, &f) : at + REDO_BLOCK;
    }
    if ((claimed < limit ? claimed : limit - 1) <= last)
        return ST_OK;
    return error_set(err, ST_CORRUPT, "%s is damaged: what follows number %lld was durable, and is missing",
                     x->name, (long long)last);
}

/* A walk over a segment's records that count. */
struct walk {
    int64_t limit, after;
    redo_record_fn *fn; /* NULL: none is told of */
    void *arg;
    int64_t last;    /* of the last that counts; `from` - 1 if there is none */
    int64_t tables;  /* the highest that a record tells; 0 */
    int64_t durable; /* likewise */
    bool any;
};

static enum status tell(struct walk *w, const struct redo_frame *f, struct slice payload, uint64_t at)
{
    w->any = true;
    w->last = f->seq;
    if (f->tables > w->tables)
        w->tables = f->tables;
    if (f->durable > w->durable)
        w->durable = f->durable;
    struct redo_record rec = {
        .kind = (enum redo_kind)f->kind,
        .seq = f->seq,
        .payload = payload,
        .at = at + REDO_RECORD_BYTES,
    };
    return w->fn && f->seq > w->after ? w->fn(w->arg, &rec) : ST_OK;
}

static enum status walk_segment(const char *path, const struct redo_head *head, struct walk *w,
                                struct error *err)
{
    struct reader x;
    enum status st = open_reader(&x, path, head, err);
    if (st != ST_OK)
        return st;
    uint32_t crc = head->crc;
    uint64_t at = REDO_BLOCK;
    w->last = head->from - 1;
    for (;;) {
        struct redo_frame f;
        struct slice payload;
        bool valid;
        st = record_at(&x, at, &f, &payload, &valid, err);
        if (st != ST_OK)
            break;
        bool follows = valid && f.before == crc && f.seq > w->last && f.durable <= w->last;
        if (!follows || (f.seq > head->copied && w->last < head->copied)) {
            st = find_claim(&x, at, w->last, w->limit, err);
            if (st == ST_OK && x.size < head->bytes)
                st = error_set(err, ST_CORRUPT, "%s is damaged: it was cut short", x.name);
            break;
        }
        if (f.seq >= w->limit)
            break;
        st = tell(w, &f, payload, at);
        if (st != ST_OK)
            break;
        crc = f.crc;
        at = behind(at, &f);
    }
    close_reader(&x);
    return st;
}

/* ---- all of them ---- */

/* Whether a segment has records that are no copies of older ones. */
static enum status has_own(const char *path, const struct redo_head *head, bool *ret, struct error *err)
{
    struct walk w = {.limit = INT64_MAX};
    enum status st = walk_segment(path, head, &w, err);
    *ret = w.any && w.last > head->copied;
    return st == ST_CORRUPT ? ST_OK : st;
}

/* *ret: how many segments there are up to the newest that has records of its own. Those behind it were begun
   by starts of which larder_meta may not have got to know. */
static enum status count_known(const char *path, const struct redo_heads *h, size_t *ret, struct error *err)
{
    enum status st = ST_OK;
    bool own = false;
    for (*ret = h->len; *ret > 0 && st == ST_OK; --*ret) {
        st = has_own(path, &h->items[*ret - 1], &own, err);
        if (own)
            break;
    }
    return st;
}

/* The newest record that counts is the last: damage before it is not looked for. */
static enum status find_last(const char *path, const struct redo_heads *h, struct redo_found *ret,
                             struct error *err)
{
    for (size_t i = h->len; i-- > 0 && ret->last == 0;) {
        struct walk w = {.limit = limit_of(h, i)};
        enum status st = walk_segment(path, &h->items[i], &w, err);
        if (st != ST_OK && st != ST_CORRUPT)
            return st;
        if (w.any)
            ret->last = w.last;
        if (w.tables > ret->tables)
            ret->tables = w.tables;
    }
    return ST_OK;
}

enum status redo_check_id(const char *path, const struct redo_heads *h, const struct redo_id *id,
                          struct error *err)
{
    if (!id || h->len == 0 || redo_same_id(&h->items[h->len - 1].id, id))
        return ST_OK;
    size_t known;
    enum status st = count_known(path, h, &known, err);
    for (size_t i = known; i < h->len && st == ST_OK; i++)
        if (redo_same_id(&h->items[i].before, id))
            return ST_OK;
    return st == ST_OK ? error_set(err, ST_CORRUPT, "the redo log beside %s is not this database's", path)
                       : st;
}

enum status redo_find(const char *path, const struct redo_id *id, struct redo_found *ret, struct error *err)
{
    *ret = (struct redo_found){0};
    struct redo_heads h;
    enum status st = redo_heads_read(path, &h, err);
    if (st != ST_OK)
        return st;
    for (size_t i = 0; i < h.len; i++) {
        ret->bytes += h.items[i].bytes;
        if (h.items[i].tables > ret->tables)
            ret->tables = h.items[i].tables;
    }
    if (h.len) {
        ret->any = true;
        ret->segments = (uint32_t)h.len;
        ret->id = h.items[h.len - 1].id;
        st = redo_check_id(path, &h, id, err);
        ret->ours = id && st == ST_OK;
        if (st == ST_OK || st == ST_CORRUPT)
            st = find_last(path, &h, ret, err);
    }
    mem_free(h.items);
    return st;
}

/* ---- what a new start writes again ---- */

static enum status note_entry(void *arg, const struct redo_record *rec)
{
    struct redo_tail *t = arg;
    VEC_PUSH(t->items, t->len, t->cap) =
        (struct redo_entry){rec->kind, rec->seq, rec->at, (uint32_t)rec->payload.n};
    return ST_OK;
}

enum status redo_tail_read(const char *path, const struct redo_heads *h, int64_t from, int64_t tables,
                           struct redo_tail *ret, struct error *err)
{
    *ret = (struct redo_tail){0};
    if (h->len == 0)
        return ST_OK;
    const struct redo_head *newest = &h->items[h->len - 1];
    struct walk w = {.limit = from, .fn = note_entry, .arg = ret};
    enum status st = walk_segment(path, newest, &w, err);
    if (st != ST_OK && st != ST_CORRUPT) /* what is damaged was redo_each's to tell */
        return st;
    int64_t claimed = w.durable > newest->copied ? w.durable : newest->copied;
    ret->proven = newest->from - 1;
    for (size_t i = 0; i < ret->len && ret->items[i].seq <= claimed; i++)
        ret->proven = ret->items[i].seq;
    if (tables > ret->proven)
        ret->proven = tables;
    size_t kept = 0;
    for (size_t i = 0; i < ret->len; i++)
        if (ret->items[i].seq > ret->proven) {
            ret->bytes += redo_round_up((uint64_t)REDO_RECORD_BYTES + ret->items[i].length);
            ret->items[kept++] = ret->items[i];
        }
    ret->len = kept;
    return ST_OK;
}

/* ---- all records ---- */

static bool is_there(const char *path, uint64_t number)
{
    char name[REDO_NAME_BYTES];
    struct redo_stat sb;
    redo_segment_name(path, number, name);
    return redo_files->stat_name(name, &sb) == 0;
}

/* What the end of the newest segment that was found says of another. Beside a server that one may have come
   since, or have come and gone, but then the one before it has gone first. */
static enum status judge_next(const char *path, const struct redo_head *newest, uint64_t next,
                              struct error *err)
{
    if (is_there(path, next))
        return ST_OK;
    enum status st = is_there(path, newest->number) ? ST_CORRUPT : ST_MISSING;
    return error_set(err, st, "%s-redo.%llu is missing", path, (unsigned long long)next);
}

static enum status check_end(const char *path, const struct redo_head *newest, struct error *err)
{
    struct reader x;
    const unsigned char *p = NULL;
    uint64_t next;
    enum status st = open_reader(&x, path, newest, err);
    if (st != ST_OK)
        return st;
    if (newest->bytes > REDO_BLOCK)
        st = look(&x, newest->bytes - REDO_BLOCK, REDO_BLOCK, &p, err);
    if (st == ST_OK && p && redo_end_decode(p, newest->crc, &next))
        st = judge_next(path, newest, next, err);
    close_reader(&x);
    return st;
}

/* Whether segment i goes on where the one before it, or the tables, end: have is the last that is there. */
static enum status check_joint(const char *path, const struct redo_heads *h, size_t i, int64_t have,
                               int64_t after, struct error *err)
{
    const struct redo_head *head = &h->items[i];
    const struct redo_head *before = i > 0 ? &h->items[i - 1] : NULL;
    bool next = before && head->number == before->number + 1;
    if (next && !redo_same_id(&head->id, &before->id) && !redo_same_id(&head->before, &before->id))
        return error_set(err, ST_CORRUPT, "%s-redo.%llu is not of the same redo log as the one before it",
                         path, (unsigned long long)head->number);
    if (head->from - 1 <= have || head->from - 1 <= after)
        return ST_OK;
    if (!before)
        return error_set(err, ST_CORRUPT,
                         "the redo log beside %s begins with number %lld, and the tables end with %lld", path,
                         (long long)head->from, (long long)after);
    if (!next)
        return error_set(err, ST_CORRUPT, "%s-redo.%llu is missing", path,
                         (unsigned long long)head->number - 1);
    return error_set(err, ST_CORRUPT, "%s-redo.%llu is damaged: what follows number %lld is missing", path,
                     (unsigned long long)before->number, (long long)have);
}

enum status redo_each(const char *path, const struct redo_id *id, int64_t after, redo_record_fn *fn,
                      void *arg, struct error *err)
{
    struct redo_heads h;
    enum status st = redo_heads_read(path, &h, err);
    if (st != ST_OK)
        return st;
    st = redo_check_id(path, &h, id, err);
    int64_t have = 0;
    for (size_t i = 0; i < h.len && st == ST_OK; i++) {
        struct walk w = {.limit = limit_of(&h, i), .after = after, .fn = fn, .arg = arg};
        if (h.items[i].from >= w.limit || w.limit - 1 <= after)
            continue; /* all of it is void, or in the tables */
        st = check_joint(path, &h, i, have, after, err);
        if (st == ST_OK)
            st = walk_segment(path, &h.items[i], &w, err);
        have = w.last;
    }
    if (h.len && st == ST_OK)
        st = check_end(path, &h.items[h.len - 1], err);
    mem_free(h.items);
    return st;
}

/* ---- whatever can be read ---- */

struct scan {
    redo_scan_fn *fn;
    void *arg;
    int64_t last; /* that was told of */
    bool hole;    /* and behind it one */
};

static enum status tell_hole(struct scan *s, const struct error *damage)
{
    if (s->hole)
        return ST_OK;
    s->hole = true;
    return s->fn(s->arg, NULL, damage);
}

static enum status tell_whole(struct scan *s, const struct redo_frame *f, struct slice payload, uint64_t at)
{
    const struct redo_record r = {
        .kind = (enum redo_kind)f->kind, .seq = f->seq, .payload = payload, .at = at + REDO_RECORD_BYTES};
    s->last = f->seq;
    s->hole = false;
    return s->fn(s->arg, &r, NULL);
}

static enum status scan_records(struct scan *s, struct reader *x, int64_t limit, struct error *err)
{
    for (uint64_t at = REDO_BLOCK; at < x->size;) {
        struct redo_frame f;
        struct slice payload;
        struct error damage;
        bool valid;
        enum status st = record_at(x, at, &f, &payload, &valid, err);
        if (st != ST_OK)
            return st;
        if (!valid && !s->hole) {
            if (find_claim(x, at, s->last, limit, &damage) == ST_OK)
                break; /* here it ends */
            st = tell_hole(s, &damage);
        } else if (valid && f.seq > s->last && f.seq < limit) {
            st = tell_whole(s, &f, payload, at);
        }
        if (st != ST_OK)
            return st;
        at = valid ? behind(at, &f) : at + REDO_BLOCK;
    }
    return ST_OK;
}

/* Without a head that can be read: the records of a segment say what it is. Its first one counts, whatever
   earlier segments have. */
static enum status guess_head(const char *path, uint64_t number, struct redo_head *ret, struct error *err)
{
    struct reader x;
    const unsigned char *p = NULL;
    *ret = (struct redo_head){.number = number, .bytes = UINT64_MAX, .from = INT64_MAX};
    enum status st = open_reader(&x, path, ret, err);
    if (st != ST_OK)
        return st;
    ret->bytes = x.size;
    for (uint64_t at = REDO_BLOCK; st == ST_OK && at < x.size; at += REDO_BLOCK) {
        struct redo_frame f;
        st = look(&x, at, REDO_RECORD_BYTES, &p, err);
        if (st == ST_OK && p && redo_frame_decode(p, &f) && f.number == number) {
            ret->epoch = f.epoch;
            break;
        }
    }
    close_reader(&x);
    return st;
}

/* One segment. A hole before it is told of where its head says that something was there. */
static enum status scan_segment(struct scan *s, const char *path, const struct redo_heads *h, size_t i,
                                const struct error *unreadable, struct error *err)
{
    const struct redo_head *head = &h->items[i];
    struct reader x;
    struct error damage = *unreadable;
    enum status st = open_reader(&x, path, head, err);
    if (st != ST_OK)
        return st;
    bool missing = damage.code == ST_OK && i > 0 && head->from - 1 > s->last;
    if (missing)
        (void)error_set(&damage, ST_CORRUPT, "what follows number %lld is missing", (long long)s->last);
    if (damage.code != ST_OK)
        st = tell_hole(s, &damage);
    if (st == ST_OK)
        st = scan_records(s, &x, limit_of(h, i), err);
    if (st == ST_OK && x.size < head->bytes) {
        (void)error_set(&damage, ST_CORRUPT, "%s was cut short", x.name);
        st = tell_hole(s, &damage);
    }
    close_reader(&x);
    return st;
}

static enum status scan_end(struct scan *s, const char *path, const struct redo_head *newest)
{
    struct error damage;
    return check_end(path, newest, &damage) == ST_OK ? ST_OK : tell_hole(s, &damage);
}

enum status redo_scan(const char *path, redo_scan_fn *fn, void *arg, struct error *err)
{
    struct scan s = {.fn = fn, .arg = arg};
    struct redo_heads h;
    uint64_t *numbers;
    enum status st = redo_list(path, &numbers, &h.len, NULL, NULL, err);
    if (st != ST_OK)
        return st;
    h.items = mem_zalloc((h.len + 1) * sizeof *h.items);
    struct error *unreadable = mem_zalloc((h.len + 1) * sizeof *unreadable);
    for (size_t i = 0; i < h.len && st == ST_OK; i++)
        if (read_head(path, numbers[i], &h.items[i], &unreadable[i]) != ST_OK)
            st = guess_head(path, numbers[i], &h.items[i], err);
        else
            unreadable[i].code = ST_OK;
    for (size_t i = 0; i < h.len && st == ST_OK; i++)
        st = scan_segment(&s, path, &h, i, &unreadable[i], err);
    if (st == ST_OK && h.len && unreadable[h.len - 1].code == ST_OK)
        st = scan_end(&s, path, &h.items[h.len - 1]);
    mem_free(unreadable);
    mem_free(h.items);
    mem_free(numbers);
    return st;
}

/* ---- removing ---- */

enum status redo_remove(const char *path, struct error *err)
{
    uint64_t *numbers, stays;
    size_t n;
    enum status st = redo_spares_remove(path, &stays, err);
    if (st == ST_OK)
        st = redo_list(path, &numbers, &n, NULL, NULL, err);
    if (st != ST_OK)
        return st;
    for (size_t i = 0; st == ST_OK && i < n; i++) {
        char name[REDO_NAME_BYTES];
        redo_segment_name(path, numbers[i], name);
        if (i > 0 && i == n - 1)
            st = redo_folder_sync(path, err);
        if (st == ST_OK && redo_files->unlink(name) != 0 && errno != ENOENT)
            st = redo_fail(errno, "remove", name, err);
    }
    mem_free(numbers);
    return st == ST_OK ? redo_folder_sync(path, err) : st;
}
