/* The log beside a file (redo/redo.h) as larder_meta knows it, and whether the two belong together.

     redo_id      of the log. First its segment is there, synced, then larder_meta names it, synced, then
   comes the first record redo_open    1 while the log may hold what the tables have not: from before the
   first record until everything is in the tables, synced. Segments are removed after it is 0 redo_inode which
   file that was (store_get_file): a copy, or a file that was put in its place, is another. Empty: any file
   will do redo_cookie  of its schema: a backup that is written over the file leaves another. Each start draws
   one, because SQLite's copies count theirs and may count alike; passes follow who changes the schema

   A log that does not belong to the file is never brought in unasked: a backup that was restored beside the
   log of the file before it must not get the FLUSHALL again that it was restored for. Nor is one given up
   unasked that holds anything. Both ways out are commands (admin/salvage.h). */
#ifndef LARDER_JOURNAL_REDO_STATE_H
#define LARDER_JOURNAL_REDO_STATE_H

#include "redo/redo.h"
#include "store/journal_rows.h"

struct redo_state {
    bool known; /* larder_meta has an id */
    struct redo_id id;
    bool open;
    char inode[sizeof((struct store_file *)0)->identity];
    int64_t cookie;
    int64_t applied;
    struct store_file file; /* as it is now */
};

/* Within the running transaction. */
enum status redo_state_read(struct store *s, struct redo_state *ret, struct error *err) MUST_CHECK;

/* Within the running transaction: a log of this id has been begun beside the file as it is. */
enum status redo_state_open(struct store *s, const struct redo_id *id, struct error *err) MUST_CHECK;

/* The same: somebody may have changed the schema of the file while the log's server had it. */
enum status redo_state_follow(struct store *s, struct error *err) MUST_CHECK;

/* The same: the tables have everything, with this transaction. */
enum status redo_state_close(struct store *s, struct error *err) MUST_CHECK;

/* The same: this file has no log, and never had one. For copies. */
enum status redo_state_forget(struct store *s, struct error *err) MUST_CHECK;

enum redo_verdict {
    REDO_NONE, /* there is no log, or it holds nothing */
    REDO_COPY, /* there is none, and the file is a copy of one that had a log, which may have held something
                */
    REDO_OURS, /* there is one, and it belongs to the file */
};

/* Says why, and what can be done; where there is room, with the URL. */
enum status redo_refuse(struct error *err, enum status code, const char *why, const char *command,
                        const char *url);

/* url is for people. A status other than ST_OK: they do not belong together, or the log is missing, and what
   can be done about it. */
enum status redo_judge(const struct redo_state *s, const struct redo_found *found, const char *url,
                       enum redo_verdict *ret, struct error *err) MUST_CHECK;

#endif
