/* printf() and format() of SQL. SQLite's own goes on counting characters that have no room any more:
   printf('%.*c', 900000000, 'x') takes seconds in which nothing can end it. So the widths that a format asks
   for are looked at first, and then SQLite's own does the work, in a database that has no other tables and
   functions. */
#include <string.h>

#include "query/query_internal.h"

#define FORMAT_BYTES 10000
#define WIDTH_MAX    10000

/* A format, and which argument it takes next. */
struct format {
    struct slice rest;
    int argc, arg;
    sqlite3_value **argv;
};

static bool take_one_of(struct format *f, const char *set)
{
    if (!f->rest.n || !*f->rest.p || !strchr(set, *f->rest.p))
        return false;
    f->rest = slice_of(f->rest.p + 1, f->rest.n - 1);
    return true;
}

/* A width or a precision. False: it is too large. */
static bool width_fits(struct format *f)
{
    int64_t n = 0;
    if (take_one_of(f, "*")) {
        if (f->arg < f->argc)
            n = sqlite3_value_int64(f->argv[f->arg]);
        f->arg++;
        return n >= -WIDTH_MAX && n <= WIDTH_MAX;
    }
    while (f->rest.n && *f->rest.p >= '0' && *f->rest.p <= '9' && n <= WIDTH_MAX) {
        n = n * 10 + (*f->rest.p - '0');
        (void)take_one_of(f, "0123456789");
    }
    return n <= WIDTH_MAX;
}

static bool widths_fit(struct format f)
{
    while (f.rest.n) {
        if (!take_one_of(&f, "%")) {
            f.rest = slice_of(f.rest.p + 1, f.rest.n - 1);
            continue;
        }
        while (take_one_of(&f, "-+ #0,!"))
            ;
        if (!width_fits(&f) || (take_one_of(&f, ".") && !width_fits(&f)))
            return false;
        while (take_one_of(&f, "l"))
            ;
        if (!take_one_of(&f, "%n"))
            f.arg++;
    }
    return true;
}

/* SELECT printf(?, ?, ...) with so many arguments, prepared once for each number in a row. */
static sqlite3_stmt *statement(struct query_engine *e, int argc)
{
    char text[16 + 2 * SQLITE_ARGS_MAX] = "SELECT printf(?";
    size_t n = strlen(text);
    if (!e->plain && sqlite3_open_v2(":memory:", &e->plain, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
                                     NULL) != SQLITE_OK)
        return NULL;
    if (e->printf_args == argc)
        return e->printf;
    (void)sqlite3_finalize(e->printf);
    e->printf = NULL;
    e->printf_args = 0;
    for (int i = 1; i < argc; i++, n += 2)
        memcpy(text + n, ",?", 2);
    text[n++] = ')';
    if (sqlite3_prepare_v2(e->plain, text, (int)n, &e->printf, NULL) != SQLITE_OK)
        return NULL;
    e->printf_args = argc;
    return e->printf;
}

void sql_printf(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    struct query_engine *e = sqlite3_user_data(ctx);
    if (argc == 0)
        return;
    const char *p = (const char *)sqlite3_value_text(argv[0]);
    struct format f = {
        .rest = {p, p ? (size_t)sqlite3_value_bytes(argv[0]) : 0}, .argc = argc - 1, .argv = argv + 1};
    if (f.rest.n > FORMAT_BYTES || !widths_fit(f)) {
        sqlite3_result_error(ctx, "the format is too long, or asks for more than 10000 characters", -1);
        return;
    }
    sqlite3_stmt *s = statement(e, argc);
    if (!s) {
        sqlite3_result_error_nomem(ctx);
        return;
    }
    (void)sqlite3_limit(e->plain, SQLITE_LIMIT_LENGTH, sqlite3_limit(e->db, SQLITE_LIMIT_LENGTH, -1));
    for (int i = 0; i < argc; i++)
        (void)sqlite3_bind_value(s, i + 1, argv[i]);
    int rc = sqlite3_step(s);
    if (rc == SQLITE_ROW)
        sqlite3_result_value(ctx, sqlite3_column_value(s, 0));
    else
        sqlite3_result_error_code(ctx, rc);
    (void)sqlite3_reset(s);
    (void)sqlite3_clear_bindings(s);
}
