/* A connection with TLS at its worst: tiny buffers, full sockets, keys that change in the middle. The client
   is OpenSSL in the same thread, over a socket pair. */
#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "check.h"
#include "net/handshake.h"
#include "net/tls.h"

static char cert_path[64], key_path[64];
static struct ssl_ctx_st *context;
static SSL_CTX *client_context;

/* A certificate signed by itself, in files as an administrator would have it. */
static bool make_certificate(void)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = X509_new();
    X509_set_version(cert, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
    X509_gmtime_adj(X509_getm_notBefore(cert), 0);
    X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
    X509_set_pubkey(cert, key);
    X509_NAME *name = X509_get_subject_name(cert);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"localhost", -1, -1, 0);
    X509_set_issuer_name(cert, name);
    bool ok = X509_sign(cert, key, EVP_sha256()) > 0;
    snprintf(cert_path, sizeof cert_path, "%s", P_tmpdir "/larder-cert-XXXXXX");
    snprintf(key_path, sizeof key_path, "%s", P_tmpdir "/larder-key-XXXXXX");
    FILE *certs = fdopen(mkstemp(cert_path), "w"), *keys = fdopen(mkstemp(key_path), "w");
    ok = ok && certs && keys && PEM_write_X509(certs, cert) &&
         PEM_write_PrivateKey(keys, key, NULL, NULL, 0, NULL, NULL);
    if (certs)
        fclose(certs);
    if (keys)
        fclose(keys);
    X509_free(cert);
    EVP_PKEY_free(key);
    return ok;
}

static struct tls_options usual(void)
{
    return (struct tls_options){
        .cert_file = cert_path,
        .key_file = key_path,
        .key_file_pass = "",
        .ca_cert_file = "",
        .ca_cert_dir = "",
        .auth_clients = TLS_AUTH_NO,
        .protocols = "",
        .ciphers = "",
        .ciphersuites = "",
        .session_caching = true,
        .session_cache_size = 100,
        .session_cache_seconds = 300,
    };
}

/* ---- a connection and its client ---- */

struct pair {
    struct event_base *base;
    struct handshakes handshakes;
    uint64_t failed;
    struct conn conn;
    bool connected;
    SSL *client;
    int client_fd;
    /* what the callbacks do and see */
    char *got;
    size_t ngot, cap, chunk; /* chunk: how much a call reads at most */
    bool closed;
    int reads;
    const char *out;
    size_t nout, sent;
};

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    struct pair *p = arg;
    size_t n = 0;
    p->reads++;
    if (p->ngot + p->chunk > p->cap)
        p->got = mem_realloc(p->got, p->cap = 2 * (p->ngot + p->chunk));
    switch (conn_read(&p->conn, p->got + p->ngot, p->chunk, &n)) {
    case CONN_OK:
        CHECK(n > 0 && n <= p->chunk);
        p->ngot += n;
        return;
    case CONN_AGAIN:
        return;
    default:
        p->closed = true;
        conn_watch_reading(&p->conn, false);
    }
}

/* Offers bytes from a place of its own each time: a buffer may have moved. */
static void on_writable(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    struct pair *p = arg;
    size_t n = 0;
    char *moved = mem_alloc(p->nout - p->sent + 1);
    memcpy(moved, p->out + p->sent, p->nout - p->sent);
    enum conn_io io = conn_write(&p->conn, moved, p->nout - p->sent, &n);
    mem_free(moved);
    CHECK(io == CONN_OK || io == CONN_AGAIN);
    if (io == CONN_OK)
        p->sent += n;
    if (io == CONN_FAILED || p->sent == p->nout)
        conn_watch_writing(&p->conn, false);
}

static void on_done(void *arg, struct conn *conn)
{
    struct pair *p = arg;
    if (!check_that(conn != NULL, __FILE__, __LINE__, "the handshake"))
        return;
    p->conn = *conn;
    p->connected = true;
    conn_attach(&p->conn, p->base, on_readable, on_writable, p);
    conn_watch_reading(&p->conn, true);
}

/* Turns of the loop that do not wait. */
static void turns(struct pair *p, int n)
{
    while (n-- > 0)
        event_base_loop(p->base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
}

static bool start(struct pair *p, int version)
{
    int fds[2];
    *p = (struct pair){.chunk = 65536};
    if (!check_that(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) == 0, __FILE__, __LINE__,
                    "pair"))
        return false;
    p->base = event_base_new();
    p->handshakes = (struct handshakes){.base = p->base, .limit_ms = 60000, .failed = &p->failed};
    SSL_CTX_up_ref(context);
    handshakes_set_context(&p->handshakes, context);
    handshake_begin(&p->handshakes, (struct conn){.fd = fds[0]}, NULL, on_done, p);
    p->client_fd = fds[1];
    p->client = SSL_new(client_context);
    SSL_set_fd(p->client, fds[1]);
    SSL_set_min_proto_version(p->client, version);
    SSL_set_max_proto_version(p->client, version);
    for (int i = 0; i < 20 && !p->connected; i++) {
        int done = SSL_connect(p->client);
        CHECK(done == 1 || SSL_get_error(p->client, done) == SSL_ERROR_WANT_READ);
        turns(p, 2);
    }
    CHECK(!p->handshakes.first);
    return check_that(p->connected, __FILE__, __LINE__, "connected");
}

static void stop(struct pair *p)
{
    conn_close(&p->conn);
    handshakes_release(&p->handshakes);
    SSL_free(p->client);
    close(p->client_fd);
    event_base_free(p->base);
    mem_free(p->got);
}

/* The client reads what there is. */
static size_t drain(struct pair *p, char *to, size_t cap)
{
    size_t got = 0, n;
    while (got < cap && SSL_read_ex(p->client, to + got, cap - got, &n))
        got += n;
    return got;
}

/* ---- tests ---- */

static void decrypted_bytes_do_not_wait(int version)
{
    struct pair p;
    char data[40000];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (char)(i * 7);
    if (!start(&p, version))
        return;
    p.chunk = 1000; /* far less than a record */
    size_t n;
    CHECK(SSL_write_ex(p.client, data, sizeof data, &n) && n == sizeof data);
    turns(&p, 60);
    CHECK_SLICE(slice_of(p.got, p.ngot), slice_of(data, sizeof data));
    /* and when there is nothing, nobody asks */
    int before = p.reads;
    turns(&p, 20);
    CHECK_EQ(p.reads, before);
    stop(&p);
}

static void decrypted_bytes_1_2(void)
{
    decrypted_bytes_do_not_wait(TLS1_2_VERSION);
}

static void decrypted_bytes_1_3(void)
{
    decrypted_bytes_do_not_wait(TLS1_3_VERSION);
}

static void an_owner_that_does_not_read(void)
{
    struct pair p;
    char data[5000] = {'x'};
    size_t n;
    if (!start(&p, TLS1_3_VERSION))
        return;
    p.chunk = 1000;
    CHECK(SSL_write_ex(p.client, data, sizeof data, &n));
    turns(&p, 2);
    size_t before = p.ngot;
    CHECK(before > 0 && before < sizeof data);
    conn_watch_reading(&p.conn, false);
    turns(&p, 10);
    CHECK_EQ(p.ngot, before);
    conn_watch_reading(&p.conn, true); /* the rest is here already: no byte has to come for it */
    turns(&p, 20);
    CHECK_EQ(p.ngot, sizeof data);
    stop(&p);
}

static void large_writes(int version)
{
    struct pair p;
    size_t size = (size_t)3 << 20, got = 0;
    char *data = mem_alloc(size), *back = mem_alloc(size);
    for (size_t i = 0; i < size; i++)
        data[i] = (char)(i / 3);
    if (start(&p, version)) {
        p.out = data;
        p.nout = size;
        conn_watch_writing(&p.conn, true);
        for (int i = 0; i < 2000 && got < size; i++) {
            turns(&p, 2);
            got += drain(&p, back + got, size - got < 30000 ? size - got : 30000);
        }
        CHECK_EQ(got, size);
        CHECK(memcmp(data, back, size) == 0);
        stop(&p);
    }
    mem_free(data);
    mem_free(back);
}

static void large_writes_1_2(void)
{
    large_writes(TLS1_2_VERSION);
}

static void large_writes_1_3(void)
{
    large_writes(TLS1_3_VERSION);
}

/* The client asks for new keys while the socket towards it is full: the server has to answer before it can
   read on, and cannot; it waits for room, without spinning and without being told to write by its owner. */
static void reading_waits_for_writing(void)
{
    struct pair p;
    size_t size = (size_t)4 << 20, got = 0, n;
    char *data = mem_zalloc(size), *back = mem_alloc(size + 100);
    if (!start(&p, TLS1_3_VERSION)) {
        mem_free(data);
        mem_free(back);
        return;
    }
    /* The server writes whole records until nothing fits, one at a time so that none is left half sent. */
    while (conn_write(&p.conn, data, 1000, &n) == CONN_OK)
        got += n;
    size_t filled = got;
    CHECK(filled > 1000);
    p.out = data;
    p.nout = 1000;
    conn_watch_writing(&p.conn, true); /* the record that did not fit */
    CHECK(SSL_key_update(p.client, SSL_KEY_UPDATE_REQUESTED) == 1);
    CHECK(SSL_write_ex(p.client, "first", 5, &n));
    CHECK(SSL_key_update(p.client, SSL_KEY_UPDATE_REQUESTED) == 1);
    CHECK(SSL_write_ex(p.client, "second", 6, &n));
    turns(&p, 50);
    CHECK(p.reads < 20);
    got = 0;
    for (int i = 0; i < 200 && (got < filled + 1000 || p.ngot < 11); i++) {
        got += drain(&p, back, size);
        turns(&p, 2);
    }
    CHECK_EQ(got, filled + 1000);
    CHECK_SLICE(slice_of(p.got, p.ngot), SLICE("firstsecond"));
    /* it still works, both ways, with the new keys */
    CHECK(SSL_write_ex(p.client, "third", 5, &n));
    turns(&p, 5);
    CHECK_SLICE(slice_of(p.got, p.ngot), SLICE("firstsecondthird"));
    CHECK_EQ(conn_write(&p.conn, "reply", 5, &n), CONN_OK);
    CHECK_EQ(drain(&p, back, 100), 5);
    stop(&p);
    mem_free(data);
    mem_free(back);
}

/* Each request for new keys makes the server send a record; a client that takes none of them is not read from
   any more. */
static void a_client_that_asks_and_does_not_listen(void)
{
    struct pair p;
    size_t n;
    int asked = 0;
    if (!start(&p, TLS1_3_VERSION))
        return;
    for (; asked < 100000 && p.conn.awaits_read; asked++) {
        CHECK(SSL_key_update(p.client, SSL_KEY_UPDATE_REQUESTED) == 1 && SSL_do_handshake(p.client) == 1);
        turns(&p, 1);
    }
    CHECK(p.conn.reading && !p.conn.awaits_read);
    size_t before = p.conn.tls->unsent.len;
    CHECK(before > 1000 && before < (size_t)128 << 10);
    CHECK(SSL_key_update(p.client, SSL_KEY_UPDATE_REQUESTED) == 1 && SSL_do_handshake(p.client) == 1);
    turns(&p, 20);
    CHECK_EQ(p.conn.tls->unsent.len, before);
    /* it listens again, and all goes on */
    char back[100];
    for (int i = 0; i < 20000 && !SSL_write_ex(p.client, "hello", 5, &n); i++) {
        drain(&p, back, sizeof back);
        turns(&p, 2);
    }
    for (int i = 0; i < 20000 && p.ngot < 5; i++) {
        drain(&p, back, sizeof back);
        turns(&p, 2);
    }
    CHECK_SLICE(slice_of(p.got, p.ngot), SLICE("hello"));
    stop(&p);
}

static void a_last_word_and_the_end(void)
{
    struct pair p;
    size_t n;
    if (!start(&p, TLS1_3_VERSION))
        return;
    CHECK(SSL_write_ex(p.client, "last", 4, &n));
    SSL_shutdown(p.client); /* in the same read; the socket itself stays open */
    turns(&p, 10);
    CHECK_SLICE(slice_of(p.got, p.ngot), SLICE("last"));
    CHECK(p.closed);
    CHECK_EQ(conn_write(&p.conn, "answer", 6, &n), CONN_OK); /* half closed: the reply still goes out */
    char back[10];
    CHECK_EQ(drain(&p, back, sizeof back), 6);
    conn_close(&p.conn);
    CHECK_EQ(SSL_read_ex(p.client, back, sizeof back, &n), 0);
    CHECK_EQ(SSL_get_error(p.client, 0), SSL_ERROR_ZERO_RETURN);
    stop(&p);
}

static void an_end_without_a_word(void)
{
    struct pair p;
    size_t n;
    if (!start(&p, TLS1_2_VERSION))
        return;
    CHECK(SSL_write_ex(p.client, "last", 4, &n));
    shutdown(p.client_fd, SHUT_RDWR);
    turns(&p, 10);
    CHECK_SLICE(slice_of(p.got, p.ngot), SLICE("last"));
    CHECK(p.closed);
    stop(&p);
}

static void garbage_in_the_middle(void)
{
    struct pair p;
    if (!start(&p, TLS1_3_VERSION))
        return;
    static const char record[] = "\x17\x03\x03\x00\x20"
                                 "thirty-two bytes that no key made";
    CHECK(write(p.client_fd, record, sizeof record - 1) == sizeof record - 1);
    turns(&p, 10);
    CHECK(p.closed);
    CHECK_EQ(p.ngot, 0);
    stop(&p);
}

static void mistakes(void)
{
    struct error err;
    struct ssl_ctx_st *ctx = NULL;
    struct tls_options o = usual();
    o.protocols = " ";
    CHECK_EQ(tls_context_new(&o, &ctx, &err), ST_INVALID);
    CHECK_STR(err.text, "tls-protocols names no protocol");
    o = usual();
    o.auth_clients = TLS_AUTH_OPTIONAL;
    CHECK_EQ(tls_context_new(&o, &ctx, &err), ST_INVALID);
    o.ca_cert_file = key_path;
    CHECK_EQ(tls_context_new(&o, &ctx, &err), ST_INVALID);
    CHECK(strstr(err.text, "tls-ca-cert-file") != NULL);
    o = usual();
    o.key_file = cert_path;
    CHECK_EQ(tls_context_new(&o, &ctx, &err), ST_INVALID);
    CHECK(strstr(err.text, "tls-key-file") != NULL);
    CHECK(ctx == NULL);
    o = usual();
    o.session_caching = false;
    o.protocols = "tlsv1.3";
    CHECK_OK(tls_context_new(&o, &ctx, &err), &err);
    char expires[TLS_TIME_CHARS];
    CHECK(!tls_context_expired(ctx, expires));
    CHECK(strstr(expires, " GMT") != NULL);
    tls_context_free(ctx);
}

int main(int argc, char **argv)
{
    struct error err;
    const struct tls_options o = usual();
    CHECK_MAIN(argc, argv);
    signal(SIGPIPE, SIG_IGN);
    if (!make_certificate() || tls_context_new(&o, &context, &err) != ST_OK) {
        printf("no certificate: %s\n", err.text);
        return EXIT_FAILURE;
    }
    client_context = SSL_CTX_new(TLS_client_method());
    RUN(decrypted_bytes_1_2);
    RUN(decrypted_bytes_1_3);
    RUN(an_owner_that_does_not_read);
    RUN(large_writes_1_2);
    RUN(large_writes_1_3);
    RUN(reading_waits_for_writing);
    RUN(a_client_that_asks_and_does_not_listen);
    RUN(a_last_word_and_the_end);
    RUN(an_end_without_a_word);
    RUN(garbage_in_the_middle);
    RUN(mistakes);
    SSL_CTX_free(client_context);
    tls_context_free(context);
    unlink(cert_path);
    unlink(key_path);
    return check_done();
}
