/* Transactions over shared tables that only read the rows of keys which they have declared
   (store/remote/remote_brief.c): what they see while others write, move databases, and are asked for more.
   Over a database server alone: elsewhere nothing is shared. */
#include "contract/fixture.h"
#include "store/shared.h"

static struct store *a, *b; /* two servers on the same tables */
static struct error err;
static uint32_t zero; /* the number of database 0 */
static struct rows seen;

static bool is_mariadb(void)
{
    return strncmp(server_url(), "mysql", 5) == 0;
}

static void open_both(void)
{
    struct store_options o = options();
    CHECK_OK(store_open(&o, &a, &err), &err);
    CHECK_OK(store_open(&o, &b, &err), &err);
    if (!a || !b)
        exit(EXIT_FAILURE);
}

static void close_both(void)
{
    store_close(a);
    store_close(b);
    a = b = NULL;
    rows_release(&seen);
}

/* Ends a transaction like any other: it has told where database 0 is, which the store and its caller then
   know. */
static void load_and_end(struct store *s)
{
    struct db_row dbs[DATABASES];
    uint32_t next;
    CHECK(!store_brief(s));
    CHECK_OK(store_load_dbs(s, dbs, DATABASES, &next, &err), &err);
    store_rollback(s);
    zero = dbs[0].number;
}

static void look(struct store *s)
{
    CHECK_OK(store_begin(s, STORE_READ, NULL, NULL, &err), &err);
    load_and_end(s);
}

static void put(struct store *s, const char *key, const char *value, int64_t version)
{
    put_locked(s, zero, key, value, version);
}

/* Begins one on a that declares these keys, up to a NULL; their rows are in `seen`. */
static void begin(bool rows_only, const char *const *keys)
{
    struct key_ref refs[8];
    size_t n = 0;
    for (; keys[n]; n++)
        refs[n] = (struct key_ref){zero, slice_str(keys[n])};
    const struct store_declared d = {
        .keys = refs, .nkeys = n, .rows_only = rows_only, .fn = add_key, .arg = &seen};
    rows_release(&seen);
    CHECK_OK(store_begin(a, STORE_READ, &d, NULL, &err), &err);
}

#define BEGIN(...) begin(true, (const char *const[]){__VA_ARGS__, NULL})

static bool saw(const char *key, const char *value)
{
    for (size_t i = 0; i < seen.nkeys; i++)
        if (slice_eq(seen.keys[i].key, slice_str(key)))
            return value && slice_eq(seen.keys[i].value, slice_str(value));
    return !value;
}

static uint64_t trips(void)
{
    struct store_info i = {0};
    store_counters(a, &i);
    return i.round_trips;
}

/* ---- what it sees ---- */

static void it_is_one_round_trip(void)
{
    open_both();
    look(a);
    look(b);
    put(b, "k", "1", 1);
    put(b, "empty", "", 1);
    int64_t before =
        outside_i64(is_mariadb() ? "SELECT CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED)"
                                 : "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint");
    uint64_t start = trips();
    BEGIN("empty", "gone", "k");
    CHECK(store_brief(a));
    CHECK(saw("k", "1") && saw("empty", "") && saw("gone", NULL));
    CHECK_EQ(seen.keys[0].db, zero);
    CHECK(store_now_us(a) >= before && store_now_us(a) < before + 60 * INT64_C(1000000));
    CHECK_OK(store_commit(a, &err), &err);
    put(b, "k", "2", 2);
    BEGIN("k");
    CHECK(store_brief(a) && saw("k", "2"));
    store_rollback(a);
    CHECK_EQ(trips() - start, 2);
    close_both();
}

static void some_are_not_brief(void)
{
    char name[1001];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    open_both();
    BEGIN("k"); /* where the databases are is not known */
    CHECK(!store_brief(a));
    store_rollback(a);
    look(a);
    BEGIN(name, "k"); /* up to here a name is in the index as it is */
    CHECK(store_brief(a));
    store_rollback(a);
    begin(false, (const char *const[]){"k", NULL});
    CHECK(!store_brief(a));
    store_rollback(a);
    struct key_ref two[] = {{zero, SLICE("k")}, {zero + 1, SLICE("k")}};
    const struct store_declared d = {.keys = two, .nkeys = 2, .rows_only = true, .fn = add_key, .arg = &seen};
    CHECK_OK(store_begin(a, STORE_READ, &d, NULL, &err), &err);
    CHECK(!store_brief(a));
    store_rollback(a);
    close_both();
}

/* Another server empties or exchanges the database: what was there must not be seen there any more. */
static void a_database_that_moved_is_looked_for(void)
{
    open_both();
    look(a);
    look(b);
    put(b, "k", "old", 1);
    BEGIN("k");
    CHECK(store_brief(a) && saw("k", "old"));
    store_rollback(a);
    outside("UPDATE larder_db SET number = number + 1000 WHERE db = 0");
    BEGIN("k");
    CHECK(!store_brief(a)); /* the view looks whether the number is still one of a database */
    struct db_row dbs[DATABASES];
    uint32_t next;
    CHECK_OK(store_load_dbs(a, dbs, DATABASES, &next, &err), &err);
    CHECK_EQ(dbs[0].number, zero + 1000);
    store_rollback(a);
    close_both();
}

/* ---- more ---- */

static void asked_for_more_it_sees_one_state(void)
{
    open_both();
    look(a);
    look(b);
    put(b, "k", "1", 1);
    put(b, "other", "1", 1);
    BEGIN("gone", "k");
    CHECK(store_brief(a));
    int64_t now = store_now_us(a);
    put(b, "other", "2", 2); /* which it has not seen yet: it may see it later */
    CHECK(get_key(a, zero, SLICE("other"), &seen));
    CHECK(saw("other", "2"));
    CHECK(!store_brief(a));
    CHECK_EQ(store_now_us(a), now);
    put(b, "other", "3", 3);
    put(b, "k", "3", 3);
    rows_release(&seen);
    CHECK(get_key(a, zero, SLICE("other"), &seen) && get_key(a, zero, SLICE("k"), &seen));
    CHECK(saw("other", "2") && saw("k", "1")); /* one snapshot from there on */
    store_rollback(a);
    BEGIN("k"); /* whoever has asked for more will do so again */
    CHECK(!store_brief(a) && saw("k", "3"));
    store_rollback(a);
    for (int i = 0; i < 100; i++) {
        BEGIN("k"); /* of what was told the caller has loaded nothing: it may have changed since */
        CHECK(!store_brief(a));
        store_rollback(a);
    }
    look(a);
    BEGIN("k");
    CHECK(store_brief(a));
    store_rollback(a);
    close_both();
}

enum change { CHANGED, VALUE_ONLY, APPEARED, DELETED, MOVED, CHANGES };

/* What it has read changes before it asks for more: it must not see both. */
static void changed_meanwhile(enum change what)
{
    struct key_ref other = {zero, SLICE("other")};
    char text[128];
    open_both();
    look(a);
    look(b);
    put(b, "k", "1", 1);
    BEGIN("gone", "k");
    CHECK(store_brief(a));
    snprintf(text, sizeof text, "DELETE FROM larder_key WHERE db = %u", zero);
    if (what == CHANGED)
        put(b, "k", "2", 2);
    else if (what == VALUE_ONLY) /* an application that does not know of versions */
        outside("UPDATE larder_key SET value = 'x'");
    else if (what == APPEARED)
        put(b, "gone", "1", 1);
    else if (what == DELETED)
        outside(text);
    else
        outside("UPDATE larder_db SET number = number + 1000 WHERE db = 5"); /* another one */
    CHECK_EQ(store_get_keys(a, &other, 1, add_key, &seen, &err), ST_CONFLICT);
    CHECK_EQ(store_get_keys(a, &other, 1, add_key, &seen, &err), ST_CONFLICT); /* and goes on doing so */
    store_rollback(a);
    BEGIN("gone", "k"); /* tried again it is a transaction like any other */
    CHECK(!store_brief(a));
    CHECK_OK(store_get_keys(a, &other, 1, add_key, &seen, &err), &err);
    store_rollback(a);
    close_both();
}

static void what_changed_meanwhile_is_a_conflict(void)
{
    for (enum change what = CHANGED; what < CHANGES; what++) {
        new_place();
        changed_meanwhile(what);
    }
}

static void counts_are_read_when_asked_for(void)
{
    struct db_row dbs[DATABASES];
    uint32_t next;
    open_both();
    look(a);
    look(b);
    put(b, "k", "1", 1);
    BEGIN("k");
    CHECK(store_brief(a));
    outside(is_mariadb() ? "UPDATE larder_db SET `keys` = 41 WHERE db = 0"
                         : "UPDATE larder_db SET keys = 41 WHERE db = 0");
    CHECK_OK(store_load_dbs(a, dbs, DATABASES, &next, &err), &err);
    CHECK_EQ(dbs[0].keys, 41);
    CHECK(!store_brief(a));
    store_rollback(a);
    close_both();
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    if (!server_url())
        return check_done();
    IN_NEW_PLACE(it_is_one_round_trip);
    IN_NEW_PLACE(some_are_not_brief);
    IN_NEW_PLACE(a_database_that_moved_is_looked_for);
    IN_NEW_PLACE(asked_for_more_it_sees_one_state);
    IN_NEW_PLACE(what_changed_meanwhile_is_a_conflict);
    IN_NEW_PLACE(counts_are_read_when_asked_for);
    return check_done();
}
