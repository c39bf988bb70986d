/* larder load: rows of a file into a table, one ROW.PUT each, many on their way at a time. Each row is a
   transaction of its own: a load that is broken off has loaded what it said, and some more; run again, it
   puts the same rows once more.

   CSV: the first line names columns; a field without anything is NULL, "" is an empty text. JSON lines: an
   object for each row. BLOBs are base64 in both. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/num.h"
#include "base/vec.h"
#include "cli/cli.h"
#include "cli/columns.h"
#include "cli/csv.h"
#include "cli/progress.h"
#include "proto/base64.h"
#include "proto/json.h"

#define BATCH_ROWS  1000
#define BATCH_BYTES 262144
#define ERRORS_TOLD 20

struct load {
    struct cli cli;
    struct link *link;
    struct slice table;
    const char *path;
    struct cli_columns columns;
    bool if_new, skip_errors;
    /* The row that is being put together. */
    struct arena arena; /* of it */
    struct slice *given;
    size_t ngiven, given_cap; /* name, value, name, value ... */
    struct slice *nulls;
    size_t nnulls, nulls_cap;
    struct slice *words;
    size_t nwords, words_cap;
    /* Lines of the rows that are on their way: those of the last batch, then those of the one before. */
    size_t lines[2][BATCH_ROWS];
    size_t nlines[2];
    uint64_t rows, there, errors;
    struct progress progress;
};

/* Says what is wrong with a row. False: that is the end. */
static bool bad_row(struct load *l, size_t line, struct slice why)
{
    if (l->errors++ < ERRORS_TOLD)
        fprintf(stderr, "larder load: %s:%zu: %.*s\n", l->path, line, (int)why.n, why.p);
    return l->skip_errors;
}

/* ---- sending ---- */

/* The replies of a batch. False: the connection has failed, or a row has and that is the end. */
static bool take_replies(struct load *l, int batch)
{
    bool ok = true;
    struct arena arena = {0};
    for (size_t i = 0; i < l->nlines[batch]; i++) {
        struct answer a;
        if (!link_take(l->link, &arena, &a, NULL, NULL)) {
            cli_complain(&l->cli, link_error(l->link), CLI_FAILED);
            ok = false;
            break;
        }
        if (a.kind == ANSWER_ERROR)
            ok = bad_row(l, l->lines[batch][i], a.text) && ok;
        else if (a.kind == ANSWER_NULL)
            l->there++;
        else
            l->rows++;
        arena_reset(&arena);
    }
    arena_release(&arena);
    l->nlines[batch] = 0;
    return ok;
}

/* Sends the batch that is complete, and waits for the one before it. */
static bool send_batch(struct load *l, uint64_t read)
{
    if (!link_flush(l->link)) {
        cli_complain(&l->cli, link_error(l->link), CLI_FAILED);
        return false;
    }
    if (!take_replies(l, 1))
        return false;
    memcpy(l->lines[1], l->lines[0], l->nlines[0] * sizeof l->lines[0][0]);
    l->nlines[1] = l->nlines[0];
    l->nlines[0] = 0;
    progress_tell(&l->progress, l->rows, read);
    return true;
}

static void add_count(struct load *l, const char *word, size_t n)
{
    char *digits = arena_alloc(&l->arena, NUM_I64_CHARS);
    VEC_PUSH(l->words, l->nwords, l->words_cap) = slice_str(word);
    VEC_PUSH(l->words, l->nwords, l->words_cap) = slice_of(digits, num_format_i64(digits, (int64_t)n));
}

/* The row is complete. */
static bool put_row(struct load *l, size_t line, uint64_t read)
{
    l->nwords = 0;
    VEC_PUSH(l->words, l->nwords, l->words_cap) = SLICE("ROW.PUT");
    VEC_PUSH(l->words, l->nwords, l->words_cap) = l->table;
    if (l->if_new)
        VEC_PUSH(l->words, l->nwords, l->words_cap) = SLICE("NX");
    add_count(l, "FIELDS", l->ngiven / 2);
    for (size_t i = 0; i < l->ngiven; i++)
        VEC_PUSH(l->words, l->nwords, l->words_cap) = l->given[i];
    if (l->nnulls)
        add_count(l, "NULLS", l->nnulls);
    for (size_t i = 0; i < l->nnulls; i++)
        VEC_PUSH(l->words, l->nwords, l->words_cap) = l->nulls[i];
    link_add(l->link, l->words, l->nwords);
    l->lines[0][l->nlines[0]++] = line;
    l->ngiven = l->nnulls = 0;
    arena_reset(&l->arena);
    return (l->nlines[0] < BATCH_ROWS && link_unsent(l->link) < BATCH_BYTES) || send_batch(l, read);
}

/* A column of the row; a BLOB's text is base64. False: it is none. */
static bool give(struct load *l, const struct cli_column *c, struct slice text)
{
    if (c->blob && !base64_decode(text, &l->arena, &text))
        return false;
    VEC_PUSH(l->given, l->ngiven, l->given_cap) = c->name;
    VEC_PUSH(l->given, l->ngiven, l->given_cap) = text;
    return true;
}

/* ---- CSV ---- */

static bool csv_row(struct load *l, struct csv *csv, const struct cli_column **header, size_t n)
{
    if (csv->n != n)
        return bad_row(l, csv->line, SLICE("it has not as many fields as the first line"));
    for (size_t i = 0; i < n; i++) {
        struct slice text = csv_field(csv, i);
        if (text.n == 0 && !csv->fields[i].quoted)
            VEC_PUSH(l->nulls, l->nnulls, l->nulls_cap) = header[i]->name;
        else if (!give(l, header[i], text)) {
            l->ngiven = l->nnulls = 0;
            return bad_row(l, csv->line, SLICE("a BLOB is not base64"));
        }
    }
    return put_row(l, csv->line, csv->read);
}

static bool load_csv(struct load *l, FILE *f)
{
    struct csv csv = {.f = f};
    struct arena names = {0};
    bool ok = csv_next(&csv);
    size_t n = csv.n;
    if (!ok && !csv.error)
        fprintf(stderr, "larder load: %s: it has no first line, which names columns\n", l->path);
    const struct cli_column **header = arena_alloc(&names, (n + 1) * sizeof *header);
    for (size_t i = 0; ok && i < n; i++) {
        header[i] = columns_find(&l->columns, csv_field(&csv, i));
        if (!header[i]) {
            fprintf(stderr, "larder load: %s: the table has no column \"%.*s\", which the first line names\n",
                    l->path, (int)csv_field(&csv, i).n, csv_field(&csv, i).p);
            l->errors++;
            ok = false;
        }
    }
    while (ok && csv_next(&csv))
        ok = csv_row(l, &csv, header, n);
    if (csv.error)
        (void)bad_row(l, csv.line, slice_str(csv.error));
    ok = ok && !csv.error;
    csv_release(&csv);
    arena_release(&names);
    return ok;
}

/* ---- JSON ---- */

static bool json_column(struct load *l, struct slice name, const struct json *v, const char **ret_why)
{
    const struct cli_column *c = columns_find(&l->columns, name);
    *ret_why = c ? "a BLOB is not base64" : "it has a member that is no column";
    if (!c)
        return false;
    if (v->kind == JSON_NULL) {
        VEC_PUSH(l->nulls, l->nnulls, l->nulls_cap) = c->name;
        return true;
    }
    return give(l, c, v->kind == JSON_STRING && !c->json ? json_string(v, &l->arena) : v->text);
}

static bool json_row(struct load *l, struct slice text, size_t line, uint64_t read)
{
    struct json object, v;
    struct json_walk walk;
    struct slice name;
    const char *why;
    size_t at;
    if (!json_check(text, &object, &why, &at))
        return bad_row(l, line, slice_str(why));
    if (object.kind != JSON_OBJECT)
        return bad_row(l, line, SLICE("it is no object"));
    json_begin(&walk, &object);
    while (json_next_member(&walk, &l->arena, &name, &v)) {
        if (!json_column(l, name, &v, &why)) {
            l->ngiven = l->nnulls = 0;
            return bad_row(l, line, slice_str(why));
        }
    }
    return put_row(l, line, read);
}

static bool load_json(struct load *l, FILE *f)
{
    char *text = NULL;
    size_t room = 0, line = 0;
    uint64_t read = 0;
    ssize_t n;
    bool ok = true;
    while (ok && (n = getline(&text, &room, f)) >= 0) {
        line++;
        read += (uint64_t)n;
        if (strspn(text, " \t\r\n") < (size_t)n)
            ok = json_row(l, slice_of(text, (size_t)n), line, read);
    }
    if (ferror(f))
        ok = bad_row(l, line, SLICE("it cannot be read")) && false;
    free(text);
    return ok;
}

/* ---- all of it ---- */

static int run(struct load *l, FILE *f, bool json, bool quiet)
{
    struct stat s;
    struct arena arena = {0};
    l->link = cli_connect(&l->cli);
    if (!l->link)
        return CLI_FAILED;
    bool ok = columns_ask(&l->cli, l->link, l->table, &arena, &l->columns);
    if (ok) {
        bool known = f != stdin && fstat(fileno(f), &s) == 0 && S_ISREG(s.st_mode);
        progress_begin(&l->progress, "loaded", known ? (uint64_t)s.st_size : 0, quiet);
        ok = json ? load_json(l, f) : load_csv(l, f);
        /* What is on its way has been put, whatever became of the rest. */
        ok = send_batch(l, 0) && ok;
        ok = take_replies(l, 1) && ok;
        progress_end(&l->progress, l->rows);
        if (l->there)
            fprintf(stderr, "%llu rows were there already\n", (unsigned long long)l->there);
        if (l->errors)
            fprintf(stderr, "%llu rows were refused%s\n", (unsigned long long)l->errors,
                    l->skip_errors ? ""
                                   : "; those behind the first may have been loaded (--skip-errors goes on)");
    }
    link_close(l->link);
    arena_release(&arena);
    return ok && !l->errors ? CLI_OK : CLI_FAILED;
}

int cli_load(int argc, char **argv)
{
    const char *format = NULL;
    bool quiet = false, json, done;
    static struct load l; /* too large for a stack */
    const struct cli_option options[] = {
        {"--format", "csv|jsonl", "what the file is, where its name does not tell", &format, NULL},
        {"--if-new", NULL, "leave rows that are there as they are", NULL, &l.if_new},
        {"--skip-errors", NULL, "go on behind a row that is refused", NULL, &l.skip_errors},
        {"--quiet", NULL, "tell nothing of the progress", NULL, &quiet},
    };
    l.cli = (struct cli){
        .command = "load",
        .usage = "[OPTION...] TABLE FILE",
        .about = "Puts the rows of a file into a table of a running server. FILE ends with .csv or .jsonl;\n"
                 "- is the standard input, with --format.\n",
        .options = options,
        .noptions = sizeof options / sizeof *options};
    int code = cli_options(&l.cli, &argc, argv, &done);
    if (done)
        return code;
    if (argc != 2)
        return cli_complain(&l.cli, "it takes a table and a file; larder load --help tells more", CLI_USAGE);
    l.table = slice_str(argv[0]);
    l.path = argv[1];
    bool standard = strcmp(l.path, "-") == 0;
    if (!format_is_json(&l.cli, format, standard ? NULL : l.path, &json))
        return CLI_USAGE;
    FILE *f = standard ? stdin : fopen(l.path, "rb");
    if (!f) {
        fprintf(stderr, "larder load: %s: %s\n", l.path, strerror(errno));
        return CLI_FAILED;
    }
    code = run(&l, f, json, quiet);
    if (!standard)
        fclose(f);
    arena_release(&l.arena);
    mem_free(l.given);
    mem_free(l.nulls);
    mem_free(l.words);
    return code;
}
