/* Sockets that wait for clients: the TCP addresses of a bind list, a Unix socket. Knows bytes, not commands;
   its owner watches the descriptors and calls listener_accept when one is readable. */
#ifndef LARDER_NET_LISTENER_H
#define LARDER_NET_LISTENER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "net/conn.h"

#define LISTENER_MAX 17 /* 16 addresses, as in Redis, and a Unix socket */

struct listener {
    int fds[LISTENER_MAX];
    bool local[LISTENER_MAX];
    size_t n;
    bool tls;             /* clients begin with a handshake (handshake.h) */
    const char *protocol; /* what they may ask for there by name, "http/1.1"; NULL: it has none */
    int port;             /* the one really bound: differs from the one asked for when that was 0 */
    char *path;           /* of the Unix socket, or NULL; removed on close */
    int spare_fd;         /* given up for a moment to refuse a client when descriptors have run out */
};

void listener_init(struct listener *l);
void listener_close(struct listener *l);

/* Listens on every address of the list (separated by spaces) at the same port. "*" is every IPv4 address,
   "::*" every IPv6 one; behind a "-" an address that this machine does not have is left out without
   complaint. port 0 takes a free one. */
enum status listener_open_tcp(struct listener *l, const char *bind_list, int port, int backlog,
                              struct error *err) MUST_CHECK;

/* A stale socket file at path is replaced. mode 0: as the umask leaves it. */
enum status listener_open_unix(struct listener *l, const char *path, unsigned mode, int backlog,
                               struct error *err) MUST_CHECK;

enum accept_result {
    ACCEPT_OK,      /* *ret_conn is connected and does not block */
    ACCEPT_NONE,    /* no connection waits */
    ACCEPT_REFUSED, /* the process has no descriptor left: one client was turned away */
    ACCEPT_STARVED  /* nor could it be turned away: stop watching for a while */
};

/* Takes one client from fds[i]. */
enum accept_result listener_accept(struct listener *l, size_t i, struct conn *ret_conn);

#endif
