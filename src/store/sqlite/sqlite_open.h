/* The store in an SQLite file, for store_open. */
#ifndef LARDER_STORE_SQLITE_SQLITE_OPEN_H
#define LARDER_STORE_SQLITE_SQLITE_OPEN_H

#include "store/store.h"

enum status sqlite_store_open(const struct store_options *o, struct store **ret,
                              struct error *err) MUST_CHECK;

#endif
