/* What a database server has beside tables and transactions: found out by trying, not by its name. All of it
   in one round trip where all is there, in one more for each that is not. */
#ifndef LARDER_SQL_FEATURES_H
#define LARDER_SQL_FEATURES_H

#include "sql/remote.h"

struct remote_features {
    bool locks;       /* that belong to sessions (advisory locks, GET_LOCK): they are there, and are held */
    bool listen;      /* LISTEN and NOTIFY. PostgreSQL alone */
    bool skip_locked; /* FOR UPDATE SKIP LOCKED */
};

/* Everything is there: what is taken for true where nothing was tried. */
#define REMOTE_FEATURES_ALL ((struct remote_features){true, true, true})

/* Between transactions, with larder_meta there. A failure that says nothing of the feature (a lost
   connection, no memory, no time) is returned. Whether a second session is kept out is not tried here: a
   selftest does. */
enum status remote_try_features(struct remote *c, struct remote_features *ret, struct error *err) MUST_CHECK;

#endif
