/* Transactions over shared tables that write rows of keys which they have declared, and lock nothing before
   they end (store/remote/remote_loose.c): each way in which another may come between what they read and what
   they write. Over database servers alone: elsewhere none is loose. */
#include "contract/fixture.h"
#include "store/shared.h"

static struct store *a, *b; /* two servers on the same tables */
static struct error err;
static uint32_t zero; /* the number of database 0 */
static struct rows seen;
static struct db_row dbs[DATABASES]; /* as a knows them */

static void look(struct store *s)
{
    uint32_t next;
    CHECK_OK(store_begin(s, STORE_READ, NULL, NULL, &err), &err);
    CHECK_OK(store_load_dbs(s, dbs, DATABASES, &next, &err), &err);
    store_rollback(s);
    zero = dbs[0].number;
}

static void open_both(void)
{
    struct store_options o = options();
    new_place();
    CHECK_OK(store_open(&o, &a, &err), &err);
    CHECK_OK(store_open(&o, &b, &err), &err);
    if (!a || !b)
        exit(EXIT_FAILURE);
    look(b);
    look(a);
}

static void close_both(void)
{
    store_close(a);
    store_close(b);
    a = b = NULL;
    rows_release(&seen);
}

/* With locks. */
static void put(struct store *s, const char *key, const char *value, int64_t version)
{
    put_locked(s, zero, key, value, version);
}

/* Begins a loose one on s that declares k and l. */
static void begin(struct store *s, bool tied)
{
    const struct key_ref refs[] = {{zero, SLICE("k")}, {zero, SLICE("l")}};
    const struct store_declared d = {
        .keys = refs, .nkeys = 2, .loose = true, .tied = tied, .fn = add_key, .arg = &seen};
    rows_release(&seen);
    CHECK_OK(store_begin(s, STORE_WRITE, &d, NULL, &err), &err);
}

static int64_t seq_of(const char *key)
{
    for (size_t i = 0; i < seen.nkeys; i++)
        if (slice_eq(seen.keys[i].key, slice_str(key)))
            return seen.keys[i].seq;
    return 0;
}

/* Writes one key, and commits. */
static enum status write_key(struct store *s, const char *key, const char *value, int64_t version)
{
    struct key_row k = string_row(zero, slice_str(key), slice_str(value));
    struct changes c = {.keys = &k, .nkeys = 1, .last = true};
    k.version = version;
    k.seq = seq_of(key);
    enum status st = store_apply(s, &c, &err);
    if (st == ST_OK)
        return store_commit(s, &err);
    store_rollback(s);
    return st;
}

static bool has(const char *key, const char *value)
{
    struct rows r = {0};
    CHECK_OK(store_begin(b, STORE_READ, NULL, NULL, &err), &err);
    bool found = get_key(b, zero, slice_str(key), &r);
    bool same = value ? found && slice_eq(r.keys[0].value, slice_str(value)) : !found;
    store_rollback(b);
    rows_release(&r);
    return same;
}

static uint64_t trips(void)
{
    struct store_info i = {0};
    store_counters(a, &i);
    return i.round_trips;
}

static bool on_mariadb(void)
{
    return strncmp(server_url(), "mysql", 5) == 0;
}

/* As if others had counted. */
static void count_41(void)
{
    outside(on_mariadb() ? "UPDATE larder_db SET `keys` = 41 WHERE db = 0"
                         : "UPDATE larder_db SET keys = 41 WHERE db = 0");
}

/* ---- alone ---- */

static void it_is_two_round_trips(void)
{
    open_both();
    put(a, "k", "1", 1);
    put(a, "other", "1", 1); /* numbers for new rows are there */
    look(a);
    uint64_t start = trips();
    begin(a, false);
    CHECK(store_brief(a));
    CHECK_EQ(outside_i64(on_mariadb() ? "SELECT n FROM larder_lock WHERE n = 0 FOR UPDATE NOWAIT"
                                      : "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
                                        " AND objsubid = 1 AND mode = 'ExclusiveLock'"),
             0);
    CHECK_EQ(write_key(a, "k", "2", 2), ST_OK);
    CHECK(has("k", "2"));
    begin(a, false);
    CHECK(store_brief(a));
    CHECK_EQ(write_key(a, "l", "new", 1), ST_OK);
    CHECK(has("l", "new"));
    CHECK_EQ(trips() - start, 4);
    close_both();
}

static void counts_are_differences(void)
{
    open_both();
    begin(a, false);
    CHECK(store_brief(a));
    count_41(); /* others count meanwhile */
    struct key_row k = string_row(zero, SLICE("k"), SLICE("v"));
    struct db_row db = dbs[0];
    struct changes c = {.keys = &k, .nkeys = 1, .dbs = &db, .ndbs = 1, .last = true};
    db.keys++;
    k.version = 1;
    CHECK_OK(store_apply(a, &c, &err), &err);
    CHECK_OK(store_commit(a, &err), &err);
    look(b);
    CHECK_EQ(dbs[0].keys, 42);
    close_both();
}

/* A transaction that asks for more locks after all, and counts from where its caller began. */
static void widened_it_locks(void)
{
    struct rows r = {0};
    open_both();
    put(b, "k", "1", 1);
    begin(a, false);
    CHECK(store_brief(a));
    count_41();
    CHECK(!get_key(a, zero, SLICE("other"), &r));
    CHECK(!store_brief(a));
    struct key_row k = string_row(zero, SLICE("k"), SLICE("2"));
    struct db_row db = dbs[0];
    struct changes c = {.keys = &k, .nkeys = 1, .dbs = &db, .ndbs = 1, .last = true};
    db.keys++;
    k.version = 2;
    k.seq = seq_of("k");
    CHECK_OK(store_apply(a, &c, &err), &err);
    CHECK_OK(store_commit(a, &err), &err);
    look(b);
    CHECK_EQ(dbs[0].keys, 42);
    CHECK(has("k", "2"));
    begin(a, false); /* whoever has asked for more will do so again */
    CHECK(!store_brief(a));
    store_rollback(a);
    rows_release(&r);
    close_both();
}

/* ---- with others ---- */

enum change {
    WRITTEN,       /* with locks, by the other server */
    WRITTEN_LOOSE, /* without */
    REMOVED,       /* the sweeper has been there */
    FLUSHED,       /* the database has another number */
    MADE,          /* the key that was not there is, with another row number */
    CHANGES
};

static void change(enum change what)
{
    char text[128];
    if (what == WRITTEN)
        put(b, "k", "theirs", 5);
    if (what == WRITTEN_LOOSE) {
        look(b);
        begin(b, false);
        CHECK(store_brief(b));
        CHECK_EQ(write_key(b, "k", "theirs", 5), ST_OK);
    }
    snprintf(text, sizeof text, "DELETE FROM larder_key WHERE db = %u", zero);
    if (what == REMOVED)
        outside(text);
    if (what == FLUSHED)
        outside("UPDATE larder_db SET number = number + 1000 WHERE db = 0");
    if (what == MADE)
        put(b, "l", "theirs", 5);
}

static void changed_meanwhile(enum change what)
{
    struct rows mine;
    open_both();
    put(b, "k", "1", 1);
    begin(a, false);
    CHECK(store_brief(a));
    mine = seen;
    seen = (struct rows){0};
    change(what);
    rows_release(&seen);
    seen = mine;
    CHECK_EQ(write_key(a, what == MADE ? "l" : "k", "ours", 6), ST_CONFLICT);
    CHECK(!has(what == MADE ? "l" : "k", "ours"));
    begin(a, false); /* tried again, it locks */
    CHECK(!store_brief(a));
    store_rollback(a);
    close_both();
}

static void what_changed_meanwhile_is_a_conflict(void)
{
    for (enum change what = WRITTEN; what < CHANGES; what++)
        changed_meanwhile(what);
}

/* One of two keys is written; the other changes before that. */
static void another_changes(bool tied, bool there)
{
    struct rows mine;
    open_both();
    put(b, "k", "1", 1);
    if (there)
        put(b, "l", "1", 1);
    begin(a, tied);
    CHECK(store_brief(a));
    mine = seen;
    seen = (struct rows){0};
    put(b, "l", "theirs", 5);
    seen = mine;
    CHECK_EQ(write_key(a, "k", "ours", 6), tied ? ST_CONFLICT : ST_OK);
    CHECK(has("k", tied ? "1" : "ours"));
    close_both();
}

static void what_is_tied_stays(void)
{
    another_changes(true, true);
    another_changes(true, false);
    another_changes(false, true);
    another_changes(false, false);
    open_both(); /* and it is no conflict when it has stayed */
    put(b, "l", "1", 1);
    begin(a, true);
    CHECK_EQ(write_key(a, "k", "ours", 6), ST_OK);
    begin(a, true);
    CHECK(store_brief(a));
    CHECK_EQ(write_key(a, "k", "again", 7), ST_OK);
    CHECK(has("k", "again"));
    close_both();
}

/* Another transaction has found that a key is not there, and has not ended: it is not made. */
static void what_another_found_absent_is_not_made(void)
{
    struct store_options o;
    struct key_ref l = {0, SLICE("l")};
    const struct store_declared d = {.keys = &l, .nkeys = 1, .fn = add_key, .arg = &seen};
    open_both();
    store_close(a);
    o = options();
    o.timeout_ms = 300;
    CHECK_OK(store_open(&o, &a, &err), &err);
    look(a);
    begin(a, false);
    CHECK(store_brief(a));
    l.db = zero;
    CHECK_OK(store_begin(b, STORE_WRITE, &d, NULL, &err), &err);
    CHECK(write_key(a, "l", "ours", 6) != ST_OK);
    store_rollback(b);
    CHECK(has("l", NULL));
    close_both();
}

/* Another server has written what a loose one has read. */
static void fight(int64_t version)
{
    begin(a, false);
    CHECK(store_brief(a));
    struct rows mine = seen;
    seen = (struct rows){0};
    put(b, "k", "theirs", version);
    seen = mine;
    CHECK_EQ(write_key(a, "k", "ours", version + 1), ST_CONFLICT);
}

static int lock_until_loose(void)
{
    int locked = 0;
    for (bool loose = false; !loose && locked < 100; locked += !loose) {
        look(a);
        begin(a, false);
        loose = store_brief(a);
        store_rollback(a);
    }
    return locked;
}

/* Who fights for a key waits for it the next time, and twice as often each time. */
static void conflicts_make_it_lock(void)
{
    open_both();
    put(b, "k", "1", 1);
    for (int n = 1; n <= 16; n *= 2) {
        fight(10 * n);
        CHECK_EQ(lock_until_loose(), n);
    }
    close_both();
}

/* ---- items ---- */

#define HASH 77 /* the number of the collection under k */

/* The row of a hash with one field. */
static struct changes hash_with(struct key_row *k, struct item_row *field, const char *value, int64_t version)
{
    *k = (struct key_row){
        .db = zero, .key = SLICE("k"), .type = ROW_HASH, .id = HASH, .size = 1, .version = version};
    *field = (struct item_row){.ref = {.table = ITEM_HASH, .id = HASH, .name = SLICE("f")},
                               .value = slice_str(value)};
    k->seq = seq_of("k");
    return (struct changes){.keys = k, .nkeys = 1, .items = field, .nitems = 1, .last = true};
}

static const struct key_ref kept = {STORE_HIDDEN_DB, {"kept", 4}};

/* Begins one on s that declares k, and may read its items. */
static void begin_items(struct store *s)
{
    const struct key_ref ref = {zero, SLICE("k")};
    const struct store_declared d = {.keys = &ref,
                                     .nkeys = 1,
                                     .peeked = &kept,
                                     .npeeked = 1,
                                     .loose = true,
                                     .items = true,
                                     .fn = add_key,
                                     .arg = &seen};
    rows_release(&seen);
    look(s);
    CHECK_OK(store_begin(s, STORE_WRITE, &d, NULL, &err), &err);
    CHECK(store_brief(s));
}

static void read_items(struct store *s)
{
    int64_t id = HASH;
    CHECK_OK(store_read_whole(s, ITEM_HASH, &id, 1, add_item, &seen, &err), &err);
    CHECK(store_brief(s));
}

static enum status write_hash(struct store *s, const char *value, int64_t version)
{
    struct key_row k;
    struct item_row field;
    struct changes c = hash_with(&k, &field, value, version);
    enum status st = store_apply(s, &c, &err);
    if (st == ST_OK)
        return store_commit(s, &err);
    store_rollback(s);
    return st;
}

/* What becomes of one that has read a hash, and writes it or not, while another ... */
enum meanwhile { NOTHING, FIELD_SET, KEPT_MADE, ROW_GONE, MEANWHILES };

static enum status read_and(bool writes, enum meanwhile what)
{
    open_both();
    begin_items(b);
    CHECK_EQ(write_hash(b, "1", 1), ST_OK);
    begin_items(a);
    struct rows mine = seen;
    seen = (struct rows){0};
    if (what == FIELD_SET) {
        begin_items(b);
        CHECK_EQ(write_hash(b, "theirs", 5), ST_OK);
    }
    if (what == KEPT_MADE)
        put_locked(b, STORE_HIDDEN_DB, "kept", "something", 1);
    if (what == ROW_GONE)
        outside("DELETE FROM larder_key");
    rows_release(&seen);
    seen = mine;
    read_items(a);
    CHECK_EQ(seen.nitems, 1);
    CHECK(slice_is(seen.items[0].value,
                   what == FIELD_SET ? "theirs" : "1")); /* of another row than that read */
    enum status st = writes ? write_hash(a, "ours", 6) : store_commit(a, &err);
    CHECK_EQ(outside_i64(on_mariadb() ? "SELECT count(*) FROM larder_hash WHERE value = 'ours'"
                                      : "SELECT count(*) FROM larder_hash WHERE value = 'ours'::bytea"),
             st == ST_OK && writes);
    close_both();
    return st;
}

static void items_are_of_the_rows_that_were_read(void)
{
    CHECK_EQ(read_and(true, NOTHING), ST_OK);
    CHECK_EQ(read_and(true, FIELD_SET), ST_CONFLICT);
    CHECK_EQ(read_and(true, KEPT_MADE), ST_CONFLICT);
    CHECK_EQ(read_and(true, ROW_GONE), ST_CONFLICT);
}

/* Nothing is written that could be compared: it is compared all the same. */
static void items_that_are_only_read_are_of_them_too(void)
{
    CHECK_EQ(read_and(false, NOTHING), ST_OK);
    CHECK_EQ(read_and(false, FIELD_SET), ST_CONFLICT);
    CHECK_EQ(read_and(false, ROW_GONE), ST_CONFLICT);
}

/* Items of a key that was not declared: the transaction locks after all. */
static void others_items_are_not_loose(void)
{
    struct key_row k;
    struct item_row field;
    open_both();
    begin_items(a);
    struct changes c = hash_with(&k, &field, "1", 1);
    field.ref.id = HASH + 1;
    CHECK_OK(store_apply(a, &c, &err), &err);
    CHECK_EQ(outside_i64(on_mariadb() ? "SELECT count(*) FROM information_schema.innodb_trx"
                                      : "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
                                        " AND objsubid = 1 AND mode = 'ExclusiveLock'"),
             1);
    store_rollback(a);
    close_both();
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    if (!server_url())
        return check_done();
    IN_NEW_PLACE(it_is_two_round_trips);
    IN_NEW_PLACE(counts_are_differences);
    IN_NEW_PLACE(widened_it_locks);
    IN_NEW_PLACE(what_changed_meanwhile_is_a_conflict);
    IN_NEW_PLACE(what_is_tied_stays);
    IN_NEW_PLACE(what_another_found_absent_is_not_made);
    IN_NEW_PLACE(conflicts_make_it_lock);
    IN_NEW_PLACE(items_are_of_the_rows_that_were_read);
    IN_NEW_PLACE(items_that_are_only_read_are_of_them_too);
    IN_NEW_PLACE(others_items_are_not_loose);
    return check_done();
}
