/* larder sql: one text, or a shell that reads statements up to their semicolon. It talks to a running server
   by the command SQL; an interrupt (Ctrl-C) ends the query, not the shell (CLIENT UNBLOCK from a second
   connection). History is kept in ~/.larder_history. */
#include <editline/readline.h>
#include <errno.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/num.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/print.h"

#define HISTORY_LINES 2000

struct shell {
    struct cli cli;
    struct link *link;
    enum print_mode mode;
    bool header;
    bool timer;
    bool terminal;
    bool failed; /* a statement did */
    bool ended;
};

static void on_interrupt(int number)
{
    (void)number; /* it only has to end the wait for an answer */
}

/* The running query shall end: its client is told so. */
static void cancel(void *arg)
{
    struct shell *s = arg;
    char why[256];
    struct link *other = link_open(&s->cli.link, why);
    if (!other)
        return;
    char id[NUM_I64_CHARS];
    struct slice words[] = {SLICE("CLIENT"), SLICE("UNBLOCK"),
                            slice_of(id, num_format_i64(id, link_id(s->link))), SLICE("ERROR")};
    struct arena arena = {0};
    struct answer a;
    (void)link_ask(other, &arena, words, 4, &a);
    arena_release(&arena);
    link_close(other);
}

static bool put(const struct buf *out)
{
    return fwrite(out->p, 1, out->len, stdout) == out->len && fflush(stdout) == 0;
}

/* Runs a text with arguments and prints what came. False: the connection is lost. */
static bool run(struct shell *s, struct slice text, char **args, int nargs)
{
    struct arena arena = {0};
    struct answer a;
    struct timespec from, to;
    struct slice *words = arena_alloc(&arena, ((size_t)nargs + 2) * sizeof *words);
    words[0] = SLICE("SQL");
    words[1] = text;
    for (int i = 0; i < nargs; i++)
        words[i + 2] = slice_str(args[i]);
    clock_gettime(CLOCK_MONOTONIC, &from);
    link_add(s->link, words, (size_t)nargs + 2);
    bool alive = link_flush(s->link) && link_take(s->link, &arena, &a, cancel, s);
    clock_gettime(CLOCK_MONOTONIC, &to);
    if (alive && a.kind == ANSWER_ERROR) {
        fprintf(stderr, "%.*s\n", (int)a.text.n, a.text.p);
        s->failed = true;
    } else if (alive) {
        struct buf out = {0};
        print_result(&out, &a, s->mode, s->header);
        s->failed |= !put(&out);
        buf_release(&out);
    } else {
        s->failed = true;
        cli_complain(&s->cli, link_error(s->link), CLI_FAILED);
    }
    if (s->timer)
        printf("Time: %.3f ms\n",
               (double)(to.tv_sec - from.tv_sec) * 1e3 + (double)(to.tv_nsec - from.tv_nsec) / 1e6);
    arena_release(&arena);
    return alive;
}

/* ---- words that begin with a point ---- */

static const char help[] = ".help                 this\n"
                           ".mode " PRINT_MODES "   how results are printed\n"
                           ".header on|off        with the names of columns (csv, list)\n"
                           ".tables               the tables of the database\n"
                           ".schema [TABLE]       how they are made\n"
                           ".read FILE            run the statements of a file\n"
                           ".timer on|off         tell how long statements take\n"
                           ".quit\n"
                           "Everything else is SQL, up to a semicolon at the end of a line.\n";

static bool read_file(struct shell *s, const char *path);

static bool is_on(const char *word)
{
    return strcmp(word, "on") == 0;
}

/* A word of the shell's own. False: the connection is lost. */
static bool command(struct shell *s, char *line)
{
    char *save = NULL, *word = strtok_r(line, " \t", &save), *arg = strtok_r(NULL, " \t", &save);
    if (strcmp(word, ".quit") == 0 || strcmp(word, ".exit") == 0)
        s->ended = true;
    else if (strcmp(word, ".help") == 0)
        fputs(help, stdout);
    else if (strcmp(word, ".tables") == 0)
        return run(s, SLICE("SELECT name FROM larder_tables ORDER BY name"), NULL, 0);
    else if (strcmp(word, ".schema") == 0 && arg)
        return run(s, SLICE("SELECT sql FROM larder_tables WHERE name = ? COLLATE NOCASE"), &arg, 1);
    else if (strcmp(word, ".schema") == 0)
        return run(s, SLICE("SELECT sql FROM larder_tables ORDER BY name"), NULL, 0);
    else if (strcmp(word, ".read") == 0 && arg)
        return read_file(s, arg);
    else if (strcmp(word, ".timer") == 0 && arg)
        s->timer = is_on(arg);
    else if (strcmp(word, ".header") == 0 && arg)
        s->header = is_on(arg);
    else if (strcmp(word, ".mode") != 0 || !arg || !print_mode_find(arg, &s->mode)) {
        fprintf(stderr, "larder sql: %s%s%s: .help lists what there is\n", word, arg ? " " : "",
                arg ? arg : "");
        s->failed = true;
    }
    return true;
}

/* One more line of input: runs what is complete. False: the connection is lost. */
static bool feed(struct shell *s, struct buf *text, char *line)
{
    if (text->len == 0 && line[strspn(line, " \t")] == '.')
        return command(s, line + strspn(line, " \t"));
    buf_addf(text, "%s\n", line);
    buf_add(text, "", 1);
    text->len--;
    if (text->p[strspn(text->p, " \t\n")] == '\0') {
        text->len = 0;
        return true;
    }
    if (!sqlite3_complete(text->p))
        return true;
    bool alive = run(s, buf_slice(text), NULL, 0);
    text->len = 0;
    return alive;
}

static bool read_stream(struct shell *s, FILE *f)
{
    struct buf text = {0};
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    bool alive = true;
    while (alive && !s->ended && (n = getline(&line, &room, f)) >= 0) {
        while (n > 0 && (line[n - 1] == '\n' || line[n - 1] == '\r'))
            line[--n] = '\0';
        alive = feed(s, &text, line);
    }
    if (alive && text.len)
        alive = run(s, buf_slice(&text), NULL, 0);
    free(line);
    buf_release(&text);
    return alive;
}

static bool read_file(struct shell *s, const char *path)
{
    FILE *f = fopen(path, "r");
    if (!f) {
        fprintf(stderr, "larder sql: %s: %s\n", path, strerror(errno));
        s->failed = true;
        return true;
    }
    bool alive = read_stream(s, f);
    fclose(f);
    return alive;
}

/* ---- the terminal ---- */

static bool history_path(char out[4096])
{
    const char *home = getenv("HOME");
    return home && snprintf(out, 4096, "%s/.larder_history", home) < 4096;
}

static bool interact(struct shell *s)
{
    struct buf text = {0};
    char history[4096];
    bool keep = history_path(history), alive = true;
    printf("larder " LARDER_VERSION ". Statements end with a semicolon; .help lists the rest.\n");
    using_history();
    if (keep)
        (void)read_history(history);
    stifle_history(HISTORY_LINES);
    while (alive && !s->ended) {
        char *line = readline(text.len ? "   ...> " : "larder> ");
        if (!line)
            break;
        if (line[0])
            (void)add_history(line);
        alive = feed(s, &text, line);
        free(line);
    }
    if (!s->ended)
        putchar('\n');
    if (keep && write_history(history) != 0)
        fprintf(stderr, "larder sql: %s: %s\n", history, strerror(errno));
    buf_release(&text);
    return alive;
}

int cli_sql(int argc, char **argv)
{
    const char *mode = NULL, *file = NULL;
    bool no_header = false, done;
    struct shell s = {.header = true};
    const struct cli_option options[] = {
        {"--mode", PRINT_MODES, "how results are printed (table)", &mode, NULL},
        {"--no-header", NULL, "without the names of columns (csv, list)", NULL, &no_header},
        {"--file", "FILE", "run the statements of a file", &file, NULL},
    };
    s.cli = (struct cli){
        .command = "sql",
        .usage = "[OPTION...] [TEXT [ARGUMENT...]]",
        .about = "Runs SQL on a running server. TEXT may have parameters (?), which the arguments are for.\n"
                 "Without it statements are read, from a terminal with history.\n",
        .options = options,
        .noptions = sizeof options / sizeof *options};
    int code = cli_options(&s.cli, &argc, argv, &done);
    if (done)
        return code;
    if (mode && !print_mode_find(mode, &s.mode))
        return cli_complain(&s.cli, "--mode: one of " PRINT_MODES, CLI_USAGE);
    s.header = !no_header;
    s.link = cli_connect(&s.cli);
    if (!s.link)
        return CLI_FAILED;
    struct sigaction interrupt = {.sa_handler = on_interrupt}; /* no SA_RESTART: the wait ends */
    sigaction(SIGINT, &interrupt, NULL);
    bool alive;
    if (argc)
        alive = run(&s, slice_str(argv[0]), argv + 1, argc - 1);
    else if (file)
        alive = read_file(&s, file);
    else if (isatty(STDIN_FILENO))
        alive = interact(&s);
    else
        alive = read_stream(&s, stdin);
    link_close(s.link);
    return alive && (!s.failed || (isatty(STDIN_FILENO) && !argc && !file)) ? CLI_OK : CLI_FAILED;
}
