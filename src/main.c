/* The program: subcommands, and the wiring of a server. With sessions.c the only file that knows all modules.

   Exit codes: 0 all is well, 1 it failed, 2 the command line or the configuration is wrong, 3 check or
   selftest found something wrong with the database. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "admin/backup.h"
#include "admin/check.h"
#include "admin/migrate.h"
#include "admin/salvage.h"
#include "base/buf.h"
#include "base/hide.h"
#include "base/log.h"
#include "base/notify.h"
#include "cli/cli.h"
#include "command/families.h"
#include "config/config.h"
#include "exec/command.h"
#include "http/http_client.h"
#include "query/query.h"
#include "replica/urls.h"
#include "selftest/selftest.h"
#include "server/workers.h"
#include "sessions.h"
#include "sql/remote.h"

enum { EXIT_USAGE = 2, EXIT_FINDINGS = 3 };

static int complain(const char *text, int code)
{
    fprintf(stderr, "larder: %s\n", text);
    return code;
}

/* Prints what a function made, and releases it. */
static int print(struct buf *text)
{
    bool ok = fwrite(text->p, 1, text->len, stdout) == text->len && fflush(stdout) == 0;
    buf_release(text);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int cmd_help(void)
{
    struct buf out = {0};
    buf_addf(
        &out,
        "larder " LARDER_VERSION ": a key-value server that speaks Redis' protocol and keeps its data "
        "in SQL tables\n\n"
        "Usage:\n"
        "  larder [serve] [FILE] [OPTION...]   serve clients; FILE is a config file\n"
        "  larder check [DATABASE]             check the tables and the integrity of a database\n"
        "  larder check --salvage[=skip]       give up what cannot be read of a damaged journal,\n"
        "                                      and keep a copy of it\n"
        "  larder check --apply-log            bring the log beside a SQLite database into it, or give it "
        "up\n"
        "  larder check --discard-log          and keep a copy, when a server does not start on it\n"
        "  larder backup FILE [DATABASE]       copy a SQLite database with everything acknowledged, also\n"
        "                                      while it is served; --force replaces FILE\n"
        "  larder migrate [DATABASE]           create the tables of a database, or bring them up to date\n"
        "  larder selftest --store URL         try in a scratch schema whether a database server does what\n"
        "                                      Larder relies on; --load SECONDS, --json, --quiet,\n"
        "                                      --no-mark\n"
        "  larder config [--markdown]          print a config file with every option and its default\n"
        "  larder commands                     print the commands it knows, as Markdown\n"
        "  larder sql [TEXT [ARGUMENT...]]     run SQL on a running server; without TEXT, a shell\n"
        "  larder load TABLE FILE              put the rows of a .csv or .jsonl file into a table\n"
        "  larder dump TABLE                   write the rows of a table, as CSV or lines of JSON\n"
        "                                      (--help behind each of these three tells its options)\n"
        "  larder --help | --version\n\n"
        "DATABASE is a URL or the path of a SQLite file; without it, the option store tells.\n"
        "Every option can also be given in the environment (--cache-memory is LARDER_CACHE_MEMORY) and in\n"
        "the config file (cache-memory 64mb). Flags win over the environment, which wins over the file.\n"
        "Sizes: 512, 64kb, 256mb, 2gb. Times: 250ms, 5s, 2m, 1h; never a bare number,\n"
        "but for options of Redis, which keep their unit.\n\n"
        "  --config FILE                       Read options from this file, too.\n");
    config_print_help(&out);
    buf_addf(&out, "\nExit codes: 0 success, 1 failure, 2 wrong usage or configuration, 3 check or selftest "
                   "found something.\n");
    return print(&out);
}

static int cmd_version(void)
{
    struct buf out = {0};
    buf_addf(&out, "larder " LARDER_VERSION "\n");
    return print(&out);
}

static int cmd_config(int argc, char **argv)
{
    struct buf out = {0};
    bool markdown = argc == 1 && strcmp(argv[0], "--markdown") == 0;
    if (argc && !markdown)
        return complain("config takes no argument but --markdown", EXIT_USAGE);
    if (markdown)
        config_print_markdown(&out);
    else
        config_print_file(&out);
    return print(&out);
}

static int cmd_commands(int argc)
{
    struct buf out = {0};
    if (argc)
        return complain("commands takes no argument", EXIT_USAGE);
    command_print_markdown(&out);
    return print(&out);
}

/* Takes an argument off, if it is there. */
static bool take_flag(int *argc, char **argv, const char *flag)
{
    for (int i = 0; i < *argc; i++) {
        if (strcmp(argv[i], flag) != 0)
            continue;
        memmove(argv + i, argv + i + 1, (size_t)(--*argc - i) * sizeof *argv);
        return true;
    }
    return false;
}

/* Takes an argument and the number behind it off. False: what stands there is none up to `most`. */
static bool take_seconds(int *argc, char **argv, const char *flag, double most, double *ret)
{
    for (int i = 0; i < *argc; i++) {
        if (strcmp(argv[i], flag) != 0)
            continue;
        char *end = NULL;
        *ret = i + 1 < *argc ? strtod(argv[i + 1], &end) : -1;
        if (!end || end == argv[i + 1] || *end || !(*ret >= 0 && *ret <= most))
            return false;
        *argc -= 2;
        memmove(argv + i, argv + i + 2, (size_t)(*argc - i) * sizeof *argv);
        return true;
    }
    return true;
}

/* What was ignored of the environment, now that the log is where it should be. */
static void log_warnings(const struct config *c)
{
    struct slice rest = buf_slice(&c->warnings);
    while (rest.n) {
        char line[256], text[512];
        size_t n = (size_t)((const char *)memchr(rest.p, '\n', rest.n) - rest.p);
        snprintf(line, sizeof line, "%.*s", (int)n, rest.p);
        log_warning("the environment", "reason=%s", log_quote(text, sizeof text, line));
        rest = slice_of(rest.p + n + 1, rest.n - n - 1);
    }
}

/* Logs the options of Redis that were set and mean nothing here. */
static void log_idle_options(const struct config *c)
{
    const struct option *o;
    struct buf names = {0}, value = {0};
    for (int i = 0; (o = config_option(i)); i++) {
        if (!o->idle)
            continue;
        value.len = 0;
        config_get(c, o, false, &value);
        if (!slice_is(buf_slice(&value), o->initial))
            buf_addf(&names, "%s%s", names.len ? "," : "", o->name);
    }
    if (names.len)
        log_warning("these options of Redis have no effect", "names=%.*s", (int)names.len, names.p);
    buf_release(&names);
    buf_release(&value);
}

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

static bool is_url(const char *arg)
{
    return remote_is_url(arg) || strncmp(arg, "sqlite:", 7) == 0;
}

/* Whether what stands behind "check" or "migrate" is a database: a URL, a file that looks like one or is not
   there. A config file is text, or has a name that says so. */
static bool is_store(const char *arg)
{
    if (is_url(arg))
        return true;
    if (ends_with(arg, ".conf"))
        return false;
    FILE *f = fopen(arg, "re");
    char head[512];
    size_t n = f ? fread(head, 1, sizeof head, f) : 0;
    if (f)
        fclose(f);
    return n == 0 || memchr(head, '\0', n);
}

/* The configuration of a command on a database, which may be named by the first argument. */
static enum status load_for_store(struct config *c, int argc, char **argv, struct error *err)
{
    bool named = argc > 0 && argv[0][0] != '-' && is_store(argv[0]);
    config_init(c);
    enum status st = config_load(c, argc - named, argv + named, err);
    if (st == ST_OK && named) {
        struct buf value = {0};
        buf_addf(&value, "%s%s", is_url(argv[0]) ? "" : "sqlite:", argv[0]);
        st = config_set(c, config_find(SLICE("store")), buf_slice(&value), "the database", err);
        buf_release(&value);
    }
    if (st == ST_OK)
        log_warnings(c);
    return st;
}

static int cmd_check(int argc, char **argv)
{
    struct config config;
    struct error err;
    bool sound = false;
    static const struct {
        const char *flag;
        enum salvage_mode mode;
    } ways[] = {{"--salvage", SALVAGE_PREFIX},
                {"--salvage=skip", SALVAGE_SKIP},
                {"--apply-log", SALVAGE_APPLY},
                {"--discard-log", SALVAGE_DISCARD}};
    int code = EXIT_SUCCESS, asked = 0;
    enum salvage_mode mode = SALVAGE_PREFIX;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        if (!take_flag(&argc, argv, ways[i].flag))
            continue;
        mode = ways[i].mode;
        asked++;
    }
    if (load_for_store(&config, argc, argv, &err) != ST_OK)
        code = complain(err.text, EXIT_USAGE);
    else if (asked > 1)
        code = complain("check takes one of --salvage, --apply-log and --discard-log", EXIT_USAGE);
    else if ((asked ? store_salvage(config.store, mode, stdout, &sound, &err)
                    : store_check(config.store, stdout, &sound, &err)) != ST_OK)
        code = complain(err.text, EXIT_FAILURE);
    else if (!sound)
        code = EXIT_FINDINGS;
    config_release(&config);
    return code;
}

static int cmd_backup(int argc, char **argv)
{
    struct config config;
    struct error err;
    bool force = take_flag(&argc, argv, "--force");
    int code = EXIT_SUCCESS;
    if (argc < 1 || argv[0][0] == '-')
        return complain("backup needs the name of the copy: larder backup FILE", EXIT_USAGE);
    if (load_for_store(&config, argc - 1, argv + 1, &err) != ST_OK)
        code = complain(err.text, EXIT_USAGE);
    else if (store_backup(config.store, argv[0], force, stdout, &err) != ST_OK)
        code = complain(err.text, EXIT_FAILURE);
    config_release(&config);
    return code;
}

static int cmd_migrate(int argc, char **argv)
{
    struct config config;
    struct error err;
    struct migration m;
    int code = EXIT_SUCCESS;
    if (load_for_store(&config, argc, argv, &err) != ST_OK)
        code = complain(err.text, EXIT_USAGE);
    else if (store_migrate(config.store, &m, &err) != ST_OK)
        code = complain(err.text, EXIT_FAILURE);
    else if (m.from != m.to)
        printf("schema version %lld, was %lld\n", (long long)m.to, (long long)m.from);
    else
        printf("schema version %lld, %s\n", (long long)m.to,
               m.mended ? "its views and functions were made again" : "nothing to do");
    config_release(&config);
    return code;
}

static int cmd_selftest(int argc, char **argv)
{
    struct config config;
    struct error err;
    bool fit = false;
    int code = EXIT_SUCCESS;
    struct selftest_options o = {.json = take_flag(&argc, argv, "--json"),
                                 .quiet = take_flag(&argc, argv, "--quiet"),
                                 .mark = !take_flag(&argc, argv, "--no-mark"),
                                 .load_s = 2,
                                 .out = stdout};
    if (!take_seconds(&argc, argv, "--load", 3600, &o.load_s))
        return complain("--load takes a number of seconds, up to 3600", EXIT_USAGE);
    if (load_for_store(&config, argc, argv, &err) != ST_OK)
        return complain(err.text, EXIT_USAGE);
    o.url = config.store;
    enum status st = selftest_run(&o, &fit, &err);
    if (st != ST_OK)
        code = complain(err.text, st == ST_INVALID ? EXIT_USAGE : EXIT_FAILURE);
    else if (!fit)
        code = EXIT_FINDINGS;
    config_release(&config);
    return code;
}

/* ---- serving ---- */

/* A thread that waits for signals, so that none interrupts a worker: the first SIGTERM or SIGINT ends it
   cleanly, a second one at once; SIGHUP opens the log file and reads the certificates anew. */
struct signals {
    pthread_t thread;
    sigset_t set;
    struct workers *workers;
    atomic_bool over;
};

static void *watch_signals(void *arg)
{
    struct signals *s = arg;
    bool asked = false;
    for (;;) {
        int number;
        if (sigwait(&s->set, &number) != 0)
            continue;
        if (atomic_load(&s->over))
            return NULL;
        struct error err;
        if (number == SIGHUP) {
            if (log_reopen(&err) != ST_OK)
                log_error("the log could not be reopened", "error=%s", err.text);
            workers_reload(s->workers);
        } else if (!asked) {
            log_info("stopping", "signal=%s", number == SIGINT ? "SIGINT" : "SIGTERM");
            notify_manager("STOPPING=1\nSTATUS=stopping");
            workers_stop(s->workers);
            asked = true;
        } else {
            log_warning("stopping at once", NULL);
            _exit(EXIT_FAILURE);
        }
    }
}

/* Before any other thread is made: they inherit the mask. */
static void signals_block(struct signals *s)
{
    sigemptyset(&s->set);
    sigaddset(&s->set, SIGTERM);
    sigaddset(&s->set, SIGINT);
    sigaddset(&s->set, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &s->set, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file at its limit is a failed write, not the end */
}

static enum status signals_watch(struct signals *s, struct workers *t, struct error *err)
{
    s->workers = t;
    int failed = pthread_create(&s->thread, NULL, watch_signals, s);
    return failed ? error_set(err, ST_INTERNAL, "cannot make a thread: %s", strerror(failed)) : ST_OK;
}

static void signals_end(struct signals *s)
{
    atomic_store(&s->over, true);
    pthread_kill(s->thread, SIGHUP); /* any of the set wakes it */
    pthread_join(s->thread, NULL);
}

/* An option as it would be written, in quotes, for the log. */
static const char *shown(const struct config *c, const char *name, char *out, size_t cap)
{
    struct buf value = {0};
    config_get(c, config_find(slice_str(name)), true, &value);
    buf_add(&value, "", 1);
    char plain[256];
    log_quote(out, cap, hide_password(plain, sizeof plain, value.p));
    buf_release(&value);
    return out;
}

static void log_start(const struct config *c, const struct workers *t, uint32_t workers)
{
    char store[256], bind[256], path[256], durability[32], cache[32];
    log_info("ready",
             "version=" LARDER_VERSION
             " pid=%d store=%s bind=%s port=%d tls_port=%d http_port=%d tls_http_port=%d unixsocket=%s "
             "durability=%s cache_memory=%s databases=%d workers=%u",
             (int)getpid(), shown(c, "store", store, sizeof store), shown(c, "bind", bind, sizeof bind),
             workers_port(t), workers_tls_port(t), workers_http_port(t), workers_tls_http_port(t),
             shown(c, "unixsocket", path, sizeof path), shown(c, "durability", durability, sizeof durability),
             shown(c, "cache-memory", cache, sizeof cache), (int)c->databases, workers);
    if (c->durability != DURABILITY_ALWAYS)
        log_warning("an acknowledged write may be lost in a power failure", "durability=%s", durability);
}

/* What is spoken at the ports. */
static const struct protocol *const protocols[PROTOCOLS] = {
    [PROTOCOL_RESP] = &resp_protocol,
    [PROTOCOL_HTTP] = &http_protocol,
};

/* Opens what a server consists of, serves, and closes it again. */
static enum status serve(struct config *c, const struct replica_urls *urls, struct signals *signals,
                         struct error *err)
{
    struct sessions sessions = {0};
    struct workers *workers = NULL;
    notify_manager("STATUS=opening the database");
    bool stop = false;
    enum status st = sessions_open(c, urls, &signals->set, &sessions, &stop, err);
    if (stop) { /* before there was anything to serve */
        sessions_close(&sessions);
        return ST_OK;
    }
    if (st == ST_OK)
        st = workers_new(c, protocols, sessions.engines, sessions.n, &workers, err);
    if (st == ST_OK)
        workers_use_queries(workers, sessions_open_reader, &sessions);
    if (st == ST_OK && sessions.replicas)
        workers_use_replicas(workers, sessions.replicas, sessions.replica_engines, sessions.each);
    if (st == ST_OK)
        st = signals_watch(signals, workers, err);
    if (st == ST_OK) {
        log_start(c, workers, sessions.n);
        notify_manager("READY=1\nSTATUS=serving");
        st = workers_run(workers, err);
        notify_manager("STOPPING=1\nSTATUS=stopping");
        signals_end(signals);
    }
    workers_free(workers);
    sessions_close(&sessions);
    return st;
}

/* With a configuration that is right. */
static int serve_and_log(struct config *c, const struct replica_urls *replicas)
{
    struct error err;
    struct signals signals = {0};
    log_set_level((enum log_level)c->loglevel);
    if (log_set_file(c->logfile, &err) != ST_OK)
        return complain(err.text, EXIT_FAILURE);
    log_warnings(c);
    log_idle_options(c);
    umask(umask(0) | 027); /* the data is not for everyone */
    signals_block(&signals);
    enum status st = serve(c, replicas, &signals, &err);
    if (st == ST_OK) {
        log_info("stopped", NULL);
        return EXIT_SUCCESS;
    }
    char text[sizeof err.text + 64];
    log_error("the server cannot go on", "status=%s error=%s", status_name(st),
              log_quote(text, sizeof text, err.text));
    if (c->logfile[0])
        complain(err.text,
                 EXIT_FAILURE); /* stderr, too: the person who started it may not look into the log */
    return EXIT_FAILURE;
}

static int cmd_serve(int argc, char **argv)
{
    struct config config;
    struct error err;
    struct replica_urls replicas = {0};
    int code;
    config_init(&config);
    if (config_load(&config, argc, argv, &err) != ST_OK ||
        replica_urls_read(config.store, config.replica, &replicas, &err) != ST_OK)
        code = complain(err.text, EXIT_USAGE);
    else if (config.read_only && (!sessions_are_shared(&config) || replicas.n))
        code = complain(replicas.n
                            ? "--read-only: such a server reads one database, and takes no --replica"
                            : "--read-only: PostgreSQL and MariaDB in shared mode, this database is neither",
                        EXIT_USAGE);
    else if (config.workers > 1 && !sessions_are_shared(&config))
        code = complain(
            "--workers: PostgreSQL and MariaDB in shared mode take more than 1, this database does not",
            EXIT_USAGE);
    else
        code = serve_and_log(&config, &replicas);
    replica_urls_release(&replicas);
    config_release(&config);
    return code;
}

static bool asks_for(int argc, char **argv, const char *flag, const char *letter)
{
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], flag) == 0 || strcmp(argv[i], letter) == 0)
            return true;
    }
    return false;
}

/* A first argument without dashes that is no subcommand. */
static bool may_be_config_file(const char *arg)
{
    size_t n = strlen(arg);
    return (n > 5 && strcmp(arg + n - 5, ".conf") == 0) || access(arg, F_OK) == 0;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
    } clients[] = {{"sql", cli_sql}, {"load", cli_load}, {"dump", cli_dump}};
    const char *command = argc > 1 ? argv[1] : "serve";
    for (size_t i = 0; i < sizeof clients / sizeof *clients; i++) {
        if (strcmp(command, clients[i].name) == 0)
            return clients[i].run(argc - 2, argv + 2);
    }
    if (asks_for(argc - 1, argv + 1, "--help", "-h") || strcmp(command, "help") == 0)
        return cmd_help();
    if (asks_for(argc - 1, argv + 1, "--version", "-v"))
        return cmd_version();
    if (strcmp(command, "check") == 0)
        return cmd_check(argc - 2, argv + 2);
    if (strcmp(command, "backup") == 0)
        return cmd_backup(argc - 2, argv + 2);
    if (strcmp(command, "migrate") == 0)
        return cmd_migrate(argc - 2, argv + 2);
    if (strcmp(command, "selftest") == 0)
        return cmd_selftest(argc - 2, argv + 2);
    if (strcmp(command, "config") == 0)
        return cmd_config(argc - 2, argv + 2);
    if (strcmp(command, "commands") == 0)
        return cmd_commands(argc - 2);
    bool named = argc > 1 && strcmp(command, "serve") == 0;
    query_count_memory();
    if (argc > 1 && !named && command[0] != '-' && !may_be_config_file(command)) {
        fprintf(stderr, "larder: there is no command \"%s\"; larder --help lists them\n", command);
        return EXIT_USAGE;
    }
    return cmd_serve(argc - 1 - named, argv + 1 + named);
}
