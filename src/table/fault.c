#include "table/fault.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "proto/json.h"

static const struct {
    const char *code, *http_code;
    int http_status;
} kinds[] = {
    [FAULT_NONE] = {"", "", 200},
    [FAULT_SYNTAX] = {"SYNTAX", "syntax", 400},
    [FAULT_NO_TABLE] = {"NOTABLE", "table_not_found", 404},
    [FAULT_EXISTS] = {"EXISTS", "table_exists", 409},
    [FAULT_WRONG_TYPE] = {"WRONGTYPE", "wrong_type", 409},
    [FAULT_NO_COLUMN] = {"NOCOLUMN", "unknown_column", 400},
    [FAULT_NO_INDEX] = {"NOINDEX", "unknown_index", 400},
    [FAULT_BAD_TYPE] = {"BADTYPE", "bad_type", 400},
    [FAULT_CONSTRAINT] = {"CONSTRAINT", "constraint", 422},
    [FAULT_DUPLICATE] = {"DUPLICATE", "duplicate", 409},
    [FAULT_TOO_LONG] = {"TOOLONG", "too_long", 400},
    [FAULT_BAD_TOKEN] = {"BADTOKEN", "bad_cursor", 400},
    [FAULT_BUILDING] = {"BUILDING", "building", 409},
    [FAULT_REFUSED] = {"REFUSED", "refused", 409},
    [FAULT_SQL] = {"SQL", "sql_error", 400},
    [FAULT_TIMEOUT] = {"SQL", "sql_timeout", 504},
    [FAULT_TOO_LARGE] = {"SQL", "result_too_large", 413},
    [FAULT_CANCELLED] = {"SQL", "cancelled", 409},
};

/* One line of UTF-8: control characters become spaces, bytes that are no character question marks; a
   character that was cut at the end goes. */
static void make_line(char *text, bool cut)
{
    size_t n = strlen(text), to = 0;
    for (size_t i = 0; i < n;) {
        size_t len = utf8_length(text + i, n - i);
        if (len == 0 && cut && n - i < 4)
            break;
        if (len > 1)
            memmove(text + to, text + i, len);
        else if (len == 0)
            text[to] = '?';
        else
            text[to] = (uint8_t)text[i] < ' ' || text[i] == 127 ? ' ' : text[i];
        to += len ? len : 1;
        i += len ? len : 1;
    }
    text[to] = '\0';
}

bool fault_set(struct fault *f, enum fault_kind kind, const char *fmt, ...)
{
    if (f->kind != FAULT_NONE)
        return false;
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(f->text, sizeof f->text, fmt, args);
    va_end(args);
    if (n < 0) /* a value whose bytes no locale takes */
        f->text[0] = '\0';
    f->kind = kind;
    make_line(f->text, n >= (int)sizeof f->text);
    return false;
}

const char *fault_code(enum fault_kind kind)
{
    return kinds[kind].code;
}

const char *fault_http_code(enum fault_kind kind)
{
    return kinds[kind].http_code;
}

int fault_http_status(enum fault_kind kind)
{
    return kinds[kind].http_status;
}
