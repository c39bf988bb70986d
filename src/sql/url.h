/* URLs of database servers: scheme://user:password@host:port,host:port/database?name=value&...
   Every part is optional and percent-encoded. */
#ifndef LARDER_SQL_URL_H
#define LARDER_SQL_URL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"
#include "base/status.h"

#define URL_HOSTS  8
#define URL_PARAMS 16

struct url {
    char *text; /* owns what the others point into; each is decoded and ends with NUL */
    const char *scheme, *user, *password, *database; /* NULL when not given */
    struct url_host {
        const char *name, *port; /* port: NULL when not given */
    } hosts[URL_HOSTS];
    int nhosts;
    struct url_param {
        const char *name, *value;
    } params[URL_PARAMS];
    int nparams;
};

/* ST_INVALID, with a message that does not show the password. */
enum status url_parse(const char *text, struct url *ret, struct error *err) MUST_CHECK;
void url_release(struct url *u);

/* The value of a parameter, NULL when it is not there. */
const char *url_param(const struct url *u, const char *name);

/* Removes a parameter from a URL in place, as it stands. */
void url_remove_param(char *text, const char *name);

/* Puts the first of several hosts behind the others, in place: the others are tried before it. */
void url_turn_hosts(char *text);

#endif
