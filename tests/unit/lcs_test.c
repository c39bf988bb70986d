/* The bit-parallel LCS against the textbook's table: not only the same length but the same path, because
   which of several longest subsequences is returned is visible to clients. */
#include "command/string/lcs.h"

#include <stdint.h>

#include "base/rand.h"
#include "check.h"

#define MAX 400

struct run {
    size_t a, b, n;
};

struct runs {
    struct run run[MAX];
    size_t count;
};

static void add_run(void *arg, size_t a, size_t b, size_t n)
{
    struct runs *runs = arg;
    runs->run[runs->count++] = (struct run){a, b, n};
}

static uint32_t table[MAX + 1][MAX + 1];

static size_t fill_table(struct slice a, struct slice b)
{
    for (size_t i = 0; i <= a.n; i++) {
        for (size_t j = 0; j <= b.n; j++) {
            if (!i || !j)
                table[i][j] = 0;
            else if (a.p[i - 1] == b.p[j - 1])
                table[i][j] = table[i - 1][j - 1] + 1;
            else
                table[i][j] = table[i - 1][j] > table[i][j - 1] ? table[i - 1][j] : table[i][j - 1];
        }
    }
    return table[a.n][b.n];
}

static void walk_table(struct slice a, struct slice b, struct runs *ret)
{
    size_t i = a.n, j = b.n;
    ret->count = 0;
    while (i && j) {
        size_t n = 0;
        while (i && j && a.p[i - 1] == b.p[j - 1]) {
            n++;
            i--;
            j--;
        }
        if (n)
            add_run(ret, i, j, n);
        if (!i || !j)
            break;
        if (table[i - 1][j] > table[i][j - 1])
            i--;
        else
            j--;
    }
}

static struct slice random_text(struct rand *r, char *p, size_t cap, uint64_t letters)
{
    size_t n = (size_t)rand_below(r, cap + 1);
    for (size_t i = 0; i < n; i++)
        p[i] = (char)rand_below(r, letters);
    return slice_of(p, n);
}

static void takes_the_same_path(void)
{
    static const uint64_t letters[] = {1, 2, 4, 26, 256};
    struct rand r;
    char a[MAX], b[MAX];
    struct runs got, want;
    rand_seed(&r, 7);
    for (int round = 0; round < 1500; round++) {
        size_t cap = round % 3 ? 40 : MAX;
        struct slice x = random_text(&r, a, cap, letters[round % 5]);
        struct slice y = random_text(&r, b, cap, letters[round % 5]);
        size_t n = fill_table(x, y);
        walk_table(x, y, &want);
        got.count = 0;
        CHECK_EQ(lcs_length(x, y), n);
        CHECK_EQ(lcs_each_run(x, y, add_run, &got), n);
        REQUIRE(got.count == want.count);
        for (size_t i = 0; i < got.count; i++) {
            CHECK_EQ(got.run[i].a, want.run[i].a);
            CHECK_EQ(got.run[i].b, want.run[i].b);
            CHECK_EQ(got.run[i].n, want.run[i].n);
        }
    }
}

static void meets_word_borders(void)
{
    static char a[MAX], b[MAX];
    struct runs runs;
    memset(a, 'x', sizeof a);
    memset(b, 'x', sizeof b);
    for (size_t n = 60; n < 70; n++) {
        for (size_t m = 126; m < 130; m++) {
            runs.count = 0;
            CHECK_EQ(lcs_each_run(slice_of(a, m), slice_of(b, n), add_run, &runs), n);
            REQUIRE(runs.count == 1);
            CHECK_EQ(runs.run[0].a, m - n);
            CHECK_EQ(runs.run[0].b, 0);
        }
    }
}

static void knows_its_limits(void)
{
    CHECK(lcs_affordable(0, 0));
    CHECK(lcs_affordable(0, 512 << 20));
    CHECK(lcs_affordable(65536, 65536));
    CHECK(lcs_affordable(131072, 131072));
    CHECK(!lcs_affordable(131072, 131073));
    CHECK(!lcs_affordable(1 << 20, 1 << 20));
    CHECK(!lcs_affordable(SIZE_MAX, SIZE_MAX));
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    RUN(takes_the_same_path);
    RUN(meets_word_borders);
    RUN(knows_its_limits);
    return check_done();
}
