/* Descriptions of tables as they lie in the database, damaged in any way: what is read is sound, is written
   again as the same, and can be shown in every form. */
#include <string.h>

#include "fuzz.h"

#include "table/check.h"
#include "table/text/describe.h"

static void check_schema(const struct schema *s, struct arena *arena)
{
    struct buf json = {0}, again = {0}, words = {0};
    struct schema back;
    struct fault fault = {0};
    struct error err;
    schema_encode(s, &json);
    CHECK_OR_DIE(schema_decode(buf_slice(&json), arena, &back, &err) == ST_OK);
    schema_encode(&back, &again);
    CHECK_OR_DIE(slice_eq(buf_slice(&json), buf_slice(&again)));
    for (size_t i = 0; i < s->ncolumns; i++)
        CHECK_OR_DIE(schema_column(s, s->columns[i].name) == (int)i);
    for (size_t i = 0; i < s->nkey; i++)
        CHECK_OR_DIE(s->columns[s->key[i].column].not_null);
    schema_describe(s, &words);
    schema_sql(s, SLICE("t"), &words);
    for (int d = DIALECT_SQLITE; d <= DIALECT_MARIADB; d++)
        schema_view(s, SLICE("t"), 0, 7, (enum schema_dialect)d, &words);
    struct checks *checks = checks_new(s, &fault);
    CHECK_OR_DIE(!checks || fault.kind == FAULT_NONE);
    checks_free(checks);
    buf_release(&json);
    buf_release(&again);
    buf_release(&words);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = malloc(size ? size : 1);
    CHECK_OR_DIE(copy);
    memcpy(copy, data, size);
    struct arena arena = {0};
    struct schema s;
    struct error err = {0};
    enum status st = schema_decode(slice_of(copy, size), &arena, &s, &err);
    CHECK_OR_DIE(st == ST_OK || (st == ST_CORRUPT && err.text[0]));
    if (st == ST_OK)
        check_schema(&s, &arena);
    arena_release(&arena);
    free(copy);
    return 0;
}
