/* A connected socket: bytes in, bytes out, addresses, and when to move them. Never blocks. Whether the bytes
   are encrypted on their way is this file's business alone. */
#ifndef LARDER_NET_CONN_H
#define LARDER_NET_CONN_H

#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

#define CONN_ADDR_CHARS 112

struct tls;

struct conn {
    int fd;
    uint64_t number;                /* the owner's: in the order in which they came */
    bool local;                     /* a Unix socket */
    bool reading, writing;          /* what the owner waits for */
    bool awaits_read, awaits_write; /* what the socket is watched for, on behalf of that */
    struct tls *tls;                /* NULL: the bytes go as they are; its handshake is over (handshake.h) */
    struct event read_event, write_event;
    event_callback_fn readable, writable;
    void *arg;
};

enum conn_io {
    CONN_OK,     /* *ret_n bytes moved, at least one */
    CONN_AGAIN,  /* not now */
    CONN_CLOSED, /* read: the peer has sent its last byte */
    CONN_FAILED  /* errno says why */
};

/* TCP: no delay, keepalive probes from keepalive_ms of silence on (0: none). */
void conn_tune(const struct conn *c, uint64_t keepalive_ms);

enum conn_io conn_read(struct conn *c, void *to, size_t n, size_t *ret_n);

/* After CONN_AGAIN the same bytes come first the next time, wherever they are by then. */
enum conn_io conn_write(struct conn *c, const void *from, size_t n, size_t *ret_n);

/* Where the loop calls when bytes can be read or written, while that is watched for. From here on c stays
   where it is in memory; it may be closed in such a call, but not freed. */
void conn_attach(struct conn *c, struct event_base *base, event_callback_fn readable,
                 event_callback_fn writable, void *arg);
void conn_watch_reading(struct conn *c, bool on);
void conn_watch_writing(struct conn *c, bool on);

/* Nothing more is sent, and the peer is told; what still comes can be read only to be thrown away. */
void conn_end_output(struct conn *c);

/* Tries to send a last word, once, and closes. */
void conn_refuse(struct conn *c, struct slice last_word);
void conn_close(struct conn *c);

/* "127.0.0.1:5000", "[::1]:5000", "/path:0"; "?:0" when the system does not tell. */
void conn_addresses(const struct conn *c, const char *path, char ret_peer[CONN_ADDR_CHARS],
                    char ret_self[CONN_ADDR_CHARS]);

/* The peer is on this machine: a Unix socket, or an address of the loopback network. */
bool conn_is_loopback(const struct conn *c);

#endif
