/* How an operation ended. Absence is a value, never a status: these are failures, but for ST_STOP. */
#ifndef LARDER_BASE_STATUS_H
#define LARDER_BASE_STATUS_H

enum status {
    ST_OK = 0,
    ST_INVALID,  /* the caller's request cannot be meant so */
    ST_FULL,     /* no space left for the database */
    ST_READONLY, /* the database may be read but not written */
    ST_LOCKED,   /* another process holds the database */
    ST_BUSY,     /* a lock was not had in time; trying again may help */
    ST_CONFLICT, /* another writer was first; the batch may be run again */
    ST_CORRUPT,  /* the database's content is damaged */
    ST_DENIED,   /* permission */
    ST_IO,       /* reading or writing failed */
    ST_NEWER,    /* written by a newer version of this program */
    ST_MISSING,  /* the thing named does not exist */
    ST_LOST,     /* what was acknowledged is not in the database any more */
    ST_UNKNOWN,  /* a commit whose outcome is not known */
    ST_STALE,    /* nobody who can be reached has what was asked for */
    ST_REWOUND,  /* a failover has lost what this client had been told of */
    ST_INTERNAL, /* a broken invariant of ours */
    ST_STOP      /* a callback's alone: it has seen enough. Its caller ends the walk and returns ST_OK */
};
#define STATUSES (ST_INTERNAL + 1) /* that an operation may end with */

/* Filled by the site that fails; code repeats the returned status. */
struct error {
    enum status code;
    char text[240];
};

#define MUST_CHECK __attribute__((warn_unused_result))

/* What a walk returns whose last callback returned st. */
static inline enum status status_of_walk(enum status st)
{
    return st == ST_STOP ? ST_OK : st;
}

/* Fills err and returns code, so that a failing site is one line. err may be NULL. */
enum status error_set(struct error *err, enum status code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* A word for logs and metrics: "full", "readonly", ... */
const char *status_name(enum status st);

#endif
