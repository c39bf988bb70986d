/* The splitter of inline lines: any bytes are split or refused without reading outside the line, and words
   that are quoted byte by byte come back as they were. */

#include "fuzz.h"

#include "base/buf.h"
#include "proto/resp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = {0};
    struct slice *argv, *again;
    int argc, nagain;
    if (resp_split_line(slice_of(data, size), &arena, &argv, &argc)) {
        struct buf line = {0};
        size_t total = 0;
        for (int i = 0; i < argc; i++) {
            total += argv[i].n;
            buf_add(&line, " \"", 2);
            for (size_t j = 0; j < argv[i].n; j++)
                buf_addf(&line, "\\x%02x", (unsigned char)argv[i].p[j]);
            buf_add(&line, "\"", 1);
        }
        CHECK_OR_DIE(total <= size);
        CHECK_OR_DIE(resp_split_line(buf_slice(&line), &arena, &again, &nagain));
        CHECK_OR_DIE(nagain == argc);
        for (int i = 0; i < argc; i++)
            CHECK_OR_DIE(slice_eq(argv[i], again[i]));
        buf_release(&line);
    }
    arena_release(&arena);
    return 0;
}
