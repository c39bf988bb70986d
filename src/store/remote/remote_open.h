/* The store on a database server, for store_open. */
#ifndef LARDER_STORE_REMOTE_REMOTE_OPEN_H
#define LARDER_STORE_REMOTE_REMOTE_OPEN_H

#include "store/store.h"

enum status remote_store_open(const struct store_options *o, struct store **ret,
                              struct error *err) MUST_CHECK;

#endif
