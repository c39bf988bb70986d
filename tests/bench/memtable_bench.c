/* What pending rows take and how fast they are:

     cmake --build --preset release --target memtable_bench && build/release/tests/memtable_bench [ROWS]

   Strings (keys of 16 bytes, values of 64, random order), fields of hashes (10 a hash), and one string that
   is set again and again. bytes/row is what memtable_stats says, over rows; get is of rows that are there.
   Rates are by the processor's time, so that a busy machine matters less. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "memtable/memtable.h"

#define STEP     16384 /* rows sorted, or handed out, at a time */
#define VERSION0 1790000000000000
#define BATCH    100 /* changes that are settled together */

static char value[64];

static const char *name_of(uint64_t i, char *room)
{
    uint64_t x = i * 0x9e3779b97f4a7c15;
    x = (x ^ x >> 31) * 0xbf58476d1ce4e5b9;
    snprintf(room, 32, "key:%012llu", (unsigned long long)((x ^ x >> 29) % 1000000000000));
    return room;
}

static int64_t now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void say(const char *what, size_t rows, int64_t start_us)
{
    int64_t us = now_us() - start_us;
    printf("%s %.2fM/s  ", what, (double)rows / (double)(us ? us : 1));
}

static void settle(struct memtable *m, size_t i)
{
    if (i % BATCH == BATCH - 1)
        memtable_settle(m, memtable_mark(m));
}

static void put_string(struct memtable *m, size_t i, const char *name)
{
    struct key_row k = {.seq = STORE_PROVISIONAL + (int64_t)i,
                        .key = slice_str(name),
                        .type = ROW_STRING,
                        .value = slice_of(value, sizeof value),
                        .version = VERSION0 + (int64_t)i * 5};
    memtable_put_key(m, &k, true, 1000000 + (int64_t)i / 16);
    settle(m, i);
}

static void put_field(struct memtable *m, size_t i, const char *name)
{
    struct item_row f = {.ref = {.table = ITEM_HASH, .id = 1 + (int64_t)i / 10, .name = slice_str(name)},
                         .value = slice_of(value, sizeof value),
                         .ord = (int64_t)i % 10};
    memtable_put_item(m, &f, true, 1000000 + (int64_t)i / 16);
    settle(m, i);
}

static void hand_out(const struct memtable *m)
{
    int64_t start = now_us();
    struct mem_apply *a = mem_apply_new(m);
    size_t rows = mem_apply_left(a), seen = 0;
    while (mem_apply_sort(a, STEP))
        ;
    say("sort", rows, start);
    struct changes c;
    int64_t next_id;
    start = now_us();
    while (mem_apply_next(a, STEP, &c, &next_id))
        seen += c.nkeys + c.nitems;
    say("hand out", seen, start);
    mem_apply_free(a);
}

static void many(const char *what, size_t rows, bool strings)
{
    struct memtable *m = memtable_new(rows);
    char name[32];
    int64_t start = now_us();
    for (size_t i = 0; i < rows; i++)
        (strings ? put_string : put_field)(m, i, name_of(i, name));
    struct memtable_stats st = memtable_stats(m);
    printf("%s: %zu rows  %.1f bytes/row  ", what, st.rows, (double)st.bytes / (double)st.rows);
    say("put", rows, start);
    start = now_us();
    size_t found = 0;
    for (size_t i = 0; i < rows; i++) {
        struct item_ref ref = {.table = ITEM_HASH, .id = 1 + (int64_t)i / 10};
        struct mem_key k;
        struct mem_item f;
        ref.name = slice_str(name_of(i, name));
        found += strings ? memtable_key(m, 0, ref.name, &k) : memtable_item(m, &ref, &f);
    }
    say("get", found, start);
    hand_out(m);
    printf("\n");
    memtable_free(m);
}

static void again(size_t rows)
{
    struct memtable *m = memtable_new(0);
    int64_t start = now_us();
    for (size_t i = 0; i < rows; i++)
        put_string(m, i, "hot");
    printf("one string, set %zu times: %.2f bytes each  ", rows,
           (double)memtable_stats(m).bytes / (double)rows);
    say("put", rows, start);
    printf("\n");
    memtable_free(m);
}

int main(int argc, char **argv)
{
    size_t rows = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000000;
    memset(value, 'x', sizeof value);
    many("strings", rows, true);
    many("fields", rows, false);
    again(rows);
    return 0;
}
