/* What the routes of tables and rows share. A handler opens the table (argv[1] is its name), understands what
   it was given with the table's columns at hand, and only then writes. */
#ifndef LARDER_HTTP_HTTP_TABLES_H
#define LARDER_HTTP_HTTP_TABLES_H

#include "http/http_internal.h"
#include "table/rows.h"

/* The table under argv[1]. *ret_open is false: there is none, which is the answer. */
enum status http_open_table(struct call *c, struct rows *ret, bool *ret_open) MUST_CHECK;

/* The answer, or that of the running operation, is this fault. */
void http_answer_fault(struct answer *a, const struct fault *f);

/* The answer is a 404. */
void http_row_not_found(struct answer *a);

/* The columns that "a,b,c" names (p is NULL: all of them), as places in the arena. */
bool http_read_select(const struct schema *s, struct slice names, struct arena *arena, uint16_t **ret,
                      size_t *ret_n, struct fault *fault);

/* Columns that are told, and how. */
struct http_columns {
    uint16_t *at;
    size_t n;
    bool text; /* whole numbers as strings */
};

/* What the request asks for: select, int64. */
bool http_columns_of(const struct http_call *x, const struct schema *s, struct arena *arena,
                     struct http_columns *ret, struct fault *fault);
void http_add_columns(struct buf *out, const struct schema *s, const struct value *values,
                      const struct http_columns *columns);

/* {"row": {...}, "version": 1, "expire_at": null} */
void http_add_table_row(struct buf *out, const struct schema *s, const struct table_row *row,
                        const struct http_columns *columns);

/* {"column": value, ...} into the values of a write; values and given have room for all columns. */
bool http_read_columns(const struct schema *s, const struct json *object, struct arena *arena,
                       struct row_write *ret, struct fault *fault);

/* An empty write of a table: nothing is given. */
struct row_write http_new_write(const struct schema *s, struct arena *arena);

/* The primary key's values, from the texts of a path ("Mary,Jane", not decoded yet) or from JSON (an array,
   or one value), and the name of its row. */
bool http_key_of_path(const struct schema *s, struct slice coded, struct arena *arena, struct value *values,
                      struct slice *ret_name, struct fault *fault);
bool http_key_of_json(const struct schema *s, const struct json *key, struct arena *arena,
                      struct value *values, struct slice *ret_name, struct fault *fault);

/* One write of a batch (batch_routes.c). */
enum row_op_kind { ROW_OP_PUT, ROW_OP_UPDATE, ROW_OP_DELETE };
struct http_row_op {
    enum row_op_kind kind;
    struct json key;  /* UPDATE, DELETE */
    struct json row;  /* PUT, UPDATE: an object */
    struct json incr; /* UPDATE; kind JSON_NULL: none */
    struct http_expiry expiry;
    struct http_conditions only;
};
enum status http_run_row_op(struct call *c, const struct http_row_op *op) MUST_CHECK;

#endif
