/* Random commands against the engine and against a plain model of what they mean, with a cache that holds
   next to nothing, commands that fail midway, databases that fail at any call, sweeps and restarts in
   between. After every batch everything the engine says is compared with the model. */
#include "world.h"

#include "base/mem.h"
#include "base/rand.h"

#define DBS        WORLD_DATABASES
#define KEYS       40
#define VALUE_MAX  400000
#define PAGE_STEPS 10000

/* ---- the model ---- */

struct blob {
    int refs;
    size_t n;
    char *p;
};

struct entry {
    struct blob *value; /* NULL: no key */
    int64_t expire_at;
    int64_t version; /* as last seen */
    bool changed;    /* since then */
};

struct model {
    struct entry at[DBS][KEYS];
};

static struct blob *blob_new(struct slice s, size_t n)
{
    struct blob *b = mem_zalloc(sizeof *b);
    b->refs = 1;
    b->n = n;
    b->p = mem_zalloc(n + 1);
    if (s.n)
        memcpy(b->p, s.p, s.n);
    return b;
}

static struct blob *blob_hold(struct blob *b)
{
    if (b)
        b->refs++;
    return b;
}

static void blob_drop(struct blob *b)
{
    if (b && --b->refs == 0) {
        mem_free(b->p);
        mem_free(b);
    }
}

static void model_clear(struct model *m)
{
    for (int db = 0; db < DBS; db++)
        for (int k = 0; k < KEYS; k++)
            blob_drop(m->at[db][k].value);
    memset(m, 0, sizeof *m);
}

static void model_copy(struct model *to, const struct model *from)
{
    for (int db = 0; db < DBS; db++)
        for (int k = 0; k < KEYS; k++)
            blob_hold(from->at[db][k].value);
    model_clear(to);
    *to = *from;
}

static void entry_set(struct entry *e, struct blob *value, int64_t expire_at)
{
    blob_drop(e->value);
    e->value = value;
    e->expire_at = expire_at;
    e->changed = true;
}

static bool entry_live(const struct entry *e, int64_t now)
{
    return e->value && (e->expire_at == EXPIRE_NEVER || e->expire_at > now);
}

/* ---- a run ---- */

struct run {
    struct world w;
    struct rand rnd;
    struct model now, batch, call, mark; /* as it is, before the batch, before the call, at its mark */
    char noise[VALUE_MAX];
    bool flushed; /* the running call made SQL see what the batch wrote */
    bool poison;  /* a call was undone after that: the batch cannot commit */
};

static uint64_t pick(struct run *r, uint64_t n)
{
    return rand_below(&r->rnd, n);
}

static uint32_t pick_db(struct run *r)
{
    return (uint32_t)(pick(r, 10) < 7 ? 0 : pick(r, DBS));
}

/* Names that are awkward, and some that share a beginning. */
static struct slice key_name(uint64_t k)
{
    static char text[KEYS][16], large[3000];
    switch (k) {
    case 0:
        return SLICE("");
    case 1:
        return slice_of("\0", 1);
    case 2:
        return slice_of("\0\0", 2);
    case 3:
        return SLICE("\xff");
    case 4:
        return SLICE("\xff\xff");
    case 5:
        memset(large, 'L', sizeof large);
        return slice_of(large, sizeof large);
    default:
        snprintf(text[k], sizeof text[k], "%s%d", k % 2 ? "key:" : "k", (int)k);
        return slice_str(text[k]);
    }
}

static int key_number(struct slice name)
{
    for (int k = 0; k < KEYS; k++)
        if (slice_eq(key_name((uint64_t)k), name))
            return k;
    return -1;
}

static size_t pick_size(struct run *r)
{
    switch (pick(r, 12)) {
    case 0:
        return 0;
    case 1:
        return STORE_INLINE_BYTES - 1 + pick(r, 3);
    case 2:
        return 2 * STORE_CHUNK_BYTES - 1 + pick(r, 3);
    case 3:
        return pick(r, 200000);
    case 4:
    case 5:
        return pick(r, 5000);
    default:
        return pick(r, 100);
    }
}

/* Bytes that stay until the batch has been committed. */
static struct slice pick_bytes(struct run *r, size_t n)
{
    size_t from = pick(r, VALUE_MAX - n);
    return arena_copy(view_arena(r->w.view), slice_of(r->noise + from, n));
}

static int64_t pick_expiry(struct run *r)
{
    return pick(r, 3) ? EXPIRE_NEVER : r->w.now + 1 + (int64_t)pick(r, 2000);
}

/* ---- operations: each does the same to the view and to the model ---- */

static enum status do_set(struct run *r)
{
    uint32_t db = pick_db(r);
    uint64_t k = pick(r, KEYS);
    struct slice value = pick_bytes(r, pick_size(r));
    int64_t expire_at = pick_expiry(r);
    enum status st = view_set_string(r->w.view, db, key_name(k), value, expire_at);
    if (st == ST_OK)
        entry_set(&r->now.at[db][k], blob_new(value, value.n), expire_at);
    return st;
}

static enum status do_write_range(struct run *r)
{
    uint32_t db = pick_db(r);
    uint64_t k = pick(r, KEYS);
    struct entry *e = &r->now.at[db][k];
    bool live = entry_live(e, r->w.now);
    size_t size = live ? e->value->n : 0;
    size_t off = pick(r, size + 1) + (pick(r, 6) ? 0 : pick(r, 150000));
    size_t n = 1 + pick_size(r);
    if (off + n > VALUE_MAX)
        return ST_OK;
    struct slice data = pick_bytes(r, n);
    enum status st = view_write_range(r->w.view, db, key_name(k), (int64_t)off, data);
    if (st != ST_OK)
        return st;
    struct slice old = live ? slice_of(e->value->p, e->value->n) : SLICE("");
    struct blob *b = blob_new(old, size > off + n ? size : off + n);
    memcpy(b->p + off, data.p, n);
    entry_set(e, b, live ? e->expire_at : EXPIRE_NEVER);
    return ST_OK;
}

static enum status do_del(struct run *r)
{
    uint32_t db = pick_db(r);
    uint64_t k = pick(r, KEYS);
    bool existed = false;
    enum status st = view_del(r->w.view, db, key_name(k), &existed);
    if (st != ST_OK)
        return st;
    struct entry *e = &r->now.at[db][k];
    CHECK_EQ(existed, entry_live(e, r->w.now));
    if (existed)
        entry_set(e, NULL, EXPIRE_NEVER);
    return ST_OK;
}

static enum status do_expire(struct run *r)
{
    uint32_t db = pick_db(r);
    uint64_t k = pick(r, KEYS);
    struct entry *e = &r->now.at[db][k];
    if (!entry_live(e, r->w.now))
        return ST_OK;
    int64_t expire_at = pick_expiry(r);
    enum status st = view_expire(r->w.view, db, key_name(k), expire_at);
    if (st == ST_OK)
        entry_set(e, blob_hold(e->value), expire_at);
    return st;
}

static enum status do_move(struct run *r)
{
    uint32_t from_db = pick_db(r), to_db = pick_db(r);
    uint64_t from = pick(r, KEYS), to = pick(r, KEYS);
    struct entry *source = &r->now.at[from_db][from], *target = &r->now.at[to_db][to];
    if (source == target || !entry_live(source, r->w.now))
        return ST_OK;
    enum status st = view_move(r->w.view, from_db, key_name(from), to_db, key_name(to));
    if (st != ST_OK)
        return st;
    entry_set(target, blob_hold(source->value), source->expire_at);
    entry_set(source, NULL, EXPIRE_NEVER);
    return ST_OK;
}

static enum status do_flush(struct run *r)
{
    if (pick(r, 4))
        return ST_OK;
    uint32_t db = pick_db(r);
    enum status st = view_flush_db(r->w.view, db);
    for (int k = 0; st == ST_OK && k < KEYS; k++)
        entry_set(&r->now.at[db][k], NULL, EXPIRE_NEVER);
    return st;
}

static enum status do_swap(struct run *r)
{
    uint32_t a = pick_db(r), b = pick_db(r);
    if (a == b)
        return ST_OK;
    enum status st = view_swap_db(r->w.view, a, b);
    for (int k = 0; st == ST_OK && k < KEYS; k++) {
        struct entry t = r->now.at[a][k];
        r->now.at[a][k] = r->now.at[b][k];
        r->now.at[b][k] = t;
    }
    return st;
}

/* ---- reading back ---- */

static enum status check_key(struct run *r, uint32_t db, uint64_t k)
{
    struct entry *e = &r->now.at[db][k];
    const struct row *row;
    enum status st = view_get(r->w.view, db, key_name(k), &row);
    if (st != ST_OK)
        return st;
    bool live = entry_live(e, r->w.now);
    CHECK_EQ(row != NULL, live);
    if (!row || !live)
        return ST_OK;
    CHECK_EQ(row->type, ROW_STRING);
    CHECK_EQ(row->expire_at, e->expire_at);
    CHECK_EQ(row_string_size(row), e->value->n);
    struct slice value;
    st = view_string(r->w.view, row, &r->w.arena, &value);
    if (st == ST_OK)
        CHECK_SLICE(value, slice_of(e->value->p, e->value->n));
    return st;
}

static enum status do_get(struct run *r)
{
    return check_key(r, pick_db(r), pick(r, KEYS));
}

static enum status do_range(struct run *r)
{
    uint32_t db = pick_db(r);
    uint64_t k = pick(r, KEYS);
    struct entry *e = &r->now.at[db][k];
    const struct row *row;
    enum status st = view_get(r->w.view, db, key_name(k), &row);
    if (st != ST_OK || !row || !entry_live(e, r->w.now))
        return st;
    size_t off = pick(r, e->value->n + 1);
    size_t n = pick(r, e->value->n - off + 1);
    struct slice got;
    st = view_string_range(r->w.view, row, (int64_t)off, (int64_t)n, &r->w.arena, &got);
    if (st == ST_OK)
        CHECK_SLICE(got, slice_of(e->value->p + off, n));
    return st;
}

struct seen {
    int times[KEYS];
    struct slice prefix, last;
    struct arena *arena;
    bool ordered;
};

static enum status see(void *arg, struct slice key, const struct key_row *row)
{
    struct seen *s = arg;
    int k = key_number(key);
    CHECK(k >= 0);
    CHECK_SLICE(row->key, key);
    if (k >= 0)
        s->times[k]++;
    if (s->ordered) {
        CHECK(!s->last.p || slice_cmp(s->last, key) < 0);
        s->last = arena_copy(s->arena, key);
    }
    return ST_OK;
}

static void check_seen(struct run *r, uint32_t db, const struct seen *s)
{
    for (uint64_t k = 0; k < KEYS; k++) {
        struct slice name = key_name(k);
        bool wanted = name.n >= s->prefix.n && slice_eq(slice_of(name.p, s->prefix.n), s->prefix);
        CHECK_EQ(s->times[k], wanted && entry_live(&r->now.at[db][k], r->w.now));
    }
}

static enum status check_scan(struct run *r, uint32_t db, uint32_t count)
{
    struct seen s = {0};
    int64_t cursor = 0;
    r->flushed = true;
    for (int i = 0; i < PAGE_STEPS; i++) {
        enum status st = view_scan(r->w.view, db, &cursor, count, see, &s);
        if (st != ST_OK)
            return st;
        if (cursor == 0)
            break;
    }
    CHECK_EQ(cursor, 0);
    check_seen(r, db, &s);
    return ST_OK;
}

static enum status do_scan(struct run *r)
{
    return check_scan(r, pick_db(r), 1 + (uint32_t)pick(r, 50));
}

static enum status do_each_key(struct run *r)
{
    static const char *const prefixes[] = {"", "k", "key:", "key:1", "\xff", "L", "none"};
    uint32_t db = pick_db(r);
    struct seen s = {.prefix = slice_str(prefixes[pick(r, 7)]), .arena = &r->w.arena, .ordered = true};
    r->flushed = true;
    enum status st = view_each_key(r->w.view, db, s.prefix, see, &s);
    if (st == ST_OK)
        check_seen(r, db, &s);
    return st;
}

static enum status check_size(struct run *r, uint32_t db)
{
    int64_t keys = 0, expires = 0, want_keys = 0, want_expires = 0;
    r->flushed = true;
    enum status st = view_db_size(r->w.view, db, &keys, &expires);
    for (int k = 0; k < KEYS; k++) {
        const struct entry *e = &r->now.at[db][k];
        want_keys += entry_live(e, r->w.now);
        want_expires += entry_live(e, r->w.now) && e->expire_at != EXPIRE_NEVER;
    }
    if (st == ST_OK) {
        CHECK_EQ(keys, want_keys);
        CHECK_EQ(expires, want_expires);
    }
    return st;
}

static enum status do_size(struct run *r)
{
    return check_size(r, pick_db(r));
}

static enum status do_random(struct run *r)
{
    uint32_t db = pick_db(r);
    struct slice key;
    r->flushed = true;
    enum status st = view_random_key(r->w.view, db, &r->w.arena, &key);
    if (st != ST_OK)
        return st;
    int k = key.p ? key_number(key) : -1;
    bool any = false;
    for (int i = 0; i < KEYS; i++)
        any |= entry_live(&r->now.at[db][i], r->w.now);
    CHECK_EQ(key.p != NULL, any);
    CHECK(!key.p || (k >= 0 && entry_live(&r->now.at[db][k], r->w.now)));
    return ST_OK;
}

/* Versions never stand still when a key changes, never change when it does not, and never go back. */
static enum status check_version(struct run *r, uint32_t db, uint64_t k)
{
    struct entry *e = &r->now.at[db][k];
    int64_t version;
    enum status st = view_version(r->w.view, db, key_name(k), &version);
    if (st != ST_OK)
        return st;
    if (!entry_live(e, r->w.now)) {
        CHECK_EQ(version, 0);
    } else if (e->changed) {
        CHECK(version > e->version);
        e->version = version;
        e->changed = false;
    } else {
        CHECK_EQ(version, e->version);
    }
    return ST_OK;
}

/* ---- batches ---- */

typedef enum status operation(struct run *r);

static enum status some_operations(struct run *r)
{
    static operation *const operations[] = {
        do_set, do_set,    do_set,    do_write_range, do_write_range, do_write_range, do_del,
        do_del, do_expire, do_expire, do_move,        do_move,        do_flush,       do_swap,
        do_get, do_get,    do_range,  do_scan,        do_size,        do_each_key,    do_random,
    };
    size_t n = 1 + pick(r, 4);
    enum status st = ST_OK;
    for (size_t i = 0; st == ST_OK && i < n; i++)
        st = operations[pick(r, sizeof operations / sizeof *operations)](r);
    return st;
}

/* Something that is taken back by itself, or kept with the call. */
static enum status marked_operations(struct run *r)
{
    bool flushed = r->flushed;
    enum status st = ST_OK;
    model_copy(&r->mark, &r->now);
    engine_mark(r->w.engine);
    for (size_t i = pick(r, 4) + 1; st == ST_OK && i > 0; i--) {
        st = some_operations(r);
        engine_step(r->w.engine);
    }
    if (st != ST_OK || pick(r, 2)) {
        engine_forget_mark(r->w.engine);
        return st;
    }
    if ((st = engine_undo_to_mark(r->w.engine)) == ST_OK) {
        model_copy(&r->now, &r->mark);
        r->flushed = flushed;
    }
    return st;
}

static enum status run_call(struct run *r)
{
    enum status st = some_operations(r);
    for (size_t i = pick(r, 2) ? 0 : pick(r, 4); st == ST_OK && i > 0; i--) {
        if (pick(r, 2))
            engine_step(r->w.engine);
        st = pick(r, 2) ? marked_operations(r) : some_operations(r);
    }
    return st;
}

static void one_call(struct run *r)
{
    model_copy(&r->call, &r->now);
    r->flushed = false;
    world_enter(&r->w);
    enum status st = run_call(r);
    bool keep = st == ST_OK && pick(r, 8) != 0;
    struct engine_trace t = engine_leave(r->w.engine, keep);
    CHECK(!t.wrote || (keep && t.wait));
    if (!keep) {
        r->poison |= r->flushed;
        model_copy(&r->now, &r->call);
    }
}

/* Everything the engine says is what the model says. */
static void check_all(struct run *r)
{
    struct error write_err;
    REQUIRE_OK(engine_begin(r->w.engine, pick(r, 2), &write_err, &r->w.err), &r->w.err);
    for (uint32_t db = 0; db < DBS; db++) {
        world_enter(&r->w);
        CHECK_OK(check_size(r, db), engine_error(r->w.engine));
        CHECK_OK(check_scan(r, db, 1 + (uint32_t)pick(r, 20)), engine_error(r->w.engine));
        for (uint64_t k = 0; k < KEYS; k++) {
            CHECK_OK(check_key(r, db, k), engine_error(r->w.engine));
            CHECK_OK(check_version(r, db, k), engine_error(r->w.engine));
        }
        CHECK(!engine_leave(r->w.engine, true).wrote);
    }
    CHECK_OK(engine_commit(r->w.engine, NULL, &r->w.err), &r->w.err);
}

static void one_batch(struct run *r, bool faults)
{
    model_copy(&r->batch, &r->now);
    r->poison = false;
    if (faults)
        store_fault_set(r->w.store,
                        (struct store_fault){.nth = 1 + pick(r, 30), .status = ST_IO, .sticky = !pick(r, 3)});
    bool begun = world_begin(&r->w);
    CHECK(begun || fault_happened(r->w.store));
    size_t calls = begun ? pick(r, 12) : 0;
    for (size_t i = 0; i < calls && !r->poison; i++)
        one_call(r);
    enum status st = begun ? engine_commit(r->w.engine, NULL, &r->w.err) : ST_OK;
    if (r->w.journal)
        CHECK_OK(engine_progress(r->w.engine, &r->w.err), &r->w.err);
    CHECK(st == ST_OK || r->poison || fault_happened(r->w.store));
    if (st != ST_OK)
        model_copy(&r->now, &r->batch);
    store_fault_set(r->w.store, (struct store_fault){0});
}

static void between_batches(struct run *r)
{
    world_clock(&r->w, r->w.now + (int64_t)(pick(r, 3) ? pick(r, 20) + 1 : pick(r, 1500)));
    if (!pick(r, 3)) {
        bool more;
        uint64_t rows;
        CHECK_OK(engine_sweep(r->w.engine, 1 + (uint32_t)pick(r, 100), &more, &rows, &r->w.err), &r->w.err);
    }
    if (!pick(r, 60))
        REQUIRE(world_reopen(&r->w));
}

/* What is left in the tables when all that is dead has been swept is what the model has. */
static void check_tables(struct run *r)
{
    world_sweep(&r->w);
    int64_t live = 0;
    for (int db = 0; db < DBS; db++)
        for (int k = 0; k < KEYS; k++)
            live += entry_live(&r->now.at[db][k], r->w.now);
    CHECK_EQ(world_sql(&r->w, "SELECT count(*) FROM larder_key"), live);
    CHECK_EQ(world_sql(&r->w, "SELECT sum(keys) FROM larder_db"), live);
    CHECK_EQ(world_sql(&r->w, "SELECT count(*) FROM larder_trash"), 0);
    CHECK_EQ(
        world_sql(&r->w, "SELECT count(*) FROM larder_chunk WHERE id NOT IN (SELECT id FROM larder_key)"), 0);
}

static void run_seed(uint64_t seed, int batches, bool faults, bool journal)
{
    static struct run r;
    static char context[64];
    memset(&r, 0, sizeof r);
    rand_seed(&r.rnd, seed);
    for (size_t i = 0; i < sizeof r.noise; i++)
        r.noise[i] = (char)rand_u64(&r.rnd);
    r.w.journal = journal;
    REQUIRE(world_start(&r.w));
    for (int i = 0; i < batches && !check.checks_failed; i++) {
        snprintf(context, sizeof context, "seed %d, batch %d", (int)seed, i);
        check.context = context;
        one_batch(&r, faults && pick(&r, 2));
        check_all(&r);
        between_batches(&r);
    }
    if (!check.checks_failed) {
        check_all(&r);
        r.w.journal = false; /* closing brings what is in the journal into the tables */
        REQUIRE(!journal || world_reopen(&r.w));
        check_tables(&r);
        CHECK(journal || cache_get_stats(engine_cache(r.w.engine))->evicted > 0);
    }
    check.context = NULL;
    model_clear(&r.now);
    model_clear(&r.batch);
    model_clear(&r.call);
    model_clear(&r.mark);
    world_end(&r.w);
}

static int batches(void)
{
    const char *text = getenv("LARDER_TEST_BATCHES");
    return text ? (int)strtol(text, NULL, 10) : 150;
}

static void random_commands(void)
{
    for (uint64_t seed = 1; seed <= 4 && !check.checks_failed; seed++)
        run_seed(seed, batches(), false, false);
}

static void random_commands_on_a_failing_store(void)
{
    for (uint64_t seed = 101; seed <= 104 && !check.checks_failed; seed++)
        run_seed(seed, batches(), true, false);
}

static void random_commands_behind_a_journal(void)
{
    for (uint64_t seed = 201; seed <= 202 && !check.checks_failed; seed++)
        run_seed(seed, batches(), false, true);
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    RUN(random_commands);
    RUN(random_commands_on_a_failing_store);
    RUN(random_commands_behind_a_journal);
    return check_done();
}
