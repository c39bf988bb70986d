/* Rows as the store promises them (store/store.h): bytes, numbers, order, whole transactions. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "selftest/selftest_internal.h"
#include "store/shared.h"

#define TRIES 50

bool expect(struct finding *f, bool holds, const char *what)
{
    if (!holds && f->verdict == VERDICT_HOLDS) {
        f->verdict = VERDICT_DOES_NOT;
        snprintf(f->text, sizeof f->text, "%s", what);
    }
    return holds;
}

/* ---- one row ---- */

enum status keep_row(void *arg, const struct key_row *row)
{
    struct kept *k = arg;
    k->key.len = k->value.len = 0;
    buf_add_slice(&k->key, row->key);
    buf_add_slice(&k->value, row->value);
    k->row = *row;
    k->row.key = buf_slice(&k->key);
    k->row.value = buf_slice(&k->value);
    k->found = true;
    return ST_OK;
}

void kept_release(struct kept *k)
{
    buf_release(&k->key);
    buf_release(&k->value);
    *k = (struct kept){0};
}

enum status begin_with(struct store *s, enum store_txn kind, struct slice key, struct kept *ret,
                       struct error *err)
{
    const struct key_ref ref = {.db = 0, .key = key};
    const struct store_declared d = {.keys = &ref, .nkeys = 1, .fn = keep_row, .arg = ret};
    ret->found = false;
    return store_begin(s, kind, &d, NULL, err);
}

/* Writes a string over what was read, in the running transaction, and commits. */
static enum status write_over(struct store *s, const struct kept *was, struct slice key, struct slice value,
                              struct error *err)
{
    struct key_row row = {.db = 0, .key = key, .type = ROW_STRING, .value = value, .version = 1};
    if (was->found) {
        row.seq = was->row.seq;
        row.version = was->row.version + 1;
    }
    struct changes c = {.keys = &row, .nkeys = 1};
    enum status st = store_apply(s, &c, err);
    if (st == ST_OK)
        return store_commit(s, err);
    store_rollback(s);
    return st;
}

enum status put_string(struct store *s, struct slice key, struct slice value, struct error *err)
{
    struct kept was = {0};
    enum status st = ST_CONFLICT;
    for (int i = 0; st == ST_CONFLICT && i < TRIES; i++) {
        st = begin_with(s, STORE_WRITE, key, &was, err);
        if (st == ST_OK)
            st = write_over(s, &was, key, value, err);
    }
    kept_release(&was);
    return st;
}

enum status get_string(struct store *s, struct slice key, struct kept *ret, struct error *err)
{
    enum status st = begin_with(s, STORE_READ, key, ret, err);
    if (st == ST_OK)
        store_rollback(s);
    return st;
}

/* ---- what comes back ---- */

#define LONG_NAME 1500

enum status try_bytes(struct selftest *t, struct finding *f, struct error *err)
{
    char all[256], lengthy[LONG_NAME], other[LONG_NAME];
    for (int i = 0; i < 256; i++)
        all[i] = (char)i;
    memset(lengthy, 'n', sizeof lengthy);
    memcpy(other, lengthy, sizeof other);
    other[LONG_NAME - 1] = 'm';
    const struct slice names[] = {SLICE(""),
                                  SLICE("a"),
                                  SLICE("A"),
                                  SLICE("a "),
                                  SLICE(" a"),
                                  SLICE("a\0"),
                                  SLICE("a\0b"),
                                  SLICE("\xc3\xa4"),
                                  SLICE("\xc3\x84"),
                                  SLICE("\xff"),
                                  SLICE("\xff\xff"),
                                  SLICE("'\\%_\"`"),
                                  slice_of(all, 256),
                                  slice_of(lengthy, LONG_NAME),
                                  slice_of(other, LONG_NAME)};
    const size_t n = sizeof names / sizeof *names;
    struct kept k = {0};
    enum status st = ST_OK;
    for (size_t i = 0; st == ST_OK && i < n; i++)
        st = put_string(t->a, names[i], names[n - 1 - i], err);
    for (size_t i = 0; st == ST_OK && i < n; i++) {
        st = get_string(t->b, names[i], &k, err);
        if (st == ST_OK && (!expect(f, k.found, "a key is not found under the bytes it was written with") ||
                            !expect(f, slice_eq(k.row.key, names[i]), "a key comes back with other bytes") ||
                            !expect(f, slice_eq(k.row.value, names[n - 1 - i]),
                                    "a value comes back with other bytes, or is another key's")))
            break;
    }
    kept_release(&k);
    return st;
}

enum status try_numbers(struct selftest *t, struct finding *f, struct error *err)
{
    static const int64_t numbers[] = {
        0, 1, -1, INT64_C(1) << 53, INT64_MAX, INT64_MIN + 1, (INT64_C(1) << 53) + 1, INT64_MAX - 1};
    struct kept k = {0};
    enum status st = ST_OK;
    for (size_t i = 0; st == ST_OK && i < sizeof numbers / sizeof *numbers; i++) {
        char name[24];
        snprintf(name, sizeof name, "number%zu", i);
        struct key_row row = {.key = slice_str(name),
                              .type = ROW_LIST,
                              .id = numbers[i],
                              .size = numbers[i],
                              .first = numbers[i],
                              .version = numbers[i],
                              .expire_at = EXPIRE_NEVER};
        struct changes c = {.keys = &row, .nkeys = 1};
        st = store_begin(t->a, STORE_WRITE, NULL, NULL, err);
        if (st == ST_OK && (st = store_apply(t->a, &c, err)) != ST_OK)
            store_rollback(t->a);
        else if (st == ST_OK)
            st = store_commit(t->a, err);
        if (st == ST_OK)
            st = get_string(t->b, row.key, &k, err);
        if (st == ST_OK)
            expect(f,
                   k.found && k.row.id == numbers[i] && k.row.size == numbers[i] &&
                       k.row.first == numbers[i] && k.row.version == numbers[i],
                   "a number of 64 bits comes back as another");
    }
    kept_release(&k);
    return st;
}

/* Items of one id, counted and compared as they come. */
struct walk {
    const struct item_row *want;
    size_t n, met;
    bool same;
};

static int64_t bits_of(double v)
{
    int64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

static enum status compare_item(void *arg, const struct item_row *row)
{
    struct walk *w = arg;
    const struct item_row *want = &w->want[w->met];
    w->same &= w->met < w->n && slice_eq(row->ref.name, want->ref.name) &&
               bits_of(row->score) == bits_of(want->score) && slice_eq(row->value, want->value);
    w->met++;
    return w->met < w->n ? ST_OK : ST_STOP;
}

/* Writes items and reads them with a scan of another server, which has to bring them in this order. */
static enum status compare_items(struct selftest *t, const struct item_row *items, size_t n,
                                 const struct item_scan *q, bool *ret_same, struct error *err)
{
    struct changes c = {.items = items, .nitems = n};
    struct walk w = {.want = items, .n = n, .same = true};
    enum status st = store_begin(t->a, STORE_WRITE, NULL, NULL, err);
    if (st != ST_OK)
        return st;
    st = store_apply(t->a, &c, err);
    if (st != ST_OK) {
        store_rollback(t->a);
        return st;
    }
    st = store_commit(t->a, err);
    if (st == ST_OK)
        st = store_begin(t->b, STORE_READ, NULL, NULL, err);
    if (st != ST_OK)
        return st;
    st = store_scan_items(t->b, q, compare_item, &w, err);
    store_rollback(t->b);
    *ret_same = w.same && w.met == n;
    return st;
}

enum status try_scores(struct selftest *t, struct finding *f, struct error *err)
{
    const double scores[] = {-INFINITY, -DBL_MAX,     -1.5,    -DBL_MIN, -DBL_TRUE_MIN,        -0.0,
                             0.0,       DBL_TRUE_MIN, DBL_MIN, 0.1,      0x1.fffffffffffffp52, DBL_MAX,
                             INFINITY};
    struct item_row items[sizeof scores / sizeof *scores];
    const size_t n = sizeof scores / sizeof *scores;
    for (size_t i = 0; i < n; i++)
        items[i] = (struct item_row){
            .ref = {.table = ITEM_ZSET, .id = 77, .name = slice_of(&"abcdefghijklmnop"[i], 1)},
            .score = scores[i],
            .ord = (int64_t)i,
            .fresh = true};
    const struct item_scan q = {.table = ITEM_ZSET, .id = 77, .order = ITEMS_BY_SCORE, .limit = 100};
    bool same = false;
    enum status st = compare_items(t, items, n, &q, &same, err);
    expect(f, same, "scores (infinities, -0.0, the smallest ones) come back in another order, or as others");
    return st;
}

#define LARGE ((size_t)8 << 20)

enum status try_large(struct selftest *t, struct finding *f, struct error *err)
{
    char *bytes = mem_alloc(LARGE);
    for (size_t i = 0; i < LARGE; i++)
        bytes[i] = (char)(i * 7 + i / 251);
    const struct item_row item = {.ref = {.table = ITEM_HASH, .id = 78, .name = SLICE("large")},
                                  .value = slice_of(bytes, LARGE),
                                  .fresh = true};
    const struct item_scan q = {.table = ITEM_HASH, .id = 78, .order = ITEMS_BY_NAME, .limit = 2};
    bool same = false;
    enum status st = compare_items(t, &item, 1, &q, &same, err);
    expect(f, same, "a value of 8 MiB does not come back as it was");
    mem_free(bytes);
    return st;
}

/* Keys as they come, one after the other. */
struct listing {
    char text[64];
};

static enum status list_key(void *arg, const struct key_row *row)
{
    struct listing *l = arg;
    size_t n = strlen(l->text);
    snprintf(l->text + n, sizeof l->text - n, "%.*s,", (int)row->key.n, row->key.p);
    return ST_OK;
}

enum status try_order(struct selftest *t, struct finding *f, struct error *err)
{
    static const char *const names[] = {"o:b", "o:B", "o:a ", "o:a", "o:_", "o:ab"};
    struct listing by_key = {""}, by_seq = {""};
    enum status st = ST_OK;
    for (size_t i = 0; st == ST_OK && i < sizeof names / sizeof *names; i++)
        st = put_string(t->a, slice_str(names[i]), SLICE("v"), err);
    const struct key_scan keys = {.order = KEYS_BY_KEY, .prefix = SLICE("o:"), .limit = 100};
    const struct key_scan seqs = {.order = KEYS_BY_SEQ_DESC, .seq_below = INT64_MAX, .limit = 6};
    if (st == ST_OK)
        st = store_begin(t->b, STORE_READ, NULL, NULL, err);
    if (st != ST_OK)
        return st;
    st = store_scan_keys(t->b, &keys, list_key, &by_key, err);
    if (st == ST_OK)
        st = store_scan_keys(t->b, &seqs, list_key, &by_seq, err);
    store_rollback(t->b);
    expect(f, strcmp(by_key.text, "o:B,o:_,o:a,o:a ,o:ab,o:b,") == 0,
           "keys do not come in the order of their bytes");
    expect(f, strcmp(by_seq.text, "o:ab,o:_,o:a,o:a ,o:B,o:b,") == 0, "keys do not come newest first");
    return st;
}

/* ---- transactions ---- */

/* Applies one string row within the running transaction. */
static enum status apply_string(struct store *s, const char *key, struct error *err)
{
    struct key_row row = {.key = slice_str(key), .type = ROW_STRING, .value = SLICE("v"), .version = 1};
    struct changes c = {.keys = &row, .nkeys = 1};
    return store_apply(s, &c, err);
}

static enum status expect_key(struct selftest *t, struct finding *f, const char *key, bool there,
                              const char *what, struct error *err)
{
    struct kept k = {0};
    enum status st = get_string(t->b, slice_str(key), &k, err);
    if (st == ST_OK)
        expect(f, k.found == there, what);
    kept_release(&k);
    return st;
}

enum status try_whole(struct selftest *t, struct finding *f, struct error *err)
{
    enum status st = store_begin(t->a, STORE_WRITE, NULL, NULL, err);
    if (st == ST_OK)
        st = apply_string(t->a, "w:rolled", err);
    if (st == ST_OK)
        store_rollback(t->a);
    if (st == ST_OK)
        st = expect_key(t, f, "w:rolled", false, "a rollback leaves what was written", err);
    if (st == ST_OK)
        st = store_begin(t->a, STORE_WRITE, NULL, NULL, err);
    if (st == ST_OK)
        st = apply_string(t->a, "w:kept", err);
    if (st == ST_OK)
        st = store_mark(t->a, err);
    if (st == ST_OK)
        st = apply_string(t->a, "w:undone", err);
    if (st == ST_OK)
        st = store_undo(t->a, err);
    if (st == ST_OK)
        st = store_commit(t->a, err);
    if (st == ST_OK)
        st = expect_key(t, f, "w:kept", true, "a savepoint takes back what came before it", err);
    if (st == ST_OK)
        st = expect_key(t, f, "w:undone", false, "a savepoint does not take back what came behind it", err);
    return st;
}

enum status try_ids(struct selftest *t, struct finding *f, struct error *err)
{
    int64_t first[4] = {0};
    enum status st = ST_OK;
    for (int i = 0; st == ST_OK && i < 4; i++)
        st = store_reserve_ids(i % 2 ? t->b : t->a, 10, &first[i], err);
    for (int i = 1; st == ST_OK && i < 4; i++)
        expect(f, first[i] >= first[i - 1] + 10, "two servers get the same numbers");
    return st;
}

enum status try_sweeping(struct selftest *t, struct finding *f, struct error *err)
{
    struct key_row dead = {.key = SLICE("s:dead"), .type = ROW_STRING, .version = 1, .expire_at = 1000};
    struct changes c = {.keys = &dead, .nkeys = 1};
    struct db_row dbs[1];
    uint32_t next;
    struct sweep_result swept = {0};
    enum status st = store_begin(t->a, STORE_WRITE, NULL, NULL, err);
    if (st == ST_OK)
        st = store_apply(t->a, &c, err);
    if (st == ST_OK)
        st = store_commit(t->a, err);
    if (st == ST_OK)
        st = store_load_dbs(t->b, dbs, 1, &next, err);
    const struct sweep_budget b = {.now = 2000, .max_rows = 100, .dbs = dbs, .ndbs = 1};
    if (st == ST_OK)
        st = store_sweep(t->b, &b, &swept, err);
    if (st == ST_OK)
        expect(f, swept.expired == 1, "an expired row is not removed");
    return st == ST_OK ? expect_key(t, f, "s:dead", false, "an expired row is still there", err) : st;
}
