/* Reading through memory against a plain model: random changes, with tables of rows frozen, applied in
   slices, rolled back, left and undone at random moments; after each step every kind of read is compared.

   merge_test [STEPS [SEED]]: what is printed first repeats a run. */
#include "contract/fixture.h"
#include "contract/model.h"
#include "engine/order/window.h"
#include "journal/merge.h"

#define STEPS 2500
#define MARKS 8

/* ---- what is tested ---- */

static struct {
    struct model now;          /* what readers have to see */
    struct model tables;       /* what the tables have, but for what the frozen table brings */
    struct model frozen_state; /* as it was when the table was frozen */
    struct layers l;
    struct mem_apply *apply;
    /* Places that changes may be undone to, the oldest first, and what was there. */
    struct {
        mem_mark mark;
        struct model state;
    } marks[MARKS];
    int nmarks;
    mem_mark left;
    int64_t seq, ticket;
    int64_t steps;
    const char *doing;
} w;

static struct error err;

/* Of the sorted sets: what the engine knows of their ends. */
static struct window windows[IDS][2];

#define ACTIVE w.l.mem[0]
#define FROZEN w.l.mem[1]

static void fail_at(const char *what, int line)
{
    printf("step %" PRId64 ", after %s, line %d: %s\n", w.steps, w.doing, line, what);
    check.checks_failed++;
}

#define SAME(cond)                                                                                           \
    do {                                                                                                     \
        if (!(cond))                                                                                         \
            fail_at(#cond, __LINE__);                                                                        \
    } while (0)

/* ---- changes ---- */

/* Whether the tables will not have the row once the frozen table is in them; sometimes nobody knows. */
static bool key_is_fresh(uint32_t db, int n)
{
    struct mem_key k;
    if (memtable_has_key(ACTIVE, db, names[n]))
        return chance(50); /* it knows itself */
    bool frozen = FROZEN && memtable_key(FROZEN, db, names[n], &k);
    bool fresh = frozen ? k.row.type == ROW_NONE : !key_at(&w.tables, db, n)->there;
    return fresh && chance(80);
}

/* What readers do not see is gone by a state, or by a range that comes before the row. */
static bool item_is_fresh(const struct item_ref *ref)
{
    if (memtable_has_item(ACTIVE, ref))
        return chance(50);
    return !item_at(&w.now, ref->table, ref->id, place_of(ref))->there && chance(80);
}

static enum status note_seq(void *arg, const struct key_row *row)
{
    *(int64_t *)arg = row->seq;
    return ST_OK;
}

/* The number a row has, also one that memory has to delete, which readers are not told; 0: none. */
static int64_t known_seq(uint32_t db, int n)
{
    int64_t seq = 0;
    struct key_ref ref = {db, names[n]};
    struct mem_key k;
    if (memtable_key(ACTIVE, db, names[n], &k) || (FROZEN && memtable_key(FROZEN, db, names[n], &k)))
        return k.row.seq;
    CHECK_OK(merge_get_keys(&w.l, &ref, 1, note_seq, &seq, &err), &err);
    return seq;
}

static void put_key(uint32_t db, int n)
{
    int64_t seq = known_seq(db, n);
    struct key_row k = {.seq = seq ? seq : ++w.seq,
                        .db = db,
                        .key = names[n],
                        .type = (enum row_type)(1 + roll(6)),
                        .version = w.steps,
                        .expire_at = any_moment(),
                        .ticket = ++w.ticket};
    /* The first keys own the hashes. */
    if (db == 0 && n < IDS)
        k.type = ROW_HASH;
    if (k.type == ROW_HASH) {
        k.id = db == 0 && n < IDS ? n + 1 : IDS;
        k.size = fields_of(&w.now, k.id);
        k.first = any_moment();
        k.numbers = roll(2) ? 0 : k.size + 1 + roll(1000);
    } else if (k.type == ROW_STRING || k.type == ROW_TABLE) {
        k.value = any_value();
        k.id = k.type == ROW_TABLE ? 100 + n : 0;
    }
    memtable_put_key(ACTIVE, &k, key_is_fresh(db, n), k.ticket);
    key_at(&w.now, db, n)->there = true;
    key_at(&w.now, db, n)->row = k;
}

static void del_key(uint32_t db, int n)
{
    struct key_row k = {.seq = known_seq(db, n), .db = db, .key = names[n], .version = w.steps};
    if (k.seq == 0)
        return;
    memtable_put_key(ACTIVE, &k, key_is_fresh(db, n), ++w.ticket);
    key_at(&w.now, db, n)->there = false;
}

/* Who changes fields changes the rows of keys that have them. */
static void touch_owners(int64_t id)
{
    for (uint32_t db = 0; db < DBS; db++) {
        for (int n = 0; n < NAMES; n++) {
            if (key_at(&w.now, db, n)->there && key_at(&w.now, db, n)->row.type == ROW_HASH &&
                key_at(&w.now, db, n)->row.id == id) {
                struct key_row *k = &key_at(&w.now, db, n)->row;
                k->size = fields_of(&w.now, id);
                k->ticket = ++w.ticket;
                memtable_put_key(ACTIVE, k, key_is_fresh(db, n), k->ticket);
            }
        }
    }
}

/* A member is at its place now, or (there is false) about to leave it. */
static void tell_windows(const struct item_row *row, bool there)
{
    for (int end = 0; row->ref.table == ITEM_ZSET && end < 2; end++) {
        struct window *win = &windows[row->ref.id - 1][end];
        (there ? window_put : window_remove)(win, row->score, row->ref.name);
    }
}

static void drop_windows(void)
{
    for (int i = 0; i < 2 * IDS; i++)
        window_release(&windows[i / 2][i % 2]);
}

static void change_item(void)
{
    enum item_table t = (enum item_table)roll(ITEM_TABLES);
    int64_t id = roll(IDS);
    int n = (int)roll(NAMES);
    struct model_item *i = item_at(&w.now, t, id + 1, n);
    struct item_row row = {.ref = ref_of(t, id, n)};
    if (i->there)
        tell_windows(&i->row, false);
    if (chance(30)) {
        memtable_del_item(ACTIVE, &row.ref, ++w.ticket);
        i->there = false;
    } else {
        if (item_has(t, COLUMN_VALUE))
            row.value = any_value();
        if (item_has(t, COLUMN_SCORE))
            row.score = scores[roll(sizeof scores / sizeof scores[0])];
        if (item_has(t, COLUMN_EXPIRY))
            row.expire_at = any_moment();
        if (item_has(t, COLUMN_ORD))
            row.ord = roll(NAMES);
        memtable_put_item(ACTIVE, &row, item_is_fresh(&row.ref), ++w.ticket);
        if (t == ITEM_ZSET)
            gaps_put(w.l.gaps, &row);
        *i = (struct model_item){true, row};
        tell_windows(&row, true);
    }
    if (item_has(t, COLUMN_EXPIRY))
        touch_owners(id + 1);
}

static enum status read_ahead(void *arg, const struct item_row *row)
{
    window_add(arg, row->score, row->ref.name);
    return ST_OK;
}

/* What is behind the mark of a window: as coll_ends.c asks for it. */
static void fill_window(struct window *win, struct item_scan q)
{
    char name[sizeof long_name + 1];
    size_t had = win->n;
    q.limit = 1 + (uint32_t)roll(4);
    if (win->mark && win->reverse) {
        q.has_max = q.below_max = true;
        q.max_score = win->mark->score;
        q.max_name = window_name(win->mark);
    } else if (win->mark) {
        q.has_min = true;
        q.min_score = win->mark->score;
        memcpy(name, win->mark->name, win->mark->nname);
        name[win->mark->nname] = '\0'; /* the first name behind it */
        q.min_name = slice_of(name, win->mark->nname + 1);
    }
    CHECK_OK(merge_scan_items(&w.l, &q, read_ahead, win, &err), &err);
    window_raise(win, win->n - had < q.limit);
}

/* From an end of a sorted set, several in a row: what is pending hides more and more rows of the tables. The
   window at that end says what goes, and it has to be the model's first. */
static void pop(void)
{
    struct item_scan q = {
        .table = ITEM_ZSET, .id = 1 + roll(IDS), .order = ITEMS_BY_SCORE, .reverse = chance(50), .limit = 1};
    struct window *win = &windows[q.id - 1][q.reverse];
    for (int64_t n = roll(4); n >= 0; n--) {
        struct item_row want[NAMES];
        size_t there = expect_items(&w.now, &q, want);
        if (win->n == 0 && !win->whole)
            fill_window(win, q);
        SAME((win->n == 0) == (there == 0));
        if (win->n == 0 || there == 0)
            return;
        const struct window_item *first = window_at(win, 0);
        SAME(first->score == want[0].score && slice_eq(window_name(first), want[0].ref.name));
        tell_windows(&want[0], false);
        struct item_ref ref = ref_of(ITEM_ZSET, q.id - 1, place_of(&want[0].ref));
        memtable_del_item(ACTIVE, &ref, ++w.ticket);
        item_at(&w.now, ITEM_ZSET, q.id, place_of(&ref))->there = false;
    }
}

/* Everything between two places, which need not be anybody's. */
static struct item_range any_range(void)
{
    static const enum item_table tables[] = {ITEM_CHUNK, ITEM_LIST, ITEM_ZBLOCK, ITEM_ZSET, ITEM_ZSET};
    struct item_range r = {.table = tables[roll(5)], .id = 1 + roll(IDS), .order = ITEMS_BY_POS};
    if (!item_named(r.table)) {
        r.min = chance(10) ? INT64_MIN : POS(roll(NAMES));
        r.max = chance(10) ? INT64_MAX : r.min < POS(0) ? POS(roll(NAMES)) : r.min + roll(NAMES);
        return r;
    }
    size_t a = (size_t)roll(sizeof scores / sizeof scores[0]),
           b = (size_t)roll(sizeof scores / sizeof scores[0]);
    struct slice x = names[roll(NAMES)], y = names[roll(NAMES)];
    r.order = ITEMS_BY_SCORE;
    r.min_score = scores[a < b ? a : b];
    r.max_score = scores[a < b ? b : a];
    bool ordered = r.min_score < r.max_score || compare_bytes(x, y) <= 0;
    r.min_name = ordered ? x : y;
    r.max_name = ordered ? y : x;
    return r;
}

static bool is_inside(const struct item_range *r, const struct item_row *i)
{
    if (r->order == ITEMS_BY_POS)
        return i->ref.pos >= r->min && i->ref.pos <= r->max;
    if (i->score < r->min_score || i->score > r->max_score)
        return false;
    return (i->score > r->min_score || compare_bytes(i->ref.name, r->min_name) >= 0) &&
           (i->score < r->max_score || compare_bytes(i->ref.name, r->max_name) <= 0);
}

static void remove_range(void)
{
    struct item_range r = any_range();
    memtable_put_range(ACTIVE, &r);
    for (int n = 0; n < NAMES; n++) {
        struct model_item *i = item_at(&w.now, r.table, r.id, n);
        if (i->there && is_inside(&r, &i->row)) {
            tell_windows(&i->row, false);
            i->there = false;
        }
    }
}

static void change_rest(void)
{
    int64_t id = roll(60);
    struct db_row d = {.db = (uint32_t)roll(DBS), .keys = roll(1000), .expires = roll(100)};
    d.number = d.db;
    if (chance(50)) {
        memtable_put_db(ACTIVE, &d);
        w.now.dbs[d.db] = d;
    } else if (chance(50)) {
        memtable_add_trash(ACTIVE, &(struct trash_row){id, ROW_LIST});
        w.now.trash |= (uint64_t)1 << id;
    } else {
        w.now.next_id += roll(100);
        memtable_put_next_id(ACTIVE, w.now.next_id);
    }
}

static void change(void)
{
    w.doing = "a change";
    uint32_t db = (uint32_t)roll(DBS);
    int n = (int)roll(NAMES), what = (int)roll(100);
    if (what < 35)
        put_key(db, n);
    else if (what < 50)
        del_key(db, n);
    else if (what < 86)
        change_item();
    else if (what < 90)
        remove_range();
    else if (what < 95)
        pop();
    else
        change_rest();
}

/* ---- undoing ---- */

static void set_mark(void)
{
    if (w.nmarks == MARKS)
        return;
    w.marks[w.nmarks].mark = memtable_mark(ACTIVE);
    w.marks[w.nmarks++].state = w.now;
}

/* The first n marks are too old. */
static void forget_marks(int n)
{
    memmove(w.marks, w.marks + n, (size_t)(w.nmarks - n) * sizeof w.marks[0]);
    w.nmarks -= n;
}

static void undo(void)
{
    if (w.nmarks == 0)
        return;
    w.doing = "undoing";
    int to = (int)roll(w.nmarks);
    memtable_undo(ACTIVE, w.marks[to].mark);
    gaps_clear(w.l.gaps);
    drop_windows();
    w.now = w.marks[to].state;
    w.nmarks = to + 1;
}

static void settle(void)
{
    if (w.nmarks == 0)
        return;
    w.doing = "settling";
    int before = (int)roll(w.nmarks);
    memtable_settle(ACTIVE, w.marks[before].mark);
    forget_marks(before);
}

/* ---- leaving, freezing, applying ---- */

/* Brings the tables from one state to another, as a commit without a journal does. */
static void write_tables(const struct model *from, const struct model *to)
{
    struct key_row keys[KEYS];
    struct item_row items[ITEMS];
    struct item_ref gone[ITEMS];
    struct trash_row trash[64];
    struct changes c = {.keys = keys,
                        .items = items,
                        .gone = gone,
                        .trash = trash,
                        .dbs = to->dbs,
                        .ndbs = DBS,
                        .replay = true};
    for (int i = 0; i < KEYS; i++) {
        const struct key_row *k = &to->keys[i].row;
        bool was = from->keys[i].there;
        if (to->keys[i].there && !(was && same_key(k, &from->keys[i].row))) {
            keys[c.nkeys++] = *k;
        } else if (was && !to->keys[i].there) {
            k = &from->keys[i].row;
            keys[c.nkeys++] = (struct key_row){.seq = k->seq, .db = k->db, .key = k->key};
        }
    }
    for (int i = 0; i < ITEMS; i++) {
        const struct model_item *a = &from->items[i], *b = &to->items[i];
        if (b->there)
            items[c.nitems++] = b->row;
        else if (a->there)
            gone[c.ngone++] = a->row.ref;
    }
    for (int i = 0; i < 64; i++) {
        if (to->trash & ~from->trash & (uint64_t)1 << i)
            trash[c.ntrash++] = (struct trash_row){i, ROW_LIST};
    }
    CHECK_OK(apply_now(w.l.tables, &c, &err), &err);
}

static void freeze(void)
{
    if (FROZEN)
        return;
    w.doing = "freezing";
    FROZEN = ACTIVE;
    w.frozen_state = w.now;
    w.apply = mem_apply_new(FROZEN);
    ACTIVE = memtable_new((size_t)roll(3000));
    w.nmarks = 0;
    w.left = 0;
}

static void leave(void)
{
    if (FROZEN)
        return;
    w.doing = "leaving";
    int at = (int)roll(w.nmarks + 1);
    mem_mark to = at < w.nmarks ? w.marks[at].mark : memtable_mark(ACTIVE);
    const struct model *state = at < w.nmarks ? &w.marks[at].state : &w.now;
    write_tables(&w.tables, state);
    w.tables = *state;
    memtable_leave(ACTIVE, w.left, to);
    w.left = to;
    if (at == w.nmarks)
        SAME(memtable_stats(ACTIVE).rows == 0);
    forget_marks(at);
    if (chance(30))
        freeze();
}

static void compare_all(void);

/* Everything is in the tables: they alone have to look as all did when the table was frozen. */
static void thaw(void)
{
    w.doing = "the last slice";
    SAME(mem_apply_left(w.apply) == 0);
    mem_apply_free(w.apply);
    memtable_free(FROZEN);
    FROZEN = NULL;
    w.apply = NULL;
    w.tables = w.frozen_state;
    struct model now = w.now;
    struct memtable *active = ACTIVE;
    w.now = w.tables;
    ACTIVE = NULL;
    compare_all();
    if (chance(5)) {
        SAME(outside_i64("SELECT count(*) FROM larder_trash") == __builtin_popcountll(w.tables.trash));
        SAME(outside_i64("SELECT sum(keys) FROM larder_db") ==
             w.now.dbs[0].keys + w.now.dbs[1].keys + w.now.dbs[2].keys);
    }
    w.now = now;
    ACTIVE = active;
}

static void apply_slice(void)
{
    if (!FROZEN)
        return;
    w.doing = "a slice";
    if (chance(3)) { /* after a crash all of it comes again */
        mem_apply_free(w.apply);
        w.apply = mem_apply_new(FROZEN);
    }
    if (chance(30))
        (void)mem_apply_sort(w.apply, (size_t)(1 + roll(20)));
    struct changes c;
    int64_t next_id;
    size_t rows = (size_t)(1 + roll(chance(30) ? 500 : 15)), before = mem_apply_left(w.apply);
    if (!mem_apply_next(w.apply, rows, &c, &next_id)) {
        thaw();
        return;
    }
    SAME(c.nkeys + c.nitems + c.ngone <= rows);
    SAME(mem_apply_left(w.apply) < before);
    SAME(next_id == 0 || next_id == w.frozen_state.next_id);
    CHECK_OK(store_begin(w.l.tables, STORE_WRITE, NULL, NULL, &err), &err);
    CHECK_OK(store_apply(w.l.tables, &c, &err), &err);
    if (chance(20)) {
        store_rollback(w.l.tables);
        mem_apply_again(w.apply);
    } else {
        CHECK_OK(store_commit(w.l.tables, &err), &err);
    }
}

/* ---- comparing single rows ---- */

static int64_t ticket_of(const struct key_row *k)
{
    bool known = (ACTIVE && memtable_has_key(ACTIVE, k->db, k->key)) ||
                 (FROZEN && memtable_has_key(FROZEN, k->db, k->key));
    return known ? k->ticket : 0;
}

static enum status found_key(void *arg, const struct key_row *k)
{
    uint8_t *seen = arg;
    int n = 0;
    while (!slice_eq(names[n], k->key))
        n++;
    uint8_t *once = &seen[key_at(&w.now, k->db, n) - w.now.keys];
    SAME(!*once);
    *once = 1;
    if (k->type == ROW_NONE) {
        SAME(!key_at(&w.now, k->db, n)->there && k->expire_at == EXPIRE_DELETED && k->seq == 0 &&
             k->ticket > 0);
    } else {
        SAME(key_at(&w.now, k->db, n)->there && same_key(k, &key_at(&w.now, k->db, n)->row));
        SAME(k->ticket == ticket_of(&key_at(&w.now, k->db, n)->row));
    }
    return ST_OK;
}

static enum status found_item(void *arg, const struct item_row *i)
{
    size_t *n = arg;
    int spot = place_of(&i->ref);
    const struct model_item *want = item_at(&w.now, i->ref.table, i->ref.id, spot);
    SAME(want->there && same_item(i, &want->row));
    ++*n;
    return ST_OK;
}

static void compare_rows(void)
{
    struct key_ref refs[KEYS];
    uint8_t seen[KEYS] = {0};
    for (int i = 0; i < KEYS; i++)
        refs[i] = (struct key_ref){(uint32_t)(i / NAMES), names[i % NAMES]};
    CHECK_OK(merge_get_keys(&w.l, refs, KEYS, found_key, seen, &err), &err);
    for (int i = 0; i < KEYS; i++)
        SAME(seen[i] || !w.now.keys[i].there);
    struct item_ref items[ITEMS];
    size_t want = 0, n = 0;
    for (int i = 0; i < ITEMS; i++) {
        items[i] = ref_of((enum item_table)(i / NAMES / IDS), i / NAMES % IDS, i % NAMES);
        want += w.now.items[i].there;
    }
    CHECK_OK(merge_get_items(&w.l, items, ITEMS, found_item, &n, &err), &err);
    SAME(n == want);
    for (uint32_t db = 0; db < DBS; db++) {
        const struct db_row *d = ACTIVE ? memtable_db(ACTIVE, db) : NULL;
        d = d || !FROZEN ? d : memtable_db(FROZEN, db);
        SAME((d ? d : &w.tables.dbs[db])->keys == w.now.dbs[db].keys);
    }
}

/* ---- comparing scans ---- */

/* What a scan hands out, and what stops it. */
struct found {
    struct key_row keys[KEYS + 1];
    struct item_row items[NAMES + 1];
    size_t n, stop;
    enum status with; /* how it stops */
};

static enum status take_key(void *arg, const struct key_row *k)
{
    struct found *f = arg;
    if (f->n <= KEYS)
        f->keys[f->n++] = *k;
    int n = 0; /* what it points to is borrowed */
    while (!slice_eq(names[n], k->key))
        n++;
    f->keys[f->n - 1].key = names[n];
    f->keys[f->n - 1].value = key_at(&w.now, k->db, n)->row.value;
    if (!slice_eq(f->keys[f->n - 1].value, k->value)) {
        SAME(k->value.n == 0);
        f->keys[f->n - 1].value = SLICE("");
    }
    return f->stop && f->n == f->stop ? f->with : ST_OK;
}

static enum status take_item(void *arg, const struct item_row *i)
{
    struct found *f = arg;
    if (f->n <= NAMES)
        f->items[f->n++] = *i;
    struct item_row *own = &f->items[f->n - 1];
    const struct model_item *want = item_at(&w.now, i->ref.table, i->ref.id, place_of(&i->ref));
    SAME(slice_eq(want->row.value, i->value));
    own->ref.name = want->row.ref.name;
    own->value = want->row.value;
    return f->stop && f->n == f->stop ? f->with : ST_OK;
}

static void compare_item_scan(void)
{
    struct item_row want[NAMES];
    struct item_scan q = any_item_scan();
    size_t n = expect_items(&w.now, &q, want), skip = q.skip < n ? q.skip : n;
    n = n - skip < q.limit ? n - skip : q.limit;
    struct found f = {.stop = chance(10) && n ? 1 + (size_t)roll((int64_t)n) : 0,
                      .with = chance(50) ? ST_FULL : ST_STOP};
    enum status st = merge_scan_items(&w.l, &q, take_item, &f, &err);
    SAME(st == (f.stop && f.with == ST_FULL ? ST_FULL : ST_OK));
    SAME(f.n == (f.stop ? f.stop : n));
    bool seen[NAMES] = {false};
    for (size_t i = 0; i < f.n && i < n; i++) {
        int spot = place_of(&f.items[i].ref);
        struct item_row own = item_at(&w.now, q.table, q.id, spot)->row;
        SAME(!seen[spot] && item_at(&w.now, q.table, q.id, spot)->there);
        seen[spot] = true;
        SAME(item_order(&q, &own, &want[skip + i]) == 0);
        if (q.order == ITEMS_BY_SCORE)
            own.ord = -1;
        SAME(same_item(&own, &f.items[i]));
    }
}

static void compare_item_count(void)
{
    struct item_scan q = any_item_scan();
    struct item_row want[NAMES];
    q.table = chance(50) ? ITEM_HASH : ITEM_ZSET;
    q.order = q.table == ITEM_HASH ? ITEMS_BY_EXPIRY : ITEMS_BY_SCORE;
    q.has_min = q.has_max = q.below_max = true;
    q.min = roll(HORIZON);
    q.max = roll(HORIZON);
    if (q.min_score > q.max_score)
        return;
    int64_t n = -1;
    CHECK_OK(merge_count_items(&w.l, &q, &n, &err), &err);
    SAME(n == (int64_t)expect_items(&w.now, &q, want));
}

static void compare_key_scan(void)
{
    struct key_row want[KEYS];
    struct key_scan q = any_key_scan(w.seq);
    size_t n = expect_keys(&w.now, &q, want);
    n = n < q.limit ? n : q.limit;
    struct found f = {.stop = chance(10) && n ? 1 + (size_t)roll((int64_t)n) : 0,
                      .with = chance(50) ? ST_FULL : ST_STOP};
    enum status st = merge_scan_keys(&w.l, &q, take_key, &f, &err);
    SAME(st == (f.stop && f.with == ST_FULL ? ST_FULL : ST_OK));
    SAME(f.n == (f.stop ? f.stop : n));
    bool seen[KEYS] = {false};
    for (size_t i = 0; i < f.n && i < n; i++) {
        int name = 0;
        while (!slice_eq(names[name], f.keys[i].key))
            name++;
        size_t spot = f.keys[i].db * NAMES + (size_t)name;
        SAME(!seen[spot] && w.now.keys[spot].there);
        seen[spot] = true;
        struct key_row own = w.now.keys[spot].row;
        SAME(key_order(&q, &own, &want[i]) == 0);
        if (!q.with_value)
            own.value = SLICE("");
        if ((q.order == KEYS_BY_KEY || q.order == KEYS_BY_SEQ_DESC) && is_dead(&w.now, &own, q.now))
            own.type = ROW_NONE;
        SAME(same_key(&own, &f.keys[i]));
        SAME(f.keys[i].ticket == ticket_of(&own));
    }
}

static void compare_key_counts(void)
{
    uint32_t db = (uint32_t)roll(DBS);
    int64_t now = roll(HORIZON + 10), keys = 0, expires = 0, dead = 0, dead_expires = 0;
    for (int n = 0; n < NAMES; n++) {
        const struct key_row *k = &key_at(&w.now, db, n)->row;
        if (!key_at(&w.now, db, n)->there)
            continue;
        keys++;
        expires += k->expire_at > 0;
        bool gone = (k->expire_at > 0 && k->expire_at <= now) || is_dead(&w.now, k, now);
        dead += gone;
        dead_expires += gone && k->expire_at > 0;
    }
    int64_t a = -1, b = -1;
    CHECK_OK(merge_count_keys(&w.l, db, &a, &b, &err), &err);
    SAME(a == keys && b == expires);
    CHECK_OK(merge_count_dead(&w.l, db, now, &a, &b, &err), &err);
    SAME(a == dead && b == dead_expires);
}

static void compare_all(void)
{
    compare_rows();
    for (int i = 0; i < 12; i++)
        compare_item_scan();
    for (int i = 0; i < 6; i++)
        compare_key_scan();
    for (int i = 0; i < 2; i++) {
        compare_item_count();
        compare_key_counts();
    }
}

/* ---- the run ---- */

static void one_step(void)
{
    int what = (int)roll(100);
    if (what < 50) {
        for (int64_t n = 1 + roll(4); n > 0; n--)
            change();
    } else if (what < 60) {
        set_mark();
    } else if (what < 65) {
        undo();
    } else if (what < 67) {
        settle();
    } else if (what < 77) {
        leave();
    } else if (what < 79) {
        freeze();
    } else {
        apply_slice();
    }
}

static int64_t steps_wanted = STEPS;
static uint64_t seed;

static void behaves_like_the_model(void)
{
    struct store_options o = options();
    rand_seed(&dice, seed);
    choose_names();
    memset(&w, 0, sizeof w);
    w.doing = "the start";
    for (uint32_t i = 0; i < DBS; i++)
        w.now.dbs[i] = w.tables.dbs[i] = (struct db_row){.db = i, .number = i};
    REQUIRE_OK(store_open(&o, &w.l.tables, &err), &err);
    ACTIVE = memtable_new(0);
    w.l.gaps = gaps_new(1);
    for (int i = 0; i < IDS; i++)
        windows[i][1].reverse = true;
    for (w.steps = 1; w.steps <= steps_wanted && !check.checks_failed; w.steps++) {
        one_step();
        compare_all();
    }
    mem_apply_free(w.apply);
    memtable_free(ACTIVE);
    memtable_free(FROZEN);
    gaps_free(w.l.gaps);
    drop_windows();
    store_close(w.l.tables);
}

int main(int argc, char **argv)
{
    rand_init(&dice);
    seed = rand_u64(&dice) >> 40;
    if (argc > 1)
        steps_wanted = strtoll(argv[1], NULL, 10);
    if (argc > 2)
        seed = strtoull(argv[2], NULL, 10);
    printf("%s %" PRId64 " %" PRIu64 "\n", argv[0], steps_wanted, seed);
    fflush(stdout);
    IN_NEW_PLACE(behaves_like_the_model);
    return check_done();
}
