#include "engine/order/blocks.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/vec.h"

int score_compare(double score_a, struct slice name_a, double score_b, struct slice name_b)
{
    if (score_a < score_b || score_a > score_b)
        return score_a < score_b ? -1 : 1;
    return slice_cmp(name_a, name_b);
}

struct blocks *blocks_new(void)
{
    return mem_zalloc(sizeof(struct blocks));
}

void blocks_free(struct blocks *b)
{
    if (!b)
        return;
    for (size_t i = 0; i < b->len; i++)
        mem_free(b->at[i].name);
    mem_free(b->at);
    mem_free(b->tree);
    mem_free(b);
}

size_t blocks_bytes(struct blocks *b)
{
    return sizeof *b + b->cap * sizeof *b->at + b->tree_cap * sizeof *b->tree + b->name_bytes;
}

/* ---- which blocks there are ---- */

struct block *blocks_insert(struct blocks *b, size_t i, double score, struct slice name)
{
    assert(i <= b->len);
    b->at = vec_room(b->at, b->len, &b->cap, sizeof *b->at);
    struct block *block = &b->at[i];
    memmove(block + 1, block, (b->len - i) * sizeof *block);
    b->len++;
    *block = (struct block){.score = score, .nname = name.n};
    if (name.n) {
        block->name = mem_alloc(name.n);
        memcpy(block->name, name.p, name.n);
        b->name_bytes += mem_size(block->name);
    }
    b->tree_valid = false;
    return block;
}

void blocks_erase(struct blocks *b, size_t i, size_t n)
{
    assert(i + n <= b->len);
    for (struct block *block = &b->at[i]; block < &b->at[i + n]; block++) {
        if (block->name)
            b->name_bytes -= mem_size(block->name);
        mem_free(block->name);
    }
    b->len -= n;
    memmove(b->at + i, b->at + i + n, (b->len - i) * sizeof *b->at);
    b->tree_valid = false;
}

static int by_fence(const void *a, const void *b)
{
    const struct block *x = a, *y = b;
    return score_compare(x->score, block_name(x), y->score, block_name(y));
}

bool blocks_sort(struct blocks *b)
{
    if (b->len == 0)
        return false;
    qsort(b->at, b->len, sizeof *b->at, by_fence);
    b->tree_valid = false;
    for (size_t i = 1; i < b->len; i++)
        if (by_fence(&b->at[i - 1], &b->at[i]) == 0)
            return false;
    return isinf(b->at[0].score) && b->at[0].score < 0 && b->at[0].nname == 0;
}

size_t blocks_find(const struct blocks *b, double score, struct slice name)
{
    size_t lo = 0, hi = b->len - 1; /* the last block whose fence is not behind the place */
    while (lo < hi) {
        size_t mid = lo + (hi - lo + 1) / 2;
        if (score_compare(b->at[mid].score, block_name(&b->at[mid]), score, name) <= 0)
            lo = mid;
        else
            hi = mid - 1;
    }
    return lo;
}

struct slice blocks_separator(double score_a, struct slice name_a, double score_b, struct slice name_b)
{
    if (score_a < score_b)
        return (struct slice){"", 0};
    size_t n = 0;
    while (n < name_a.n && n < name_b.n && name_a.p[n] == name_b.p[n])
        n++;
    assert(n < name_b.n);
    return slice_of(name_b.p, n + 1);
}

/* ---- counts ---- */

static void build_tree(struct blocks *b)
{
    if (b->tree_cap < b->len + 1) {
        b->tree_cap = b->cap + 1;
        b->tree = mem_realloc(b->tree, b->tree_cap * sizeof *b->tree);
    }
    for (size_t i = 1; i <= b->len; i++)
        b->tree[i] = b->at[i - 1].count;
    for (size_t i = 1; i <= b->len; i++) {
        size_t parent = i + (i & (~i + 1));
        if (parent <= b->len)
            b->tree[parent] += b->tree[i];
    }
    b->tree_valid = true;
}

void blocks_add(struct blocks *b, size_t i, int64_t delta)
{
    b->at[i].count += delta;
    b->grown |= b->at[i].count > BLOCK_MAX;
    if (!b->tree_valid)
        return;
    for (size_t k = i + 1; k <= b->len; k += k & (~k + 1))
        b->tree[k] += delta;
}

int64_t blocks_before(struct blocks *b, size_t i)
{
    if (!b->tree_valid)
        build_tree(b);
    int64_t sum = 0;
    for (; i > 0; i &= i - 1)
        sum += b->tree[i];
    return sum;
}

size_t blocks_at_rank(struct blocks *b, int64_t rank, int64_t *ret_before)
{
    if (!b->tree_valid)
        build_tree(b);
    size_t step = 1, i = 0;
    int64_t before = 0;
    while (step * 2 <= b->len)
        step *= 2;
    for (; step; step /= 2) {
        if (i + step <= b->len && before + b->tree[i + step] <= rank) {
            i += step;
            before += b->tree[i];
        }
    }
    assert(i < b->len);
    *ret_before = before;
    return i;
}
