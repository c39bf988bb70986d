/* Options of Redis that Larder has for its clients' sake: some ask for them, or set them, and go on only when
   that is answered as redis-server answers. They are in CONFIG GET and SET, in CONFIG REWRITE, and may stand
   in a config file; help and documents do not list them. Defaults, ranges and words are those of redis-server
   7.0.15, but for save: there are no snapshots. Most do nothing; the thresholds of encodings are what OBJECT
   ENCODING goes by. What Redis does not let anybody change has one value. */
#include "config/redis_options.h"

#include <assert.h>
#include <stdint.h>

#include "config/config.h"

#define AT(member) .offset = offsetof(struct config, member)

#define IDLE .redis = true, .idle = true
#define YES_NO(name_, initial_)                                                                              \
    {                                                                                                        \
        .name = (name_), .kind = OPT_BOOL, .initial = (initial_), .live = true, .accepts = "yes or no", IDLE \
    }
#define NUMBER(name_, initial_, min_, max_)                                                                  \
    {                                                                                                        \
        .name = (name_), .kind = OPT_INT, .initial = (initial_), .min = (min_), .max = (max_), .live = true, \
        .accepts = "a number from " #min_ " to " #max_, IDLE                                                 \
    }
#define SIZE(name_, initial_, min_)                                                                          \
    {                                                                                                        \
        .name = (name_), .kind = OPT_SIZE, .initial = (initial_), .min = (min_), .max = INT64_MAX,           \
        .live = true, .accepts = "a size in bytes, or with kb, mb, gb", IDLE                                 \
    }
#define WORDS(name_, initial_, words_)                                                                       \
    {                                                                                                        \
        .name = (name_), .kind = OPT_ENUM, .initial = (initial_), .words = (words_), .live = true,           \
        .accepts = "one of the words that Redis takes", IDLE                                                 \
    }
#define TEXT(name_, initial_)                                                                                \
    {                                                                                                        \
        .name = (name_), .kind = OPT_STRING, .initial = (initial_), .multi = true, .live = true,             \
        .placeholder = "TEXT", .accepts = "text", IDLE                                                       \
    }
#define PASSWORD(name_, initial_)                                                                            \
    {                                                                                                        \
        .name = (name_), .kind = OPT_STRING, .initial = (initial_), .secret = true, .live = true,            \
        .placeholder = "PASSWORD", .accepts = "a password", IDLE                                             \
    }
#define CHARS(name_, initial_, chars_, refusal_)                                                             \
    {                                                                                                        \
        .name = (name_), .kind = OPT_STRING, .initial = (initial_), .multi = true, .live = true,             \
        .chars = (chars_), .refusal = (refusal_), .placeholder = "TEXT", .accepts = "what Redis takes", IDLE \
    }
#define FIXED(name_, initial_)                                                                               \
    {                                                                                                        \
        .name = (name_), .kind = OPT_STRING, .initial = (initial_), .multi = true, .placeholder = "TEXT",    \
        .accepts = "\"" initial_ "\" and nothing else, because Larder does not have what Redis does", IDLE   \
    }

#define PROTECTED(name_, initial_)                                                                           \
    {                                                                                                        \
        .name = (name_), .kind = OPT_STRING, .initial = (initial_), .placeholder = "TEXT",                   \
        .refusal = "can't set protected config", .accepts = "\"" initial_ "\" and nothing else", IDLE        \
    }

/* A threshold of an encoding. */
#define ENTRIES(name_, member_, initial_)                                                                    \
    {                                                                                                        \
        .name = (name_), .kind = OPT_INT, AT(member_), .initial = (initial_), .max = INT64_MAX,              \
        .live = true, .accepts = "a number, 0 or more", .redis = true                                        \
    }
#define BYTES(name_, member_, initial_)                                                                      \
    {                                                                                                        \
        .name = (name_), .kind = OPT_SIZE, AT(member_), .initial = (initial_), .max = INT64_MAX,             \
        .live = true, .accepts = "a size in bytes, or with kb, mb, gb", .redis = true                        \
    }

static const char *const channels_words[] = {"allchannels", "resetchannels", NULL};
static const char *const fsync_words[] = {"everysec", "always", "no", NULL};
static const char *const endpoint_words[] = {"ip", "hostname", "unknown-endpoint", NULL};
static const char *const policy_words[] = {"volatile-lru",   "volatile-lfu", "volatile-random",
                                           "volatile-ttl",   "allkeys-lru",  "allkeys-lfu",
                                           "allkeys-random", "noeviction",   NULL};
static const char *const oom_words[] = {"no", "yes", "relative", "absolute", NULL};
static const char *const propagation_words[] = {"ignore", "panic", "panic-on-replicas", NULL};
static const char *const diskless_words[] = {"disabled", "on-empty-db", "swapdb", NULL};
static const char *const sanitize_words[] = {"no", "yes", "clients", NULL};
static const char *const shutdown_words[] = {"default", "save", "nosave", "now", "force", NULL};

/* clang-format off */
static const struct option options[] = {
    ENTRIES("hash-max-listpack-entries", hash_max_entries, "512"),
    BYTES("hash-max-listpack-value", hash_max_value, "64"),
    ENTRIES("set-max-intset-entries", set_max_entries, "512"),
    ENTRIES("zset-max-listpack-entries", zset_max_entries, "128"),
    BYTES("zset-max-listpack-value", zset_max_value, "64"),

    WORDS("acl-pubsub-default", "resetchannels", channels_words),
    FIXED("aclfile", ""),
    NUMBER("acllog-max-len", "128", 0, INT64_MAX),
    NUMBER("active-defrag-cycle-max", "25", 1, 99),
    NUMBER("active-defrag-cycle-min", "1", 1, 99),
    SIZE("active-defrag-ignore-bytes", "104857600", 1),
    NUMBER("active-defrag-max-scan-fields", "1000", 1, INT64_MAX),
    NUMBER("active-defrag-threshold-lower", "10", 0, 1000),
    NUMBER("active-defrag-threshold-upper", "100", 0, 1000),
    NUMBER("active-expire-effort", "1", 1, 10),
    YES_NO("activedefrag", "no"),
    YES_NO("activerehashing", "yes"),
    FIXED("always-show-logo", "no"),
    YES_NO("aof-disable-auto-gc", "no"),
    YES_NO("aof-load-truncated", "yes"),
    YES_NO("aof-rewrite-incremental-fsync", "yes"),
    YES_NO("aof-timestamp-enabled", "no"),
    YES_NO("aof-use-rdb-preamble", "yes"),
    FIXED("aof_rewrite_cpulist", ""),
    FIXED("appenddirname", "appendonlydir"),
    FIXED("appendfilename", "appendonly.aof"),
    WORDS("appendfsync", "everysec", fsync_words),
    YES_NO("appendonly", "no"),
    SIZE("auto-aof-rewrite-min-size", "67108864", 0),
    NUMBER("auto-aof-rewrite-percentage", "100", 0, INT32_MAX),
    FIXED("bgsave_cpulist", ""),
    TEXT("bind-source-addr", ""),
    FIXED("bio_cpulist", ""),
    YES_NO("cluster-allow-pubsubshard-when-down", "yes"),
    YES_NO("cluster-allow-reads-when-down", "no"),
    YES_NO("cluster-allow-replica-migration", "yes"),
    NUMBER("cluster-announce-bus-port", "0", 0, 65535),
    TEXT("cluster-announce-hostname", ""),
    TEXT("cluster-announce-ip", ""),
    NUMBER("cluster-announce-port", "0", 0, 65535),
    NUMBER("cluster-announce-tls-port", "0", 0, 65535),
    FIXED("cluster-config-file", "nodes.conf"),
    FIXED("cluster-enabled", "no"),
    SIZE("cluster-link-sendbuf-limit", "0", 0),
    NUMBER("cluster-migration-barrier", "1", 0, INT32_MAX),
    NUMBER("cluster-node-timeout", "15000", 0, INT64_MAX),
    FIXED("cluster-port", "0"),
    WORDS("cluster-preferred-endpoint-type", "ip", endpoint_words),
    YES_NO("cluster-replica-no-failover", "no"),
    NUMBER("cluster-replica-validity-factor", "10", 0, INT32_MAX),
    YES_NO("cluster-require-full-coverage", "yes"),
    YES_NO("crash-log-enabled", "yes"),
    YES_NO("crash-memcheck-enabled", "yes"),
    FIXED("daemonize", "no"),
    PROTECTED("dbfilename", "dump.rdb"),
    FIXED("disable-thp", "yes"),
    YES_NO("dynamic-hz", "yes"),
    FIXED("enable-module-command", "no"),
    FIXED("enable-protected-configs", "no"),
    SIZE("hll-sparse-max-bytes", "3000", 0),
    NUMBER("hz", "10", 0, INT32_MAX),
    TEXT("ignore-warnings", ""),
    FIXED("io-threads", "1"),
    FIXED("io-threads-do-reads", "no"),
    YES_NO("jemalloc-bg-thread", "yes"),
    YES_NO("latency-tracking", "yes"),
    CHARS("latency-tracking-info-percentiles", "50 99 99.9", "0123456789. ",
          "Invalid latency-tracking-info-percentiles parameters"),
    YES_NO("lazyfree-lazy-eviction", "no"),
    YES_NO("lazyfree-lazy-expire", "no"),
    YES_NO("lazyfree-lazy-server-del", "no"),
    YES_NO("lazyfree-lazy-user-del", "no"),
    YES_NO("lazyfree-lazy-user-flush", "no"),
    NUMBER("lfu-decay-time", "1", 0, INT32_MAX),
    NUMBER("lfu-log-factor", "10", 0, INT32_MAX),
    NUMBER("list-compress-depth", "0", 0, INT32_MAX),
    NUMBER("list-max-listpack-size", "-2", INT32_MIN, INT32_MAX),
    PASSWORD("masterauth", ""),
    TEXT("masteruser", ""),
    SIZE("maxmemory", "0", 0),
    CHARS("maxmemory-clients", "0", "0123456789kmgbKMGB%",
          "argument must be a memory or percent value"),
    NUMBER("maxmemory-eviction-tenacity", "10", 0, 100),
    WORDS("maxmemory-policy", "noeviction", policy_words),
    NUMBER("maxmemory-samples", "5", 1, INT32_MAX),
    NUMBER("min-replicas-max-lag", "10", 0, INT32_MAX),
    NUMBER("min-replicas-to-write", "0", 0, INT32_MAX),
    YES_NO("no-appendfsync-on-rewrite", "no"),
    CHARS("notify-keyspace-events", "", "Ag$lshzxeKEtmdn",
          "Invalid event class character. Use 'Ag$lshzxeKEtmdn'."),
    WORDS("oom-score-adj", "no", oom_words),
    CHARS("oom-score-adj-values", "0 200 800", "0123456789- ",
          "wrong number of arguments"),
    FIXED("pidfile", ""),
    TEXT("proc-title-template", "{title} {listen-addr} {server-mode}"),
    WORDS("propagation-error-behavior", "ignore", propagation_words),
    YES_NO("rdb-del-sync-files", "no"),
    YES_NO("rdb-save-incremental-fsync", "yes"),
    FIXED("rdbchecksum", "yes"),
    YES_NO("rdbcompression", "yes"),
    SIZE("repl-backlog-size", "1048576", 1),
    NUMBER("repl-backlog-ttl", "3600", 0, INT64_MAX),
    YES_NO("repl-disable-tcp-nodelay", "no"),
    WORDS("repl-diskless-load", "disabled", diskless_words),
    YES_NO("repl-diskless-sync", "yes"),
    NUMBER("repl-diskless-sync-delay", "5", 0, INT32_MAX),
    NUMBER("repl-diskless-sync-max-replicas", "0", 0, INT32_MAX),
    NUMBER("repl-ping-replica-period", "10", 1, INT32_MAX),
    NUMBER("repl-timeout", "60", 1, INT32_MAX),
    TEXT("replica-announce-ip", ""),
    NUMBER("replica-announce-port", "0", 0, 65535),
    YES_NO("replica-announced", "yes"),
    YES_NO("replica-ignore-disk-write-errors", "no"),
    YES_NO("replica-ignore-maxmemory", "yes"),
    YES_NO("replica-lazy-flush", "no"),
    NUMBER("replica-priority", "100", 0, INT32_MAX),
    YES_NO("replica-read-only", "yes"),
    YES_NO("replica-serve-stale-data", "yes"),
    FIXED("replicaof", ""),
    WORDS("sanitize-dump-payload", "no", sanitize_words),
    CHARS("save", "", "0123456789 ",
          "Invalid save parameters"),
    FIXED("server_cpulist", ""),
    FIXED("set-proc-title", "yes"),
    WORDS("shutdown-on-sigint", "default", shutdown_words),
    WORDS("shutdown-on-sigterm", "default", shutdown_words),
    FIXED("socket-mark-id", "0"),
    YES_NO("stop-writes-on-bgsave-error", "yes"),
    SIZE("stream-node-max-bytes", "4096", 0),
    NUMBER("stream-node-max-entries", "100", 0, INT64_MAX),
    FIXED("supervised", "no"),
    FIXED("syslog-enabled", "no"),
    FIXED("syslog-facility", "local0"),
    FIXED("syslog-ident", "redis"),
    TEXT("tls-client-cert-file", ""),
    TEXT("tls-client-key-file", ""),
    PASSWORD("tls-client-key-file-pass", ""),
    YES_NO("tls-cluster", "no"),
    TEXT("tls-dh-params-file", ""),
    YES_NO("tls-replication", "no"),
    NUMBER("tracking-table-max-keys", "1000000", 0, INT64_MAX),
};

static const struct old_name old_names[] = {
    {"cluster-slave-no-failover", "cluster-replica-no-failover"},
    {"cluster-slave-validity-factor", "cluster-replica-validity-factor"},
    {"hash-max-ziplist-entries", "hash-max-listpack-entries"},
    {"hash-max-ziplist-value", "hash-max-listpack-value"},
    {"list-max-ziplist-size", "list-max-listpack-size"},
    {"lua-time-limit", "busy-reply-threshold"},
    {"min-slaves-max-lag", "min-replicas-max-lag"},
    {"min-slaves-to-write", "min-replicas-to-write"},
    {"repl-ping-slave-period", "repl-ping-replica-period"},
    {"slave-announce-ip", "replica-announce-ip"},
    {"slave-announce-port", "replica-announce-port"},
    {"slave-ignore-maxmemory", "replica-ignore-maxmemory"},
    {"slave-lazy-flush", "replica-lazy-flush"},
    {"slave-priority", "replica-priority"},
    {"slave-read-only", "replica-read-only"},
    {"slave-serve-stale-data", "replica-serve-stale-data"},
    {"slaveof", "replicaof"},
    {"zset-max-ziplist-entries", "zset-max-listpack-entries"},
    {"zset-max-ziplist-value", "zset-max-listpack-value"},
};
/* clang-format on */

#define COUNT ((int)(sizeof options / sizeof options[0]))
static_assert(COUNT <= CONFIG_IDLE_MAX, "an option of Redis has a place for its value");

const struct option *redis_option(int i)
{
    return i >= 0 && i < COUNT ? &options[i] : NULL;
}

int redis_option_index(const struct option *o)
{
    return (int)(o - options);
}

const struct old_name *config_old_name(int i)
{
    return i >= 0 && i < (int)(sizeof old_names / sizeof old_names[0]) ? &old_names[i] : NULL;
}
