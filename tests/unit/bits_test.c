/* Bits: the fast ways against the slow ones, and the borders of BITFIELD's integers. */
#include "command/string/bits.h"

#include "base/rand.h"
#include "check.h"

static bool bit_at(struct slice s, size_t i)
{
    return (unsigned char)s.p[i / 8] >> (7 - i % 8) & 1;
}

static struct slice random_bytes(struct rand *r, char *p, size_t cap)
{
    size_t n = (size_t)rand_below(r, cap + 1);
    uint64_t kind = rand_below(r, 4);
    for (size_t i = 0; i < n; i++)
        p[i] = (char)(kind == 0 ? 0 : kind == 1 ? 0xff : rand_u64(r) & 0xff);
    if (n && kind < 2 && rand_below(r, 2))
        p[rand_below(r, n)] = (char)rand_u64(r);
    return slice_of(p, n);
}

static void counts_and_finds(void)
{
    struct rand r;
    char p[700];
    rand_seed(&r, 1);
    for (int round = 0; round < 20000; round++) {
        struct slice s = random_bytes(&r, p, round % 2 ? sizeof p : 20);
        size_t head = (size_t)rand_below(&r, 8), tail = (size_t)rand_below(&r, 8);
        unsigned char first = (unsigned char)(0xff >> head), last = (unsigned char)(0xff << tail);
        bool bit = rand_below(&r, 2);
        uint64_t count = 0;
        int64_t found = -1;
        for (size_t i = head; s.n && i + tail < s.n * 8; i++) {
            count += bit_at(s, i);
            if (found < 0 && bit_at(s, i) == bit)
                found = (int64_t)i;
        }
        CHECK_EQ(bits_count(s, first, last), count);
        CHECK_EQ(bits_find(s, bit, first, last), found);
    }
}

static void combines(void)
{
    struct rand r;
    char a[100], b[100], out[100];
    rand_seed(&r, 2);
    for (size_t n = 0; n <= sizeof a; n++) {
        for (size_t i = 0; i < n; i++) {
            a[i] = (char)rand_u64(&r);
            b[i] = (char)rand_u64(&r);
        }
        for (int op = BITS_AND; op <= BITS_COPY; op++) {
            memcpy(out, a, sizeof out);
            bits_combine((enum bits_op)op, out, b, n);
            for (size_t i = 0; i < n; i++) {
                int want = op == BITS_AND   ? a[i] & b[i]
                           : op == BITS_OR  ? a[i] | b[i]
                           : op == BITS_XOR ? a[i] ^ b[i]
                           : op == BITS_NOT ? ~b[i]
                                            : b[i];
                CHECK_EQ((unsigned char)out[i], (unsigned char)want);
            }
        }
    }
}

static void keeps_neighbours(void)
{
    struct rand r;
    char p[32], before[32];
    rand_seed(&r, 3);
    for (int round = 0; round < 20000; round++) {
        unsigned bits = 1 + (unsigned)rand_below(&r, 64);
        uint64_t off = rand_below(&r, sizeof p * 8 - bits + 1);
        uint64_t v = rand_u64(&r) >> (64 - bits);
        for (size_t i = 0; i < sizeof p; i++)
            before[i] = p[i] = (char)rand_u64(&r);
        bits_put(p, off, bits, v);
        CHECK(bits_get(p, off, bits) == v);
        for (uint64_t i = 0; i < sizeof p * 8; i++) {
            if (i < off || i >= off + bits)
                CHECK_EQ(bits_get(p, i, 1), bits_get(before, i, 1));
        }
    }
}

static void reads_signs(void)
{
    const char p[] = "\xff\x80\x00\x00\x00\x00\x00\x00\x00";
    CHECK_EQ(bits_get_typed(p, 0, (struct bits_type){true, 8}), -1);
    CHECK_EQ(bits_get_typed(p, 0, (struct bits_type){false, 8}), 255);
    CHECK_EQ(bits_get_typed(p, 0, (struct bits_type){true, 1}), -1);
    CHECK_EQ(bits_get_typed(p, 8, (struct bits_type){true, 64}), INT64_MIN);
    CHECK_EQ(bits_get_typed(p, 9, (struct bits_type){false, 63}), 0);
}

struct sum {
    struct bits_type t;
    int64_t value, incr;
    bool fits;
    int64_t wrapped, saturated;
};

static void overflows(void)
{
    static const struct sum sums[] = {
        {{true, 8}, 127, 1, false, -128, 127},
        {{true, 8}, -128, -1, false, 127, -128},
        {{true, 8}, 100, 27, true, 127, 127},
        {{true, 8}, -1, INT64_MIN, false, -1, -128},
        {{true, 8}, 0, INT64_MAX, false, -1, 127},
        {{true, 8}, 300, 0, false, 44, 127},
        {{true, 8}, -129, 0, false, 127, -128},
        {{true, 8}, INT64_MIN, 0, false, 0, 127},
        {{true, 1}, 0, 1, false, -1, 0},
        {{true, 1}, 0, -1, true, -1, -1},
        {{true, 64}, INT64_MAX, 1, false, INT64_MIN, INT64_MAX},
        {{true, 64}, INT64_MIN, -1, false, INT64_MAX, INT64_MIN},
        {{true, 64}, INT64_MIN, INT64_MAX, true, -1, -1},
        {{true, 63}, INT64_MAX / 2, 1, false, INT64_MIN / 2, INT64_MAX / 2},
        {{false, 8}, 255, 1, false, 0, 255},
        {{false, 8}, 0, -1, false, 255, 0},
        {{false, 8}, 10, -10, true, 0, 0},
        {{false, 8}, -1, 0, false, 255, 255},
        {{false, 1}, 1, 1, false, 0, 1},
        {{false, 63}, INT64_MAX, 1, false, 0, INT64_MAX},
        {{false, 63}, 5, INT64_MIN, false, 5, 0},
        {{false, 63}, 5, INT64_MAX, false, 4, INT64_MAX},
    };
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
        const struct sum *s = &sums[i];
        int64_t v;
        CHECK_EQ(bits_add(s->t, BITS_WRAP, s->value, s->incr, &v), s->fits);
        CHECK_EQ(v, s->wrapped);
        CHECK_EQ(bits_add(s->t, BITS_SAT, s->value, s->incr, &v), s->fits);
        CHECK_EQ(v, s->saturated);
        CHECK_EQ(bits_add(s->t, BITS_FAIL, s->value, s->incr, &v), s->fits);
    }
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    RUN(counts_and_finds);
    RUN(combines);
    RUN(keeps_neighbours);
    RUN(reads_signs);
    RUN(overflows);
    return check_done();
}
