/* Payloads of FUNCTION RESTORE from whatever a client sends: as they are, and with a version and a checksum
   that fit, because few others come past those. What is read is written again as what reads the same, and
   what is packed is unpacked as what it was. The first lines of libraries, behind the "#!" that each begins
   with. */

#include "fuzz.h"

#include "base/lzf.h"
#include "script/dump.h"
#include "script/library.h"

/* The first line of a library: what is taken has a name, and code behind it; what is not has a reply. */
static void check_head(struct slice text)
{
    struct arena arena = {0};
    struct buf err = {0};
    struct library_head head;
    if (library_parse(text, &arena, &head, &err)) {
        CHECK_OR_DIE(!err.len && library_name_is_valid(head.name) && slice_is(head.engine, "lua"));
        CHECK_OR_DIE(head.code.p[0] == '\n' && head.code.p + head.code.n == text.p + text.n);
    } else {
        CHECK_OR_DIE(err.len > 4 && memcmp(err.p, "ERR ", 4) == 0);
    }
    buf_release(&err);
    arena_release(&arena);
}

/* Reads all of a payload, and writes what was in it. False: it is refused. */
static bool copy_dump(struct slice payload, struct arena *arena, struct buf *to)
{
    struct dump_reader r;
    struct slice code;
    const char *err;
    if (!dump_open(&r, payload))
        return false;
    while (dump_next(&r, arena, &code, &err)) {
        CHECK_OR_DIE(!err);
        check_head(code);
        dump_add(to, code);
    }
    dump_end(to);
    return !err;
}

static void check_payload(struct slice payload)
{
    struct arena arena = {0};
    struct buf once = {0}, twice = {0};
    if (copy_dump(payload, &arena, &once)) {
        CHECK_OR_DIE(copy_dump(buf_slice(&once), &arena, &twice));
        CHECK_OR_DIE(slice_eq(buf_slice(&once), buf_slice(&twice)));
    }
    buf_release(&once);
    buf_release(&twice);
    arena_release(&arena);
}

static void check_packing(struct slice bytes)
{
    struct buf packed = {0};
    if (lzf_pack(bytes, bytes.n + bytes.n / 16 + 16, &packed)) {
        char *back = malloc(bytes.n ? bytes.n : 1);
        CHECK_OR_DIE(back && lzf_most(packed.len) >= bytes.n);
        CHECK_OR_DIE(lzf_unpack(buf_slice(&packed), back, bytes.n));
        CHECK_OR_DIE(slice_eq(slice_of(back, bytes.n), bytes));
        free(back);
    } else {
        CHECK_OR_DIE(bytes.n < 3);
    }
    buf_release(&packed);
}

static void check_unpacking(struct slice bytes)
{
    size_t n = bytes.n ? (unsigned char)bytes.p[0] : 0;
    char *to = malloc(n ? n : 1);
    CHECK_OR_DIE(to);
    (void)lzf_unpack(bytes, to, n);
    free(to);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf framed = {0};
    char *copy = malloc(size ? size : 1);
    CHECK_OR_DIE(copy);
    memcpy(copy, data, size);
    struct slice input = slice_of(copy, size);
    check_payload(input);
    buf_add(&framed, "#!", 2);
    buf_add_slice(&framed, input);
    check_head(buf_slice(&framed));
    framed.len = 0;
    check_packing(input);
    check_unpacking(input);
    buf_add_slice(&framed, slice_of(copy, size > 10 ? size - 10 : size)); /* seeds have a footer already */
    dump_end(&framed);
    check_payload(buf_slice(&framed));
    buf_release(&framed);
    free(copy);
    return 0;
}
