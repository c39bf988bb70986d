/* Contexts: certificates, and the rules of who may connect how. */
#include "net/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/mem.h"

/* "what: reason", with the reason from OpenSSL's queue of errors, where the first is the most exact. */
static enum status refuse(struct error *err, enum status code, const char *what)
{
    unsigned long first = ERR_peek_error();
    const char *reason = first == 0                ? NULL
                         : ERR_SYSTEM_ERROR(first) ? strerror(ERR_GET_REASON(first))
                                                   : ERR_reason_error_string(first);
    ERR_clear_error();
    return error_set(err, code, "%s: %s", what, reason ? reason : "OpenSSL does not say why");
}

static enum status refuse_file(struct error *err, const char *option, const char *path)
{
    char what[sizeof err->text];
    snprintf(what, sizeof what, "%s %s cannot be used", option, path);
    return refuse(err, ST_INVALID, what);
}

/* Always there: without one OpenSSL asks on the terminal. */
static int give_password(char *to, int cap, int writing, void *password)
{
    (void)writing;
    size_t n = strlen(password);
    if (cap <= 0 || n > (size_t)cap)
        return -1;
    memcpy(to, password, n);
    return (int)n;
}

static enum status set_certificate(SSL_CTX *ctx, const struct tls_options *o, struct error *err)
{
    if (o->cert_file[0] == '\0' || o->key_file[0] == '\0')
        return error_set(err, ST_INVALID, "TLS needs tls-cert-file and tls-key-file");
    if (SSL_CTX_use_certificate_chain_file(ctx, o->cert_file) != 1)
        return refuse_file(err, "tls-cert-file", o->cert_file);
    char *password = mem_strdup(o->key_file_pass);
    SSL_CTX_set_default_passwd_cb(ctx, give_password);
    SSL_CTX_set_default_passwd_cb_userdata(ctx, password);
    int read = SSL_CTX_use_PrivateKey_file(ctx, o->key_file, SSL_FILETYPE_PEM);
    SSL_CTX_set_default_passwd_cb_userdata(ctx, NULL);
    OPENSSL_cleanse(password, strlen(password));
    mem_free(password);
    if (read != 1 || SSL_CTX_check_private_key(ctx) != 1)
        return refuse_file(err, "tls-key-file", o->key_file);
    return ST_OK;
}

static enum status set_authentication(SSL_CTX *ctx, const struct tls_options *o, struct error *err)
{
    const char *file = o->ca_cert_file[0] ? o->ca_cert_file : NULL;
    const char *folder = o->ca_cert_dir[0] ? o->ca_cert_dir : NULL;
    static const int modes[] = {
        [TLS_AUTH_NO] = SSL_VERIFY_NONE,
        [TLS_AUTH_YES] = SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
        [TLS_AUTH_OPTIONAL] = SSL_VERIFY_PEER,
    };
    SSL_CTX_set_verify(ctx, modes[o->auth_clients], NULL);
    if (o->auth_clients != TLS_AUTH_NO && !file && !folder)
        return error_set(err, ST_INVALID,
                         "tls-ca-cert-file or tls-ca-cert-dir is needed to check clients' certificates "
                         "(tls-auth-clients no does without)");
    if (file && SSL_CTX_load_verify_file(ctx, file) != 1)
        return refuse_file(err, "tls-ca-cert-file", file);
    struct stat info;
    if (folder && (stat(folder, &info) != 0 || !S_ISDIR(info.st_mode)))
        return error_set(err, ST_INVALID, "tls-ca-cert-dir %s is not a folder", folder);
    if (folder && SSL_CTX_load_verify_dir(ctx, folder) != 1)
        return refuse_file(err, "tls-ca-cert-dir", folder);
    return ST_OK;
}

/* "TLSv1.2 TLSv1.3", one of them, or nothing for both. */
static enum status set_protocols(SSL_CTX *ctx, const char *list, struct error *err)
{
    int lowest = TLS1_3_VERSION, highest = TLS1_2_VERSION;
    char *copy = mem_strdup(list[0] ? list : "TLSv1.2 TLSv1.3"), *rest = NULL;
    enum status st = ST_OK;
    for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        if (strcasecmp(word, "TLSv1.2") == 0)
            lowest = TLS1_2_VERSION;
        else if (strcasecmp(word, "TLSv1.3") == 0)
            highest = TLS1_3_VERSION;
        else
            st = error_set(err, ST_INVALID, "tls-protocols takes TLSv1.2 and TLSv1.3, not %s", word);
    }
    mem_free(copy);
    if (st != ST_OK)
        return st;
    if (lowest > highest)
        return error_set(err, ST_INVALID, "tls-protocols names no protocol");
    if (SSL_CTX_set_min_proto_version(ctx, lowest) != 1 || SSL_CTX_set_max_proto_version(ctx, highest) != 1)
        return refuse(err, ST_INVALID, "tls-protocols cannot be used");
    return ST_OK;
}

static enum status set_ciphers(SSL_CTX *ctx, const struct tls_options *o, struct error *err)
{
    if (o->ciphers[0] && SSL_CTX_set_cipher_list(ctx, o->ciphers) != 1)
        return refuse(err, ST_INVALID, "tls-ciphers cannot be used");
    if (o->ciphersuites[0] && SSL_CTX_set_ciphersuites(ctx, o->ciphersuites) != 1)
        return refuse(err, ST_INVALID, "tls-ciphersuites cannot be used");
    if (o->prefer_server_ciphers)
        SSL_CTX_set_options(ctx, SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_dh_auto(ctx, 1);
    return ST_OK;
}

/* A client that comes again may skip most of the handshake. The keys of tickets are the context's, so a
   session does not outlive the certificates that it was made under. */
static void set_sessions(SSL_CTX *ctx, const struct tls_options *o)
{
    static const unsigned char name[] = "larder";
    if (!o->session_caching) {
        SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
        SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET);
        SSL_CTX_set_num_tickets(ctx, 0);
        return;
    }
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_SERVER);
    SSL_CTX_sess_set_cache_size(ctx, (long)o->session_cache_size);
    SSL_CTX_set_timeout(ctx, (long)o->session_cache_seconds);
    SSL_CTX_set_session_id_context(ctx, name, sizeof name - 1);
}

/* in: names, each behind its length. */
static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_n, const unsigned char *in,
                           unsigned in_n, void *arg)
{
    (void)arg;
    const struct tls *t = SSL_get_app_data(ssl);
    size_t n = t->protocol ? strlen(t->protocol) : 0;
    for (size_t i = 0; n && i + n < in_n; i += (size_t)in[i] + 1) {
        if (in[i] == n && memcmp(in + i + 1, t->protocol, n) == 0) {
            *out = in + i + 1;
            *out_n = in[i];
            return SSL_TLSEXT_ERR_OK;
        }
    }
    return n ? SSL_TLSEXT_ERR_ALERT_FATAL : SSL_TLSEXT_ERR_NOACK;
}

enum status tls_context_new(const struct tls_options *o, struct ssl_ctx_st **ret, struct error *err)
{
    ERR_clear_error();
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    if (!ctx)
        return refuse(err, ST_INTERNAL, "OpenSSL cannot be used");
    /* The buffers of quiet connections are given back; one read takes whatever the socket has. An end without
       the peer saying so is an end, as it is without TLS: commands have lengths, so nothing that was cut off
       runs. */
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_read_ahead(ctx, 1);
    SSL_CTX_set_alpn_select_cb(ctx, choose_protocol, NULL);
    set_sessions(ctx, o);
    enum status st = set_protocols(ctx, o->protocols, err);
    if (st == ST_OK)
        st = set_ciphers(ctx, o, err);
    if (st == ST_OK)
        st = set_certificate(ctx, o, err);
    if (st == ST_OK)
        st = set_authentication(ctx, o, err);
    if (st == ST_OK)
        *ret = ctx;
    else
        SSL_CTX_free(ctx);
    return st;
}

struct ssl_ctx_st *tls_context_share(struct ssl_ctx_st *context)
{
    SSL_CTX_up_ref(context);
    return context;
}

void tls_context_free(struct ssl_ctx_st *context)
{
    SSL_CTX_free(context);
}

bool tls_context_expired(struct ssl_ctx_st *context, char ret[TLS_TIME_CHARS])
{
    const X509 *certificate = SSL_CTX_get0_certificate(context);
    BIO *text = BIO_new(BIO_s_mem());
    int n = 0;
    if (certificate && text && ASN1_TIME_print(text, X509_get0_notAfter(certificate)))
        n = BIO_read(text, ret, TLS_TIME_CHARS - 1);
    ret[n > 0 ? n : 0] = '\0';
    BIO_free(text);
    return certificate && X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0;
}
