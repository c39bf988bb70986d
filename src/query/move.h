/* A text of SQL that is too much for the loop goes on on a query thread (threads.h), from its beginning.
   Whoever runs it says how its answer is made there; the same call, run again when that is done, takes it:

     if (query_take(c, &taken))                the call has been elsewhere
         answer from it
     query_run(...)                            on the loop
     QUERY_MOVE and query_can_move(c):
         query_move(c, &q, answer_on_thread)   and says nothing: it will be run again */
#ifndef LARDER_QUERY_MOVE_H
#define LARDER_QUERY_MOVE_H

#include "base/buf.h"
#include "query/query.h"
#include "query/threads.h"

/* On a thread: runs q with a sink of its own, by query_run, and makes the whole answer, of QUERY_DONE. reply
   is a sink as the call's (reply_twin), which appends to out; who does not use it appends to out itself. */
typedef enum status query_answer_fn(struct query_engine *e, struct query *q, struct reply *reply,
                                    struct buf *out, struct query_result *ret);

/* q's text and arguments are copied; of its limits, what concerns size counts there, and sql-timeout counts
   from here. It only reads. */
void query_move(struct call *c, const struct query *q, query_answer_fn *fn);

/* What has become of it. */
struct query_taken {
    enum status status;        /* not ST_OK: the database failed, and c->err says why ... */
    const char *error;         /* ... or this is the error to reply, with its code ... */
    const struct fault *fault; /* ... or this; all of them none: */
    struct slice made;         /* the answer; borrowed until the handler returns */
};
bool query_take(struct call *c, struct query_taken *ret);

#endif
