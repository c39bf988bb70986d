#include "cli/link.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/num.h"

#define READ_BYTES 65536
#define DEPTH_MAX  32

struct link {
    int fd;
    SSL_CTX *context;
    SSL *ssl;
    struct buf out;
    struct buf in;
    size_t taken; /* of in */
    int64_t id;
    char error[256];
};

static bool fail(struct link *l, const char *what, const char *why)
{
    if (!l->error[0])
        snprintf(l->error, sizeof l->error, "%s: %s", what, why);
    return false;
}

/* ---- connecting ---- */

static int dial_unix(const char *path, const char **ret_why)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof a.sun_path) {
        *ret_why = "the path is too long";
        return -1;
    }
    memcpy(a.sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof a) == 0)
        return fd;
    *ret_why = strerror(errno);
    if (fd >= 0)
        close(fd);
    return -1;
}

static int dial(const struct link_options *o, const char **ret_why)
{
    if (o->socket)
        return dial_unix(o->socket, ret_why);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    int code = getaddrinfo(o->host, o->port, &hints, &found);
    if (code != 0) {
        *ret_why = gai_strerror(code);
        return -1;
    }
    int fd = -1, one = 1;
    for (struct addrinfo *a = found; a && fd < 0; a = a->ai_next) {
        fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
        if (fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen) != 0) {
            *ret_why = strerror(errno);
            close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(found);
    if (fd >= 0)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

static bool tls_failed(struct link *l, const char *what)
{
    char text[160] = "failed";
    long verified = l->ssl ? SSL_get_verify_result(l->ssl) : X509_V_OK;
    if (verified != X509_V_OK)
        snprintf(text, sizeof text, "%s", X509_verify_cert_error_string(verified));
    else if (ERR_peek_error())
        ERR_error_string_n(ERR_get_error(), text, sizeof text);
    return fail(l, what, text);
}

static bool shake_hands(struct link *l, const struct link_options *o)
{
    l->context = SSL_CTX_new(TLS_client_method());
    if (!l->context)
        return tls_failed(l, "TLS");
    (void)SSL_CTX_set_min_proto_version(l->context, TLS1_2_VERSION);
    if (o->cacert ? SSL_CTX_load_verify_locations(l->context, o->cacert, NULL) != 1
                  : SSL_CTX_set_default_verify_paths(l->context) != 1)
        return tls_failed(l, o->cacert ? o->cacert : "the system's certificates");
    if (o->cert && SSL_CTX_use_certificate_chain_file(l->context, o->cert) != 1)
        return tls_failed(l, o->cert);
    if (o->key && SSL_CTX_use_PrivateKey_file(l->context, o->key, SSL_FILETYPE_PEM) != 1)
        return tls_failed(l, o->key);
    SSL_CTX_set_verify(l->context, o->insecure ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
    l->ssl = SSL_new(l->context);
    if (!l->ssl || SSL_set_fd(l->ssl, l->fd) != 1 || (!o->insecure && SSL_set1_host(l->ssl, o->host) != 1))
        return tls_failed(l, "TLS");
    char name[256]; /* the macro below takes no constant */
    snprintf(name, sizeof name, "%s", o->host);
    (void)SSL_set_tlsext_host_name(l->ssl, name);
    return SSL_connect(l->ssl) == 1 || tls_failed(l, "TLS handshake");
}

/* A command of the start, whose error is the end. */
static bool must(struct link *l, struct arena *arena, const struct slice *words, size_t n, struct answer *ret)
{
    if (!link_ask(l, arena, words, n, ret))
        return false;
    if (ret->kind != ANSWER_ERROR)
        return true;
    char text[200];
    snprintf(text, sizeof text, "%.*s", (int)(ret->text.n < 190 ? ret->text.n : 190), ret->text.p);
    return fail(l, "the server", text);
}

static bool introduce(struct link *l, const struct link_options *o)
{
    struct arena arena = {0};
    struct answer a;
    struct slice hello[] = {SLICE("HELLO"), SLICE("3"), SLICE("AUTH"), slice_str(o->user),
                            slice_str(o->password ? o->password : "")};
    struct slice name[] = {SLICE("CLIENT"), SLICE("SETNAME"), SLICE("larder-cli")};
    struct slice id[] = {SLICE("CLIENT"), SLICE("ID")};
    struct slice use[] = {SLICE("SELECT"), slice_str(o->db)};
    bool ok = must(l, &arena, hello, o->password ? 5 : 2, &a) && must(l, &arena, name, 3, &a) &&
              must(l, &arena, use, 2, &a) && must(l, &arena, id, 2, &a);
    l->id = ok ? a.number : 0;
    arena_release(&arena);
    return ok;
}

struct link *link_open(const struct link_options *o, char why[256])
{
    const char *reason = "no address";
    struct link *l = mem_zalloc(sizeof *l);
    l->fd = dial(o, &reason);
    if (l->fd < 0) {
        if (o->socket)
            snprintf(why, 256, "%s: %s", o->socket, reason);
        else
            snprintf(why, 256, "%s:%s: %s", o->host, o->port, reason);
        link_close(l);
        return NULL;
    }
    if ((o->tls && !shake_hands(l, o)) || !introduce(l, o)) {
        snprintf(why, 256, "%s", l->error);
        link_close(l);
        return NULL;
    }
    return l;
}

void link_close(struct link *l)
{
    if (!l)
        return;
    SSL_free(l->ssl);
    SSL_CTX_free(l->context);
    if (l->fd >= 0)
        close(l->fd);
    buf_release(&l->out);
    buf_release(&l->in);
    mem_free(l);
}

int64_t link_id(const struct link *l)
{
    return l->id;
}

const char *link_error(const struct link *l)
{
    return l->error;
}

/* ---- sending ---- */

void link_add(struct link *l, const struct slice *words, size_t n)
{
    buf_addf(&l->out, "*%zu\r\n", n);
    for (size_t i = 0; i < n; i++) {
        buf_addf(&l->out, "$%zu\r\n", words[i].n);
        buf_add_slice(&l->out, words[i]);
        buf_add(&l->out, "\r\n", 2);
    }
}

size_t link_unsent(const struct link *l)
{
    return l->out.len;
}

bool link_flush(struct link *l)
{
    size_t sent = 0;
    while (sent < l->out.len) {
        size_t left = l->out.len - sent;
        ssize_t n = l->ssl ? SSL_write(l->ssl, l->out.p + sent, (int)(left < INT32_MAX ? left : INT32_MAX))
                           : send(l->fd, l->out.p + sent, left, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR && !l->ssl)
            continue;
        if (n <= 0)
            return fail(l, "the connection", n < 0 ? strerror(errno) : "closed");
        sent += (size_t)n;
    }
    l->out.len = 0;
    return l->error[0] == '\0';
}

/* ---- receiving ---- */

struct taking {
    struct link *l;
    struct arena *arena;
    void (*interrupted)(void *arg);
    void *arg;
};

static bool read_more(struct taking *t)
{
    struct link *l = t->l;
    if (l->taken && l->taken == l->in.len)
        l->taken = l->in.len = 0;
    for (;;) {
        char *to = buf_reserve(&l->in, READ_BYTES);
        ssize_t n = l->ssl ? SSL_read(l->ssl, to, READ_BYTES) : recv(l->fd, to, READ_BYTES, 0);
        if (n > 0) {
            l->in.len += (size_t)n;
            return true;
        }
        if (n == 0 || errno != EINTR)
            return fail(l, "the connection", n == 0 ? "the server has closed it" : strerror(errno));
        if (t->interrupted)
            t->interrupted(t->arg);
        t->interrupted = NULL;
    }
}

/* A line without its end; it is copied where it has to live on. */
static bool take_line(struct taking *t, struct slice *ret)
{
    struct link *l = t->l;
    for (size_t looked = 0;;) {
        const char *from = l->in.p + l->taken;
        size_t have = l->in.len - l->taken;
        const char *end = have > looked ? memchr(from + looked, '\n', have - looked) : NULL;
        if (end && end > from) {
            *ret = slice_of(from, (size_t)(end - from) - 1);
            l->taken += (size_t)(end - from) + 1;
            return true;
        }
        looked = have;
        if (!read_more(t))
            return false;
    }
}

static bool take_bytes(struct taking *t, size_t n, struct slice *ret)
{
    struct link *l = t->l;
    while (l->in.len - l->taken < n + 2) {
        if (!read_more(t))
            return false;
    }
    *ret = arena_copy(t->arena, slice_of(l->in.p + l->taken, n));
    l->taken += n + 2;
    return true;
}

static bool take_answer(struct taking *t, int depth, struct answer *ret);

static bool take_items(struct taking *t, int depth, int64_t n, struct answer *ret)
{
    ret->kind = n < 0 ? ANSWER_NULL : ret->kind;
    if (n <= 0)
        return true;
    if (depth == DEPTH_MAX || n > INT32_MAX)
        return fail(t->l, "the server's answer", "it is not RESP");
    ret->n = (size_t)n;
    ret->items = arena_alloc(t->arena, ret->n * sizeof *ret->items);
    for (size_t i = 0; i < ret->n; i++) {
        if (!take_answer(t, depth + 1, &ret->items[i]))
            return false;
    }
    return true;
}

static bool take_answer(struct taking *t, int depth, struct answer *ret)
{
    struct slice line;
    *ret = (struct answer){0};
    if (!take_line(t, &line) || line.n == 0)
        return fail(t->l, "the server's answer", "it is not RESP");
    char kind = line.p[0];
    struct slice rest = slice_of(line.p + 1, line.n - 1);
    bool counts = num_parse_i64(rest, &ret->number);
    ret->text = strchr("+-:,#(", kind) ? arena_copy(t->arena, rest) : (struct slice){0};
    switch (kind) {
    case '+':
        ret->kind = ANSWER_TEXT;
        return true;
    case '-':
        ret->kind = ANSWER_ERROR;
        return true;
    case ':':
        ret->kind = ANSWER_INT;
        return counts || fail(t->l, "the server's answer", "it is not RESP");
    case ',':
        ret->kind = ANSWER_REAL;
        return true;
    case '(':
        ret->kind = ANSWER_TEXT;
        return true;
    case '#':
        ret->kind = ANSWER_BOOL;
        ret->number = rest.n && rest.p[0] == 't';
        return true;
    case '_':
        return true;
    case '$':
    case '=':
    case '!':
        ret->kind = kind == '!' ? ANSWER_ERROR : ANSWER_TEXT;
        if (counts && ret->number < 0)
            ret->kind = ANSWER_NULL;
        return counts && (ret->number < 0 || take_bytes(t, (size_t)ret->number, &ret->text));
    case '*':
    case '~':
    case '>':
        ret->kind = ANSWER_LIST;
        return counts && take_items(t, depth, ret->number, ret);
    case '%':
        ret->kind = ANSWER_MAP;
        return counts && take_items(t, depth, ret->number * 2, ret);
    default:
        return fail(t->l, "the server's answer", "it is not RESP");
    }
}

bool link_take(struct link *l, struct arena *arena, struct answer *ret, void (*interrupted)(void *arg),
               void *arg)
{
    struct taking t = {l, arena, interrupted, arg};
    return take_answer(&t, 0, ret);
}

bool link_ask(struct link *l, struct arena *arena, const struct slice *words, size_t n, struct answer *ret)
{
    link_add(l, words, n);
    return link_flush(l) && link_take(l, arena, ret, NULL, NULL);
}

const struct answer *answer_member(const struct answer *map, const char *name)
{
    for (size_t i = 0; map->kind == ANSWER_MAP && i + 1 < map->n; i += 2) {
        if (slice_eq(map->items[i].text, slice_str(name)))
            return &map->items[i + 1];
    }
    return NULL;
}
