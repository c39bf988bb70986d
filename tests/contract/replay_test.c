/* Change sets that come from memory or from the journal (struct changes, hard): whatever the tables have,
   afterwards they have what the change set says, also when it comes twice. */
#include "contract/fixture.h"

static struct store *s;
static struct error err;

/* A server's store may have to be told twice. */
static void apply_changes(struct changes *c)
{
    enum status st = apply_now(s, c, &err);
    if (st == ST_CONFLICT && server_url())
        st = apply_now(s, c, &err);
    CHECK_OK(st, &err);
}

static void apply_hard(struct key_row k)
{
    struct changes c = {.keys = &k, .nkeys = 1, .replay = true};
    apply_changes(&c);
}

static struct key_row row_at(int64_t seq, struct slice key, struct slice value)
{
    struct key_row k = string_row(0, key, value);
    k.seq = seq;
    return k;
}

static struct key_row gone_at(int64_t seq, struct slice key)
{
    return (struct key_row){.seq = seq, .key = key, .version = 9, .expire_at = EXPIRE_DELETED};
}

/* A key's row: its seq, 0 when there is none; its value is checked. */
static int64_t seq_of(struct slice key, struct slice want)
{
    struct rows r = {0};
    int64_t seq = 0;
    if (get_key(s, 0, key, &r)) {
        seq = r.keys[0].seq;
        CHECK_SLICE(r.keys[0].value, want);
        CHECK_EQ(r.keys[0].type, ROW_STRING);
    }
    rows_release(&r);
    return seq;
}

static int64_t count_rows(void)
{
    return outside_i64("SELECT count(*) FROM larder_key");
}

/* A string that is in the tables, or a deleted key. */
static void put_outside(int64_t seq, int db, const char *key, bool deleted)
{
    const char *server = server_url();
    char text[300];
    snprintf(text, sizeof text,
             "INSERT INTO larder_key (seq, db, %s, type, id, size, first, version, expire_at, value)"
             " VALUES (%lld, %d, %s'%s'%s, %d, 0, 0, 0, 1, %d, %s)",
             server && strncmp(server, "mysql", 5) == 0 ? "`key`" : "key", (long long)seq, db,
             server ? "" : "CAST(", key, server ? "" : " AS BLOB)", deleted ? 0 : 1, deleted ? -1 : 0,
             server ? "''" : "x''");
    outside(text);
}

/* Each state of the tables that a row may find is brought about, and the row applied twice. */
static void a_row_finds_its_place(void)
{
    static const struct {
        const char *name;
        struct {
            int64_t seq;
            int db;
            const char *key;
            bool deleted;
        } before[2]; /* what they have */
        int64_t seq; /* 0: any that is new */
        int64_t rows;
    } cases[] = {
        {"nothing", {{0}}, 7, 1},
        {"its row", {{7, 0, "k", false}}, 7, 1},
        {"its row under another number", {{3, 0, "k", false}}, 3, 1},
        {"another key", {{7, 0, "o", false}}, 0, 2},
        {"the key of another database", {{7, 1, "k", false}}, 0, 2},
        {"both", {{7, 0, "o", false}, {5, 0, "k", false}}, 5, 2},
        {"a deleted row", {{7, 0, "k", true}}, 7, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int fresh = 0; fresh < 2; fresh++) {
            check.context = cases[i].name;
            outside("DELETE FROM larder_key");
            for (int n = 0; n < 2 && cases[i].before[n].seq; n++)
                put_outside(cases[i].before[n].seq, cases[i].before[n].db, cases[i].before[n].key,
                            cases[i].before[n].deleted);
            struct key_row k = row_at(7, SLICE("k"), SLICE("one"));
            k.fresh = fresh;
            apply_hard(k);
            int64_t seq = seq_of(SLICE("k"), SLICE("one"));
            bool was_there = cases[i].rows > 1 || cases[i].before[0].seq;
            if (cases[i].seq && (was_there || !server_url()))
                CHECK_EQ(seq, cases[i].seq);
            else
                CHECK(seq > 0 && seq != cases[i].before[0].seq);
            CHECK_EQ(count_rows(), cases[i].rows);
            k.value = SLICE("two");
            apply_hard(k);
            CHECK_EQ(seq_of(SLICE("k"), SLICE("two")), seq);
            CHECK_EQ(count_rows(), cases[i].rows);
            /* Then it goes, twice; what is not its own stays. */
            for (int twice = 0; twice < 2; twice++) {
                apply_hard(gone_at(7, SLICE("k")));
                CHECK_EQ(seq_of(SLICE("k"), SLICE("")), 0);
                CHECK_EQ(count_rows(), cases[i].rows - 1);
            }
        }
    }
}

static void a_row_without_a_seq(void)
{
    apply_hard(row_at(0, SLICE("k"), SLICE("one")));
    int64_t seq = seq_of(SLICE("k"), SLICE("one"));
    CHECK(seq > 0);
    apply_hard(row_at(0, SLICE("k"), SLICE("two")));
    CHECK_EQ(seq_of(SLICE("k"), SLICE("two")), seq);
    apply_hard(gone_at(0, SLICE("k")));
    CHECK_EQ(count_rows(), 0);
}

/* Without `hard`, all stays as it was: a deleted key keeps its row. */
static void not_hard(void)
{
    struct key_row k = string_row(0, SLICE("k"), SLICE("one"));
    REQUIRE_OK(put_key_now(s, &k, &err), &err);
    struct key_row gone = gone_at(k.seq, SLICE("k"));
    CHECK_OK(put_key_now(s, &gone, &err), &err);
    CHECK_EQ(count_rows(), 1);
    k.seq += 100;
    CHECK_EQ(put_key_now(s, &k, &err), ST_INTERNAL);
}

static void everything_twice(void)
{
    struct key_row k[] = {row_at(12, SLICE("new"), SLICE("v")), row_at(3, SLICE("old"), SLICE("v")),
                          row_at(11, SLICE("newer"), SLICE("v")), gone_at(4, SLICE("gone"))};
    k[0].fresh = k[2].fresh = true;
    put_outside(3, 0, "old", false);
    put_outside(4, 0, "gone", false);
    struct item_row items[] = {
        {.ref = {ITEM_ZSET, 1, SLICE("m"), 0}, .score = -0.0, .ord = 0, .fresh = true},
        {.ref = {ITEM_LIST, 2, SLICE(""), -4}, .value = SLICE("v")},
    };
    struct item_ref gone = {ITEM_SET, 3, SLICE("absent"), 0};
    struct trash_row trash = {8, ROW_LIST};
    struct db_row db = {.db = 1, .number = 40, .keys = 3};
    for (int twice = 0; twice < 2; twice++) {
        struct changes c = {.keys = k,
                            .nkeys = 4,
                            .items = items,
                            .nitems = 2,
                            .gone = &gone,
                            .ngone = 1,
                            .trash = &trash,
                            .ntrash = 1,
                            .dbs = &db,
                            .ndbs = 1,
                            .replay = true};
        apply_changes(&c);
        CHECK_SLICE(k[0].key, SLICE("new")); /* their order is kept */
        if (!server_url()) {
            CHECK_EQ(k[0].seq, 12);
            CHECK_EQ(seq_of(SLICE("new"), SLICE("v")), 12);
            CHECK_EQ(seq_of(SLICE("newer"), SLICE("v")), 11);
        }
        CHECK_EQ(seq_of(SLICE("old"), SLICE("v")), 3);
        CHECK_EQ(count_rows(), 3);
        CHECK_EQ(outside_i64("SELECT count(*) FROM larder_zset"), 1);
        CHECK_EQ(outside_i64("SELECT count(*) FROM larder_list WHERE pos = -4"), 1);
        CHECK_EQ(outside_i64("SELECT count(*) FROM larder_trash"), 1);
        CHECK_EQ(outside_i64("SELECT count(*) FROM larder_db WHERE number = 40"), 1);
    }
}

static void in_a_store(const char *name, void (*test)(void))
{
    struct store_options o = options();
    new_place();
    o.url = alone_url();
    CHECK_OK(store_open(&o, &s, &err), &err);
    if (!s)
        exit(EXIT_FAILURE);
    check_run(name, test);
    store_close(s);
    leave_place();
}

#define IN_A_STORE(test) in_a_store(#test, test)

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    IN_A_STORE(a_row_finds_its_place);
    IN_A_STORE(a_row_without_a_seq);
    IN_A_STORE(not_hard);
    IN_A_STORE(everything_twice);
    return check_done();
}
