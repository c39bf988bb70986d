/* `larder selftest`: whether a database server does what Larder relies on, tried there. All of it happens in
   a schema (PostgreSQL) or database (MariaDB) that is made for it and removed at the end, also after a
   failure and after SIGINT or SIGTERM; a crash of this program leaves it, under a name that tells what it is.
 */
#ifndef LARDER_SELFTEST_SELFTEST_H
#define LARDER_SELFTEST_SELFTEST_H

#include <stdbool.h>
#include <stdio.h>

#include "base/status.h"

struct selftest_options {
    const char *url;
    bool json;     /* the report on out is one object, else a table */
    bool quiet;    /* no lines of progress on stderr */
    bool mark;     /* on a server that is not proven: a mark that it is now, when everything needed holds */
    double load_s; /* how long several servers write at once */
    FILE *out;
};

/* *ret_fit: Larder can be used there. ST_IO: the server cannot be reached; ST_DENIED: no scratch may be made
   there, and the message has the GRANT; ST_INVALID: not the URL of a database server. */
enum status selftest_run(const struct selftest_options *o, bool *ret_fit, struct error *err) MUST_CHECK;

#endif
