/* Words that describe tables, from whoever: what makes a table can be written down and makes it again, and
   what is refused leaves nothing but a fault. */
#include <string.h>

#include "fuzz.h"

#include "table/text/ddl.h"
#include "table/text/describe.h"

static void check_fault(const struct fault *fault)
{
    CHECK_OR_DIE(fault->kind != FAULT_NONE && fault->text[0] && strlen(fault->text) < FAULT_CHARS);
}

/* A schema that was made is whole: JSON and words give it back. */
static void check_schema(const struct schema *s, struct arena *arena)
{
    struct buf json = {0}, again = {0}, words = {0};
    struct schema back, made;
    struct fault fault = {0};
    struct error err;
    schema_encode(s, &json);
    CHECK_OR_DIE(json.len <= SCHEMA_BYTES_MAX);
    CHECK_OR_DIE(schema_decode(buf_slice(&json), arena, &back, &err) == ST_OK);
    schema_encode(&back, &again);
    CHECK_OR_DIE(slice_eq(buf_slice(&json), buf_slice(&again)));
    schema_describe(s, &words);
    const struct slice *prefix = s->on_hashes ? &s->prefix : NULL;
    if (!ddl_table(buf_slice(&words), prefix, arena, &made, &fault))
        CHECK_OR_DIE(fault.kind == FAULT_TOO_LONG); /* written out it may be longer */
    else
        CHECK_OR_DIE(made.ncolumns == s->ncolumns && made.nindexes == s->nindexes && made.nkey == s->nkey &&
                     made.nchecks == s->nchecks);
    buf_release(&json);
    buf_release(&again);
    buf_release(&words);
}

static void check_table(struct slice text, const struct slice *prefix, struct arena *arena)
{
    struct schema s;
    struct fault fault = {0};
    if (ddl_table(text, prefix, arena, &s, &fault))
        check_schema(&s, arena);
    else
        check_fault(&fault);
}

static void check_alter(struct slice text, struct arena *arena)
{
    struct schema s, altered;
    struct fault fault = {0};
    enum alter_kind kind;
    uint16_t number;
    CHECK_OR_DIE(ddl_table(
        SLICE("id INT, a TEXT DEFAULT 'x', b INT, c REAL, j JSON, PRIMARY KEY (id DESC, a), INDEX i (c), "
              "UNIQUE INDEX u (b, c DESC), CHECK (b > 0)"),
        NULL, arena, &s, &fault));
    if (!ddl_alter(text, &s, arena, &altered, &kind, &number, &fault)) {
        check_fault(&fault);
        return;
    }
    CHECK_OR_DIE(kind <= ALTER_DROP_INDEX);
    check_schema(&altered, arena);
}

static void check_statements(struct slice sql, struct arena *arena)
{
    struct ddl d;
    struct slice rest;
    struct fault fault = {0};
    while (ddl_statement(sql, arena, &d, &rest, &fault)) {
        CHECK_OR_DIE(fault.kind == FAULT_NONE && rest.n < sql.n && rest.p + rest.n == sql.p + sql.n);
        if (d.kind == DDL_CREATE_TABLE)
            check_table(d.text, NULL, arena);
        else if (d.kind != DDL_DROP_TABLE && d.kind != DDL_RENAME_TABLE)
            check_alter(d.text, arena);
        sql = rest;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = malloc(size ? size : 1);
    CHECK_OR_DIE(copy);
    memcpy(copy, data, size);
    struct slice text = slice_of(copy, size), prefix = SLICE("p:");
    struct arena arena = {0};
    check_table(text, NULL, &arena);
    check_table(text, &prefix, &arena);
    check_alter(text, &arena);
    check_statements(text, &arena);
    arena_release(&arena);
    free(copy);
    return 0;
}
