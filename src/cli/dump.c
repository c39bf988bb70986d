/* larder dump: the rows of a table, in the order of its primary key, page by page (ROW.QUERY). Each page is
   one state of the table; a row that stays is there once, whatever is written meanwhile. When rows expire is
   not dumped. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/columns.h"
#include "cli/print.h"
#include "cli/progress.h"
#include "proto/base64.h"
#include "proto/json.h"

#define PAGE_ROWS "1000"

struct dump {
    struct cli cli;
    struct link *link;
    struct slice table;
    struct cli_columns columns;
    bool json;
    FILE *out;
    const char *path;
    uint64_t rows;
    struct progress progress;
};

static void add_value(struct buf *out, const struct dump *d, const struct cli_column *c, struct answer v)
{
    struct buf text = {0};
    if (c->json && d->json && v.kind == ANSWER_TEXT) {
        buf_add_slice(out, v.text);
        return;
    }
    if (c->blob && v.kind == ANSWER_TEXT) {
        base64_add(&text, v.text);
        v.text = buf_slice(&text);
    }
    if (d->json)
        print_json_value(out, &v);
    else
        print_csv_value(out, &v);
    buf_release(&text);
}

static void add_row(struct buf *out, const struct dump *d, const struct answer *row)
{
    for (size_t i = 0; i < d->columns.n && 2 * i + 1 < row->n; i++) {
        if (d->json) {
            buf_addf(out, i ? "," : "{");
            json_add_lossy(out, d->columns.all[i].name);
            buf_add(out, ":", 1);
        } else if (i) {
            buf_add(out, ",", 1);
        }
        add_value(out, d, &d->columns.all[i], row->items[2 * i + 1]);
    }
    buf_addf(out, d->json ? "}\n" : "\r\n");
}

static bool write_out(struct dump *d, struct buf *out)
{
    bool ok = fwrite(out->p, 1, out->len, d->out) == out->len;
    if (!ok)
        fprintf(stderr, "larder dump: %s: %s\n", d->path ? d->path : "standard output", strerror(errno));
    buf_release(out);
    return ok;
}

static bool write_header(struct dump *d)
{
    struct buf out = {0};
    for (size_t i = 0; i < d->columns.n; i++) {
        if (i)
            buf_add(&out, ",", 1);
        buf_add_slice(&out, d->columns.all[i].name);
    }
    buf_addf(&out, "\r\n");
    return write_out(d, &out);
}

/* One page. *token becomes that of the next one, in the arena; its p is NULL at the end. */
static bool dump_page(struct dump *d, struct arena *arena, struct slice *token)
{
    struct slice words[6] = {SLICE("ROW.QUERY"), d->table,       SLICE("LIMIT"),
                             SLICE(PAGE_ROWS),   SLICE("AFTER"), *token};
    struct answer a;
    if (!link_ask(d->link, arena, words, token->p ? 6 : 4, &a)) {
        cli_complain(&d->cli, link_error(d->link), CLI_FAILED);
        return false;
    }
    if (a.kind != ANSWER_LIST || a.n < 2) {
        fprintf(stderr, "larder dump: %.*s\n", (int)a.text.n, a.text.p);
        return false;
    }
    struct buf out = {0};
    for (size_t i = 0; i < a.items[0].n; i++)
        add_row(&out, d, &a.items[0].items[i]);
    d->rows += a.items[0].n;
    *token = a.items[1].text;
    return write_out(d, &out);
}

static int run(struct dump *d, bool quiet)
{
    struct arena columns = {0}, pages[2] = {{0}};
    struct slice token = {0};
    d->link = cli_connect(&d->cli);
    if (!d->link)
        return CLI_FAILED;
    bool ok = columns_ask(&d->cli, d->link, d->table, &columns, &d->columns);
    if (ok) {
        progress_begin(&d->progress, "dumped", 0, quiet);
        ok = d->json || write_header(d);
        int page = 0;
        do {
            ok = ok && dump_page(d, &pages[page], &token);
            page = !page; /* the token is in the other one */
            arena_reset(&pages[page]);
            progress_tell(&d->progress, d->rows, 0);
        } while (ok && token.p);
        progress_end(&d->progress, d->rows);
    }
    link_close(d->link);
    arena_release(&columns);
    arena_release(&pages[0]);
    arena_release(&pages[1]);
    return ok ? CLI_OK : CLI_FAILED;
}

int cli_dump(int argc, char **argv)
{
    const char *format = NULL;
    bool quiet = false, done;
    struct dump d = {.out = stdout};
    const struct cli_option options[] = {
        {"--format", "csv|jsonl", "what to write (csv)", &format, NULL},
        {"--output", "FILE", "where to; its name tells the format", &d.path, NULL},
        {"--quiet", NULL, "tell nothing of the progress", NULL, &quiet},
    };
    d.cli = (struct cli){
        .command = "dump",
        .usage = "[OPTION...] TABLE",
        .about = "Writes the rows of a table of a running server, in the order of its primary key.\n",
        .options = options,
        .noptions = sizeof options / sizeof *options};
    int code = cli_options(&d.cli, &argc, argv, &done);
    if (done)
        return code;
    if (argc != 1)
        return cli_complain(&d.cli, "it takes a table; larder dump --help tells more", CLI_USAGE);
    d.table = slice_str(argv[0]);
    if (!format_is_json(&d.cli, format, d.path, &d.json))
        return CLI_USAGE;
    if (d.path && !(d.out = fopen(d.path, "wb"))) {
        fprintf(stderr, "larder dump: %s: %s\n", d.path, strerror(errno));
        return CLI_FAILED;
    }
    code = run(&d, quiet);
    if (fflush(d.out) != 0 || (d.path && fclose(d.out) != 0)) {
        fprintf(stderr, "larder dump: %s: %s\n", d.path ? d.path : "standard output", strerror(errno));
        code = CLI_FAILED;
    }
    return code;
}
