/* The journal's encoding: what goes in comes out, whatever it is; what was damaged is found, and nothing that
   is decoded makes no sense. And the checksum that finds most of it. */
#include "journal/encoding.h"

#include <math.h>

#include "base/buf.h"
#include "base/crc32c.h"
#include "check.h"
#include "entries.h"
#include "journal/replay.h"

/* ---- the checksum ---- */

static void checksums_are_castagnolis(void)
{
    char bytes[32];
    const struct {
        struct slice text;
        uint32_t want;
    } known[] = {
        {SLICE(""), 0},
        {SLICE("a"), 0xc1d04330},
        {SLICE("123456789"), 0xe3069283},
        {SLICE("The quick brown fox jumps over the lazy dog"), 0x22620404},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        CHECK_EQ(crc32c(known[i].text), known[i].want);
        CHECK_EQ(crc32c_portable(0, known[i].text), known[i].want);
    }
    memset(bytes, 0, sizeof bytes); /* these are in RFC 3720 */
    CHECK_EQ(crc32c(slice_of(bytes, 32)), 0x8a9136aa);
    memset(bytes, 0xff, sizeof bytes);
    CHECK_EQ(crc32c(slice_of(bytes, 32)), 0x62a8ab43);
    for (int i = 0; i < 32; i++)
        bytes[i] = (char)i;
    CHECK_EQ(crc32c(slice_of(bytes, 32)), 0x46dd794e);
    for (int i = 0; i < 32; i++)
        bytes[i] = (char)(31 - i);
    CHECK_EQ(crc32c(slice_of(bytes, 32)), 0x113fdb5c);
}

static void checksums_are_the_same_in_both_ways(void)
{
    char bytes[300];
    uint32_t x = 1;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)((x = x * 1664525 + 1013904223) >> 24);
    for (size_t from = 0; from < 16; from++)
        for (size_t n = 0; n <= sizeof bytes - from; n++) {
            CHECK_EQ(crc32c(slice_of(bytes + from, n)), crc32c_portable(0, slice_of(bytes + from, n)));
            CHECK_EQ(crc32c_more(crc32c(slice_of(bytes, from)), slice_of(bytes + from, n)),
                     crc32c(slice_of(bytes, from + n)));
        }
}

/* ---- what goes in comes out ---- */

#define BIG INT64_MAX
#define LOW INT64_MIN

static char long_bytes[70000];

static const struct journal_entry samples[] = {
    {.kind = JOURNAL_KEY,
     .key = {.seq = 1, .type = ROW_STRING, .key = {"k", 1}, .value = {"v", 1}, .version = 1}},
    {.kind = JOURNAL_KEY,
     .key = {.seq = BIG, .db = UINT32_MAX, .type = ROW_STRING, .version = BIG, .expire_at = BIG}},
    {.kind = JOURNAL_KEY,
     .key = {.seq = 127,
             .db = 128,
             .key = {"\0\xff\x80", 3},
             .type = ROW_STRING,
             .version = 0,
             .expire_at = LOW}},
    {.kind = JOURNAL_KEY,
     .key = {.seq = 16384, .key = {long_bytes, 65536}, .type = ROW_STRING, .value = {long_bytes, 65536}}},
    {.kind = JOURNAL_KEY,
     .key = {.seq = 2, .key = {"h", 1}, .type = ROW_HASH, .id = 1, .size = 1, .first = 5}},
    {.kind = JOURNAL_KEY,
     .key =
         {.seq = 3, .type = ROW_LIST, .id = BIG, .size = BIG, .first = LOW, .version = BIG, .expire_at = 1}},
    {.kind = JOURNAL_KEY, .key = {.seq = 3, .type = ROW_SET, .id = 1, .size = 0, .first = BIG}},
    {.kind = JOURNAL_KEY,
     .key = {.seq = 3, .type = ROW_ZSET, .id = 1, .size = 1, .first = -1, .value = {"x", 1}}},
    {.kind = JOURNAL_KEY,
     .key = {.seq = 3, .key = {"t", 1}, .type = ROW_TABLE, .id = 9, .value = {long_bytes, 65536}}},
    {.kind = JOURNAL_KEY,
     .key = {.seq = 4, .db = 7, .key = {"gone", 4}, .version = 9, .expire_at = EXPIRE_DELETED}},
    {.kind = JOURNAL_KEY, .key = {.seq = BIG, .version = BIG, .expire_at = EXPIRE_DELETED}},
    {.kind = JOURNAL_ITEM, .item = {.ref = {ITEM_CHUNK, 1, {NULL, 0}, 0}, .value = {long_bytes, 16384}}},
    {.kind = JOURNAL_ITEM, .item = {.ref = {ITEM_CHUNK, BIG, {NULL, 0}, BIG}}},
    {.kind = JOURNAL_ITEM,
     .item = {.ref = {ITEM_HASH, 1, {"f", 1}, 0}, .value = {"v", 1}, .expire_at = BIG, .ord = BIG}},
    {.kind = JOURNAL_ITEM, .item = {.ref = {ITEM_HASH, BIG, {"", 0}, 0}, .expire_at = LOW, .ord = LOW}},
    {.kind = JOURNAL_ITEM,
     .item = {.ref = {ITEM_HASH, 5, {long_bytes, 70000}, 0}, .value = {long_bytes, 70000}}},
    {.kind = JOURNAL_ITEM, .item = {.ref = {ITEM_LIST, 1, {NULL, 0}, LOW}, .value = {"\n", 1}}},
    {.kind = JOURNAL_ITEM, .item = {.ref = {ITEM_LIST, 1, {NULL, 0}, -1}, .value = {"", 0}}},
    {.kind = JOURNAL_ITEM, .item = {.ref = {ITEM_SET, 1, {"m", 1}, 0}, .ord = -1}},
    {.kind = JOURNAL_ITEM, .item = {.ref = {ITEM_ZSET, 1, {"m", 1}, 0}, .score = -0.0, .ord = 0}},
    {.kind = JOURNAL_ITEM, .item = {.ref = {ITEM_ZSET, 1, {"m", 1}, 0}, .score = INFINITY, .ord = 1}},
    {.kind = JOURNAL_ITEM, .item = {.ref = {ITEM_ZSET, 1, {"m", 1}, 0}, .score = 5e-324, .ord = BIG}},
    {.kind = JOURNAL_ITEM,
     .item = {.ref = {ITEM_ZBLOCK, 1, {NULL, 0}, 3}, .value = {"m", 1}, .score = -INFINITY, .ord = 256}},
    {.kind = JOURNAL_ITEM,
     .item = {.ref = {ITEM_ROW, BIG, {long_bytes, 1000}, 0}, .value = {"[1]", 3}, .expire_at = BIG}},
    {.kind = JOURNAL_ITEM, .item = {.ref = {ITEM_ENTRY, 1, {"\0\1", 2}, 0}, .value = {"n", 1}}},
    {.kind = JOURNAL_LOST, .lost = {ITEM_ENTRY, 1, {"\0\1", 2}, 0}},
    {.kind = JOURNAL_LOST, .lost = {ITEM_CHUNK, BIG, {NULL, 0}, LOW}},
    {.kind = JOURNAL_LOST, .lost = {ITEM_HASH, 0, {"f\0", 2}, 0}},
    {.kind = JOURNAL_LOST, .lost = {ITEM_LIST, 1, {NULL, 0}, BIG}},
    {.kind = JOURNAL_LOST, .lost = {ITEM_SET, 1, {"", 0}, 0}},
    {.kind = JOURNAL_LOST, .lost = {ITEM_ZSET, 1, {long_bytes, 300}, 0}},
    {.kind = JOURNAL_LOST, .lost = {ITEM_ZBLOCK, 1, {NULL, 0}, 1}},
    {.kind = JOURNAL_TRASH, .trash = {1, ROW_STRING}},
    {.kind = JOURNAL_TRASH, .trash = {BIG, ROW_ZSET}},
    {.kind = JOURNAL_TRASH, .trash = {0, ROW_DB}},
    {.kind = JOURNAL_TRASH, .trash = {BIG, ROW_TABLE}},
    {.kind = JOURNAL_TRASH, .trash = {7, (enum row_type)(ROW_INDEX + 1)}},
    {.kind = JOURNAL_TRASH, .trash = {7, (enum row_type)(ROW_INDEX + ROW_INDEX_MAX)}},
    {.kind = JOURNAL_DB, .db = {0, 0, 0, 0}},
    {.kind = JOURNAL_DB, .db = {UINT32_MAX, UINT32_MAX, BIG, BIG}},
    {.kind = JOURNAL_DB, .db = {15, 16, -1, -1}},
    {.kind = JOURNAL_IDS, .next_id = 1},
    {.kind = JOURNAL_IDS, .next_id = BIG},
    {.kind = JOURNAL_KEY, .key = {.seq = 3, .type = ROW_SET, .id = 1, .size = 1, .numbers = 2}},
    {.kind = JOURNAL_KEY,
     .key = {.seq = 5, .type = ROW_HASH, .id = BIG, .size = 7, .first = -1, .numbers = BIG, .expire_at = 3}},
    {.kind = JOURNAL_RANGE,
     .range = {.table = ITEM_LIST, .id = 1, .order = ITEMS_BY_POS, .min = LOW, .max = BIG}},
    {.kind = JOURNAL_RANGE,
     .range = {.table = ITEM_CHUNK, .id = BIG, .order = ITEMS_BY_POS, .min = -1, .max = -1}},
    {.kind = JOURNAL_RANGE,
     .range = {.table = ITEM_ZSET,
               .id = 7,
               .order = ITEMS_BY_SCORE,
               .min_score = -INFINITY,
               .max_score = -0.0,
               .max_name = {"m\0", 2}}},
    {.kind = JOURNAL_RANGE,
     .range = {.table = ITEM_ZSET,
               .id = 7,
               .order = ITEMS_BY_SCORE,
               .min_score = 1,
               .min_name = {"a", 1},
               .max_score = 1,
               .max_name = {"a", 1}}},
};
#define SAMPLES (sizeof samples / sizeof samples[0])

/* Those that fit a screen: for tests that look at each byte. */
static bool is_short(const struct journal_entry *e)
{
    return e->key.key.n + e->key.value.n + e->item.ref.name.n + e->item.value.n + e->lost.name.n < 1000;
}

static void seal(struct buf *row, struct slice entries)
{
    row->len = 0;
    journal_begin(row);
    buf_add_slice(row, entries);
    journal_end(row);
}

/* How many entries of a row can be read, each as in `want`. *ret_end: those were all. */
static size_t read_entries(struct slice row, const struct journal_entry *want, size_t n, bool *ret_end)
{
    struct slice entries;
    struct journal_entry e;
    struct error err;
    size_t found = 0;
    *ret_end = false;
    if (journal_open(row, &entries, &err) != ST_OK)
        return 0;
    while (journal_next(&entries, &e, ret_end, &err) == ST_OK && !*ret_end) {
        CHECK(found < n && same_entry(&e, &want[found]));
        found++;
    }
    return found;
}

static void every_entry_comes_back(void)
{
    struct buf entry = {0}, row = {0};
    bool end;
    for (size_t i = 0; i < SAMPLES; i++) {
        entry.len = 0;
        encode_entry(&entry, &samples[i]);
        seal(&row, buf_slice(&entry));
        CHECK_EQ(read_entries(buf_slice(&row), &samples[i], 1, &end), 1);
        CHECK(end);
    }
    buf_release(&entry);
    buf_release(&row);
}

static void rows_of_many_entries(void)
{
    struct buf entries = {0}, row = {0};
    bool end;
    for (size_t i = 0; i < SAMPLES; i++)
        encode_entry(&entries, &samples[i]);
    seal(&row, buf_slice(&entries));
    CHECK_EQ(read_entries(buf_slice(&row), samples, SAMPLES, &end), SAMPLES);
    CHECK(end);
    seal(&row, SLICE("")); /* or of none */
    CHECK_EQ(read_entries(buf_slice(&row), NULL, 0, &end), 0);
    CHECK(end);
    buf_release(&entries);
    buf_release(&row);
}

/* A change set is encoded in the order in which it is applied. */
static void change_sets(void)
{
    struct key_row k = samples[0].key;
    struct changes c = {.keys = &k,
                        .nkeys = 1,
                        .ranges = &samples[SAMPLES - 1].range,
                        .nranges = 1,
                        .gone = &samples[27].lost,
                        .ngone = 1,
                        .items = &samples[13].item,
                        .nitems = 1,
                        .trash = &samples[32].trash,
                        .ntrash = 1,
                        .dbs = &samples[40].db,
                        .ndbs = 1};
    const struct journal_entry want[] = {samples[0],  samples[SAMPLES - 1], samples[27],
                                         samples[13], samples[32],          samples[40]};
    struct buf entries = {0}, row = {0};
    bool end;
    journal_add_changes(&entries, &c);
    seal(&row, buf_slice(&entries));
    CHECK_EQ(read_entries(buf_slice(&row), want, 6, &end), 6);
    CHECK(end);
    buf_release(&entries);
    buf_release(&row);
}

/* ---- damage ---- */

static void short_samples(struct buf *entries, struct journal_entry *ret, size_t *ret_n)
{
    *ret_n = 0;
    for (size_t i = 0; i < SAMPLES; i++) {
        if (!is_short(&samples[i]))
            continue;
        encode_entry(entries, &samples[i]);
        ret[(*ret_n)++] = samples[i];
    }
}

static enum status opens(struct slice row)
{
    struct slice entries;
    struct error err = {.code = ST_OK};
    enum status st = journal_open(row, &entries, &err);
    CHECK(st == ST_OK || (err.code == st && err.text[0]));
    return st;
}

static void damaged_rows_are_refused(void)
{
    struct journal_entry want[SAMPLES];
    struct buf entries = {0}, row = {0};
    size_t n;
    short_samples(&entries, want, &n);
    seal(&row, buf_slice(&entries));
    CHECK_EQ(opens(buf_slice(&row)), ST_OK);
    for (size_t i = 0; i < row.len; i++)
        CHECK_EQ(opens(slice_of(row.p, i)), ST_CORRUPT);
    for (size_t i = 0; i < row.len * 8; i++) {
        row.p[i / 8] ^= (char)(1 << i % 8);
        CHECK_EQ(opens(buf_slice(&row)), ST_CORRUPT);
        row.p[i / 8] ^= (char)(1 << i % 8);
    }
    buf_add(&row, "", 1);
    CHECK_EQ(opens(buf_slice(&row)), ST_CORRUPT);
    CHECK_EQ(opens(SLICE("")), ST_CORRUPT);
    CHECK_EQ(opens(SLICE("\1\0\0\0")), ST_CORRUPT);
    buf_release(&entries);
    buf_release(&row);
}

/* Behind a checksum that is right. */
static void entries_that_end_early(void)
{
    struct journal_entry want[SAMPLES];
    struct buf entries = {0}, row = {0};
    size_t n, most = 0;
    bool end;
    short_samples(&entries, want, &n);
    for (size_t i = 0; i <= entries.len; i++) {
        seal(&row, slice_of(entries.p, i));
        size_t found = read_entries(buf_slice(&row), want, n, &end);
        CHECK(found >= most);
        CHECK_EQ(end, i == 0 || found > most); /* else it ends within an entry */
        most = found;
    }
    CHECK_EQ(most, n);
    buf_release(&entries);
    buf_release(&row);
}

/* An entry with a bit that is wrong is refused or is another one, which is itself when it is encoded again.
 */
static void entries_that_say_something_else(void)
{
    struct journal_entry want[SAMPLES], e, again;
    struct buf entries = {0}, one = {0};
    struct error err;
    size_t n;
    bool end;
    short_samples(&entries, want, &n);
    for (size_t i = 0; i < entries.len * 8; i++) {
        entries.p[i / 8] ^= (char)(1 << i % 8);
        struct slice rest = buf_slice(&entries);
        while (journal_next(&rest, &e, &end, &err) == ST_OK && !end) {
            one.len = 0;
            encode_entry(&one, &e);
            struct slice encoded = buf_slice(&one);
            CHECK_OK(journal_next(&encoded, &again, &end, &err), &err);
            CHECK(!end && encoded.n == 0 && same_entry(&e, &again));
        }
        entries.p[i / 8] ^= (char)(1 << i % 8);
    }
    buf_release(&entries);
    buf_release(&one);
}

static void entries_that_make_no_sense(void)
{
    static const struct {
        const char *what;
        struct slice entry;
    } cases[] = {
        {"no such kind", SLICE("\0")},
        {"no such kind", SLICE("\x09\1\1")},
        {"no seq", SLICE("\1\0\1\0\1k\1\0\1v")},
        {"no type", SLICE("\1\1\1\0\1k\0\0\1v")},
        {"no such type", SLICE("\1\1\1\0\1k\7\0\1v")},
        {"a database is no key", SLICE("\1\1\1\0\1k\x64\0\1v")},
        {"items without an id", SLICE("\2\1\1\0\1k\2\0\0\0\1\0")},
        {"a value longer than the row", SLICE("\1\1\1\0\1k\1\0\2v")},
        {"a length beyond all lengths", SLICE("\1\1\1\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\1k")},
        {"a number of more than 64 bits", SLICE("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\2")},
        {"a number of more than 64 bits", SLICE("\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\1")},
        {"an id that nobody has", SLICE("\x08\0")},
        {"an id that is negative", SLICE("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\1")},
        {"a database's number of more than 32 bits", SLICE("\7\xff\xff\xff\xff\x1f\0\0\0")},
        {"no such table", SLICE("\4\x08\1\1m\0")},
        {"no such type of trash", SLICE("\6\1\7")},
        {"no such index", SLICE("\6\1\xff\0")},
        {"no such index", SLICE("\6\1\xff\xb1\xea\1")},
        {"no such table", SLICE("\5\xff\1\1m")},
        {"a score that is no number", SLICE("\4\4\1\1m\0\0\0\0\0\0\xf8\x7f\0")},
    };
    struct journal_entry e;
    struct error err;
    bool end;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct slice entries = cases[i].entry;
        check.context = cases[i].what;
        CHECK_EQ(journal_next(&entries, &e, &end, &err), ST_CORRUPT);
        CHECK(strstr(err.text, "makes no sense") != NULL);
        CHECK_SLICE(entries, cases[i].entry); /* nothing was taken off */
    }
    check.context = NULL;
}

static void versions_to_come(void)
{
    struct buf row = {0};
    struct slice entries;
    struct error err;
    seal(&row, SLICE(""));
    row.p[0] = 2;
    row.len -= 4;
    journal_end(&row);
    CHECK_EQ(journal_open(buf_slice(&row), &entries, &err), ST_CORRUPT);
    CHECK(strstr(err.text, "version 2") != NULL);
    buf_release(&row);
}

/* ---- rows of the journal in memory ---- */

static void put_row(struct buf *row, int64_t next_id, const struct journal_entry *e)
{
    struct buf entries = {0};
    journal_add_next_id(&entries, next_id);
    encode_entry(&entries, e);
    seal(row, buf_slice(&entries));
    buf_release(&entries);
}

static void later_rows_win(void)
{
    struct memtable *m = memtable_new(0);
    struct buf row = {0};
    struct error err;
    struct journal_entry e = samples[0];
    put_row(&row, 10, &e);
    CHECK_OK(replay_row(m, 1, buf_slice(&row), &err), &err);
    e.key.value = SLICE("later");
    put_row(&row, 20, &e);
    CHECK_OK(replay_row(m, 2, buf_slice(&row), &err), &err);
    memset(row.p, 0, row.len); /* what is in memory is a copy */
    struct mem_key k;
    REQUIRE(memtable_key(m, 0, SLICE("k"), &k));
    CHECK_SLICE(k.row.value, SLICE("later"));
    CHECK_EQ(k.row.ticket, 2);
    CHECK_EQ(memtable_next_id(m), 20);
    memtable_free(m);
    buf_release(&row);
}

static void nothing_is_taken_of_a_damaged_row(void)
{
    struct memtable *m = memtable_new(0);
    struct buf row = {0}, entries = {0};
    struct error err;
    put_row(&row, 10, &samples[0]);
    CHECK_OK(replay_row(m, 1, buf_slice(&row), &err), &err);
    for (size_t i = 0; i < SAMPLES; i++)
        encode_entry(&entries, &samples[i]);
    buf_add(&entries, "\x63", 1); /* the last one makes no sense */
    seal(&row, buf_slice(&entries));
    CHECK_EQ(replay_row(m, 2, buf_slice(&row), &err), ST_CORRUPT);
    CHECK(strstr(err.text, "row 2 of the journal is damaged: ") != NULL);
    CHECK_EQ(memtable_count_keys(m), 1);
    CHECK_EQ(memtable_next_id(m), 10);
    CHECK(memtable_db(m, 0) == NULL);
    struct mem_key k;
    REQUIRE(memtable_key(m, 0, SLICE("k"), &k));
    CHECK_EQ(k.row.ticket, 1);
    memtable_free(m);
    buf_release(&row);
    buf_release(&entries);
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    memset(long_bytes, 'x', sizeof long_bytes);
    RUN(checksums_are_castagnolis);
    RUN(checksums_are_the_same_in_both_ways);
    RUN(every_entry_comes_back);
    RUN(rows_of_many_entries);
    RUN(change_sets);
    RUN(damaged_rows_are_refused);
    RUN(entries_that_end_early);
    RUN(entries_that_say_something_else);
    RUN(entries_that_make_no_sense);
    RUN(versions_to_come);
    RUN(later_rows_win);
    RUN(nothing_is_taken_of_a_damaged_row);
    return check_done();
}
