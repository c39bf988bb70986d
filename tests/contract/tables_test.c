/* Every item table goes, by its description, through everything that stores and tools do with items: a table
   that lacks a column, an index, a statement or a check somewhere fails here. */
#include <math.h>

#include "admin/check.h"
#include "contract/suite.h"
#include "journal/encoding.h"
#include "store/order.h"

#define ROWS 24 /* 5 and 7 have no factor in common with it */
#define ID   7

static enum item_table t; /* the one that is tested */
static char long_name[2000];
static char names[ROWS][32];
static struct item_row rows[ROWS];

/* Rows that differ in every column of their table; scores are the same for some. */
static struct item_row row_of(int i)
{
    struct item_row r = {.ref = {.table = t, .id = ID}};
    if (item_named(t))
        r.ref.name = i < 2 ? slice_of(long_name, sizeof long_name - (size_t)i) : slice_str(names[i]);
    else
        r.ref.pos = i < 2 ? ((int64_t)1 << 40) - i : i - 5;
    if (item_has(t, COLUMN_VALUE))
        r.value = i % 4 ? slice_of(every_byte() + i, (size_t)i) : SLICE("");
    if (item_has(t, COLUMN_SCORE))
        r.score = i == 3 ? -0.0 : i == 4 ? INFINITY : (i % 5) * 1.5 - 4;
    if (item_has(t, COLUMN_EXPIRY))
        r.expire_at = i % 3 ? 1000 + (i * 7) % ROWS : EXPIRE_NEVER;
    if (item_has(t, COLUMN_ORD))
        r.ord = (i * 5) % ROWS;
    return r;
}

static void put_rows(void)
{
    memset(long_name, 'x', sizeof long_name);
    for (int i = 0; i < ROWS; i++) {
        snprintf(names[i], sizeof names[i], "%c name %02d", i % 2 ? 'a' : 'z', i);
        rows[i] = row_of(i);
    }
    struct changes c = {.items = rows, .nitems = ROWS};
    REQUIRE_OK(apply_now(s, &c, &err), &err);
}

static void expect_row(const struct item_row *got, const struct item_row *want)
{
    CHECK_EQ(got->ref.table, want->ref.table);
    CHECK_EQ(got->ref.id, want->ref.id);
    CHECK_EQ(got->ref.pos, want->ref.pos);
    CHECK_SLICE(got->ref.name, want->ref.name);
    CHECK_SLICE(got->value, want->value);
    CHECK(memcmp(&got->score, &want->score, sizeof got->score) == 0); /* the sign of zero too */
    CHECK_EQ(got->expire_at, want->expire_at);
    CHECK_EQ(got->ord, want->ord);
}

static void expect_rows(const struct rows *got, const struct item_row *want, size_t n)
{
    CHECK_EQ(got->nitems, n);
    for (size_t i = 0; i < n && i < got->nitems; i++)
        expect_row(&got->items[i], &want[i]);
}

static void expect_get(const struct item_row *want, size_t n)
{
    struct item_ref refs[ROWS];
    struct rows r = {0};
    for (int i = 0; i < ROWS; i++)
        refs[i] = rows[i].ref;
    CHECK_OK(store_get_items(s, refs, ROWS, add_item, &r, &err), &err);
    expect_rows(&r, want, n);
    rows_release(&r);
}

/* ---- points ---- */

static void rows_come_back(void)
{
    put_rows();
    expect_get(rows, ROWS);
}

static void rows_are_replaced(void)
{
    put_rows();
    for (int i = 0; i < ROWS; i++) {
        struct item_ref ref = rows[i].ref;
        rows[i] = row_of(ROWS - 1 - i);
        rows[i].ref = ref;
    }
    struct changes c = {.items = rows, .nitems = ROWS};
    REQUIRE_OK(apply_now(s, &c, &err), &err);
    expect_get(rows, ROWS);
}

static void rows_are_removed(void)
{
    struct item_ref gone[ROWS / 2];
    put_rows();
    for (int i = 0; i < ROWS / 2; i++)
        gone[i] = rows[i].ref;
    struct changes c = {.gone = gone, .ngone = ROWS / 2};
    REQUIRE_OK(apply_now(s, &c, &err), &err);
    expect_get(rows + ROWS / 2, ROWS / 2);
}

/* ---- ranges ---- */

static int by_order(const void *a, const void *b, void *order)
{
    return items_compare(*(const enum item_order *)order, a, b);
}

/* The rows that an order has, sorted, as a scan in it hands them out. */
static size_t in_order(enum item_order order, struct item_row *out)
{
    size_t n = 0;
    for (int i = 0; i < ROWS; i++)
        if (items_order_has(order, &rows[i]))
            out[n++] = rows[i];
    qsort_r(out, n, sizeof *out, by_order, &order);
    for (size_t i = 0; order == ITEMS_BY_SCORE && i < n; i++)
        out[i].ord = -1;
    return n;
}

/* A scan from one row to another. */
static struct item_scan between(enum item_order order, const struct item_row *min, const struct item_row *max)
{
    struct item_scan q = {.table = t, .id = ID, .order = order, .has_min = true, .has_max = true};
    q.min_name = min->ref.name;
    q.max_name = max->ref.name;
    q.min_score = min->score;
    q.max_score = max->score;
    q.min = order == ITEMS_BY_POS ? min->ref.pos : order == ITEMS_BY_ORD ? min->ord : min->expire_at;
    q.max = order == ITEMS_BY_POS ? max->ref.pos : order == ITEMS_BY_ORD ? max->ord : max->expire_at;
    return q;
}

/* In both directions, whole and behind skipped rows up to a limit. */
static void expect_scan(struct item_scan q, const struct item_row *want, size_t n)
{
    struct item_row reversed[ROWS];
    for (size_t i = 0; i < n; i++)
        reversed[i] = want[n - 1 - i];
    for (int reverse = 0; reverse < 2; reverse++) {
        struct rows r = {0};
        const struct item_row *expected = reverse ? reversed : want;
        q.reverse = reverse;
        q.skip = 0;
        q.limit = 1000;
        CHECK_OK(store_scan_items(s, &q, add_item, &r, &err), &err);
        expect_rows(&r, expected, n);
        rows_release(&r);
        q.skip = 1;
        q.limit = 2;
        CHECK_OK(store_scan_items(s, &q, add_item, &r, &err), &err);
        expect_rows(&r, expected + 1, n > 3 ? 2 : n - 1);
        rows_release(&r);
    }
}

static void expect_count(struct item_scan q, size_t want)
{
    int64_t n = -1;
    CHECK_OK(store_count_items(s, &q, &n, &err), &err);
    CHECK_EQ(n, want);
}

static void scan_by(enum item_order order)
{
    struct item_row want[ROWS];
    size_t n = in_order(order, want), from = 3, to = n - 3;
    CHECK(n > 8);
    expect_scan((struct item_scan){.table = t, .id = ID, .order = order}, want, n);
    expect_scan(between(order, &want[from], &want[to]), want + from, to - from + 1);
    struct item_scan q = between(order, &want[from], &want[to]);
    q.has_max = false;
    expect_scan(q, want + from, n - from);
    q = between(order, &want[from], &want[to]);
    q.id = ID + 1;
    struct rows r = {0};
    q.limit = 1;
    CHECK_OK(store_scan_items(s, &q, add_item, &r, &err), &err);
    CHECK_EQ(r.nitems, 0);
    rows_release(&r);
    q = between(order, &want[from], &want[to]);
    q.below_max = true;
    if (order == ITEMS_BY_SCORE) {
        expect_scan(q, want + from, to - from);
        expect_count(q, to - from);
        q.max_score = q.min_score;
        q.max_name = SLICE("");
        expect_count(q, 0);
    } else if (order == ITEMS_BY_EXPIRY) {
        expect_count(q, to - from + 1);
    } else if (order == ITEMS_BY_NAME) {
        expect_scan(q, want + from, to - from);
        q.max_name = slice_of(long_name, sizeof long_name); /* it, or another that begins alike, is a row */
        size_t below = from;
        while (below < n && slice_cmp(want[below].ref.name, q.max_name) < 0)
            below++;
        expect_scan(q, want + from, below - from);
    }
}

static void scans_have_every_order(void)
{
    put_rows();
    for (int order = 0; order < ITEM_ORDERS; order++)
        if (item_ordered(t, (enum item_order)order))
            scan_by((enum item_order)order);
}

/* ---- the rest of a row's life ---- */

static void rows_are_swept(void)
{
    struct db_row dbs[DATABASES];
    uint32_t next;
    uint64_t items = 0;
    struct sweep_result one = {.more = true};
    put_rows();
    struct trash_row trash = {ID, item_tables[t].owner};
    struct item_row other = row_of(0);
    other.ref.id = ID + 1;
    struct changes c = {.items = &other, .nitems = 1, .trash = &trash, .ntrash = 1};
    REQUIRE_OK(apply_now(s, &c, &err), &err);
    REQUIRE_OK(store_load_dbs(s, dbs, DATABASES, &next, &err), &err);
    for (int step = 0; one.more && step < 1000; step++) {
        struct sweep_budget b = {.now = 1, .max_rows = 5, .dbs = dbs, .ndbs = DATABASES};
        REQUIRE_OK(store_sweep(s, &b, &one, &err), &err);
        CHECK(one.items <= 5);
        items += one.items;
    }
    CHECK(!one.more);
    CHECK_EQ(items, ROWS);
    expect_get(NULL, 0);
    struct rows r = {0};
    CHECK_OK(store_get_items(s, &other.ref, 1, add_item, &r, &err), &err);
    expect_rows(&r, &other, 1);
    rows_release(&r);
}

static struct item_row entry_of(int64_t id, const char *name, size_t n)
{
    return (struct item_row){.ref = {.table = ITEM_ENTRY, .id = id, .name = slice_of(name, n)}};
}

/* The trash of one index has the entries of no other one, nor those of another table. */
static void entries_of_an_index_are_swept(void)
{
    const struct item_row entries[] = {entry_of(ID, "\0\1x", 3),   entry_of(ID, "\0\2", 2),
                                       entry_of(ID, "\0\2\0", 3),  entry_of(ID, "\0\2\xff", 3),
                                       entry_of(ID, "\0\2abc", 5), entry_of(ID, "\0\3", 2),
                                       entry_of(ID, "\2\0", 2),    entry_of(ID + 1, "\0\2y", 3)};
    static const bool stays[] = {true, false, false, false, false, true, true, true};
    struct item_row row = {.ref = {.table = ITEM_ROW, .id = ID, .name = SLICE("\0\2r")}};
    struct trash_row trash = {ID, (enum row_type)(ROW_INDEX + 2)};
    struct db_row dbs[DATABASES];
    uint32_t next;
    struct sweep_result one = {.more = true};
    struct changes c = {.items = entries, .nitems = 8, .trash = &trash, .ntrash = 1};
    REQUIRE_OK(apply_now(s, &c, &err), &err);
    c = (struct changes){.items = &row, .nitems = 1};
    REQUIRE_OK(apply_now(s, &c, &err), &err);
    REQUIRE_OK(store_load_dbs(s, dbs, DATABASES, &next, &err), &err);
    for (int step = 0; one.more && step < 100; step++) {
        struct sweep_budget b = {.now = 1, .max_rows = 2, .dbs = dbs, .ndbs = DATABASES};
        REQUIRE_OK(store_sweep(s, &b, &one, &err), &err);
        CHECK(one.items <= 2);
    }
    CHECK(!one.more);
    for (int i = 0; i < 8; i++) {
        struct rows r = {0};
        CHECK_OK(store_get_items(s, &entries[i].ref, 1, add_item, &r, &err), &err);
        CHECK_EQ(r.nitems, stays[i]);
        rows_release(&r);
    }
    struct rows r = {0};
    CHECK_OK(store_get_items(s, &row.ref, 1, add_item, &r, &err), &err);
    CHECK_EQ(r.nitems, 1);
    rows_release(&r);
}

static void the_journal_keeps_all_of_a_row(void)
{
    struct buf text = {0};
    struct slice entries;
    struct journal_entry e;
    bool end = false;
    put_rows();
    struct item_ref gone = rows[2].ref;
    struct changes c = {.items = rows, .nitems = ROWS, .gone = &gone, .ngone = 1};
    journal_begin(&text);
    journal_add_changes(&text, &c);
    journal_end(&text);
    REQUIRE_OK(journal_open(buf_slice(&text), &entries, &err), &err);
    REQUIRE_OK(journal_next(&entries, &e, &end, &err), &err);
    CHECK_EQ(e.kind, JOURNAL_LOST);
    CHECK_EQ(refs_compare(&e.lost, &gone), 0);
    for (int i = 0; i < ROWS; i++) {
        REQUIRE_OK(journal_next(&entries, &e, &end, &err), &err);
        CHECK_EQ(e.kind, JOURNAL_ITEM);
        expect_row(&e.item, &rows[i]);
    }
    CHECK_OK(journal_next(&entries, &e, &end, &err), &err);
    CHECK(end);
    buf_release(&text);
}

/* ---- tools ---- */

/* What `larder check` says about one of its titles. */
static void expect_check(const char *title, bool want_ok)
{
    char *text = NULL, line[128];
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    bool ok;
    CHECK_OK(store_check(place.url, out, &ok, &err), &err);
    fclose(out);
    snprintf(line, sizeof line, "\n%s ... %s", title, want_ok ? "ok" : "WRONG");
    CHECK(strstr(text, line) != NULL);
    free(text);
}

static void check_finds_what_is_wrong(void)
{
    char orphans[64];
    struct key_row k = {
        .key = SLICE("k"), .type = item_tables[t].owner, .id = ID, .size = ROWS + 1, .version = 1};
    snprintf(orphans, sizeof orphans, "%s without a key", item_tables[t].items);
    expect_check(orphans, true);
    put_rows();
    expect_check(orphans, false);
    REQUIRE_OK(put_key_now(s, &k, &err), &err);
    expect_check(orphans, true);
    if (item_numbered(t))
        expect_check(item_tables[t].title, false);
}

static void rename_column(const char *from, const char *to)
{
    char text[160];
    snprintf(text, sizeof text, "ALTER TABLE %s RENAME COLUMN %s TO %s", item_tables[t].name, from, to);
    outside(text);
}

/* A column that is not there is missed when the database is opened. */
static void expect_missed(const char *column)
{
    char what[96];
    struct store *again = NULL;
    rename_column(column, "larder_other");
    snprintf(what, sizeof what, "%s.%s", strchr(item_tables[t].name, '_') + 1, column);
    CHECK_EQ(impl->open(&again, &err), ST_CORRUPT);
    CHECK(strstr(err.text, what) != NULL);
    if (again)
        store_close(again);
    rename_column("larder_other", column);
}

static void missing_columns_are_missed(void)
{
    store_close(s);
    s = NULL;
    if (!server_url()) /* SQLite renames no column that a view needs */
        outside("PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE type = 'view'");
    expect_missed(item_tables[t].key);
    for (int c = 0; c < ITEM_COLUMNS; c++)
        if (item_tables[t].columns[c])
            expect_missed(item_tables[t].columns[c]);
    CHECK_OK(impl->open(&s, &err), &err);
    REQUIRE(s != NULL);
}

/* ---- descriptions ---- */

static void descriptions_are_whole(void)
{
    const struct item_table_desc *d = &item_tables[t];
    CHECK(strncmp(d->name, "larder_", 7) == 0);
    CHECK(d->key && d->title && d->items);
    CHECK(d->owner >= ROW_STRING && d->owner < ROW_DB);
    CHECK(d->sweep_weight > 0);
    CHECK_EQ(item_tables[item_table_of(d->owner)].owner, d->owner);
    CHECK(!d->indexes[ITEMS_BY_NAME] && !d->indexes[ITEMS_BY_POS]);
    CHECK(!d->indexes[ITEMS_BY_ORD] || d->columns[COLUMN_ORD]);
    CHECK(!d->indexes[ITEMS_BY_SCORE] || (d->columns[COLUMN_SCORE] && d->named));
    CHECK(!d->indexes[ITEMS_BY_EXPIRY] || d->columns[COLUMN_EXPIRY]);
    CHECK(!d->by_arrival || d->columns[COLUMN_ORD]);
}

static void all(void)
{
    bool plain = impl == &implementations[0];
    for (int i = 0; i < ITEM_TABLES; i++) {
        t = (enum item_table)i;
        printf("  %s\n", item_tables[i].name);
        CONTRACT(descriptions_are_whole);
        CONTRACT(rows_come_back);
        CONTRACT(rows_are_replaced);
        CONTRACT(rows_are_removed);
        CONTRACT(scans_have_every_order);
        if (!impl->journaled) /* there a thread of the store's sweeps */
            CONTRACT(rows_are_swept);
        if (!impl->journaled && t == ITEM_ENTRY)
            CONTRACT(entries_of_an_index_are_swept);
        if (plain) {
            CONTRACT(the_journal_keeps_all_of_a_row);
            CONTRACT(check_finds_what_is_wrong);
            CONTRACT(missing_columns_are_missed);
        }
    }
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    every_implementation(all);
    return check_done();
}
