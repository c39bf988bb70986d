#include "cli/columns.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

bool columns_ask(const struct cli *c, struct link *l, struct slice table, struct arena *arena,
                 struct cli_columns *ret)
{
    struct answer a;
    struct slice words[] = {SLICE("TABLE.INFO"), table};
    *ret = (struct cli_columns){0};
    if (!link_ask(l, arena, words, 2, &a)) {
        cli_complain(c, link_error(l), CLI_FAILED);
        return false;
    }
    const struct answer *columns = answer_member(&a, "columns");
    if (!columns || columns->kind != ANSWER_LIST) {
        fprintf(stderr, "larder %s: %.*s\n", c->command, (int)a.text.n, a.text.p);
        return false;
    }
    ret->n = columns->n;
    ret->all = arena_alloc(arena, (ret->n + 1) * sizeof *ret->all);
    for (size_t i = 0; i < ret->n; i++) {
        const struct answer *name = answer_member(&columns->items[i], "name");
        const struct answer *type = answer_member(&columns->items[i], "type");
        ret->all[i] = (struct cli_column){.name = name ? name->text : (struct slice){0},
                                          .blob = type && slice_is(type->text, "blob"),
                                          .json = type && slice_is(type->text, "json")};
    }
    return true;
}

const struct cli_column *columns_find(const struct cli_columns *c, struct slice name)
{
    for (size_t i = 0; i < c->n; i++) {
        if (c->all[i].name.n == name.n && strncasecmp(c->all[i].name.p, name.p, name.n) == 0)
            return &c->all[i];
    }
    return NULL;
}

static bool ends_with(const char *path, const char *end)
{
    size_t n = strlen(path), m = strlen(end);
    return n >= m && strcasecmp(path + n - m, end) == 0;
}

bool format_is_json(const struct cli *c, const char *format, const char *path, bool *ret_json)
{
    if (format)
        *ret_json = strcmp(format, "jsonl") == 0;
    else
        *ret_json =
            path && (ends_with(path, ".jsonl") || ends_with(path, ".ndjson") || ends_with(path, ".json"));
    bool known =
        format ? *ret_json || strcmp(format, "csv") == 0 : *ret_json || !path || ends_with(path, ".csv");
    if (!known)
        cli_complain(c,
                     format ? "--format: csv or jsonl"
                            : "a file ends with .csv or .jsonl, or --format tells what it is",
                     CLI_USAGE);
    return known;
}
