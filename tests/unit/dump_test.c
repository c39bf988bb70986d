/* Dumps of libraries against those that redis-server 7.0.15 has made; the LZF format; payloads that are none.
 */
#include "script/dump.h"

#include "base/lzf.h"
#include "base/rand.h"
#include "check.h"

static const char line[] =
    "redis.register_function('f%d', function(keys, args) return redis.call('GET', keys[1]) end)\n";

/* "#!lua name=mylib" and five of those lines, as redis-server dumps it. */
static const char dumped[] =
    "\xf5\xc3\x40\x7f\x41\xd3\x1f\x23\x21\x6c\x75\x61\x20\x6e\x61\x6d\x65\x3d\x6d\x79\x6c\x69\x62\x0a"
    "\x72\x65\x64\x69\x73\x2e\x72\x65\x67\x69\x73\x74\x65\x72\x5f\x0e\x66\x75\x6e\x63\x74\x69\x6f\x6e"
    "\x28\x27\x66\x30\x27\x2c\x20\xe0\x00\x0e\x11\x6b\x65\x79\x73\x2c\x20\x61\x72\x67\x73\x29\x20\x72"
    "\x65\x74\x75\x72\x6e\x20\x06\x40\x39\x08\x63\x61\x6c\x6c\x28\x27\x47\x45\x54\x20\x2d\x40\x24\x08"
    "\x5b\x31\x5d\x29\x20\x65\x6e\x64\x29\xe0\x12\x59\x00\x31\x20\x2b\xe0\x4d\x59\x00\x32\xe0\x50\x59"
    "\x00\x33\xe0\x50\x59\x00\x34\xe0\x34\x59\x01\x29\x0a\x0a\x00\x2f\xb0\x26\x13\xa6\xd9\xd2\xed";

static void write_library(struct buf *code)
{
    buf_addf(code, "#!lua name=mylib\n");
    for (int i = 0; i < 5; i++) {
        size_t at = code->len;
        buf_add(code, line, sizeof line - 1);
        char *number = memchr(code->p + at, '%', sizeof line - 1);
        *number = (char)('0' + i);
        memmove(number + 1, number + 2, (size_t)(code->p + code->len - (number + 2)));
        code->len--;
    }
}

static void writes_what_redis_writes(void)
{
    struct buf code = {0}, dump = {0};
    write_library(&code);
    dump_add(&dump, buf_slice(&code));
    dump_end(&dump);
    CHECK_SLICE(buf_slice(&dump), slice_of(dumped, sizeof dumped - 1));
    dump.len = 0;
    dump_end(&dump);
    CHECK_SLICE(buf_slice(&dump), SLICE("\x0a\x00\x5d\x9b\x5c\x40\x0f\x7f\xa2\xda"));
    buf_release(&code);
    buf_release(&dump);
}

static void reads_what_redis_writes(void)
{
    struct buf code = {0};
    struct arena arena = {0};
    struct dump_reader r;
    struct slice read;
    const char *err;
    write_library(&code);
    REQUIRE(dump_open(&r, slice_of(dumped, sizeof dumped - 1)));
    REQUIRE(dump_next(&r, &arena, &read, &err));
    CHECK_SLICE(read, buf_slice(&code));
    CHECK(!dump_next(&r, &arena, &read, &err) && !err);
    arena_release(&arena);
    buf_release(&code);
}

static void no_byte_may_change(void)
{
    char copy[sizeof dumped];
    struct dump_reader r;
    for (size_t i = 0; i < sizeof dumped - 1; i++) {
        memcpy(copy, dumped, sizeof dumped);
        copy[i] ^= 1;
        CHECK(!dump_open(&r, slice_of(copy, sizeof dumped - 1)));
        CHECK(!dump_open(&r, slice_of(dumped, i)));
    }
}

/* What is in front of a good footer. */
static const char *refusal(struct slice bytes)
{
    struct buf b = {0};
    struct arena arena = {0};
    struct dump_reader r;
    struct slice code;
    const char *err = "no dump";
    buf_add_slice(&b, bytes);
    dump_end(&b);
    if (dump_open(&r, buf_slice(&b)))
        while (dump_next(&r, &arena, &code, &err))
            ;
    buf_release(&b);
    arena_release(&arena);
    return err ? err : "";
}

static void refuses_what_is_no_library(void)
{
    static const char bad[] = "Failed loading library payload";
    CHECK_STR(refusal(SLICE("")), "");
    CHECK_STR(refusal(SLICE("\xf5\x01x")), "");
    CHECK_STR(refusal(SLICE("\xf5\xc0\x05")), "");
    CHECK_STR(refusal(SLICE("\x00\x01x")), "given type is not a function");
    CHECK_STR(refusal(SLICE("\xf5\x01x\xff")), "given type is not a function");
    CHECK_STR(refusal(SLICE("\xf5")), bad);
    CHECK_STR(refusal(SLICE("\xf5\x02x")), bad);
    CHECK_STR(refusal(SLICE("\xf5\xc4")), bad);
    CHECK_STR(refusal(SLICE("\xf5\x82")), bad);
    CHECK_STR(refusal(SLICE("\xf5\x81\xff\xff\xff\xff\xff\xff\xff\xff")), bad);
    CHECK_STR(refusal(SLICE("\xf5\xc3\x02\x80\xff\xff\xff\xff\x00x")), bad); /* too much for two bytes */
    CHECK_STR(refusal(SLICE("\xf5\xc3\x02\x01\x20\x00")), bad); /* refers to before the beginning */
    CHECK_STR(refusal(SLICE("\xf6")), "Failed loading library name");
    CHECK_STR(refusal(SLICE("\xf6\x01x")), "Failed loading engine name");
    CHECK_STR(refusal(SLICE("\xf6\x01x\x03LUA")), "Failed loading library description indicator");
    CHECK_STR(refusal(SLICE("\xf6\x01x\x03LUA\x01")), "Failed loading library description");
    CHECK_STR(refusal(SLICE("\xf6\x01x\x03LUA\x00")), "Failed loading library blob");
}

static void the_old_form_becomes_the_new_one(void)
{
    struct buf b = {0};
    struct arena arena = {0};
    struct dump_reader r;
    struct slice code;
    const char *err;
    buf_add_slice(&b, SLICE("\xf6\x01x\x03LUA\x01\x04text\x06return"));
    dump_end(&b);
    REQUIRE(dump_open(&r, buf_slice(&b)) && dump_next(&r, &arena, &code, &err));
    CHECK_SLICE(code, SLICE("#!LUA name=x\nreturn"));
    buf_release(&b);
    arena_release(&arena);
}

/* Of every length around the ends, from bytes of few and of many kinds. */
static void what_is_packed_comes_back(void)
{
    struct rand rand;
    rand_seed(&rand, 7);
    for (size_t n = 3; n < 3000; n += n < 700 ? 1 : 97) {
        char bytes[3000], back[3000];
        struct buf packed = {0};
        uint64_t kinds = n % 3 == 0 ? 2 : n % 3 == 1 ? 20 : 256;
        for (size_t i = 0; i < n; i++)
            bytes[i] = (char)rand_below(&rand, kinds);
        CHECK(lzf_pack(slice_of(bytes, n), n + n / 16 + 16, &packed));
        CHECK(lzf_unpack(buf_slice(&packed), back, n));
        CHECK_SLICE(slice_of(back, n), slice_of(bytes, n));
        CHECK(!lzf_unpack(buf_slice(&packed), back, n - 1));
        buf_release(&packed);
    }
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    RUN(writes_what_redis_writes);
    RUN(reads_what_redis_writes);
    RUN(no_byte_may_change);
    RUN(refuses_what_is_no_library);
    RUN(the_old_form_becomes_the_new_one);
    RUN(what_is_packed_comes_back);
    return check_done();
}
