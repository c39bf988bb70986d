/* Every option, in one table (options.c): its name is the same as a flag (--cache-memory 64mb), in the
   environment (LARDER_CACHE_MEMORY) and in the config file (cache-memory 64mb). Flags win over the
   environment, which wins over the file. CONFIG GET/SET/REWRITE, --help, larder.conf, the man page's option
   list and docs/configuration.md come from the same table. */
#ifndef LARDER_CONFIG_CONFIG_H
#define LARDER_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"
#include "base/status.h"
#include "replica/consistency.h"

#define CONFIG_OPTIONS_MAX 320

struct output_limit {
    uint64_t hard, soft, soft_ms;
};

/* A value of an option that nothing here goes by. */
union idle_value {
    int64_t number;
    uint64_t size;
    bool flag;
    char *text;
};
#define CONFIG_IDLE_MAX 160

struct config {
    /* where it listens */
    char *bind;   /* addresses separated by spaces; "*" all; a leading "-" may fail silently, as in Redis */
    int64_t port; /* 0: no TCP */
    char *unixsocket;
    int64_t unixsocketperm;
    int64_t http_port;
    int64_t tcp_backlog;
    bool protected_mode;
    char *requirepass;
    /* HTTP */
    int64_t http_max_connections;
    uint64_t http_max_body, http_max_header, http_max_uri;
    uint64_t http_timeout_ms, http_request_timeout_ms;
    char *http_cors_origins;
    /* TLS */
    int64_t tls_port, tls_http_port;
    char *tls_cert_file, *tls_key_file, *tls_key_file_pass;
    char *tls_ca_cert_file, *tls_ca_cert_dir;
    int64_t tls_auth_clients; /* enum tls_auth */
    char *tls_protocols, *tls_ciphers, *tls_ciphersuites;
    bool tls_prefer_server_ciphers;
    bool tls_session_caching;
    int64_t tls_session_cache_size;
    uint64_t tls_session_cache_timeout_ms;
    uint64_t tls_handshake_timeout_ms;
    /* the database */
    char *store;
    char *replica; /* URLs separated by spaces; empty: none */
    struct consistency read_consistency;
    int read_only; /* enum store_use (store/store.h) */
    uint64_t replica_max_lag_ms, replica_wait_ms, replica_timeout_ms, failover_wait_ms;
    int64_t durability; /* enum durability */
    uint64_t memory;    /* of which the next two, and journal_max, are parts */
    uint64_t cache_memory;
    uint64_t page_cache;
    uint64_t busy_timeout_ms;
    uint64_t store_timeout_ms;
    uint64_t exclusive_lease_ms;
    uint64_t store_wait_ms;
    bool accept_untested;
    uint64_t journal_max;
    uint64_t journal_loan; /* what the cache of rows lends beyond that */
    uint64_t log_max, wal_max;
    int64_t shutdown_timeout_ms;
    uint64_t apply_lag_ms;
    int64_t workers;
    int64_t databases;
    /* clients */
    int64_t maxclients;
    uint64_t timeout_ms; /* 0: idle clients stay */
    uint64_t tcp_keepalive_ms;
    uint64_t proto_max_bulk_len;
    uint64_t client_query_buffer_limit;
    uint64_t output_hard, output_soft, output_soft_ms; /* client-output-buffer-limit normal */
    struct output_limit output_replica, output_pubsub; /* taken as Redis does; nothing uses them yet */
    bool busy_poll;
    /* expiry */
    bool sweep;
    uint64_t sweep_interval_ms;
    int64_t sweep_batch;
    uint64_t sweep_pause_ms;
    /* scripts */
    int64_t busy_reply_threshold_ms; /* 0: no script is busy, however long it runs */
    uint64_t script_memory;          /* of each interpreter */
    /* queries */
    int64_t sql_threads;
    uint64_t sql_timeout_ms;
    uint64_t sql_max_result;
    uint64_t sql_max_wal;
    uint64_t sql_memory; /* of each query */
    int64_t sql_inline_rows, sql_write_rows;
    /* insight */
    int64_t loglevel; /* enum log_level */
    char *logfile;
    int64_t slowlog_log_slower_than;
    int64_t slowlog_max_len;
    uint64_t latency_monitor_threshold_ms;
    int64_t enable_debug_command; /* 0 no, 1 yes, 2 local */
    /* up to where Redis would keep a collection in its compact form, as OBJECT ENCODING tells */
    int64_t hash_max_entries, set_max_entries, zset_max_entries;
    uint64_t hash_max_value, zset_max_value;
    union idle_value idle[CONFIG_IDLE_MAX]; /* of options of Redis: redis_options.c */
    /* where the config file was, for CONFIG REWRITE; NULL when none */
    char *file;
    /* lines about what was ignored, each with its end; the caller logs them when the log is open */
    struct buf warnings;
    bool given[CONFIG_OPTIONS_MAX]; /* by place in the table: it has been set, be it to its default */
    /* Of lists, whose values may be given one by one: which source (the file, the environment, the flags) is
       being read, and which one the value is from. Values of one source add up; a later source wins. */
    unsigned source, replica_source;
};

enum option_kind {
    OPT_STRING,
    OPT_URLS, /* replica alone: a list, a value of which may be given several times */
    OPT_INT,
    OPT_OCTAL,
    OPT_BOOL,
    OPT_SIZE,
    OPT_DURATION,
    OPT_ENUM,
    OPT_CONSISTENCY,
    OPT_OUTPUT_LIMIT /* client-output-buffer-limit alone */
};

struct option {
    const char *name;
    enum option_kind kind;
    bool live;           /* CONFIG SET may change it while running */
    bool secret;         /* not shown in logs and messages */
    bool url;            /* may hold passwords, which are not shown (base/hide.h) */
    bool multi;          /* several words make up the value */
    bool unset;          /* to set it to its default is not the same as to leave it alone */
    size_t offset;       /* in struct config */
    const char *initial; /* as it would be written */
    int64_t min, max;    /* INT, OCTAL, SIZE (bytes), DURATION (in units, or ms), inclusive */
    uint64_t unit;       /* DURATION: milliseconds that a bare number counts in, as the option of this name
                            does in Redis; 0 for our own options, which take no bare number but 0 */
    const char *const *words; /* ENUM: accepted words, the value is the index; ends with NULL */
    const char *const *alias; /* ENUM: pairs of another spelling and its word; ends with NULL; may be NULL */
    const char *placeholder;  /* STRING, URLS: what stands for the value in --help: "PATH" */
    const char *bare;         /* ENUM: what the flag alone means, --read-only; NULL: it needs a value */
    const char *accepts;      /* "a port from 0 to 65535": follows "expected" in messages; in the docs */
    const char *summary;      /* one sentence */
    const char *comment;      /* more, for the config file and the docs; may be NULL */
    const char *group;        /* heading: "Network", "Database", ... */
    bool redis;               /* of Redis alone, behind all others: no help, no documents (redis_options.c) */
    bool idle;                /* such a one that nothing goes by */
    const char *chars;        /* STRING: what it may consist of, NULL for anything ... */
    const char *refusal;      /* ... and what Redis says of other values */
};

const struct option *config_option(int i); /* NULL at the end */
int config_index(const struct option *o);  /* its i */

/* By its name, or by an older one. */
const struct option *config_find(struct slice name);

/* Names that options had in older versions of Redis. NULL at the end. */
struct old_name {
    const char *old, *now;
};
const struct old_name *config_old_name(int i);

/* The option whose name is most like this one; NULL when none is close. */
const struct option *config_nearest(struct slice name);

/* Defaults. Release frees. */
void config_init(struct config *c);
void config_release(struct config *c);

/* Whether this option has been set. */
bool config_given(const struct config *c, const char *name);

/* When all sources were read: what was not given of cache-memory, journal-max and page-cache gets its part of
   memory, and the cache lends the journal a part of its own if neither has a size of its own. They do not
   count as given. */
void config_share_memory(struct config *c);

/* Sets one option from text; on failure nothing changes. origin: "--port", "LARDER_PORT" or "larder.conf:12";
   the message then names it, the option, the value and the accepted form. Without an origin the message is
   the bare reason in Redis' words, as CONFIG SET puts it behind "... - ". */
enum status config_set(struct config *c, const struct option *o, struct slice value, const char *origin,
                       struct error *err) MUST_CHECK;

/* The value as text, in a form that config_set takes; human: sizes as "64mb" and times as "5s", else plain
   numbers, as CONFIG GET prints them, but for times that have no unit of Redis. */
void config_get(const struct config *c, const struct option *o, bool human, struct buf *out);

/* Everything a server starts with: the file (named by --config, LARDER_CONFIG or a first bare argument), over
   it the environment, over that the flags. argv holds options alone: no program name, no subcommand. */
enum status config_load(struct config *c, int argc, char *const *argv, struct error *err) MUST_CHECK;

enum status config_load_file(struct config *c, const char *path, struct error *err) MUST_CHECK;

/* A LARDER_ variable that is no option, or that Kubernetes set, is ignored, with a line in c->warnings. */
enum status config_load_env(struct config *c, struct error *err) MUST_CHECK;

/* --name value, --name=value; --config is skipped. */
enum status config_load_args(struct config *c, int argc, char *const *argv, struct error *err) MUST_CHECK;

/* Rewrites the file the configuration came from, keeping its comments and order: changed options in place,
   new ones at the end. Written beside it, fsynced and renamed. */
enum status config_rewrite(const struct config *c, struct error *err) MUST_CHECK;

/* A commented larder.conf / the option part of --help / a Markdown table, from the table. */
void config_print_file(struct buf *out);
void config_print_help(struct buf *out);
void config_print_markdown(struct buf *out);

#endif
