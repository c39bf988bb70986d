#include "table/key_text.h"

#include "table/keycode.h"

#define SHOWN_CHARS 120

static void print_blob(struct slice bytes, struct buf *out)
{
    for (size_t i = 0; i < bytes.n && i < SHOWN_CHARS; i++)
        buf_addf(out, "%02x", (unsigned char)bytes.p[i]);
}

/* On one line, and not longer than an error has room for; no character is cut in two. */
static void tidy_text(struct buf *out, size_t start)
{
    for (size_t i = start; i < out->len; i++)
        if ((unsigned char)out->p[i] < ' ')
            out->p[i] = '?';
    if (out->len - start <= SHOWN_CHARS)
        return;
    out->len = start + SHOWN_CHARS;
    while (out->len > start && (out->p[out->len] & 0xc0) == 0x80)
        out->len--;
    buf_addf(out, "...");
}

void key_text_add(const struct schema *s, struct slice name, struct arena *arena, struct buf *out)
{
    size_t start = out->len;
    buf_addf(out, "(");
    for (size_t i = 0; i < s->nkey; i++) {
        struct value v;
        if (!keycode_take(&name, s->key[i].desc, arena, &v))
            break;
        buf_addf(out, "%s", i ? ", " : "");
        if (v.kind == VALUE_BLOB)
            print_blob(v.s, out);
        else
            value_print(out, s->columns[s->key[i].column].type, &v);
    }
    tidy_text(out, start);
    buf_addf(out, ")");
}
