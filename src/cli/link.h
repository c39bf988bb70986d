/* A connection from `larder sql`, `larder load` and `larder dump` to a running server: RESP3 over TCP, a Unix
   socket or TLS, one thread, blocking. A command is sent and its reply awaited, or many are sent ahead
   (link_add, link_flush) and their replies taken in order.

   A failure of the connection is for good: link_error says what it was. */
#ifndef LARDER_CLI_LINK_H
#define LARDER_CLI_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/slice.h"

struct link_options {
    const char *host, *port, *socket; /* socket: of a Unix socket, then the others do not count */
    const char *user, *password;      /* password NULL: none */
    const char *db;
    bool tls, insecure; /* insecure: any certificate will do */
    const char *cacert, *cert, *key;
};

enum answer_kind {
    ANSWER_NULL,
    ANSWER_TEXT, /* a string or a status */
    ANSWER_ERROR,
    ANSWER_INT,
    ANSWER_REAL,
    ANSWER_BOOL,
    ANSWER_LIST, /* an array or a set */
    ANSWER_MAP   /* items: key, value, key, value ... */
};

struct answer {
    enum answer_kind kind;
    struct slice text; /* ANSWER_TEXT, ANSWER_ERROR; of a number how the server wrote it */
    int64_t number;    /* ANSWER_INT, ANSWER_BOOL */
    struct answer *items;
    size_t n;
};

struct link;

/* Connects, authenticates and selects the database. NULL: it failed, why has the reason. */
struct link *link_open(const struct link_options *o, char why[256]);
void link_close(struct link *l); /* may be NULL */

/* The number that the server knows the connection by (CLIENT ID). */
int64_t link_id(const struct link *l);

/* Adds a command to what will be sent; sends what was added. False: the connection has failed. */
void link_add(struct link *l, const struct slice *words, size_t n);
bool link_flush(struct link *l);
size_t link_unsent(const struct link *l);

/* The next reply; it lives in the arena. False: the connection has failed. interrupted (may be NULL) is
   called, once, when a signal came while it waits. */
bool link_take(struct link *l, struct arena *arena, struct answer *ret, void (*interrupted)(void *arg),
               void *arg);

/* One command and its reply. */
bool link_ask(struct link *l, struct arena *arena, const struct slice *words, size_t n, struct answer *ret);

const char *link_error(const struct link *l);

/* What a map has under a name, or NULL. */
const struct answer *answer_member(const struct answer *map, const char *name);

#endif
