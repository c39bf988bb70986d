/* TLS over a connected socket, with OpenSSL: contexts, which hold certificates and rules, and what one
   connection needs of it. Nothing below TLS 1.2, no renegotiation. */
#ifndef LARDER_NET_TLS_H
#define LARDER_NET_TLS_H

#include <event2/event_struct.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/status.h"

enum conn_io;
struct ssl_ctx_st; /* OpenSSL's SSL_CTX */
struct ssl_st;     /* and SSL */

enum tls_auth { TLS_AUTH_NO, TLS_AUTH_YES, TLS_AUTH_OPTIONAL };

/* The options of the same names. A text that is empty was not given. */
struct tls_options {
    const char *cert_file, *key_file, *key_file_pass;
    const char *ca_cert_file, *ca_cert_dir;
    enum tls_auth auth_clients;
    const char *protocols, *ciphers, *ciphersuites;
    bool prefer_server_ciphers;
    bool session_caching;
    uint32_t session_cache_size;
    uint32_t session_cache_seconds;
};

/* Reads the files. A connection keeps the context that it began with, whatever becomes of the caller's. */
enum status tls_context_new(const struct tls_options *o, struct ssl_ctx_st **ret,
                            struct error *err) MUST_CHECK;
void tls_context_free(struct ssl_ctx_st *context);

/* The same once more, for another owner, on any thread: it goes with the last of them. */
struct ssl_ctx_st *tls_context_share(struct ssl_ctx_st *context);

/* Whether the time of a context's certificate is over, and when it ends: "Nov 15 12:00:00 2027 GMT". */
#define TLS_TIME_CHARS 40
bool tls_context_expired(struct ssl_ctx_st *context, char ret[TLS_TIME_CHARS]);

/* A connection's share. Bytes that were decrypted and not yet taken are with OpenSSL, where no poll sees
   them; and a read may have to write, when the peer asks for new keys. */
struct tls {
    struct ssl_st *ssl;
    int fd;
    const char *protocol;
    bool more;         /* a read would find something without waiting for the socket */
    bool open;         /* the handshake is over and nothing has gone wrong since */
    struct buf unsent; /* what the socket has not taken, encrypted ... */
    size_t sent;       /* ... but for these first bytes */
    size_t held;       /* the caller's bytes among it, which tls_write has not counted yet */
    bool again_set;
    struct event again; /* of conn.c: comes back for more */
};

/* The server's side of a connection; the descriptor stays the caller's. A client that asks for protocols by
   name (ALPN) gets this one, or nothing if it is not among them; without a name, it gets no answer to that.
   NULL when there is no memory. */
struct tls *tls_new(struct ssl_ctx_st *context, int fd, const char *protocol);

enum tls_step {
    TLS_DONE,
    TLS_WANTS_READ,
    TLS_WANTS_WRITE,
    TLS_GONE,  /* the peer has hung up */
    TLS_FAILED /* err says why */
};
enum tls_step tls_handshake(struct tls *t, struct error *err);

/* As conn_read and conn_write, which call them. */
enum conn_io tls_read(struct tls *t, void *to, size_t n, size_t *ret_n);
enum conn_io tls_write(struct tls *t, const void *from, size_t n, size_t *ret_n);

/* Sends what is unsent: CONN_OK when nothing is left. */
enum conn_io tls_flush(struct tls *t);

/* Tells the peer that nothing follows, if that can be done without waiting. t may be NULL. */
void tls_free(struct tls *t);

#endif
