/* What the commands on tables share: the catalog, faults and values as replies, arguments as values. */
#ifndef LARDER_COMMAND_TABLE_TABLE_COMMON_H
#define LARDER_COMMAND_TABLE_TABLE_COMMON_H

#include <stdbool.h>

#include "exec/command.h"
#include "table/catalog.h"
#include "table/rows.h"

/* The catalog of the call's executor, made when it is first asked for. */
struct catalog *call_catalog(const struct call *c);

/* "-NOTABLE no such table: people" */
void reply_fault(struct reply *r, const struct fault *f);

/* The table under argv[i], for reading or writing its rows. ret->table is NULL: there is none, and the error
   has been replied. */
enum status arg_rows(struct call *c, int i, struct rows *ret) MUST_CHECK;

/* ---- arguments; false: the fault says why ---- */

/* argv[i] is the name of a column: its place. */
bool arg_column(const struct call *c, const struct schema *s, int i, uint16_t *ret, struct fault *fault);

/* A number of things that follow it, each of so many arguments. */
bool arg_count(const struct call *c, int i, int each, int *ret, struct fault *fault);

/* The row that the primary key's values argv[i] to argv[i + nkey - 1] name; all of them are there. */
bool arg_row_name(const struct call *c, const struct rows *r, int i, struct slice *ret, struct fault *fault);

/* Which columns are wanted: columns is NULL: all of them. */
struct projection {
    uint16_t *columns;
    size_t n;
};

/* "FIELDS n col ...", argv[*i] being FIELDS; *i goes behind it. */
bool arg_projection(const struct call *c, const struct schema *s, int *i, struct projection *ret,
                    struct fault *fault);

/* Behind a key: [FIELDS n col ...] [WITHVER], to the last argument. */
struct row_options {
    struct projection fields;
    bool with_version;
};
bool arg_row_options(const struct call *c, const struct schema *s, int i, struct row_options *ret,
                     struct fault *fault);

/* ---- replies ---- */

void reply_value(struct reply *r, const struct value *v);

/* A map from columns to values. */
void reply_row_map(struct reply *r, const struct schema *s, const struct table_row *row,
                   const struct projection *fields);

#endif
