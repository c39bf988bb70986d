#include "config/config.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/hide.h"
#include "base/mem.h"
#include "check.h"

static char file[64];

static void write_file(const char *text)
{
    FILE *f = fopen(file, "w");
    if (!f || fputs(text, f) < 0 || fclose(f))
        abort();
}

static void check_file(const char *want)
{
    char text[4096] = "";
    FILE *f = fopen(file, "r");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f)
        fclose(f);
    CHECK_SLICE(slice_of(text, n), slice_str(want));
}

static void check_value(const struct config *c, const char *name, bool human, const char *want)
{
    struct buf out = {0};
    check.context = name;
    config_get(c, config_find(slice_str(name)), human, &out);
    CHECK_SLICE(buf_slice(&out), slice_str(want));
    buf_release(&out);
    check.context = NULL;
}

static enum status set(struct config *c, const char *name, const char *value, const char *origin,
                       struct error *err)
{
    err->text[0] = '\0';
    return config_set(c, config_find(slice_str(name)), slice_str(value), origin, err);
}

/* The message of a refusal; the value stays. */
static void check_refused(const char *name, const char *value, const char *origin, const char *want)
{
    struct config c;
    struct error err;
    struct buf before = {0}, after = {0};
    config_init(&c);
    config_get(&c, config_find(slice_str(name)), false, &before);
    CHECK_EQ(set(&c, name, value, origin, &err), ST_INVALID);
    CHECK_STR(err.text, want);
    config_get(&c, config_find(slice_str(name)), false, &after);
    CHECK_SLICE(buf_slice(&after), buf_slice(&before));
    buf_release(&before);
    buf_release(&after);
    config_release(&c);
}

static void the_table_is_sound(void)
{
    const struct option *o;
    struct config c;
    config_init(&c);
    for (int i = 0; (o = config_option(i)); i++) {
        struct error err;
        struct buf text = {0};
        check.context = o->name;
        CHECK(config_find(slice_str(o->name)) == o);
        CHECK(o->accepts && o->initial);
        CHECK(o->redis || (o->summary && o->group));
        CHECK_EQ(config_index(o), i);
        CHECK(o->kind != OPT_STRING || o->placeholder);
        for (int human = 0; human < 2; human++) {
            config_get(&c, o, human, &text);
            CHECK_OK(config_set(&c, o, buf_slice(&text), "test", &err), &err);
            text.len = 0;
        }
        buf_release(&text);
    }
    check.context = NULL;
    CHECK(config_option(-1) == NULL);
    CHECK(config_find(SLICE("PORT")) != NULL);
    CHECK(config_find(SLICE("por")) == NULL);
    config_release(&c);
}

static void values_print_as_in_redis(void)
{
    struct config c;
    config_init(&c);
    check_value(&c, "bind", false, "127.0.0.1 -::1");
    check_value(&c, "port", false, "6379");
    check_value(&c, "unixsocketperm", false, "0");
    check_value(&c, "protected-mode", false, "yes");
    check_value(&c, "timeout", false, "0");
    check_value(&c, "tcp-keepalive", false, "300");
    check_value(&c, "tcp-keepalive", true, "300s");
    check_value(&c, "proto-max-bulk-len", false, "536870912");
    check_value(&c, "proto-max-bulk-len", true, "512mb");
    check_value(&c, "client-output-buffer-limit", false,
                "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60");
    check_value(&c, "latency-monitor-threshold", false, "0");
    check_value(&c, "busy-timeout", false, "5s");
    check_value(&c, "busy-timeout", true, "5s");
    check_value(&c, "sweep-pause", true, "5ms");
    check_value(&c, "durability", false, "always");
    check_value(&c, "loglevel", false, "info");
    config_release(&c);
}

/* What is given is kept; what is not gets its part, and is not "given" by that. */
static void memory_is_shared(void)
{
    struct config c;
    struct error err;
    config_init(&c);
    config_share_memory(&c); /* the parts of the default are the defaults of the parts */
    check_value(&c, "cache-memory", true, "320mb");
    check_value(&c, "journal-max", true, "160mb");
    check_value(&c, "page-cache", true, "32mb");
    CHECK_EQ(c.journal_loan, 64 << 20);
    CHECK_OK(set(&c, "memory", "1gb", "test", &err), &err);
    CHECK_OK(set(&c, "journal-max", "0", "test", &err), &err);
    config_share_memory(&c);
    check_value(&c, "cache-memory", true, "640mb");
    check_value(&c, "journal-max", true, "0");
    check_value(&c, "page-cache", true, "64mb");
    CHECK_EQ(c.journal_loan, 0);
    CHECK(!config_given(&c, "cache-memory") && config_given(&c, "journal-max"));
    CHECK_OK(set(&c, "memory", "100gb", "test", &err), &err);
    CHECK_OK(set(&c, "cache-memory", "1mb", "test", &err), &err);
    config_share_memory(&c);
    check_value(&c, "cache-memory", true, "1mb");
    CHECK_EQ(c.page_cache, (UINT64_C(100) << 30) / 16);
    config_release(&c);
    check_refused(
        "memory", "1kb", "--memory",
        "--memory: \"1kb\" is no value for memory: expected a size in bytes, or with kb, mb, gb, at "
        "least 1mb");
}

static void values_are_set(void)
{
    struct config c;
    struct error err;
    config_init(&c);
    CHECK_OK(set(&c, "cache-memory", "64mb", "test", &err), &err);
    CHECK_EQ(c.cache_memory, 64 << 20);
    CHECK_OK(set(&c, "timeout", "7", "test", &err), &err);
    CHECK_EQ(c.timeout_ms, 7000);
    CHECK_OK(set(&c, "timeout", "250ms", "test", &err), &err);
    check_value(&c, "timeout", false, "250ms");
    CHECK_OK(set(&c, "unixsocketperm", "770", "test", &err), &err);
    CHECK_EQ(c.unixsocketperm, 0770);
    check_value(&c, "unixsocketperm", false, "770");
    CHECK_OK(set(&c, "loglevel", "notice", "test", &err), &err);
    check_value(&c, "loglevel", false, "info");
    CHECK_OK(set(&c, "loglevel", "VERBOSE", "test", &err), &err);
    check_value(&c, "loglevel", false, "debug");
    CHECK_OK(set(&c, "slowlog-log-slower-than", "-1", "test", &err), &err);
    CHECK_EQ(c.slowlog_log_slower_than, -1);
    CHECK_OK(set(&c, "client-output-buffer-limit", "normal 1gb 2mb 3 replica 1 2 3", "test", &err), &err);
    check_value(&c, "client-output-buffer-limit", false,
                "normal 1073741824 2097152 3 slave 1 2 3 pubsub 33554432 8388608 60");
    CHECK_OK(set(&c, "client-output-buffer-limit", "", NULL, &err), &err);
    CHECK_EQ(c.output_hard, 1 << 30);
    CHECK_EQ(c.output_soft_ms, 3000);
    CHECK_OK(set(&c, "requirepass", "s3cret", "test", &err), &err);
    CHECK_STR(c.requirepass, "s3cret");
    config_release(&c);
}

static void refusals_name_option_origin_and_form(void)
{
    check_refused("port", "70000", "--port",
                  "--port: \"70000\" is no value for port: expected a port from 0 to 65535");
    check_refused(
        "cache-memory", "lots", "LARDER_CACHE_MEMORY",
        "LARDER_CACHE_MEMORY: \"lots\" is no value for cache-memory: expected a size in bytes, or with kb, "
        "mb, gb");
    check_refused("durability", "never", "larder.conf:3",
                  "larder.conf:3: \"never\" is no value for durability: expected always, everysec or off");
    check_refused(
        "http-max-header", "1mb", "--http-max-header",
        "--http-max-header: \"1mb\" is no value for http-max-header: expected a size in bytes, or with "
        "kb, mb, gb, from 1kb to 64kb");
    check_refused("workers", "65", "--workers",
                  "--workers: \"65\" is no value for workers: expected a number from 0 to 64");
    check_refused(
        "sweep-interval", "0", "--sweep-interval",
        "--sweep-interval: \"0\" is no value for sweep-interval: expected a time such as 250ms, 5s, 2m, 1h");
}

/* Redis' names keep Redis' units; our own take none for granted. */
static void a_bare_number_is_no_time(void)
{
    const struct option *o;
    int ours = 0;
    for (int i = 0; (o = config_option(i)); i++) {
        struct config c;
        struct error err;
        if (o->kind != OPT_DURATION)
            continue;
        config_init(&c);
        if (o->unit) {
            CHECK_OK(config_set(&c, o, SLICE("60"), "test", &err), &err);
            check_value(&c, o->name, false, "60");
        } else {
            ours++;
            CHECK_EQ(config_set(&c, o, SLICE("60"), "test", &err), ST_INVALID);
            CHECK_EQ(config_set(&c, o, SLICE("60"), NULL, &err), ST_INVALID);
            CHECK_OK(config_set(&c, o, SLICE("60s"), "test", &err), &err);
            check_value(&c, o->name, false, "60s");
        }
        config_release(&c);
    }
    CHECK(ours > 5);
    check_refused("sweep-interval", "60", "LARDER_SWEEP_INTERVAL",
                  "LARDER_SWEEP_INTERVAL: \"60\" has no unit, and sweep-interval needs one: 60ms or 60s?");
    check_refused("sweep-interval", "60", NULL, "argument needs a unit: 60ms or 60s?");
    check_refused("sweep-pause", "soon", NULL, "argument must be a time such as 250ms, 5s, 2m, 1h");
}

static void secrets_stay_secret(void)
{
    struct config c;
    struct error err;
    config_init(&c);
    const struct option *o = config_find(SLICE("requirepass"));
    CHECK_EQ(config_set(&c, o, slice_of("s3\0cret", 7), "--requirepass", &err), ST_INVALID);
    CHECK_STR(err.text, "--requirepass: this value is no value for requirepass: expected a password");
    config_release(&c);
}

static void passwords_of_lists_stay_secret(void)
{
    char out[200];
    CHECK_STR(hide_passwords(out, sizeof out, "postgres://u:pw@a/x mysql://b/x postgres://c/x?password=pw"),
              "postgres://u:***@a/x mysql://b/x postgres://c/x?password=***");
    CHECK_STR(hide_passwords(out, sizeof out, ""), "");
    CHECK_STR(hide_passwords(out, 12, "postgres://u:pw@a/x"), "postgres://");
    check_refused("replica", "postgres://u:my pw@a/x", "--replica",
                  "--replica: this value is no value for replica: expected postgres://... or mysql://..., "
                  "once for each replica");
}

/* Values of one source add up, a later source replaces them. */
static void lists_add_up(void)
{
    struct config c;
    struct error err;
    config_init(&c);
    check_value(&c, "replica", false, "");
    write_file("replica postgres://a,b/x\nport 7000\nreplica mysql://c mysql://d\n");
    CHECK_OK(config_load_file(&c, file, &err), &err);
    check_value(&c, "replica", false, "postgres://a,b/x mysql://c mysql://d");
    setenv("LARDER_REPLICA", "postgres://e/x,postgres://f,g/x  mysql://h", 1);
    CHECK_OK(config_load_env(&c, &err), &err);
    unsetenv("LARDER_REPLICA");
    check_value(&c, "replica", false, "postgres://e/x postgres://f,g/x mysql://h");
    char name[] = "--replica", first[] = "postgres://i/x", second[] = "--replica=postgres://j/x";
    char none[] = "--replica=";
    char *const flags[] = {name, first, second};
    CHECK_OK(config_load_args(&c, 3, flags, &err), &err);
    check_value(&c, "replica", false, "postgres://i/x postgres://j/x");
    CHECK_OK(config_load_args(&c, 1, (char *const[]){none}, &err), &err);
    check_value(&c, "replica", false, "");
    config_release(&c);
}

static void refusals_in_redis_words(void)
{
    check_refused(
        "read-consistency", "bounded=0", "--read-consistency",
        "--read-consistency: \"bounded=0\" is no value for read-consistency: expected strong, session, "
        "bounded=MILLISECONDS or eventual");
    check_refused("maxclients", "x", NULL, "argument couldn't be parsed into an integer");
    check_refused("maxclients", "0", NULL, "argument must be between 1 and 4294967295 inclusive");
    check_refused("timeout", "x", NULL, "argument couldn't be parsed into an integer");
    check_refused("timeout", "-1", NULL, "argument must be between 0 and 2147483647 inclusive");
    check_refused("timeout", "2147483648", NULL, "argument must be between 0 and 2147483647 inclusive");
    check_refused("timeout", "007", NULL, "argument couldn't be parsed into an integer");
    check_refused("protected-mode", "maybe", NULL, "argument must be 'yes' or 'no'");
    check_refused("proto-max-bulk-len", "1", NULL,
                  "argument must be between 1048576 and 9223372036854775807 inclusive");
    check_refused("proto-max-bulk-len", "x", NULL, "argument must be a memory value");
    check_refused("proto-max-bulk-len", "-5", NULL, "argument must be a memory value");
    check_refused("slowlog-log-slower-than", "-2", NULL,
                  "argument must be between -1 and 9223372036854775807 inclusive");
    check_refused("durability", "x", NULL, "argument(s) must be one of the following: always, everysec, off");
    check_refused("client-output-buffer-limit", "normal 0 0", NULL,
                  "Wrong number of arguments in buffer limit configuration.");
    check_refused("client-output-buffer-limit", "foo 0 0 0", NULL,
                  "Invalid client class specified in buffer limit configuration.");
    check_refused("client-output-buffer-limit", "normal 1 1 1 normal x 0 0", NULL,
                  "Error in hard, soft or soft_seconds setting in buffer limit configuration.");
}

static void unknown_names_suggest(void)
{
    CHECK_STR(config_nearest(SLICE("prot"))->name, "port");
    CHECK_STR(config_nearest(SLICE("cache-mem"))->name, "cache-memory");
    CHECK_STR(config_nearest(SLICE("max-clients"))->name, "maxclients");
    CHECK(config_nearest(SLICE("maxmemory-policy")) == NULL);
    CHECK(config_nearest(SLICE("service-host")) == NULL);
}

static void check_file_refused(const char *text, const char *want)
{
    struct config c;
    struct error err;
    char prefetch[300];
    config_init(&c);
    write_file(text);
    CHECK_EQ(config_load_file(&c, file, &err), ST_INVALID);
    snprintf(prefetch, sizeof prefetch, "%s%s", file, want);
    CHECK_STR(err.text, prefetch);
    CHECK(c.file == NULL);
    config_release(&c);
}

static void files_are_read(void)
{
    struct config c;
    struct error err;
    config_init(&c);
    write_file(
        "# a comment\n\n  \t# another\nport 7000\r\nbind 127.0.0.1 ::1\n"
        "requirepass \"a \\\"b\\\" \\x41\"\nlogfile 'my log'\nclient-output-buffer-limit normal 1 2 3\n"
        "PORT 7001");
    REQUIRE_OK(config_load_file(&c, file, &err), &err);
    CHECK_EQ(c.port, 7001);
    CHECK_STR(c.bind, "127.0.0.1 ::1");
    CHECK_STR(c.requirepass, "a \"b\" A");
    CHECK_STR(c.logfile, "my log");
    CHECK_EQ(c.output_hard, 1);
    CHECK_STR(c.file, file);
    config_release(&c);

    check_file_refused("\nport 99999\n",
                       ":2: \"99999\" is no value for port: expected a port from 0 to 65535");
    check_file_refused("prot 1\n", ":1: there is no option \"prot\"; did you mean port?");
    check_file_refused("zzzzzzzzzzzz 1\n",
                       ":1: there is no option \"zzzzzzzzzzzz\"; larder --help lists them all");
    check_file_refused("port\n", ":1: port takes one value, expected a port from 0 to 65535");
    check_file_refused("port \"1\n", ":1: unbalanced quotes");
    check_file_refused("port 1 2\n",
                       ":1: port takes one value, expected a port from 0 to 65535 (put quotes around "
                       "a value with spaces)");
}

static void missing_files_are_told(void)
{
    struct config c;
    struct error err;
    config_init(&c);
    CHECK_EQ(config_load_file(&c, "/nonexistent.conf", &err), ST_MISSING);
    CHECK_STR(err.text, "cannot open the config file /nonexistent.conf: No such file or directory");
    CHECK_EQ(config_load_file(&c, "/", &err), ST_IO);
    config_release(&c);
}

static void the_environment_counts(void)
{
    struct config c;
    struct error err;
    config_init(&c);
    setenv("LARDER_CACHE_MEMORY", "1mb", 1);
    CHECK_OK(config_load_env(&c, &err), &err);
    CHECK_EQ(c.cache_memory, 1 << 20);
    CHECK_EQ(c.warnings.len, 0);
    setenv("LARDER_CACHE_MEMORY", "much", 1);
    CHECK_EQ(config_load_env(&c, &err), ST_INVALID);
    CHECK(strncmp(err.text, "LARDER_CACHE_MEMORY: ", 21) == 0);
    unsetenv("LARDER_CACHE_MEMORY");
    config_release(&c);
}

/* Loads the environment with these variables in it, which end with a NULL, and compares what is warned of. */
static void check_warnings(const char *const (*vars)[2], const char *want)
{
    struct config c;
    struct error err;
    config_init(&c);
    for (int i = 0; vars[i][0]; i++)
        setenv(vars[i][0], vars[i][1], 1);
    CHECK_OK(config_load_env(&c, &err), &err);
    buf_add(&c.warnings, "", 1);
    CHECK_STR(c.warnings.p, want);
    CHECK_EQ(c.port, 6379);
    CHECK_EQ(c.http_port, strtol(config_find(SLICE("http-port"))->initial, NULL, 10));
    for (int i = 0; vars[i][0]; i++)
        unsetenv(vars[i][0]);
    config_release(&c);
}

static void unknown_variables_are_ignored_with_a_warning(void)
{
    check_warnings((const char *const[][2]){{"LARDER_CACHE_MEMORI", "1mb"}, {NULL, NULL}},
                   "LARDER_CACHE_MEMORI is ignored: there is no option of this name; did you mean "
                   "LARDER_CACHE_MEMORY?\n");
    check_warnings((const char *const[][2]){{"LARDER_FAVOURITE_COLOUR", "blue"}, {NULL, NULL}},
                   "LARDER_FAVOURITE_COLOUR is ignored: there is no option of this name\n");
}

static void what_kubernetes_injects_is_no_option(void)
{
    check_warnings((const char *const[][2]){{"LARDER_SERVICE_HOST", "10.0.0.1"},
                                            {"LARDER_SERVICE_PORT", "6379"},
                                            {"LARDER_SERVICE_PORT_REDIS", "6379"},
                                            {"LARDER_PORT", "tcp://10.0.0.1:6379"},
                                            {"LARDER_PORT_6379_TCP", "tcp://10.0.0.1:6379"},
                                            {"LARDER_PORT_6379_TCP_PROTO", "tcp"},
                                            {"LARDER_PORT_6379_TCP_PORT", "6379"},
                                            {"LARDER_PORT_6379_TCP_ADDR", "10.0.0.1"},
                                            {NULL, NULL}},
                   "LARDER_PORT is ignored, and 7 more: Kubernetes sets such variables for a service, unless "
                   "the pod has enableServiceLinks: false\n");
    check_warnings(
        (const char *const[][2]){{"LARDER_HTTP_PORT", "tcp://10.0.0.1:8379"}, {NULL, NULL}},
        "LARDER_HTTP_PORT is ignored: Kubernetes sets such variables for a service, unless the pod "
        "has enableServiceLinks: false\n");
}

/* Loads arguments that end with a NULL into fresh defaults. */
static enum status load(struct config *c, struct error *err, char *const *argv)
{
    int n = 0;
    while (argv[n])
        n++;
    config_init(c);
    return config_load(c, n, argv, err);
}
#define ARGS(...) ((char *[]){__VA_ARGS__, NULL})

static char *writable(const char *s)
{
    static char copies[64][96];
    static int next;
    return strcpy(copies[next++ % 64], s);
}
#define W(s) writable(s)

static void flags_are_read(void)
{
    struct config c;
    struct error err;
    REQUIRE_OK(load(&c, &err,
                    ARGS(W("--port"), W("1"), W("--cache-memory=2mb"), W("--bind"), W("::1"), W("-::2"),
                         W("--requirepass="), W("--slowlog-log-slower-than"), W("-1"))),
               &err);
    CHECK_EQ(c.port, 1);
    CHECK_EQ(c.cache_memory, 2 << 20);
    CHECK_STR(c.bind, "::1 -::2");
    CHECK_EQ(c.slowlog_log_slower_than, -1);
    config_release(&c);
}

static void check_flags_refused(char *const *argv, const char *want)
{
    struct config c;
    struct error err;
    CHECK_EQ(load(&c, &err, argv), ST_INVALID);
    CHECK_STR(err.text, want);
    config_release(&c);
}

static void wrong_flags_are_told(void)
{
    check_flags_refused(ARGS(W("--port")), "--port: port takes one value, expected a port from 0 to 65535");
    check_flags_refused(ARGS(W("--port"), W("1"), W("2")),
                        "unexpected argument \"2\"; options start with --");
    check_flags_refused(ARGS(W("-p"), W("1")), "unexpected argument \"-p\"; options start with --");
    check_flags_refused(ARGS(W("--prot=1")), "--prot: there is no option \"prot\"; did you mean port?");
    check_flags_refused(ARGS(W("--config")), "--config takes a file");
    check_flags_refused(ARGS(W("--port=x")),
                        "--port: \"x\" is no value for port: expected a port from 0 to 65535");
}

static void flags_win_over_environment_over_file(void)
{
    struct config c;
    struct error err;
    write_file("port 1\ntcp-backlog 1\nmaxclients 1\n");
    setenv("LARDER_PORT", "2", 1);
    setenv("LARDER_TCP_BACKLOG", "2", 1);
    CHECK_OK(load(&c, &err, ARGS(W("--port"), W("3"), W("--config"), W(file))), &err);
    CHECK_EQ(c.port, 3);
    CHECK_EQ(c.tcp_backlog, 2);
    CHECK_EQ(c.maxclients, 1);
    config_release(&c);
    CHECK_OK(load(&c, &err, ARGS(W(file), W("--port=4"))), &err);
    CHECK_EQ(c.port, 4);
    CHECK_EQ(c.maxclients, 1);
    config_release(&c);
    setenv("LARDER_CONFIG", file, 1);
    CHECK_OK(load(&c, &err, ARGS(NULL)), &err);
    CHECK_EQ(c.port, 2);
    CHECK_EQ(c.maxclients, 1);
    config_release(&c);
    unsetenv("LARDER_CONFIG");
    unsetenv("LARDER_PORT");
    unsetenv("LARDER_TCP_BACKLOG");
}

static void rewriting_keeps_the_authors_file(void)
{
    struct config c;
    struct error err;
    config_init(&c);
    CHECK_EQ(config_rewrite(&c, &err), ST_MISSING);
    CHECK_STR(err.text, "The server is running without a config file");

    const char *text = "# mine\nport   7000\n\nmaxclients 5\nmaxclients 6\n  cache-memory 1024kb\n";
    write_file(text);
    CHECK(chmod(file, 0600) == 0);
    REQUIRE_OK(config_load_file(&c, file, &err), &err);
    CHECK_OK(config_rewrite(&c, &err), &err);
    check_file(text);

    CHECK_OK(set(&c, "maxclients", "77", NULL, &err), &err);
    CHECK_OK(set(&c, "requirepass", "a b\"c", NULL, &err), &err);
    CHECK_OK(set(&c, "cache-memory", "2mb", NULL, &err), &err);
    CHECK_OK(set(&c, "client-output-buffer-limit", "normal 1mb 0 0", NULL, &err), &err);
    CHECK_OK(config_rewrite(&c, &err), &err);
    const char *rewritten =
        "# mine\nport   7000\n\nmaxclients 77\ncache-memory 2mb\n\n# Added by CONFIG REWRITE\n"
        "requirepass \"a b\\\"c\"\n"
        "client-output-buffer-limit normal 1mb 0 0 slave 256mb 64mb 60 pubsub 32mb 8mb 60\n";
    check_file(rewritten);
    struct stat st;
    CHECK(stat(file, &st) == 0 && (st.st_mode & 0777) == 0600);

    CHECK_OK(config_rewrite(&c, &err), &err);
    check_file(rewritten);
    CHECK_OK(set(&c, "requirepass", "", NULL, &err), &err);
    CHECK_OK(set(&c, "sweep-pause", "7ms", NULL, &err), &err);
    CHECK_OK(config_rewrite(&c, &err), &err);
    config_release(&c);

    config_init(&c);
    CHECK_OK(config_load_file(&c, file, &err), &err);
    CHECK_STR(c.requirepass, "");
    CHECK_EQ(c.sweep_pause_ms, 7);
    CHECK_EQ(c.output_hard, 1 << 20);
    config_release(&c);
}

static void the_printed_file_holds_the_defaults(void)
{
    struct config defaults, c;
    struct error err;
    struct buf text = {0};
    const struct option *o;
    config_print_file(&text);
    buf_add(&text, "", 1);
    write_file(text.p);
    config_init(&defaults);
    config_init(&c);
    CHECK_OK(config_load_file(&c, file, &err), &err);
    for (int i = 0; (o = config_option(i)); i++) {
        struct buf a = {0};
        config_get(&defaults, o, false, &a);
        buf_add(&a, "", 1);
        check_value(&c, o->name, false, a.p);
        buf_release(&a);
        CHECK(o->redis || strstr(text.p, o->name) != NULL);
    }
    config_release(&defaults);
    config_release(&c);
    buf_release(&text);
    config_print_help(&text);
    config_print_markdown(&text);
    CHECK(text.len > 4000);
    buf_release(&text);
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    snprintf(file, sizeof file, "/tmp/larder-config-test-%d.conf", (int)getpid());
    RUN(the_table_is_sound);
    RUN(values_print_as_in_redis);
    RUN(values_are_set);
    RUN(memory_is_shared);
    RUN(refusals_name_option_origin_and_form);
    RUN(a_bare_number_is_no_time);
    RUN(secrets_stay_secret);
    RUN(passwords_of_lists_stay_secret);
    RUN(lists_add_up);
    RUN(refusals_in_redis_words);
    RUN(unknown_names_suggest);
    RUN(files_are_read);
    RUN(missing_files_are_told);
    RUN(the_environment_counts);
    RUN(unknown_variables_are_ignored_with_a_warning);
    RUN(what_kubernetes_injects_is_no_option);
    RUN(flags_are_read);
    RUN(wrong_flags_are_told);
    RUN(flags_win_over_environment_over_file);
    RUN(rewriting_keeps_the_authors_file);
    RUN(the_printed_file_holds_the_defaults);
    unlink(file);
    return check_done();
}
