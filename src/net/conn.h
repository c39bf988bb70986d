/* A connected socket: bytes in, bytes out, addresses. Never blocks. */
#ifndef LARDER_NET_CONN_H
#define LARDER_NET_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

#define CONN_ADDR_CHARS 112

struct conn {
    int fd;
    bool local; /* a Unix socket */
};

enum conn_io {
    CONN_OK,     /* *ret_n bytes moved, at least one */
    CONN_AGAIN,  /* not now */
    CONN_CLOSED, /* read: the peer has sent its last byte */
    CONN_FAILED  /* errno says why */
};

/* TCP: no delay, keepalive probes from keepalive_ms of silence on (0: none). */
void conn_tune(const struct conn *c, uint64_t keepalive_ms);

enum conn_io conn_read(const struct conn *c, void *to, size_t n, size_t *ret_n);
enum conn_io conn_write(const struct conn *c, const void *from, size_t n, size_t *ret_n);

/* Tries to send a last word, once, and closes. */
void conn_refuse(struct conn *c, struct slice last_word);
void conn_close(struct conn *c);

/* "127.0.0.1:5000", "[::1]:5000", "/path:0"; "?:0" when the system does not tell. */
void conn_addresses(const struct conn *c, const char *path, char ret_peer[CONN_ADDR_CHARS],
                    char ret_self[CONN_ADDR_CHARS]);

/* The peer is on this machine: a Unix socket, or an address of the loopback network. */
bool conn_is_loopback(const struct conn *c);

#endif
