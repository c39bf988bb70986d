/* The table of options. To add one: a member of struct config and an entry here; flags, environment, config
   file, CONFIG GET/SET/REWRITE, --help and the documentation follow from it. */
#include "config/config.h"

#include <stdint.h>

#include "config/redis_options.h"

#define AT(member) .offset = offsetof(struct config, member)

#define NETWORK  "Network"
#define HTTP     "HTTP"
#define TLS      "TLS"
#define DATABASE "Database"
#define CLIENTS  "Clients"
#define EXPIRY   "Expiry"
#define SCRIPTS  "Scripts"
#define QUERIES  "Queries"
#define INSIGHT  "Logs and insight"

#define SIZE_FORM "a size in bytes, or with kb, mb, gb"
#define TIME_FORM "a time such as 250ms, 5s, 2m, 1h"

#define KB (INT64_C(1) << 10)
#define MB (INT64_C(1) << 20)

static const char *const auth_words[] = {"no", "yes", "optional", NULL};
static const char *const read_only_words[] = {"no", "yes", "auto", NULL};
static const char *const durability_words[] = {"always", "everysec", "off", NULL};
static const char *const loglevel_words[] = {"debug", "info", "warning", "error", NULL};
static const char *const loglevel_alias[] = {"verbose", "debug", "notice", "info", NULL};
static const char *const debug_words[] = {"no", "yes", "local", NULL};

/* clang-format off */
static const struct option options[] = {
    {.name = "bind", .kind = OPT_STRING, .multi = true, AT(bind), .initial = "127.0.0.1 -::1", .group = NETWORK,
     .placeholder = "ADDRESS...", .accepts = "addresses separated by spaces",
     .summary = "The addresses to listen on.",
     .comment = "\"*\" stands for every IPv4 address and \"::*\" for every IPv6 one. An address with a \"-\" in "
                "front may be missing on this machine."},
    {.name = "port", .kind = OPT_INT, AT(port), .initial = "6379", .max = 65535, .group = NETWORK,
     .accepts = "a port from 0 to 65535",
     .summary = "The TCP port of the Redis protocol; 0 turns TCP off."},
    {.name = "unixsocket", .kind = OPT_STRING, AT(unixsocket), .initial = "", .group = NETWORK,
     .placeholder = "PATH", .accepts = "a path",
     .summary = "A Unix socket to listen on as well; empty for none."},
    {.name = "unixsocketperm", .kind = OPT_OCTAL, AT(unixsocketperm), .initial = "0", .max = 0777, .group = NETWORK,
     .accepts = "an octal mode from 0 to 777",
     .summary = "The permissions of the Unix socket; 0 leaves them to the umask."},
    {.name = "tcp-backlog", .kind = OPT_INT, AT(tcp_backlog), .initial = "511", .max = INT32_MAX, .group = NETWORK,
     .accepts = "a number from 0 to 2147483647",
     .summary = "How many connections may wait to be accepted.",
     .comment = "The kernel cuts it to net.core.somaxconn."},
    {.name = "protected-mode", .kind = OPT_BOOL, .live = true, AT(protected_mode), .initial = "yes", .group = NETWORK,
     .accepts = "yes or no",
     .summary = "Without a password, refuse clients that do not come from this machine."},
    {.name = "requirepass", .kind = OPT_STRING, .live = true, .secret = true, AT(requirepass), .initial = "",
     .group = NETWORK,
     .placeholder = "PASSWORD", .accepts = "a password",
     .summary = "The password that clients give with AUTH; empty for none.",
     .comment = "A flag is visible to other users of the machine: prefer the config file or the environment."},

    {.name = "http-port", .kind = OPT_INT, .unset = true, AT(http_port), .initial = "8379", .max = 65535, .group = HTTP,
     .accepts = "a port from 0 to 65535",
     .summary = "The TCP port of the HTTP API; 0 turns it off.",
     .comment = "As long as nobody sets it, this machine alone is served, at 127.0.0.1 and ::1 whatever bind says, and a "
                "port that is taken is a warning in the log; nor is it opened when port is 0. When it is set, be it to "
                "8379, it is open at all addresses of bind, and a port that is taken ends the start."},
    {.name = "http-max-connections", .kind = OPT_INT, .live = true, AT(http_max_connections), .initial = "0",
     .max = INT32_MAX, .group = HTTP,
     .accepts = "a number, 0 or more",
     .summary = "How many connections to the HTTP port may be open; 0: as many as maxclients leaves."},
    {.name = "http-max-body", .kind = OPT_SIZE, .live = true, AT(http_max_body), .initial = "64mb", .min = KB,
     .max = 1024 * MB, .group = HTTP,
     .accepts = SIZE_FORM ", from 1kb to 1gb",
     .summary = "The longest body of a request."},
    {.name = "http-max-header", .kind = OPT_SIZE, .live = true, AT(http_max_header), .initial = "32kb", .min = KB,
     .max = 64 * KB, .group = HTTP,
     .accepts = SIZE_FORM ", from 1kb to 64kb",
     .summary = "The longest request line and headers, together."},
    {.name = "http-max-uri", .kind = OPT_SIZE, .live = true, AT(http_max_uri), .initial = "16kb", .min = 128,
     .max = 64 * KB, .group = HTTP,
     .accepts = SIZE_FORM ", from 128 bytes to 64kb",
     .summary = "The longest target of a request: path and query, as they are sent."},
    {.name = "http-timeout", .kind = OPT_DURATION, .live = true, AT(http_timeout_ms), .initial = "75s",
     .min = 1, .max = INT32_MAX, .group = HTTP,
     .accepts = TIME_FORM,
     .summary = "Close a connection that has asked for nothing for so long."},
    {.name = "http-request-timeout", .kind = OPT_DURATION, .live = true, AT(http_request_timeout_ms),
     .initial = "30s", .min = 1, .max = INT32_MAX, .group = HTTP,
     .accepts = TIME_FORM,
     .summary = "Close a connection whose request, or whose reading of an answer, takes longer.",
     .comment = "A body may take a second more for every 16kb of it."},
    {.name = "http-cors-origins", .kind = OPT_STRING, .live = true, .multi = true, AT(http_cors_origins),
     .initial = "", .group = HTTP,
     .placeholder = "ORIGIN...", .accepts = "origins such as https://example.com separated by spaces, or *",
     .summary = "Web pages of these origins may use the HTTP API from a browser; empty for none."},

    {.name = "tls-port", .kind = OPT_INT, AT(tls_port), .initial = "0", .max = 65535, .group = TLS,
     .accepts = "a port from 0 to 65535",
     .summary = "The TCP port of the Redis protocol over TLS; 0 turns it off.",
     .comment = "With port 0 there is no other way in over TCP."},
    {.name = "tls-http-port", .kind = OPT_INT, AT(tls_http_port), .initial = "0", .max = 65535, .group = TLS,
     .accepts = "a port from 0 to 65535",
     .summary = "The TCP port of the HTTP API over TLS; 0 turns it off.",
     .comment = "What follows is for both ports. It is read at the start and again on SIGHUP: new connections get the "
                "new certificate, and those that exist go on. When the new files cannot be used the old ones stay, "
                "and the log says why."},
    {.name = "tls-cert-file", .kind = OPT_STRING, .live = true, AT(tls_cert_file), .initial = "", .group = TLS,
     .placeholder = "PATH", .accepts = "a path",
     .summary = "The server's certificate and those between it and the authority's, PEM."},
    {.name = "tls-key-file", .kind = OPT_STRING, .live = true, AT(tls_key_file), .initial = "", .group = TLS,
     .placeholder = "PATH", .accepts = "a path",
     .summary = "The private key of the certificate, PEM."},
    {.name = "tls-key-file-pass", .kind = OPT_STRING, .live = true, .secret = true, AT(tls_key_file_pass),
     .initial = "", .group = TLS,
     .placeholder = "PASSWORD", .accepts = "a password",
     .summary = "The password of the private key; empty for none."},
    {.name = "tls-ca-cert-file", .kind = OPT_STRING, .live = true, AT(tls_ca_cert_file), .initial = "", .group = TLS,
     .placeholder = "PATH", .accepts = "a path",
     .summary = "Certificates of the authorities that clients' certificates must come from, PEM."},
    {.name = "tls-ca-cert-dir", .kind = OPT_STRING, .live = true, AT(tls_ca_cert_dir), .initial = "", .group = TLS,
     .placeholder = "PATH", .accepts = "a path",
     .summary = "A folder of such certificates, named as openssl rehash does."},
    {.name = "tls-auth-clients", .kind = OPT_ENUM, .live = true, AT(tls_auth_clients), .initial = "yes",
     .words = auth_words, .group = TLS,
     .accepts = "no, yes or optional",
     .summary = "Whether clients must show a certificate.",
     .comment = "yes: one of an authority in tls-ca-cert-file or tls-ca-cert-dir. optional: the same, if they show "
                "one at all. no: none is asked for. Commands need AUTH as ever when there is a requirepass."},
    {.name = "tls-protocols", .kind = OPT_STRING, .live = true, AT(tls_protocols), .initial = "", .group = TLS,
     .placeholder = "LIST", .accepts = "TLSv1.2, TLSv1.3 or \"TLSv1.2 TLSv1.3\"",
     .summary = "The versions of TLS to speak; empty for all that are safe, 1.2 and 1.3."},
    {.name = "tls-ciphers", .kind = OPT_STRING, .live = true, AT(tls_ciphers), .initial = "", .group = TLS,
     .placeholder = "LIST", .accepts = "a list as in ciphers(1ssl)",
     .summary = "The ciphers of TLS 1.2; empty for OpenSSL's choice."},
    {.name = "tls-ciphersuites", .kind = OPT_STRING, .live = true, AT(tls_ciphersuites), .initial = "", .group = TLS,
     .placeholder = "LIST", .accepts = "a list as in ciphers(1ssl)",
     .summary = "The cipher suites of TLS 1.3; empty for OpenSSL's choice."},
    {.name = "tls-prefer-server-ciphers", .kind = OPT_BOOL, .live = true, AT(tls_prefer_server_ciphers),
     .initial = "no", .group = TLS,
     .accepts = "yes or no",
     .summary = "Choose the cipher by the server's order rather than the client's."},
    {.name = "tls-session-caching", .kind = OPT_BOOL, .live = true, AT(tls_session_caching), .initial = "yes",
     .group = TLS,
     .accepts = "yes or no",
     .summary = "Let clients that come again resume their session, which spares most of the handshake."},
    {.name = "tls-session-cache-size", .kind = OPT_INT, .live = true, AT(tls_session_cache_size), .initial = "20480",
     .max = INT32_MAX, .group = TLS,
     .accepts = "a number, 0 or more",
     .summary = "How many sessions of clients without tickets to remember; 0 is no limit."},
    {.name = "tls-session-cache-timeout", .kind = OPT_DURATION, .live = true, .unit = 1000,
     AT(tls_session_cache_timeout_ms), .initial = "300s", .max = INT32_MAX, .group = TLS,
     .accepts = TIME_FORM "; a bare number counts seconds",
     .summary = "How long a session can be resumed."},
    {.name = "tls-handshake-timeout", .kind = OPT_DURATION, .live = true, AT(tls_handshake_timeout_ms),
     .initial = "10s", .min = 1, .max = INT32_MAX, .group = TLS,
     .accepts = TIME_FORM,
     .summary = "Close a connection whose handshake takes longer."},

    {.name = "store", .kind = OPT_STRING, .url = true, AT(store), .initial = "sqlite:larder.db", .group = DATABASE,
     .placeholder = "URL", .accepts = "sqlite:PATH, postgres://... or mysql://...",
     .summary = "Where the data is.",
     .comment = "sqlite:PATH is a SQLite database, created when there is none. One server at a time may have it. "
                "postgres://USER@HOST/DATABASE and mysql://USER@HOST/DATABASE are databases on a server, which any "
                "number of Larders may share: see docs/databases.md for what such a URL may say."},
    {.name = "read-only", .kind = OPT_ENUM, AT(read_only), .initial = "no", .words = read_only_words, .bare = "yes",
     .group = DATABASE,
     .accepts = "no, yes or auto",
     .summary = "Only read the database: a standby, say.",
     .comment = "yes: nothing is ever written there, and commands that would are answered -READONLY as by a replica of "
                "Redis. auto: the same for as long as the database is a replica; when it is promoted, this server writes. "
                "With PostgreSQL and MariaDB in shared mode. --read-only alone means yes."},
    {.name = "replica", .kind = OPT_URLS, .url = true, .multi = true, AT(replica), .initial = "", .group = DATABASE,
     .placeholder = "URL...", .accepts = "postgres://... or mysql://..., once for each replica",
     .summary = "A replica of the database, to read from; give it once for each, at most 15 times.",
     .comment = "A standby of PostgreSQL, or a replica of MariaDB, that replays what the store's database writes. The "
                "server follows how far each has got. Reads go there when their consistency allows it: see "
                "docs/consistency.md. Several URLs in one value are separated by spaces or commas. Not with SQLite and not "
                "with mode=exclusive, where memory answers."},
    {.name = "read-consistency", .kind = OPT_CONSISTENCY, .live = true, AT(read_consistency), .initial = "strong",
     .group = DATABASE,
     .placeholder = "MODE", .accepts = "strong, session, bounded=MILLISECONDS or eventual",
     .summary = "What reads may be served from, unless a connection or a request says otherwise.",
     .comment = "strong: the store's database. session: whoever has what this client has written or seen. bounded=500: "
                "whoever is at most 500 milliseconds behind. eventual: any replica. For new connections; without replicas "
                "every read is strong."},
    {.name = "replica-max-lag", .kind = OPT_DURATION, .live = true, AT(replica_max_lag_ms), .initial = "10s",
     .min = 1, .max = INT32_MAX, .group = DATABASE,
     .accepts = TIME_FORM,
     .summary = "A replica that is further behind is not read from.",
     .comment = "Measured by positions in the database's log, not by clocks."},
    {.name = "replica-wait", .kind = OPT_DURATION, .live = true, AT(replica_wait_ms), .initial = "0", .max = INT32_MAX,
     .group = DATABASE,
     .accepts = TIME_FORM ", 0 for not at all",
     .summary = "How long a read waits for a database that has what its client has seen, when none does.",
     .comment = "For reads in session mode while the primary is away, and for servers on a replica alone. Afterwards the "
                "answer is -STALE."},
    {.name = "replica-timeout", .kind = OPT_DURATION, AT(replica_timeout_ms), .initial = "500ms", .min = 10,
     .max = INT32_MAX, .group = DATABASE,
     .accepts = TIME_FORM ", at least 10ms",
     .summary = "How long a replica may take for an answer.",
     .comment = "After that the read goes to the primary, and the replica is not read from until it has answered again "
                "for a while."},
    {.name = "failover-wait", .kind = OPT_DURATION, .live = true, AT(failover_wait_ms), .initial = "5s", .max = INT32_MAX,
     .group = DATABASE,
     .accepts = TIME_FORM ", 0 for not at all",
     .summary = "How long commands that need the primary wait while it is away.",
     .comment = "So that a failover to another host of the store's URL is a pause and no error. For stores with replicas."},
    {.name = "durability", .kind = OPT_ENUM, .live = true, AT(durability), .initial = "always",
     .words = durability_words, .group = DATABASE,
     .accepts = "always, everysec or off",
     .summary = "When a write is safe from a power failure.",
     .comment = "always: before its reply is sent. everysec: at most a second later. off: when the operating "
                "system sees fit. With the last two, a crash of the server alone loses what was written in the "
                "last 100 milliseconds; with always, nothing."},
    {.name = "memory", .kind = OPT_SIZE, AT(memory), .initial = "512mb", .min = MB, .max = INT64_MAX, .group = DATABASE,
     .accepts = SIZE_FORM ", at least 1mb",
     .summary = "What cache-memory, journal-max and page-cache take together, where they are not given themselves.",
     .comment = "Ten parts of sixteen are for cache-memory, five for journal-max and one for page-cache. When neither of the first "
                "two is given, and the database is a SQLite file, the cache gives up to two of its parts to rows that wait for "
                "the tables, while they need them."},
    {.name = "journal-max", .kind = OPT_SIZE, .unset = true, AT(journal_max), .initial = "160mb", .max = INT64_MAX, .group = DATABASE,
     .accepts = SIZE_FORM ", 0 for no journal",
     .summary = "How much memory rows may take that were written and are not in the tables yet.",
     .comment = "Writes are made durable in a log, and brought into the tables sorted and in bulk a little later: the "
                "more at a time, the less a row costs. Writers that are faster than the tables can follow are slowed "
                "down before this is used up. 0: every write goes straight into the tables. On a database server, with "
                "mode=exclusive only. 5/16 of memory, unless it is given."},
    {.name = "log-max", .kind = OPT_SIZE, AT(log_max), .initial = "1gb", .min = MB, .max = INT64_MAX, .group = DATABASE,
     .accepts = SIZE_FORM ", at least 1mb",
     .summary = "How large the log beside a SQLite database may become.",
     .comment = "It holds what was written and is not in the tables yet. What is in it is brought into the tables when half "
                "of it is used; writers are slowed down before it is full."},
    {.name = "shutdown-timeout", .kind = OPT_DURATION, .live = true, .unit = 1000, AT(shutdown_timeout_ms), .initial = "10s",
     .max = INT32_MAX, .group = DATABASE,
     .accepts = TIME_FORM "; a bare number counts seconds",
     .summary = "How long a clean end waits until a SQLite database has what the log holds.",
     .comment = "Afterwards the log stays beside the database, and the next start goes on with it."},
    {.name = "wal-max", .kind = OPT_SIZE, AT(wal_max), .initial = "2gb", .min = MB, .max = INT64_MAX, .group = DATABASE,
     .accepts = SIZE_FORM ", at least 1mb",
     .summary = "While SQLite's own log (-wal) is larger, nothing is brought into the tables.",
     .comment = "It cannot start over while another process reads an old state of the database. Until that ends, what is "
                "written stays in journal-max and log-max."},
    {.name = "apply-lag", .kind = OPT_DURATION, AT(apply_lag_ms), .initial = "60s", .max = INT32_MAX,
     .group = DATABASE,
     .accepts = TIME_FORM,
     .summary = "How long the tables may be behind what was written.",
     .comment = "For those who read the tables with SQL. Under light load they are current, and about a second behind as long as "
                "bringing rows in takes no more than a twentieth of the time. A longer time makes writing many keys at random "
                "cheaper: more of them share a page."},
    {.name = "cache-memory", .kind = OPT_SIZE, .live = true, .unset = true, AT(cache_memory), .initial = "320mb", .max = INT64_MAX,
     .group = DATABASE,
     .accepts = SIZE_FORM,
     .summary = "How much memory the cache of rows may take.",
     .comment = "On a database that several servers share, half of it is for reads that need not be strong: see "
                "read-consistency. 5/8 of memory, unless it is given."},
    {.name = "page-cache", .kind = OPT_SIZE, .unset = true, AT(page_cache), .initial = "32mb", .min = 64 * KB, .max = INT32_MAX * KB,
     .group = DATABASE,
     .accepts = SIZE_FORM ", at least 64kb",
     .summary = "How much memory SQLite's own cache of pages may take.",
     .comment = "1/16 of memory, unless it is given."},
    {.name = "busy-timeout", .kind = OPT_DURATION, AT(busy_timeout_ms), .initial = "5s", .max = INT32_MAX,
     .group = DATABASE,
     .accepts = TIME_FORM,
     .summary = "How long to wait while another process holds the database's lock."},
    {.name = "store-timeout", .kind = OPT_DURATION, AT(store_timeout_ms), .initial = "10s", .min = 100,
     .max = INT32_MAX, .group = DATABASE,
     .accepts = TIME_FORM ", at least 100ms",
     .summary = "How long a database server may take for an answer.",
     .comment = "After that the connection is given up, commands get an error, and another connection is made. With a "
                "journal, commits wait as long for a connection to come back."},
    {.name = "store-wait", .kind = OPT_DURATION, AT(store_wait_ms), .initial = "1m", .max = INT32_MAX,
     .group = DATABASE,
     .accepts = TIME_FORM ", 0 for not at all",
     .summary = "How long a start waits for a database server that cannot be reached yet.",
     .comment = "The log says what it waits for. A server that is there and refuses (a wrong password, no such role or "
                "database) is not waited for."},
    {.name = "accept-untested", .kind = OPT_BOOL, AT(accept_untested), .initial = "no", .bare = "yes", .group = DATABASE,
     .accepts = "yes or no",
     .summary = "Serve a database server that Larder has not been proven on.",
     .comment = "Proven are PostgreSQL and MariaDB in the versions that the tests run, and servers on which larder selftest "
                "has passed: see docs/databases.md. Any other is refused at the start; with this option the log warns. "
                "--accept-untested alone means yes."},
    {.name = "exclusive-lease", .kind = OPT_DURATION, AT(exclusive_lease_ms), .initial = "5s",
     .max = 600000, .group = DATABASE,
     .accepts = TIME_FORM ", at most 10m; 0 for none",
     .summary = "How long a database server's last answer lets a server in exclusive mode answer from memory.",
     .comment = "After that it asks before it answers. Whoever takes the tables over from a server that did not end "
                "well waits as long before it writes, so that nobody reads from memory what is not true any more. "
                "0: what is in memory is always answered, also while the database is away."},
    {.name = "workers", .kind = OPT_INT, AT(workers), .initial = "0", .min = 0, .max = 64, .group = DATABASE,
     .accepts = "a number from 0 to 64",
     .summary = "Threads that serve clients; 0: as many as there are processors.",
     .comment = "Each has a session of the database of its own. For PostgreSQL and MariaDB in shared mode: SQLite and a "
                "database in exclusive mode are always served by one, and more are refused."},
    {.name = "databases", .kind = OPT_INT, AT(databases), .initial = "16", .min = 1, .max = 65536, .group = DATABASE,
     .accepts = "a number from 1 to 65536",
     .summary = "How many logical databases SELECT may choose from."},

    {.name = "maxclients", .kind = OPT_INT, .live = true, AT(maxclients), .initial = "10000", .min = 1,
     .max = UINT32_MAX, .group = CLIENTS,
     .accepts = "a number from 1 to 4294967295",
     .summary = "How many clients may be connected at once.",
     .comment = "Lowered at the start when the limit of open files allows fewer."},
    {.name = "timeout", .kind = OPT_DURATION, .live = true, .unit = 1000, AT(timeout_ms), .initial = "0",
     .max = INT32_MAX, .group = CLIENTS,
     .accepts = TIME_FORM "; a bare number counts seconds",
     .summary = "Close clients that are idle for this long; 0 never does."},
    {.name = "tcp-keepalive", .kind = OPT_DURATION, .live = true, .unit = 1000, AT(tcp_keepalive_ms),
     .initial = "300s", .max = INT32_MAX, .group = CLIENTS,
     .accepts = TIME_FORM "; a bare number counts seconds",
     .summary = "Ask silent clients for a sign of life after this time; 0 never does."},
    {.name = "proto-max-bulk-len", .kind = OPT_SIZE, .live = true, AT(proto_max_bulk_len), .initial = "512mb",
     .min = MB, .max = INT64_MAX, .group = CLIENTS,
     .accepts = SIZE_FORM ", at least 1mb",
     .summary = "The longest argument, and the longest string."},
    {.name = "client-query-buffer-limit", .kind = OPT_SIZE, .live = true, AT(client_query_buffer_limit),
     .initial = "1gb", .min = MB, .max = INT64_MAX, .group = CLIENTS,
     .accepts = SIZE_FORM ", at least 1mb",
     .summary = "Close a client whose unfinished command takes more than this."},
    {.name = "client-output-buffer-limit", .kind = OPT_OUTPUT_LIMIT, .live = true, .multi = true, AT(output_hard),
     .initial = "normal 0 0 0 slave 256mb 64mb 60 pubsub 32mb 8mb 60", .group = CLIENTS,
     .accepts = "CLASS HARD SOFT SECONDS, once or more; a class is normal, replica or pubsub",
     .summary = "Close a client that reads its replies too slowly.",
     .comment = "It is closed when HARD bytes of replies wait for it, or SOFT bytes for SECONDS; 0 is no limit. "
                "The classes replica and pubsub are accepted and have no effect in this version."},
    {.name = "busy-poll", .kind = OPT_BOOL, .live = true, AT(busy_poll), .initial = "yes", .group = CLIENTS,
     .accepts = "yes or no",
     .summary = "While one client alone sends commands, one after the other, look out for its next one for a moment before sleeping.",
     .comment = "Up to 100 us, and only while its commands come that soon: it saves the time in which a processor wakes up, and takes "
                "processor time that nobody else has asked for."},

    {.name = "sweep", .kind = OPT_BOOL, .live = true, AT(sweep), .initial = "yes", .group = EXPIRY,
     .accepts = "yes or no",
     .summary = "Remove the rows of expired and deleted keys in the background.",
     .comment = "No client ever sees an expired key, swept or not: this is about space."},
    {.name = "sweep-interval", .kind = OPT_DURATION, .live = true, AT(sweep_interval_ms), .initial = "1s",
     .min = 1, .max = INT32_MAX, .group = EXPIRY,
     .accepts = TIME_FORM,
     .summary = "How often to look for dead rows when there were none."},
    {.name = "sweep-batch", .kind = OPT_INT, .live = true, AT(sweep_batch), .initial = "1000", .min = 1,
     .max = 1000000, .group = EXPIRY,
     .accepts = "a number from 1 to 1000000",
     .summary = "How many rows to remove in one transaction."},
    {.name = "sweep-pause", .kind = OPT_DURATION, .live = true, AT(sweep_pause_ms), .initial = "5ms",
     .max = INT32_MAX, .group = EXPIRY,
     .accepts = TIME_FORM,
     .summary = "How long to leave the database to clients between two such transactions.",
     .comment = "At least: while clients are busy, ten times as long as the last one took, so that the sweeper has less than a "
                "tenth of the time; a quarter after a minute in which it could not keep up. A tenth of this while nobody asks "
                "for anything."},

    {.name = "busy-reply-threshold", .kind = OPT_INT, .live = true, AT(busy_reply_threshold_ms), .initial = "5000",
     .max = INT64_MAX, .group = SCRIPTS,
     .accepts = "milliseconds, or 0",
     .summary = "A script that runs for longer (in milliseconds) is busy: other clients get -BUSY, and SCRIPT KILL ends it; 0: none is.",
     .comment = "With several workers, it is the clients of the script's own worker that get -BUSY; the others are served."},
    {.name = "script-memory", .kind = OPT_SIZE, .live = true, AT(script_memory), .initial = "256mb", .min = MB,
     .max = INT64_MAX, .group = SCRIPTS,
     .accepts = SIZE_FORM ", at least 1mb",
     .summary = "How much memory an interpreter of scripts may take; a script that needs more ends in an error.",
     .comment = "Each worker has one interpreter for EVAL and one for functions, from the first script on."},

    {.name = "sql-threads", .kind = OPT_INT, AT(sql_threads), .initial = "2", .max = 64, .group = QUERIES,
     .accepts = "a number from 0 to 64",
     .summary = "How many long queries run at once, each on a thread of its own; 0: none can.",
     .comment = "A query that takes long goes on there, on a snapshot of the database: its client waits for it, the "
                "others do not. Each thread that has had a query keeps a session of the database."},
    {.name = "sql-timeout", .kind = OPT_DURATION, .live = true, AT(sql_timeout_ms), .initial = "30s", .min = 1,
     .max = INT32_MAX, .group = QUERIES,
     .accepts = TIME_FORM,
     .summary = "A query that takes longer ends in an error.",
     .comment = "The wait for a thread and for its snapshot counts."},
    {.name = "sql-max-result", .kind = OPT_SIZE, .live = true, AT(sql_max_result), .initial = "32mb", .min = KB,
     .max = 1024 * MB, .group = QUERIES,
     .accepts = SIZE_FORM ", from 1kb to 1gb",
     .summary = "The largest result of a query; one that is larger is an error."},
    {.name = "sql-max-wal", .kind = OPT_SIZE, .live = true, AT(sql_max_wal), .initial = "512mb", .min = MB,
     .max = INT64_MAX, .group = QUERIES,
     .accepts = SIZE_FORM ", at least 1mb",
     .summary = "While SQLite's log is larger, a long query waits for those that run.",
     .comment = "The log cannot start over while a query reads what was there before."},
    {.name = "sql-memory", .kind = OPT_SIZE, .live = true, AT(sql_memory), .initial = "64mb", .min = MB,
     .max = INT64_MAX, .group = QUERIES,
     .accepts = SIZE_FORM ", at least 1mb",
     .summary = "How much memory a query may take for what it sorts, groups and computes; one that needs more ends in an error."},
    {.name = "sql-inline-rows", .kind = OPT_INT, .live = true, AT(sql_inline_rows), .initial = "2000", .min = 1,
     .max = 1000000, .group = QUERIES,
     .accepts = "a number from 1 to 1000000",
     .summary = "How many rows a query may read between other clients' commands; one that reads more runs aside from them.",
     .comment = "In MULTI and in scripts, where that is not possible, it ends in an error."},
    {.name = "sql-write-rows", .kind = OPT_INT, .live = true, AT(sql_write_rows), .initial = "10000", .min = 1,
     .max = 1000000, .group = QUERIES,
     .accepts = "a number from 1 to 1000000",
     .summary = "How many rows one SQL command may insert, update and delete; it may read ten times as many."},

    {.name = "loglevel", .kind = OPT_ENUM, .live = true, AT(loglevel), .initial = "info", .words = loglevel_words,
     .alias = loglevel_alias, .group = INSIGHT,
     .accepts = "debug, info, warning or error",
     .summary = "The least important lines to log.",
     .comment = "Redis' names verbose and notice are taken for debug and info."},
    {.name = "logfile", .kind = OPT_STRING, AT(logfile), .initial = "", .group = INSIGHT,
     .placeholder = "PATH", .accepts = "a path",
     .summary = "The file to log to; empty for standard error.",
     .comment = "SIGHUP opens it anew, for log rotation."},
    {.name = "slowlog-log-slower-than", .kind = OPT_INT, .live = true, AT(slowlog_log_slower_than),
     .initial = "10000", .min = -1, .max = INT64_MAX, .group = INSIGHT,
     .accepts = "microseconds, or -1",
     .summary = "Commands that take longer (in microseconds) go to SLOWLOG; -1 turns it off."},
    {.name = "slowlog-max-len", .kind = OPT_INT, .live = true, AT(slowlog_max_len), .initial = "128",
     .max = INT64_MAX, .group = INSIGHT,
     .accepts = "a number, 0 or more",
     .summary = "How many commands SLOWLOG remembers."},
    {.name = "latency-monitor-threshold", .kind = OPT_DURATION, .live = true, .unit = 1,
     AT(latency_monitor_threshold_ms), .initial = "0", .max = INT64_MAX, .group = INSIGHT,
     .accepts = TIME_FORM "; a bare number counts milliseconds",
     .summary = "Events that take at least this long go to LATENCY; 0 turns it off."},
    {.name = "enable-debug-command", .kind = OPT_ENUM, AT(enable_debug_command), .initial = "no",
     .words = debug_words, .group = INSIGHT,
     .accepts = "no, yes or local",
     .summary = "Who may use DEBUG; local: clients of this machine."},
};
/* clang-format on */

#define COUNT ((int)(sizeof options / sizeof options[0]))

const struct option *config_option(int i)
{
    return i >= 0 && i < COUNT ? &options[i] : redis_option(i - COUNT);
}

int config_index(const struct option *o)
{
    return o->redis ? COUNT + redis_option_index(o) : (int)(o - options);
}

const struct option *config_find(struct slice name)
{
    const struct option *o;
    const struct old_name *n;
    for (int i = 0; (n = config_old_name(i)); i++) {
        if (slice_is(name, n->old))
            name = slice_str(n->now);
    }
    for (int i = 0; (o = config_option(i)); i++) {
        if (slice_is(name, o->name))
            return o;
    }
    return NULL;
}

#define NAME_MAX_CHARS 64

/* How many letters must be added, removed or changed to make one word of the other. */
static size_t distance(struct slice a, const char *b)
{
    size_t row[NAME_MAX_CHARS + 1];
    size_t n = strlen(b);
    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (size_t i = 1; i <= a.n; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            size_t best = diagonal + (a.p[i - 1] != b[j - 1]);
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            diagonal = row[j];
            row[j] = best;
        }
    }
    return row[n];
}

const struct option *config_nearest(struct slice name)
{
    const struct option *best = NULL;
    size_t best_distance = name.n / 4 + 2; /* at least as far is not the same word any more */
    for (int i = 0; i < COUNT && name.n <= NAME_MAX_CHARS; i++) {
        size_t d = distance(name, options[i].name);
        if (d < best_distance) {
            best = &options[i];
            best_distance = d;
        }
    }
    return best;
}
