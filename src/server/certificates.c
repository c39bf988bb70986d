#include "server/certificates.h"

#include "base/log.h"
#include "net/tls.h"
#include "server/worker_internal.h"

static struct tls_options options(const struct config *c)
{
    return (struct tls_options){
        .cert_file = c->tls_cert_file,
        .key_file = c->tls_key_file,
        .key_file_pass = c->tls_key_file_pass,
        .ca_cert_file = c->tls_ca_cert_file,
        .ca_cert_dir = c->tls_ca_cert_dir,
        .auth_clients = (enum tls_auth)c->tls_auth_clients,
        .protocols = c->tls_protocols,
        .ciphers = c->tls_ciphers,
        .ciphersuites = c->tls_ciphersuites,
        .prefer_server_ciphers = c->tls_prefer_server_ciphers,
        .session_caching = c->tls_session_caching,
        .session_cache_size = (uint32_t)c->tls_session_cache_size,
        .session_cache_seconds = (uint32_t)(c->tls_session_cache_timeout_ms / 1000),
    };
}

enum status certificates_load(struct workers *t, struct error *err)
{
    const struct config *config = t->config;
    const struct tls_options wanted = options(config);
    struct ssl_ctx_st *context = NULL;
    char quoted[sizeof err->text + 64], expires[TLS_TIME_CHARS];
    if (config->tls_port == 0 && config->tls_http_port == 0)
        return ST_OK;
    enum status st = tls_context_new(&wanted, &context, err);
    if (st != ST_OK) {
        log_error("TLS cannot be set up", "error=%s", log_quote(quoted, sizeof quoted, err->text));
        return st;
    }
    for (uint32_t i = 0; i < t->n; i++) {
        handshakes_set_context(&t->workers[i]->handshakes, tls_context_share(context));
        t->workers[i]->handshakes.limit_ms = config->tls_handshake_timeout_ms;
    }
    bool expired = tls_context_expired(context, expires);
    log_write(expired ? LOG_WARNING : LOG_INFO, expired ? "the TLS certificate has expired" : "TLS is set up",
              "cert=%s expires=\"%s\"", log_quote(quoted, sizeof quoted, config->tls_cert_file), expires);
    tls_context_free(context);
    return ST_OK;
}
