#include "query/query_internal.h"

struct value value_from_sqlite(sqlite3_value *v, struct arena *arena)
{
    struct value to = {.kind = VALUE_NULL};
    switch (sqlite3_value_type(v)) {
    case SQLITE_INTEGER:
        to.kind = VALUE_INT;
        to.i = sqlite3_value_int64(v);
        return to;
    case SQLITE_FLOAT:
        to.kind = VALUE_REAL;
        to.d = sqlite3_value_double(v);
        return to;
    case SQLITE_TEXT:
        to.kind = VALUE_TEXT;
        to.s.p = (const char *)sqlite3_value_text(v);
        break;
    case SQLITE_BLOB:
        to.kind = VALUE_BLOB;
        to.s.p = sqlite3_value_blob(v);
        break;
    default:
        return to;
    }
    to.s.n = (size_t)sqlite3_value_bytes(v);
    if (!to.s.p)
        to.s = SLICE("");
    if (arena)
        to.s = arena_copy(arena, to.s);
    return to;
}

void value_to_sqlite(sqlite3_context *ctx, const struct value *v)
{
    switch (v->kind) {
    case VALUE_NULL:
        return;
    case VALUE_INT:
    case VALUE_BOOL:
        sqlite3_result_int64(ctx, v->i);
        return;
    case VALUE_REAL:
        sqlite3_result_double(ctx, v->d);
        return;
    case VALUE_TEXT:
        sqlite3_result_text64(ctx, v->s.p ? v->s.p : "", v->s.n, SQLITE_TRANSIENT, SQLITE_UTF8);
        return;
    case VALUE_BLOB:
        sqlite3_result_blob64(ctx, v->s.p ? v->s.p : "", v->s.n, SQLITE_TRANSIENT);
        return;
    }
}
