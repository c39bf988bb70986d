#include "cli/print.h"

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "proto/json.h"

bool print_mode_find(const char *name, enum print_mode *ret)
{
    static const char *const names[] = {"table", "csv", "json", "list", "line"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(name, names[i]) == 0) {
            *ret = (enum print_mode)i;
            return true;
        }
    }
    return false;
}

/* ---- values ---- */

static bool is_utf8(struct slice s)
{
    for (size_t at = 0; at < s.n;) {
        size_t n = utf8_length(s.p + at, s.n - at);
        if (n == 0)
            return false;
        at += n;
    }
    return true;
}

/* As a text of any mode: bytes that are no text as x'…', what would break a line escaped. */
static void add_plain(struct buf *out, const struct answer *v)
{
    static const char hex[] = "0123456789abcdef";
    switch (v->kind) {
    case ANSWER_NULL:
        return;
    case ANSWER_BOOL:
        buf_addf(out, "%s", v->number ? "true" : "false");
        return;
    case ANSWER_INT:
        buf_addf(out, "%" PRId64, v->number);
        return;
    default:
        break;
    }
    bool text = is_utf8(v->text);
    buf_addf(out, "%s", text ? "" : "x'");
    for (size_t i = 0; i < v->text.n; i++) {
        unsigned char c = (unsigned char)v->text.p[i];
        if (!text)
            buf_add(out, (char[]){hex[c >> 4], hex[c & 15]}, 2);
        else if (c == '\n' || c == '\r' || c == '\t')
            buf_add(out, (char[]){'\\', c == '\n' ? 'n' : c == '\r' ? 'r' : 't'}, 2);
        else if (c < 0x20 || c == 0x7f)
            buf_addf(out, "\\x%02x", c);
        else
            buf_add(out, v->text.p + i, 1);
    }
    buf_addf(out, "%s", text ? "" : "'");
}

void print_csv_value(struct buf *out, const struct answer *v)
{
    if (v->kind != ANSWER_TEXT) {
        add_plain(out, v);
        return;
    }
    bool quoted = v->text.n == 0;
    for (size_t i = 0; i < v->text.n && !quoted; i++)
        quoted = memchr(",\"\r\n", v->text.p[i], 4) != NULL || v->text.p[0] == ' ';
    if (!quoted) {
        buf_add_slice(out, v->text);
        return;
    }
    buf_add(out, "\"", 1);
    for (size_t i = 0; i < v->text.n; i++)
        buf_add(out, v->text.p[i] == '"' ? "\"\"" : v->text.p + i, v->text.p[i] == '"' ? 2 : 1);
    buf_add(out, "\"", 1);
}

void print_json_value(struct buf *out, const struct answer *v)
{
    switch (v->kind) {
    case ANSWER_NULL:
        buf_addf(out, "null");
        return;
    case ANSWER_TEXT:
    case ANSWER_ERROR:
        if (!json_add_string(out, v->text))
            json_add_base64(out, v->text);
        return;
    case ANSWER_REAL:
        if (v->text.n && strchr("in", v->text.p[v->text.p[0] == '-'])) /* JSON has no infinities */
            json_add_lossy(out, v->text);
        else
            buf_add_slice(out, v->text);
        return;
    case ANSWER_INT:
    case ANSWER_BOOL:
        add_plain(out, v);
        return;
    case ANSWER_LIST:
    case ANSWER_MAP:
        buf_addf(out, "null");
        return;
    }
}

/* ---- tables ---- */

/* Characters, not bytes. */
static size_t width_of(struct slice s)
{
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++)
        n += ((unsigned char)s.p[i] & 0xc0) != 0x80;
    return n;
}

static void add_cell(struct buf *out, const struct answer *v, size_t width, bool last)
{
    struct buf text = {0};
    add_plain(&text, v);
    size_t has = width_of(buf_slice(&text)), pad = width > has ? width - has : 0;
    bool right = v->kind == ANSWER_INT || v->kind == ANSWER_REAL;
    buf_addf(out, "%*s", (int)(right ? pad : 0), "");
    buf_add_slice(out, buf_slice(&text));
    if (!last)
        buf_addf(out, "%*s", (int)(right ? 0 : pad), "");
    buf_release(&text);
}

static void add_row(struct buf *out, const struct answer *row, const size_t *widths, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        buf_addf(out, "%s", i ? " | " : " ");
        add_cell(out, &row->items[i], widths[i], i + 1 == n);
    }
    while (out->len && out->p[out->len - 1] == ' ')
        out->len--;
    buf_add(out, "\n", 1);
}

static void widen(size_t *width, const struct answer *v)
{
    struct buf text = {0};
    add_plain(&text, v);
    size_t n = width_of(buf_slice(&text));
    *width = n > *width ? n : *width;
    buf_release(&text);
}

static void print_table(struct buf *out, const struct answer *columns, const struct answer *rows)
{
    size_t n = columns->n;
    size_t *widths = mem_zalloc((n + 1) * sizeof *widths);
    for (size_t i = 0; i < n; i++) {
        widen(&widths[i], &columns->items[i]);
        for (size_t r = 0; r < rows->n; r++)
            widen(&widths[i], &rows->items[r].items[i]);
    }
    add_row(out, columns, widths, n);
    for (size_t i = 0; i < n; i++) {
        buf_addf(out, "%s", i ? "+" : "");
        for (size_t w = 0; w < widths[i] + 2; w++)
            buf_add(out, "-", 1);
    }
    buf_add(out, "\n", 1);
    for (size_t r = 0; r < rows->n; r++)
        add_row(out, &rows->items[r], widths, n);
    buf_addf(out, "(%zu row%s)\n", rows->n, rows->n == 1 ? "" : "s");
    mem_free(widths);
}

/* ---- the other modes ---- */

static void print_separated(struct buf *out, const struct answer *row, enum print_mode mode)
{
    for (size_t i = 0; i < row->n; i++) {
        if (i)
            buf_add(out, mode == PRINT_CSV ? "," : "|", 1);
        if (mode == PRINT_CSV)
            print_csv_value(out, &row->items[i]);
        else
            add_plain(out, &row->items[i]);
    }
    buf_addf(out, mode == PRINT_CSV ? "\r\n" : "\n");
}

static void print_object(struct buf *out, const struct answer *columns, const struct answer *row)
{
    for (size_t i = 0; i < row->n; i++) {
        buf_addf(out, i ? "," : "{");
        json_add_lossy(out, columns->items[i].text);
        buf_add(out, ":", 1);
        print_json_value(out, &row->items[i]);
    }
    buf_add(out, "}", 1);
}

static void print_lines(struct buf *out, const struct answer *columns, const struct answer *row)
{
    for (size_t i = 0; i < row->n; i++) {
        add_plain(out, &columns->items[i]);
        buf_addf(out, " = ");
        add_plain(out, &row->items[i]);
        buf_add(out, "\n", 1);
    }
    buf_add(out, "\n", 1);
}

static void print_rows(struct buf *out, const struct answer *columns, const struct answer *rows,
                       enum print_mode mode)
{
    for (size_t r = 0; r < rows->n; r++) {
        if (mode == PRINT_JSON) {
            buf_addf(out, r ? ",\n" : "[");
            print_object(out, columns, &rows->items[r]);
        } else if (mode == PRINT_LINE) {
            print_lines(out, columns, &rows->items[r]);
        } else {
            print_separated(out, &rows->items[r], mode);
        }
    }
    if (mode == PRINT_JSON)
        buf_addf(out, rows->n ? "]\n" : "[]\n");
}

void print_result(struct buf *out, const struct answer *result, enum print_mode mode, bool header)
{
    const struct answer *columns = answer_member(result, "columns"), *rows = answer_member(result, "rows");
    const struct answer *changes = answer_member(result, "changes");
    if (!columns || !rows || columns->n == 0) {
        if (mode == PRINT_TABLE && changes && changes->number)
            buf_addf(out, "%" PRId64 " row%s changed\n", changes->number, changes->number == 1 ? "" : "s");
        else if (mode == PRINT_TABLE)
            buf_addf(out, "OK\n");
        return;
    }
    if (mode == PRINT_TABLE) {
        print_table(out, columns, rows);
        return;
    }
    if (header && (mode == PRINT_CSV || mode == PRINT_LIST))
        print_separated(out, columns, mode);
    print_rows(out, columns, rows, mode);
}
