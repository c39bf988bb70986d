/* Private to postgres.c (statements and answers) and postgres_connect.c (connections). */
#ifndef LARDER_SQL_POSTGRES_INTERNAL_H
#define LARDER_SQL_POSTGRES_INTERNAL_H

#include <libpq-fe.h>

#include "sql/remote.h"

struct url;

/* The first line of libpq's message, without its label. */
enum status postgres_fail(struct error *err, enum status code, const char *place, const char *text);

/* That what belongs to a session gets lost: ST_INVALID. */
enum status postgres_no_session(struct error *err, const char *place);

/* A connection as the URL says, which has a session of its own. *ret is to be closed in any case. */
enum status postgres_connect(const struct remote_options *o, const struct url *u, const char *place,
                             PGconn **ret, struct error *err) MUST_CHECK;

#endif
