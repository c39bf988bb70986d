/* Connections. OpenSSL reads from the socket itself, but what it writes goes through unsent: into the socket
   while that takes it, else into a buffer that is sent later. So a write of OpenSSL's never waits, and the
   worst of its rules does not apply: when a record is stuck, the same one must be tried again before anything
   else is written, but a peer that asks for new keys makes a read write, and the connection breaks. */
#include "net/tls.h"

#include <assert.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <string.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "net/conn.h"

#define RECORD_MAX ((size_t)16 << 10)
#define WRITE_MAX  ((size_t)1 << 20) /* what one call sends at most, so that others have their turn */

/* ---- what OpenSSL writes to ---- */

/* Sends what the socket takes now; false when the connection is broken. */
static bool send_some(int fd, const char *p, size_t n, size_t *ret_n)
{
    ssize_t sent = send(fd, p, n, MSG_NOSIGNAL);
    *ret_n = sent > 0 ? (size_t)sent : 0;
    return sent >= 0 || errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

static int sink_write(BIO *sink, const char *p, size_t n, size_t *ret_n)
{
    struct tls *t = BIO_get_data(sink);
    size_t sent = 0;
    if (t->unsent.len == 0 && !send_some(t->fd, p, n, &sent))
        return 0;
    buf_add(&t->unsent, p + sent, n - sent);
    *ret_n = n;
    return 1;
}

static long sink_control(BIO *sink, int what, long number, void *pointer)
{
    (void)sink, (void)number, (void)pointer;
    return what == BIO_CTRL_FLUSH;
}

static BIO_METHOD *sink_method; /* a constant that OpenSSL makes, once */

static void make_sink_method(void)
{
    sink_method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "larder");
    if (sink_method) {
        BIO_meth_set_write_ex(sink_method, sink_write);
        BIO_meth_set_ctrl(sink_method, sink_control);
    }
}

static BIO *sink_new(struct tls *t)
{
    static CRYPTO_ONCE once = CRYPTO_ONCE_STATIC_INIT;
    if (!CRYPTO_THREAD_run_once(&once, make_sink_method) || !sink_method)
        return NULL;
    BIO *sink = BIO_new(sink_method);
    if (sink) {
        BIO_set_data(sink, t);
        BIO_set_init(sink, 1);
    }
    return sink;
}

enum conn_io tls_flush(struct tls *t)
{
    size_t n = 0;
    if (t->unsent.len == 0)
        return CONN_OK;
    if (!send_some(t->fd, t->unsent.p + t->sent, t->unsent.len - t->sent, &n)) {
        t->open = false;
        return CONN_FAILED;
    }
    t->sent += n;
    if (t->sent < t->unsent.len)
        return CONN_AGAIN;
    buf_release(&t->unsent);
    t->sent = 0;
    return CONN_OK;
}

/* ---- life ---- */

struct tls *tls_new(struct ssl_ctx_st *context, int fd, const char *protocol)
{
    struct tls *t = mem_zalloc(sizeof *t);
    t->fd = fd;
    t->protocol = protocol;
    t->ssl = SSL_new(context);
    BIO *source = BIO_new_socket(fd, BIO_NOCLOSE), *sink = sink_new(t);
    if (!t->ssl || !source || !sink) {
        BIO_free(source);
        BIO_free(sink);
        tls_free(t);
        return NULL;
    }
    SSL_set0_rbio(t->ssl, source);
    SSL_set0_wbio(t->ssl, sink);
    SSL_set_app_data(t->ssl, t);
    SSL_set_accept_state(t->ssl);
    return t;
}

void tls_free(struct tls *t)
{
    if (!t)
        return;
    ERR_clear_error();
    if (t->open && t->unsent.len == 0)
        SSL_shutdown(t->ssl);
    ERR_clear_error();
    SSL_free(t->ssl);
    buf_release(&t->unsent);
    mem_free(t);
}

/* ---- handshakes ---- */

/* Why a handshake failed: what was wrong with the client's certificate, or what OpenSSL did not like. */
static enum tls_step handshake_failed(const struct tls *t, int saved_errno, struct error *err)
{
    unsigned long last = ERR_peek_last_error();
    const char *reason = last ? ERR_reason_error_string(last) : NULL;
    long verified = SSL_get_verify_result(t->ssl);
    if (last == 0) {
        if (saved_errno == 0 || saved_errno == ECONNRESET || saved_errno == EPIPE)
            return TLS_GONE;
        error_set(err, ST_IO, "%s", strerror(saved_errno));
    } else if (ERR_GET_REASON(last) == SSL_R_CERTIFICATE_VERIFY_FAILED && verified != X509_V_OK) {
        error_set(err, ST_DENIED, "%s: %s", reason, X509_verify_cert_error_string(verified));
    } else {
        error_set(err, ST_INVALID, "%s", reason ? reason : "the handshake failed");
    }
    ERR_clear_error();
    return TLS_FAILED;
}

enum tls_step tls_handshake(struct tls *t, struct error *err)
{
    ERR_clear_error();
    errno = 0;
    enum conn_io io = tls_flush(t);
    if (io == CONN_AGAIN)
        return TLS_WANTS_WRITE;
    int done = io == CONN_OK ? SSL_do_handshake(t->ssl) : -1;
    int saved = errno;
    if (done == 1) {
        t->open = true;
        t->more = SSL_has_pending(t->ssl);
        return TLS_DONE;
    }
    if (io == CONN_OK && SSL_get_error(t->ssl, done) == SSL_ERROR_WANT_READ)
        return t->unsent.len ? TLS_WANTS_WRITE : TLS_WANTS_READ;
    return handshake_failed(t, saved, err);
}

/* ---- bytes ---- */

/* What a call that moved nothing means. */
static enum conn_io stopped(struct tls *t)
{
    int saved = errno;
    switch (SSL_get_error(t->ssl, 0)) {
    case SSL_ERROR_WANT_READ:
        return CONN_AGAIN;
    case SSL_ERROR_ZERO_RETURN:
        return CONN_CLOSED;
    case SSL_ERROR_SYSCALL:
        t->open = false;
        errno = saved;
        return CONN_FAILED;
    default:
        t->open = false;
        errno = EPROTO;
        return CONN_FAILED;
    }
}

enum conn_io tls_read(struct tls *t, void *to, size_t n, size_t *ret_n)
{
    size_t got = 0, taken = 0;
    enum conn_io io = CONN_OK;
    ERR_clear_error();
    errno = 0;
    /* One record at a time, for as long as that needs nothing of the socket. */
    do {
        if (SSL_read_ex(t->ssl, (char *)to + got, n - got, &taken))
            got += taken;
        else
            io = stopped(t);
        t->more = io == CONN_OK ? SSL_has_pending(t->ssl) : io != CONN_AGAIN;
    } while (io == CONN_OK && t->more && got < n);
    *ret_n = got;
    return got ? CONN_OK : io; /* an end is found again by the next read */
}

/* A record's bytes are only counted when all of it has left: until then they are the caller's, who offers
   them again. */
enum conn_io tls_write(struct tls *t, const void *from, size_t n, size_t *ret_n)
{
    size_t done = 0;
    enum conn_io io;
    assert(n >= t->held);
    ERR_clear_error();
    errno = 0;
    while ((io = tls_flush(t)) == CONN_OK) {
        done += t->held;
        t->held = 0;
        if (done >= n || done >= WRITE_MAX)
            break;
        size_t piece = n - done < RECORD_MAX ? n - done : RECORD_MAX;
        if (!SSL_write_ex(t->ssl, (const char *)from + done, piece, &t->held)) {
            t->held = 0;
            io = stopped(t);
            break;
        }
    }
    *ret_n = done;
    return done ? CONN_OK : io;
}
