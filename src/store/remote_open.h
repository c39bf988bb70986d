/* The store on a database server, for store_open and `larder check`. */
#ifndef LARDER_STORE_REMOTE_OPEN_H
#define LARDER_STORE_REMOTE_OPEN_H

#include <stdio.h>

#include "store/store.h"

enum status remote_store_open(const struct store_options *o, struct store **ret,
                              struct error *err) MUST_CHECK;

/* As store_check. */
enum status remote_store_check(const char *url, FILE *out, bool *ret_ok, struct error *err) MUST_CHECK;

#endif
