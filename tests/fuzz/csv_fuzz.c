/* Any file: reading ends, and what was read is read again when it is written as CSV. */
#include "fuzz.h"

#include "cli/csv.h"
#include "cli/print.h"

/* Writes every record that can be read; how many fields there were. */
static size_t copy(FILE *f, struct buf *out)
{
    struct csv c = {.f = f};
    size_t fields = 0;
    while (csv_next(&c)) {
        for (size_t i = 0; i < c.n; i++) {
            struct answer v = {.kind = c.fields[i].n || c.fields[i].quoted ? ANSWER_TEXT : ANSWER_NULL,
                               .text = csv_field(&c, i)};
            if (i)
                buf_add(out, ",", 1);
            print_csv_value(out, &v);
        }
        buf_addf(out, "\r\n");
        fields += c.n;
    }
    csv_release(&c);
    return fields;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct buf once = {0}, twice = {0};
    FILE *f = fmemopen((void *)(uintptr_t)data, size, "r");
    CHECK_OR_DIE(f);
    size_t fields = copy(f, &once);
    fclose(f);
    if (once.len && (unsigned char)once.p[0] != 0xef) { /* a second mark would be the first one now */
        f = fmemopen(once.p, once.len, "r");
        CHECK_OR_DIE(f);
        CHECK_OR_DIE(copy(f, &twice) == fields);
        fclose(f);
        CHECK_OR_DIE(slice_eq(buf_slice(&once), buf_slice(&twice)));
    }
    buf_release(&once);
    buf_release(&twice);
    return 0;
}
