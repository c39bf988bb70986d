/* Results as people and programs read them. */
#ifndef LARDER_CLI_PRINT_H
#define LARDER_CLI_PRINT_H

#include <stdbool.h>

#include "base/buf.h"
#include "cli/link.h"

enum print_mode { PRINT_TABLE, PRINT_CSV, PRINT_JSON, PRINT_LIST, PRINT_LINE };

/* By name; false: there is none. */
bool print_mode_find(const char *name, enum print_mode *ret);
#define PRINT_MODES "table|csv|json|list|line"

/* The answer to SQL: its rows, or how many were changed. header: with the columns' names, where the mode can
   be without. */
void print_result(struct buf *out, const struct answer *result, enum print_mode mode, bool header);

/* One value of a row of CSV, quoted where it has to be: NULL is nothing, an empty text is "". */
void print_csv_value(struct buf *out, const struct answer *v);

/* A value of JSON; text that is not UTF-8 is base64. */
void print_json_value(struct buf *out, const struct answer *v);

#endif
