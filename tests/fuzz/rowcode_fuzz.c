/* Rows and entries as they lie in the database, damaged in any way: what is read is written again as the same
   values, and an entry leads to its row. The first byte chooses the table. */
#include <string.h>

#include "fuzz.h"

#include "table/rowcode.h"
#include "table/text/ddl.h"

static const char *const tables[] = {"first TEXT, last TEXT, address TEXT, ssn INTEGER, PRIMARY KEY (first, "
                                     "last), INDEX by_ssn (ssn, last), UNIQUE (ssn)",
                                     "a INT PRIMARY KEY, r REAL, b BLOB, o BOOLEAN, t TIMESTAMP, j JSON, "
                                     "UNIQUE INDEX u (b DESC, a), INDEX i (r, o DESC, t)",
                                     "a BLOB, b TEXT, c REAL, d BOOLEAN, e TIMESTAMP DEFAULT 5, PRIMARY KEY "
                                     "(a DESC, b, c DESC, d), INDEX i (d DESC, e)"};

static void check_entries(const struct schema *s, const struct value *values, struct slice name)
{
    struct buf entry = {0}, row = {0};
    for (size_t i = 0; i < s->nindexes; i++) {
        struct fault fault = {0};
        struct error err;
        bool unique;
        entry.len = row.len = 0;
        if (!rowcode_entry(s, &s->indexes[i], values, &entry, &unique, &fault)) {
            CHECK_OR_DIE(fault.kind == FAULT_TOO_LONG && entry.len == 0);
            continue;
        }
        CHECK_OR_DIE(rowcode_entry_row(s, &s->indexes[i], buf_slice(&entry), unique ? name : SLICE(""), &row,
                                       &err) == ST_OK);
        CHECK_OR_DIE(slice_eq(buf_slice(&row), name));
    }
    buf_release(&entry);
    buf_release(&row);
}

static void check_row(const struct schema *s, struct slice value, struct arena *arena)
{
    struct table_row row, back;
    struct error err = {0};
    struct fault fault = {0};
    struct buf again = {0}, name = {0};
    if (rowcode_decode(s, SLICE("n"), value, 9, arena, &row, &err) != ST_OK) {
        CHECK_OR_DIE(err.code == ST_CORRUPT && err.text[0]);
        return;
    }
    rowcode_encode(s, &row, &again);
    CHECK_OR_DIE(rowcode_decode(s, SLICE("n"), buf_slice(&again), 9, arena, &back, &err) == ST_OK);
    CHECK_OR_DIE(back.version == row.version && back.expire_at == 9);
    for (size_t i = 0; i < s->ncolumns; i++)
        CHECK_OR_DIE(row.values[i].kind == back.values[i].kind &&
                     value_compare(&row.values[i], &back.values[i]) == 0);
    if (rowcode_name(s, row.values, &name, &fault))
        check_entries(s, row.values, buf_slice(&name));
    else
        CHECK_OR_DIE(fault.kind == FAULT_TOO_LONG);
    buf_release(&again);
    buf_release(&name);
}

/* The bytes as the name of an entry. */
static void check_entry(const struct schema *s, struct slice entry)
{
    struct buf row = {0};
    struct error err = {0};
    for (size_t i = 0; i < s->nindexes; i++) {
        row.len = 0;
        enum status st = rowcode_entry_row(s, &s->indexes[i], entry, SLICE(""), &row, &err);
        CHECK_OR_DIE(st == ST_OK ? row.len > 0 : st == ST_CORRUPT && row.len == 0);
    }
    buf_release(&row);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct arena arena = {0};
    struct schema s;
    struct fault fault = {0};
    struct slice input = slice_of(data + 1, size - 1);
    CHECK_OR_DIE(ddl_table(slice_str(tables[data[0] % 3]), NULL, &arena, &s, &fault));
    check_row(&s, input, &arena);
    check_entry(&s, input);
    arena_release(&arena);
    return 0;
}
