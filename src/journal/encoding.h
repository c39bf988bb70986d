/* The journal's encoding of change sets: what larder_journal.changes holds.

     row      := version (1 byte: 1) entry* checksum (4 bytes, little-endian: CRC-32C of all before it)
     entry    := kind (1 byte) and by kind:
       key    1  seq version db key type expire_at value      a short string, or no items
       items  2  seq version db key type expire_at value id size first
       gone   3  seq version db key
       item   4  table id place [value] [score] [expire_at] [ord]     what its table has, in this order
       lost   5  table id place
       trash  6  id type
       db     7  db number keys expires
       ids    8  the next id that no collection has ever had
       holes  9  seq version db key type expire_at value id size first numbers    items with numbers beyond
                 their count
       range 10  table id min max                             by position; by score a score and a name each

   Numbers are variable-length (7 bits a byte, low ones first, zigzag where they may be negative: first,
   expire_at, places by position, ord, counts); type and table are one byte; bytes are their length and
   themselves; a score is 8 bytes, the double's bits, little-endian.

   Every entry but a range is the last state of a row, so that bringing a row of the journal in twice, or one
   whose changes are partly in the tables, is the same as once. Entries of one row come in the order they were
   made, rows by seq. A key or item says nothing of whether the tables had it before: after a crash that is
   not known.

   A range removes what was there before it, so that it may only be brought in with everything behind it that
   the tables have: readers of a journal take all of it into one memtable, and apply that in one transaction
   which also says how far the tables are. */
#ifndef LARDER_JOURNAL_ENCODING_H
#define LARDER_JOURNAL_ENCODING_H

#include "base/buf.h"
#include "base/slice.h"
#include "base/status.h"
#include "store/store.h"

/* A row begins and ends. */
void journal_begin(struct buf *out);
void journal_end(struct buf *out);

/* Entries; they can be encoded apart and put between begin and end later. */
void journal_add_changes(struct buf *out, const struct changes *c);
void journal_add_next_id(struct buf *out, int64_t next_id);

enum journal_kind {
    JOURNAL_KEY,
    JOURNAL_ITEM,
    JOURNAL_LOST,
    JOURNAL_TRASH,
    JOURNAL_DB,
    JOURNAL_IDS,
    JOURNAL_RANGE
};

struct journal_entry {
    enum journal_kind kind;
    struct key_row key; /* type ROW_NONE: gone */
    struct item_row item;
    struct item_ref lost;
    struct item_range range;
    struct trash_row trash;
    struct db_row db;
    int64_t next_id;
};

/* Checks a row and finds its entries: ST_CORRUPT when it is not one that was written so. */
enum status journal_open(struct slice row, struct slice *ret_entries, struct error *err) MUST_CHECK;

/* The entries of a row that journal_open refuses, for what they are worth: they may say anything. */
struct slice journal_entries(struct slice row);

/* Takes the next entry off; *ret_end: there was none. Slices borrow the row. */
enum status journal_next(struct slice *entries, struct journal_entry *ret, bool *ret_end,
                         struct error *err) MUST_CHECK;

#endif
