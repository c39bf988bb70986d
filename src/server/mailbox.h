/* What other threads send to a worker: connections to take over, lines for its monitoring clients, and that
   it should look for what its blocked clients wait for. Whoever posts wakes the worker's loop as well. */
#ifndef LARDER_SERVER_MAILBOX_H
#define LARDER_SERVER_MAILBOX_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/slice.h"
#include "net/conn.h"

struct letter {
    struct letter *next;
    int listener;     /* by which the connection came; -1: it is a line */
    struct conn conn; /* not attached to a loop */
    struct slice line;
    char bytes[]; /* of the line */
};

struct mailbox {
    pthread_mutex_t lock;
    struct letter *first, **end;
    size_t bytes;     /* of lines that wait */
    bool lost;        /* a line found no room */
    atomic_bool look; /* for blocked clients */
};

void mailbox_init(struct mailbox *m);

/* Closes the connections that nobody has taken. */
void mailbox_release(struct mailbox *m);

/* From any thread. A line that the reader does not come to read is lost, so that a worker that waits for its
   database cannot make the others fill the memory. */
void mailbox_post_conn(struct mailbox *m, struct conn conn, int listener);
void mailbox_post_line(struct mailbox *m, struct slice line);

/* Takes out all there is, oldest first; the caller frees each. *ret_lost: there were more lines. */
struct letter *mailbox_take(struct mailbox *m, bool *ret_lost);
void letter_free(struct letter *l);

#endif
