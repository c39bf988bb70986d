/* What a table's columns are, as the server tells (TABLE.INFO). */
#ifndef LARDER_CLI_COLUMNS_H
#define LARDER_CLI_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/slice.h"
#include "cli/options.h"

struct cli_column {
    struct slice name;
    bool blob; /* base64 in files */
    bool json; /* as it stands in files of JSON */
};

struct cli_columns {
    struct cli_column *all;
    size_t n;
};

/* Asks for them, or complains. All of it is in the arena. */
bool columns_ask(const struct cli *c, struct link *l, struct slice table, struct arena *arena,
                 struct cli_columns *ret);

/* By name, case ignored; NULL: there is none. */
const struct cli_column *columns_find(const struct cli_columns *c, struct slice name);

/* What a file's name or an option says of its format; false: neither does. */
bool format_is_json(const struct cli *c, const char *format, const char *path, bool *ret_json);

#endif
