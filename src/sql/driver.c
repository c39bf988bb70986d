#include "sql/driver.h"

#include <ctype.h>

/* A new database is one more line here. */
static const struct sql_driver *const drivers[] = {&sqlite_driver};

/* The length of the scheme, or 0 for a path: two letters at least, so that no drive letter is one, and no
   slash before the colon. */
static size_t scheme_length(const char *url)
{
    size_t n = 0;
    while (isalnum((unsigned char)url[n]) || url[n] == '+')
        n++;
    return n > 1 && url[n] == ':' ? n : 0;
}

const struct sql_driver *sql_driver_for(const char *url, const char **ret_target)
{
    size_t n = scheme_length(url);
    if (n == 0) {
        *ret_target = url;
        return &sqlite_driver;
    }
    for (size_t i = 0; i < sizeof drivers / sizeof drivers[0]; i++) {
        if (slice_is(slice_of(url, n), drivers[i]->scheme)) {
            *ret_target = url + n + 1;
            return drivers[i];
        }
    }
    return NULL;
}

enum status sql_run(struct sql_stmt *st, struct error *err)
{
    bool row;
    enum status rc;
    do
        rc = sql_step(st, &row, err);
    while (rc == ST_OK && row);
    sql_reset(st);
    return rc;
}
