/* What the drivers of database servers share. */
#ifndef LARDER_SQL_REMOTE_INTERNAL_H
#define LARDER_SQL_REMOTE_INTERNAL_H

#include <poll.h>

#include "base/buf.h"
#include "sql/remote.h"
#include "sql/url.h"

bool postgres_refuses(const struct remote_options *o, const struct url *u);
enum status postgres_open(const struct remote_options *o, const struct url *u, struct remote **ret,
                          struct error *err) MUST_CHECK;
enum status mariadb_open(const struct remote_options *o, const struct url *u, struct remote **ret,
                         struct error *err) MUST_CHECK;

/* Fills in what every connection has: the time-out, the prefix, the place. */
enum status remote_init(struct remote *c, const struct remote_options *o, const struct url *u,
                        struct error *err) MUST_CHECK;

/* Waits until something happens there, which ST_OK means; the connection is lost when nothing does in time,
   or when the server is known to be away. */
enum status remote_wait(struct remote *c, struct pollfd *fd, int64_t deadline_us,
                        struct error *err) MUST_CHECK;

/* How long a transaction may wait for its next statement before the server ends it: a machine that has
   vanished leaves locks behind that no other session can remove. */
unsigned remote_idle_ms(const struct remote *c);

/* Adds a text to out, with the connection's prefix for larder_. */
void remote_expand(const struct remote *c, struct slice text, struct buf *out);

/* A name without quotes: letters, digits, underscores. */
bool remote_plain_name(const char *name);

#endif
