/* JSON, base64 and percent-encoding: whatever the input, no byte outside of it is read; what is found sound
   can be walked to its end, and what is written is read again as it was. */
#include <string.h>

#include "fuzz.h"

#include "base/buf.h"
#include "proto/base64.h"
#include "proto/json.h"
#include "proto/uri.h"

/* What was read, written again in the shortest form. */
static void write_back(const struct json *v, struct arena *arena, struct buf *out)
{
    struct json_walk w;
    struct json inner;
    struct slice name;
    size_t n = 0;
    switch (v->kind) {
    case JSON_STRING:
        CHECK_OR_DIE(json_add_string(out, json_string(v, arena)));
        break;
    case JSON_ARRAY:
        buf_add(out, "[", 1);
        for (json_begin(&w, v); json_next_item(&w, &inner); n++) {
            if (n)
                buf_add(out, ",", 1);
            write_back(&inner, arena, out);
        }
        CHECK_OR_DIE(n == json_count(v));
        buf_add(out, "]", 1);
        break;
    case JSON_OBJECT:
        buf_add(out, "{", 1);
        for (json_begin(&w, v); json_next_member(&w, arena, &name, &inner); n++) {
            if (n)
                buf_add(out, ",", 1);
            CHECK_OR_DIE(json_add_string(out, name));
            buf_add(out, ":", 1);
            write_back(&inner, arena, out);
        }
        CHECK_OR_DIE(n == json_count(v));
        buf_add(out, "}", 1);
        break;
    default:
        buf_add_slice(out, v->text);
    }
}

static void check_json(struct slice input, struct arena *arena)
{
    struct json v, again;
    const char *why = NULL;
    size_t at = 0;
    if (!json_check(input, &v, &why, &at)) {
        CHECK_OR_DIE(why && at <= input.n);
        return;
    }
    struct buf first = {0}, second = {0};
    write_back(&v, arena, &first);
    CHECK_OR_DIE(json_check(buf_slice(&first), &again, &why, &at) && again.kind == v.kind);
    write_back(&again, arena, &second);
    CHECK_OR_DIE(slice_eq(buf_slice(&first), buf_slice(&second)));
    buf_release(&first);
    buf_release(&second);
}

static void check_strings(struct slice input, struct arena *arena)
{
    struct buf out = {0};
    struct json v;
    const char *why;
    size_t at;
    if (json_add_string(&out, input)) {
        CHECK_OR_DIE(json_check(buf_slice(&out), &v, &why, &at) && v.kind == JSON_STRING);
        CHECK_OR_DIE(slice_eq(json_string(&v, arena), input));
    } else {
        CHECK_OR_DIE(out.len == 0);
    }
    out.len = 0;
    json_add_lossy(&out, input);
    CHECK_OR_DIE(json_check(buf_slice(&out), &v, &why, &at));
    buf_release(&out);
}

static void check_codes(struct slice input, struct arena *arena)
{
    struct buf out = {0};
    struct slice back, decoded;
    base64_add(&out, input);
    CHECK_OR_DIE(base64_decode(buf_slice(&out), arena, &back) && slice_eq(back, input));
    if (base64_decode(input, arena, &decoded)) {
        out.len = 0;
        base64_add(&out, decoded);
        CHECK_OR_DIE(base64_decode(buf_slice(&out), arena, &back) && slice_eq(back, decoded));
    }
    out.len = 0;
    uri_encode(&out, input);
    CHECK_OR_DIE(uri_decode(buf_slice(&out), false, arena, &back) && slice_eq(back, input));
    CHECK_OR_DIE(uri_decode(buf_slice(&out), true, arena, &back) && slice_eq(back, input));
    if (uri_decode(input, true, arena, &decoded))
        CHECK_OR_DIE(decoded.n <= input.n);
    buf_release(&out);
}

/* Segments and parameters put together again are the input. */
static void check_target(struct slice input)
{
    struct slice path = input, segment, query = input, name, value;
    size_t n = 0;
    bool bare;
    while (uri_segment(&path, &segment))
        n += 1 + segment.n;
    CHECK_OR_DIE(n + path.n == input.n && (path.n == 0 || n == 0));
    while (uri_param(&query, &name, &value, &bare)) {
        CHECK_OR_DIE(name.p >= input.p && value.p + value.n <= input.p + input.n);
        CHECK_OR_DIE(!bare || value.n == 0);
    }
    CHECK_OR_DIE(query.n == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = malloc(size ? size : 1);
    CHECK_OR_DIE(copy);
    memcpy(copy, data, size);
    struct slice input = slice_of(copy, size);
    struct arena arena = {0};
    check_json(input, &arena);
    check_strings(input, &arena);
    check_codes(input, &arena);
    check_target(input);
    arena_release(&arena);
    free(copy);
    return 0;
}
