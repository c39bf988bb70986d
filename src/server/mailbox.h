/* Messages from other threads to a worker. The mailbox does not know what a message says: its kind has the
   function that receives it, on the worker's thread, in the order in which messages were posted. A new kind
   is a struct that begins with struct message, and a struct message_kind where that struct is declared.

   Three ways to post, each from any thread; the poster wakes the worker's loop afterwards (worker_wake):

     mailbox_post          always arrives; the poster allocates it (a connection to take over)
     mailbox_post_bounded  is refused when too many bytes wait, so that a worker that waits for its database
                           cannot make the others fill the memory (lines for monitoring clients)
     mailbox_post_once     says only that something has happened; is part of the receiver, and waits in the
                           mailbox once, however often it is posted ("look what your blocked clients wait
                           for") */
#ifndef LARDER_SERVER_MAILBOX_H
#define LARDER_SERVER_MAILBOX_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct message;
struct worker;

struct message_kind {
    /* Takes m over: frees what the poster allocated. */
    void (*receive)(struct worker *w, struct message *m);
    /* The worker ends before it has received m. NULL: there is nothing to free. */
    void (*discard)(struct message *m);
};

struct message {
    const struct message_kind *kind;
    struct message *next;
    atomic_bool waiting; /* mailbox_post_once: it is in the mailbox already */
};

struct mailbox {
    pthread_mutex_t lock;
    struct message *first, **end;
    size_t bytes; /* of bounded messages that wait */
};

void mailbox_init(struct mailbox *m);

/* Discards the messages that wait. */
void mailbox_release(struct mailbox *m);

void mailbox_post(struct mailbox *m, struct message *message);

/* bytes: how much memory the message takes. False: there is no room, and it stays the caller's. */
bool mailbox_post_bounded(struct mailbox *m, struct message *message, size_t bytes);

void mailbox_post_once(struct mailbox *m, struct message *message);

/* On the worker's thread: w receives every message that waits. */
void mailbox_read(struct mailbox *m, struct worker *w);

#endif
