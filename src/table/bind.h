/* Values as parameters of SQLite's statements: CHECK and SQL run on its engine. */
#ifndef LARDER_TABLE_BIND_H
#define LARDER_TABLE_BIND_H

#include <sqlite3.h>

#include "table/value.h"

/* What the value borrows must stay until the statement has run. */
int value_bind(sqlite3_stmt *stmt, int at, const struct value *v);

#endif
