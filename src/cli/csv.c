#include "cli/csv.h"

#include "base/mem.h"
#include "base/vec.h"

struct slice csv_field(const struct csv *c, size_t i)
{
    return c->fields[i].n ? slice_of(c->bytes.p + c->fields[i].at, c->fields[i].n) : SLICE("");
}

static int get(struct csv *c)
{
    int ch = c->nback ? c->back[--c->nback] : getc_unlocked(c->f);
    if (ch != EOF)
        c->read++;
    c->next_line += ch == '\n';
    return ch;
}

static void unget(struct csv *c, int ch)
{
    if (ch == EOF)
        return;
    c->back[c->nback++] = ch;
    c->read--;
    c->next_line -= ch == '\n';
}

/* A field in quotes, behind the first one: up to the quote that ends it. */
static bool take_quoted(struct csv *c)
{
    for (int ch; (ch = get(c)) != EOF;) {
        if (ch == '"') {
            int next = get(c);
            if (next != '"') {
                unget(c, next);
                return true;
            }
        }
        buf_add(&c->bytes, &(char){(char)ch}, 1);
    }
    c->error = "a quote is not closed";
    return false;
}

/* One field and what ends it. */
static bool take_field(struct csv *c, int *ret_end)
{
    struct csv_field f = {.at = c->bytes.len};
    int ch = get(c);
    if (ch == '"') {
        f.quoted = true;
        if (!take_quoted(c))
            return false;
        ch = get(c);
    } else {
        while (ch != ',' && ch != '\n' && ch != EOF) {
            buf_add(&c->bytes, &(char){(char)ch}, 1);
            ch = get(c);
        }
        if (ch != ',' && c->bytes.len > f.at && c->bytes.p[c->bytes.len - 1] == '\r')
            c->bytes.len--;
    }
    if (f.quoted && ch == '\r')
        ch = get(c);
    if (ch != ',' && ch != '\n' && ch != EOF) {
        c->error = "something stands behind a closed quote";
        return false;
    }
    f.n = c->bytes.len - f.at;
    VEC_PUSH(c->fields, c->n, c->cap) = f;
    *ret_end = ch;
    return true;
}

static void pass_mark(struct csv *c)
{
    static const int mark[] = {0xef, 0xbb, 0xbf};
    int n = 0, ch = get(c);
    while (n < 2 && ch == mark[n]) {
        ch = get(c);
        n++;
    }
    if (n == 2 && ch == mark[2])
        return;
    unget(c, ch);
    while (n > 0)
        unget(c, mark[--n]);
}

bool csv_next(struct csv *c)
{
    int end = ',';
    if (c->next_line == 0) {
        c->next_line = 1;
        pass_mark(c);
    }
    do {
        c->n = 0;
        c->bytes.len = 0;
        c->line = c->next_line;
        do {
            if (!take_field(c, &end))
                return false;
        } while (end == ',');
    } while (end == '\n' && c->n == 1 && c->fields[0].n == 0 && !c->fields[0].quoted);
    if (ferror(c->f))
        c->error = "it cannot be read";
    return !c->error && (end != EOF || c->n > 1 || c->fields[0].n > 0 || c->fields[0].quoted);
}

void csv_release(struct csv *c)
{
    buf_release(&c->bytes);
    mem_free(c->fields);
}
