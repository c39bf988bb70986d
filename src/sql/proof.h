/* Which database server this is, and whether Larder has been proven on it: in the versions that its tests
   run, or where `larder selftest` has passed and left a mark. */
#ifndef LARDER_SQL_PROOF_H
#define LARDER_SQL_PROOF_H

#include "sql/remote.h"

/* What a selftest looks at: a mark of a lower level is none. To be raised when a server relies on more. */
#define PROOF_LEVEL 1

struct remote_identity {
    char text[128]; /* "PostgreSQL 15.8 (Debian 15.8-1)", as it says of itself */
    bool tested;    /* in the versions that the tests run */
};

/* Whether what a server says of itself (version(); @@version and @@version_comment) is of such a version. */
bool remote_is_tested(enum remote_dialect dialect, const char *text);

/* Asks the server who it is. */
enum status remote_identify(struct remote *c, struct remote_identity *ret, struct error *err) MUST_CHECK;

/* Whether a selftest has passed on a server that said exactly this of itself: one that has been upgraded is
   another. The mark is a row of larder_tested. */
enum status remote_has_mark(struct remote *c, const struct remote_identity *id, bool *ret,
                            struct error *err) MUST_CHECK;

/* Leaves the mark, in a table that is made when there is none; or takes it away, after a selftest that did
   not pass. */
enum status remote_put_mark(struct remote *c, const struct remote_identity *id, struct error *err) MUST_CHECK;
enum status remote_drop_mark(struct remote *c, const struct remote_identity *id,
                             struct error *err) MUST_CHECK;

#endif
