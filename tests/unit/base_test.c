/* Slices, memory, buffers, arenas, words, hashes, random numbers, time. */
#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/rand.h"
#include "base/vec.h"
#include "base/words.h"
#include "check.h"

static void slices_compare(void)
{
    CHECK(slice_eq(SLICE("a"), SLICE("a")));
    CHECK(slice_eq(slice_of(NULL, 0), SLICE("")));
    CHECK(!slice_eq(SLICE("a"), SLICE("b")));
    CHECK(slice_cmp(SLICE("a"), SLICE("ab")) < 0);
    CHECK(slice_cmp(SLICE("b"), SLICE("ab")) > 0);
    CHECK(slice_cmp(SLICE("\xff"), SLICE("a")) > 0);
    CHECK(slice_cmp(slice_of(NULL, 0), SLICE("")) == 0);
    CHECK(slice_is(SLICE("eX"), "Ex"));
    CHECK(!slice_is(SLICE("ex"), "e"));
    CHECK(!slice_is(SLICE("e"), "ex"));
    CHECK(!slice_is(slice_of("ex\0", 3), "ex"));
    CHECK(slice_is(SLICE(""), ""));
}

static void memory_is_counted(void)
{
    char *p = mem_alloc(100);
    CHECK(mem_size(p) >= 100);
    p = mem_realloc(p, 10000);
    CHECK(mem_size(p) >= 10000);
    mem_free(p);
    p = mem_zalloc(64);
    CHECK(p[0] == 0 && p[63] == 0);
    mem_free(p);
    p = mem_strndup(SLICE("abc"));
    CHECK_STR(p, "abc");
    mem_free(p);
    mem_free(mem_alloc(0));
    CHECK(mem_rss() > 100000);
}

static void buffers_grow(void)
{
    struct buf b = {0};
    buf_add(&b, "", 0);
    for (int i = 0; i < 1000; i++)
        buf_addf(&b, "%d,", i);
    CHECK_EQ(b.len, 3890);
    CHECK(memcmp(b.p, "0,1,2,", 6) == 0);
    buf_addf(&b, "%0500d", 7);
    CHECK_EQ(b.len, 4390);
    CHECK(b.p[b.len - 1] == '7');
    buf_consume(&b, 4389);
    CHECK_SLICE(buf_slice(&b), SLICE("7"));
    buf_shrink(&b, 64);
    CHECK_EQ(b.cap, 64);
    CHECK_SLICE(buf_slice(&b), SLICE("7"));
    buf_consume(&b, 1);
    buf_shrink(&b, 0);
    CHECK(b.p == NULL && b.cap == 0);
    buf_release(&b);
}

static void large_buffers_do_not_double(void)
{
    struct buf b = {0};
    size_t big = (size_t)40 << 20;
    b.len = 0;
    buf_reserve(&b, big);
    CHECK_EQ(b.cap, big);
    b.len = big;
    buf_reserve(&b, 1);
    CHECK(b.cap > big && b.cap <= big + big / 4);
    buf_release(&b);
}

static void arenas_align_and_reset(void)
{
    struct arena a = {0};
    for (int round = 0; round < 3; round++) {
        for (size_t n = 0; n < 3000; n += 7) {
            char *p = arena_alloc(&a, n);
            CHECK_EQ((uintptr_t)p % 16, 0);
            memset(p, 1, n);
        }
        char *large = arena_alloc(&a, 1000000);
        memset(large, 2, 1000000);
        struct slice s = arena_copy(&a, SLICE("hello"));
        CHECK_SLICE(s, SLICE("hello"));
        CHECK_EQ(arena_copy(&a, slice_of(NULL, 0)).n, 0);
        arena_reset(&a);
    }
    arena_release(&a);
    CHECK(a.blocks == NULL);
    arena_reset(&a);
    arena_release(&a);
}

static void vectors_grow(void)
{
    int *items = NULL;
    size_t len = 0, cap = 0;
    for (int i = 0; i < 100; i++)
        VEC_PUSH(items, len, cap) = i;
    CHECK_EQ(len, 100);
    CHECK_EQ(items[99], 99);
    mem_free(items);
}

static void hashes_differ(void)
{
    CHECK(hash_bytes(SLICE("a"), 0) == hash_bytes(SLICE("a"), 0));
    CHECK(hash_bytes(SLICE("a"), 0) != hash_bytes(SLICE("b"), 0));
    CHECK(hash_bytes(SLICE("a"), 0) != hash_bytes(SLICE("a"), 1));
    CHECK(hash_bytes(slice_of(NULL, 0), 3) == hash_bytes(SLICE(""), 3));
    int buckets[16] = {0};
    for (int i = 0; i < 16000; i++) {
        char key[32];
        int n = snprintf(key, sizeof key, "key:%d", i);
        buckets[hash_bytes(slice_of(key, (size_t)n), 7) & 15]++;
    }
    for (int i = 0; i < 16; i++)
        CHECK(buckets[i] > 800 && buckets[i] < 1200);
}

static void random_numbers(void)
{
    struct rand a, b;
    rand_seed(&a, 1);
    rand_seed(&b, 1);
    CHECK(rand_u64(&a) == rand_u64(&b));
    int seen[10] = {0};
    for (int i = 0; i < 10000; i++)
        seen[rand_below(&a, 10)]++;
    for (int i = 0; i < 10; i++)
        CHECK(seen[i] > 800 && seen[i] < 1200);
    CHECK_EQ(rand_below(&a, 1), 0);
    rand_init(&a);
    rand_init(&b);
    CHECK(rand_u64(&a) != rand_u64(&b));
    unsigned char bytes[64] = {0}, zero[64] = {0};
    rand_secure(bytes, sizeof bytes);
    CHECK(memcmp(bytes, zero, sizeof bytes) != 0);
}

static void clocks(void)
{
    int64_t mono = clock_mono_us();
    CHECK(clock_mono_us() >= mono);
    clock_fake_us(123);
    CHECK_EQ(clock_wall_us(), 123);
    clock_fake_us(0);
    CHECK(clock_wall_us() > INT64_C(1600000000000000));
}

static void errors_have_text(void)
{
    struct error err;
    CHECK_EQ(error_set(&err, ST_FULL, "disk %s", "full"), ST_FULL);
    CHECK_EQ(err.code, ST_FULL);
    CHECK_STR(err.text, "disk full");
    CHECK_EQ(error_set(NULL, ST_IO, "x"), ST_IO);
    CHECK_STR(status_name(ST_OK), "ok");
    CHECK_STR(status_name(ST_INTERNAL), "internal");
    CHECK_STR(status_name((enum status)999), "?");
}

/* The words of a line, each in <>; "!" when it does not parse. */
static void check_words(const char *line, const char *want)
{
    struct arena a = {0};
    struct buf out = {0};
    struct slice *words;
    int n = 0;
    if (!words_split(slice_str(line), &a, &words, &n))
        buf_addf(&out, "!");
    for (int i = 0; i < n; i++) {
        buf_addf(&out, "<");
        buf_add_slice(&out, words[i]);
        buf_addf(&out, ">");
    }
    CHECK_SLICE(buf_slice(&out), slice_str(want));
    buf_release(&out);
    arena_release(&a);
}

static void lines_split_into_words(void)
{
    check_words("", "");
    check_words("  \t ", "");
    check_words("a  b\tc\r", "<a><b><c>");
    check_words("\"\" ''", "<><>");
    check_words("\"a b\" 'c d'", "<a b><c d>");
    check_words("\"\\x41\\n\\q\\\"\"", "<A\nq\">");
    check_words("\"\\x4\\xzz\"", "<x4xzz>");
    check_words("'it\\'s \\n'", "<it's \\n>");
    check_words("a\"b c\"", "<ab c>");
    check_words("\"a\"b", "!");
    check_words("\"a", "!");
    check_words("'a", "!");
    check_words("\"a\\", "!");
    check_words("a\\ b", "<a\\><b>");
}

static void quoted_words_come_back(void)
{
    struct arena a = {0};
    struct buf quoted = {0};
    char all[256];
    for (int i = 0; i < 256; i++)
        all[i] = (char)i;
    words_quote(&quoted, slice_of(all, sizeof all));
    struct slice *words;
    int n = 0;
    CHECK(words_split(buf_slice(&quoted), &a, &words, &n));
    CHECK_EQ(n, 1);
    if (n == 1)
        CHECK_SLICE(words[0], slice_of(all, sizeof all));
    buf_release(&quoted);
    words_quote(&quoted, SLICE("a\"\\\n\x01"));
    CHECK_SLICE(buf_slice(&quoted), SLICE("\"a\\\"\\\\\\n\\x01\""));
    buf_release(&quoted);
    arena_release(&a);
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    RUN(slices_compare);
    RUN(memory_is_counted);
    RUN(buffers_grow);
    RUN(large_buffers_do_not_double);
    RUN(arenas_align_and_reset);
    RUN(vectors_grow);
    RUN(hashes_differ);
    RUN(random_numbers);
    RUN(clocks);
    RUN(errors_have_text);
    RUN(lines_split_into_words);
    RUN(quoted_words_come_back);
    return check_done();
}
