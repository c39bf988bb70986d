/* The table for people: a config file, the list in --help, a page of Markdown. */
#include "config/config.h"
#include "config/file.h"

#define COMMENT_WIDTH 78

/* Text in lines of at most COMMENT_WIDTH characters, each behind "# ". */
static void put_comment(struct buf *out, const char *text)
{
    size_t column = 0;
    while (*text) {
        size_t n = strcspn(text, " ");
        if (column && column + 1 + n > COMMENT_WIDTH) {
            buf_addf(out, "\n");
            column = 0;
        }
        buf_addf(out, "%s%.*s", column ? " " : "# ", (int)n, text);
        column += n + (column ? 1 : 2);
        text += n;
        text += strspn(text, " ");
    }
    buf_addf(out, "\n");
}

static bool starts_group(int i)
{
    return i == 0 || strcmp(config_option(i)->group, config_option(i - 1)->group) != 0;
}

void config_print_file(struct buf *out)
{
    struct config defaults;
    const struct option *o;
    config_init(&defaults);
    put_comment(
        out, "Configuration of larder. Every option stands here with its default. The same names "
             "work as flags (--cache-memory 64mb) and in the environment (LARDER_CACHE_MEMORY=64mb); flags "
             "win over the environment, which wins over this file.");
    put_comment(out, "Sizes: 512 (bytes), 64kb, 256mb, 2gb. Times: 250ms, 5s, 2m, 1h.");
    for (int i = 0; (o = config_option(i)) && !o->redis; i++) {
        buf_addf(out, "\n");
        if (starts_group(i))
            buf_addf(out, "##### %s\n\n", o->group);
        put_comment(out, o->summary);
        if (o->comment)
            put_comment(out, o->comment);
        buf_addf(out, "%s", o->initial[0] && !o->unset ? "" : "# "); /* nothing to set */
        config_put_line(&defaults, o, out);
    }
    config_release(&defaults);
}

/* What stands for the value behind a flag: words of an enumeration are shown as they are. */
static void put_placeholder(struct buf *out, const struct option *o)
{
    static const char *const names[] = {
        [OPT_INT] = "NUMBER", [OPT_OCTAL] = "MODE",    [OPT_BOOL] = "yes|no",
        [OPT_SIZE] = "SIZE",  [OPT_DURATION] = "TIME", [OPT_OUTPUT_LIMIT] = "CLASS HARD SOFT SECONDS",
    };
    const char *name = o->placeholder ? o->placeholder : names[o->kind];
    buf_addf(out, "%s", name ? name : "");
    for (int i = 0; o->kind == OPT_ENUM && o->words[i]; i++)
        buf_addf(out, "%s%s", i ? "|" : "", o->words[i]);
}

void config_print_help(struct buf *out)
{
    const struct option *o;
    for (int i = 0; (o = config_option(i)) && !o->redis; i++) {
        struct buf flag = {0};
        if (starts_group(i))
            buf_addf(out, "\n%s:\n", o->group);
        buf_addf(&flag, "--%s ", o->name);
        put_placeholder(&flag, o);
        /* A flag too long for its column has a line of its own. */
        buf_addf(out, "  %.*s%*s", (int)flag.len, flag.p, flag.len > 34 ? 0 : (int)(36 - flag.len), "");
        if (flag.len > 34)
            buf_addf(out, "\n%38s", "");
        buf_addf(out, "%s", o->summary);
        if (o->initial[0])
            buf_addf(out, " [%s]", o->initial);
        buf_addf(out, "\n");
        buf_release(&flag);
    }
}

/* A cell of a table: its separator must not end it. */
static void put_cell(struct buf *out, const char *text)
{
    for (; *text; text++)
        buf_addf(out, "%s%c", *text == '|' ? "\\" : "", *text);
}

static void put_row(struct buf *out, const struct option *o)
{
    buf_addf(out, "| `%s` | ", o->name);
    buf_addf(out, o->initial[0] ? "`%s` | " : "%s | ", o->initial);
    put_cell(out, o->accepts);
    buf_addf(out, " | %s | ", o->live ? "yes" : "no");
    put_cell(out, o->summary);
    if (o->comment) {
        buf_addf(out, " ");
        put_cell(out, o->comment);
    }
    buf_addf(out, " |\n");
}

void config_print_markdown(struct buf *out)
{
    const struct option *o;
    buf_addf(out,
             "# Configuration\n\n"
             "<!-- Written by `larder config --markdown` from the table in src/config/options.c. -->\n\n"
             "Every option has one name. It can be given as a flag (`--cache-memory 64mb` or\n"
             "`--cache-memory=64mb`), in the environment (`LARDER_CACHE_MEMORY=64mb`) and in a config file\n"
             "(`cache-memory 64mb`). Flags win over the environment, which wins over the file.\n\n"
             "- The file is named by `--config FILE`, by `LARDER_CONFIG`, or as the first argument\n"
             "  (`larder larder.conf`). Its syntax is that of redis.conf: a name and a value on each line, "
             "quotes\n"
             "  around a value with spaces, comments on lines that start with `#`. `larder config` prints "
             "one with\n"
             "  every option and its default.\n"
             "- Sizes take a unit: `512` (bytes), `64kb`, `256mb`, `2gb` (powers of 1024; `k`, `m`, `g` are "
             "powers\n"
             "  of 1000).\n"
             "- Times take a unit, too: `250ms`, `5s`, `2m`, `1h`, `1d`. A bare number other than 0 is "
             "refused: `60`\n"
             "  could be `60ms` or `60s`. Options that Redis has as well take one in the unit that Redis has "
             "for it,\n"
             "  which the table names, so that redis.conf's `timeout 60` keeps its meaning.\n"
             "- A value that is not accepted ends the start with exit code 2 and a message that names the "
             "option,\n"
             "  where the value came from, and what is accepted.\n"
             "- A `LARDER_` variable that is no option is ignored, with a warning in the log that names the "
             "option that\n"
             "  was meant. So are the variables that Kubernetes sets in pods for a service called `larder`, "
             "such as\n"
             "  `LARDER_PORT=tcp://10.0.0.1:6379`.\n"
             "- \"Live\" options can be changed with `CONFIG SET` while the server runs; `CONFIG REWRITE` "
             "writes what\n"
             "  is in effect to the config file.\n");
    for (int i = 0; (o = config_option(i)) && !o->redis; i++) {
        if (starts_group(i))
            buf_addf(out, "\n## %s\n\n| option | default | accepts | live | |\n|---|---|---|---|---|\n",
                     o->group);
        put_row(out, o);
    }
}
