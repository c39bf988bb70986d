/* `larder check`: whether a database is whole, from its pages to what the rows say of each other. */
#ifndef LARDER_ADMIN_CHECK_H
#define LARDER_ADMIN_CHECK_H

#include <stdbool.h>
#include <stdio.h>

#include "base/status.h"

/* Reads everything in one transaction and writes a line for each thing looked at and each thing found to out.
   *ret_ok: nothing was found. A status other than ST_OK: the database could not be read at all.

   It may run beside a server (whose log cannot be shortened meanwhile); ST_BUSY when that one is so busy that
   its tables are never whole. Without a server, what the journal holds is brought into the tables first, in
   a transaction that is rolled back: no server can start meanwhile. */
enum status store_check(const char *url, FILE *out, bool *ret_ok, struct error *err) MUST_CHECK;

#endif
