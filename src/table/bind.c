#include "table/bind.h"

int value_bind(sqlite3_stmt *stmt, int at, const struct value *v)
{
    switch (v->kind) {
    case VALUE_NULL:
        break;
    case VALUE_INT:
    case VALUE_BOOL:
        return sqlite3_bind_int64(stmt, at, v->i);
    case VALUE_REAL:
        return sqlite3_bind_double(stmt, at, v->d);
    case VALUE_TEXT:
        return sqlite3_bind_text64(stmt, at, v->s.p ? v->s.p : "", v->s.n, SQLITE_STATIC, SQLITE_UTF8);
    case VALUE_BLOB:
        return sqlite3_bind_blob64(stmt, at, v->s.p ? v->s.p : "", v->s.n, SQLITE_STATIC);
    }
    return sqlite3_bind_null(stmt, at);
}
