/* Rows of the journal. The input is taken for a row, and for the entries of one whose checksum is right: what
   can be read says the same when it is encoded again, a row goes into memory as a whole or not at all, and no
   byte outside the input is read. */

#include "fuzz.h"

#include "../entries.h"
#include "base/buf.h"
#include "journal/replay.h"

/* Whether all entries can be read. */
static bool check_entries(struct slice entries)
{
    struct journal_entry e, again;
    struct error err;
    struct buf one = {0};
    bool end = false;
    while (journal_next(&entries, &e, &end, &err) == ST_OK && !end) {
        bool none;
        one.len = 0;
        encode_entry(&one, &e);
        struct slice encoded = buf_slice(&one);
        CHECK_OR_DIE(journal_next(&encoded, &again, &none, &err) == ST_OK);
        CHECK_OR_DIE(!none && encoded.n == 0 && same_entry(&e, &again));
    }
    buf_release(&one);
    return end;
}

/* Hands out all that a memtable has, as the tables would get it. */
static void check_apply(const struct memtable *m)
{
    struct mem_apply *a = mem_apply_new(m);
    struct changes c;
    int64_t next_id;
    while (mem_apply_sort(a, 3))
        ;
    while (mem_apply_next(a, 2, &c, &next_id))
        CHECK_OR_DIE(c.nkeys + c.nranges + c.nitems + c.ngone + c.ntrash + c.ndbs > 0 || next_id);
    CHECK_OR_DIE(mem_apply_left(a) == 0);
    mem_apply_free(a);
}

static void check_row(struct slice row)
{
    struct slice entries;
    struct error err;
    bool whole = journal_open(row, &entries, &err) == ST_OK && check_entries(entries);
    struct memtable *m = memtable_new(0);
    CHECK_OR_DIE((replay_row(m, 1, row, &err) == ST_OK) == whole);
    CHECK_OR_DIE(whole || memtable_stats(m).empty);
    if (whole)
        check_apply(m);
    memtable_free(m);
    check_entries(journal_entries(row));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf row = {0};
    check_row(slice_of(data, size));
    journal_begin(&row);
    buf_add(&row, data, size);
    journal_end(&row);
    check_row(buf_slice(&row));
    buf_release(&row);
    return 0;
}
