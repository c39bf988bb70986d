/* docs/commands.md, from the same tables that dispatch uses, so that it cannot be wrong about what exists. */
#include "command/families.h"

#include <ctype.h>
#include <string.h>

#include "base/buf.h"

static const struct {
    const char *group, *title;
} groups[] = {
    {"string", "Strings"},
    {"bitmap", "Bits"},
    {"generic", "Keys"},
    {"hash", "Hashes"},
    {"list", "Lists"},
    {"set", "Sets"},
    {"sorted-set", "Sorted sets"},
    {"transactions", "Transactions"},
    {"table", "Tables"},
    {"scripting", "Scripts"},
    {"consistency", "Consistency"},
    {"connection", "Connection"},
    {"cluster", "Cluster"},
    {"server", "Server"},
};

#define NGROUPS (sizeof groups / sizeof *groups)

static void add_upper(struct buf *out, const char *s)
{
    for (; *s; s++) {
        char c = (char)toupper((unsigned char)*s);
        buf_add(out, &c, 1);
    }
}

/* How many arguments: "2", or "1 or more", the name not counted. */
static void add_arity(struct buf *out, const struct command *c, int words)
{
    if (c->arity >= 0)
        buf_addf(out, "%d", c->arity - words);
    else
        buf_addf(out, "%d or more", -c->arity - words);
}

static void add_row(struct buf *out, const struct command *c, const struct command *parent)
{
    buf_addf(out, "| `");
    if (parent) {
        add_upper(out, parent->name);
        buf_addf(out, " ");
    }
    add_upper(out, c->name);
    buf_addf(out, "` | ");
    add_arity(out, c, parent ? 2 : 1);
    buf_addf(out, " | %s | %s | %s | %s |\n", c->summary, c->complexity,
             c->flags & CMD_MAY_WRITE || c->may_write ? "writes"
             : c->flags & CMD_READONLY                ? "reads"
                                                      : "",
             c->since);
}

static void add_group(struct buf *out, const char *group, const char *title)
{
    bool any = false;
    for (int i = 0; command_at(i); i++) {
        const struct command *c = command_at(i);
        if (strcmp(c->group, group) != 0)
            continue;
        if (!any)
            buf_addf(out,
                     "\n## %s\n\n| Command | Arguments | What it does | Cost | Data | Since Redis |\n"
                     "|---|---|---|---|---|---|\n",
                     title);
        any = true;
        if (c->fn)
            add_row(out, c, NULL);
        for (const struct command *sub = c->subs; sub && sub->name; sub++)
            add_row(out, sub, c);
    }
}

void command_print_markdown(struct buf *out)
{
    buf_addf(
        out,
        "# Commands\n\n"
        "<!-- Written by `larder commands`: change the tables in src/command/, not this page. -->\n\n"
        "Every command that Larder answers. Where it differs from Redis is in "
        "[compatibility.md](compatibility.md). Costs are Larder's own: a row is one row of the database, "
        "read from memory when it is there.\n");
    for (size_t i = 0; i < NGROUPS; i++)
        add_group(out, groups[i].group, groups[i].title);
}
