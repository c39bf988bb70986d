/* The hash map: whatever is added and taken out, it has what a plain array says, however large it is. */
#include "base/map.h"

#include "base/hash.h"
#include "base/mem.h"
#include "base/rand.h"
#include "check.h"

#define ENTRIES 20000

struct entry {
    struct map_link link;
    uint32_t key;
    bool in;
};

static uint32_t hash_of(uint32_t key)
{
    return (uint32_t)hash_bytes(slice_of(&key, sizeof key), 0);
}

static struct entry *find(const struct map *m, uint32_t key, uint32_t tag)
{
    uint32_t hash = hash_of(key);
    for (struct map_link *l = map_first(m, hash); l; l = l->next) {
        struct entry *e = (struct entry *)l;
        if (l->hash == hash && l->tag == tag && e->key == key)
            return e;
    }
    return NULL;
}

static struct entry *new_entries(size_t n)
{
    struct entry *all = mem_zalloc(n * sizeof *all);
    for (uint32_t i = 0; i < n; i++)
        all[i] = (struct entry){.link.hash = hash_of(i), .link.tag = 7, .key = i};
    return all;
}

static void add(struct map *m, struct entry *e)
{
    map_add(m, &e->link);
    e->in = true;
}

static void take_out(struct map *m, struct entry *e)
{
    map_remove(m, &e->link);
    e->in = false;
}

static bool all_found(const struct map *m, struct entry *all, size_t n)
{
    bool ok = true;
    size_t in = 0;
    for (uint32_t i = 0; i < n; i++) {
        ok &= find(m, i, 7) == (all[i].in ? &all[i] : NULL);
        in += all[i].in;
    }
    return ok && m->count == in;
}

static void an_empty_map_has_nothing(void)
{
    struct map m = {0};
    CHECK(!map_first(&m, 0));
    CHECK(map_buckets(&m) == 0);
    map_clear(&m);
    map_release(&m);
    CHECK(m.bytes == 0);
}

static void what_was_added_is_found(void)
{
    struct map m = {0};
    struct entry *all = new_entries(ENTRIES);
    for (size_t i = 0; i < ENTRIES; i++) {
        add(&m, &all[i]);
        if ((i & (i + 1)) == 0 || i == 1100 || i == 1500)
            CHECK(all_found(&m, all, ENTRIES));
    }
    CHECK(all_found(&m, all, ENTRIES));
    CHECK(!find(&m, 5, 8)); /* another tag */
    CHECK(m.count <= map_buckets(&m) && map_buckets(&m) <= m.count + MAP_SEGMENT);
    map_release(&m);
    mem_free(all);
}

static void buckets_can_be_had_beforehand(void)
{
    struct entry *all = new_entries(ENTRIES);
    for (size_t n = 1; n <= ENTRIES; n = n * 3 + 1) {
        struct map m = {0};
        map_reserve(&m, n);
        size_t buckets = map_buckets(&m), bytes = m.bytes;
        CHECK(buckets >= n);
        for (size_t i = 0; i < n; i++)
            add(&m, &all[i]);
        CHECK(all_found(&m, all, ENTRIES));
        CHECK(map_buckets(&m) == buckets && m.bytes == bytes);
        for (size_t i = 0; i < n; i++)
            take_out(&m, &all[i]);
        map_release(&m);
    }
    mem_free(all);
}

static void a_map_that_empties_gives_its_buckets_back(void)
{
    struct map m = {0};
    struct entry *all = new_entries(ENTRIES);
    for (size_t i = 0; i < ENTRIES; i++)
        add(&m, &all[i]);
    size_t bytes = m.bytes;
    for (size_t i = 0; i < ENTRIES; i++) {
        take_out(&m, &all[i]);
        if (i % 4999 == 0)
            CHECK(all_found(&m, all, ENTRIES));
    }
    CHECK(m.count == 0 && m.bytes < bytes / 4);
    for (size_t i = 0; i < ENTRIES; i++)
        add(&m, &all[i]);
    CHECK(all_found(&m, all, ENTRIES));
    map_release(&m);
    mem_free(all);
}

static void any_order_will_do(void)
{
    struct map m = {0};
    struct entry *all = new_entries(ENTRIES);
    struct rand rnd;
    rand_seed(&rnd, 42);
    for (size_t step = 0; step < 200000; step++) {
        size_t most = (step / 20000) % 2 ? 1500 : ENTRIES; /* large and small in turn */
        struct entry *e = &all[rand_below(&rnd, ENTRIES)];
        if (e->in)
            take_out(&m, e);
        else if (m.count < most)
            add(&m, e);
        if (step % 20000 == 0)
            CHECK(all_found(&m, all, ENTRIES));
    }
    CHECK(all_found(&m, all, ENTRIES));
    map_release(&m);
    mem_free(all);
}

static void count_one(void *arg, struct map_link *l)
{
    ++*(size_t *)arg;
    memset(l, 0xff, sizeof *l);
}

static void entries_are_replaced_cut_out_and_walked_over(void)
{
    struct map m = {0};
    struct entry *all = new_entries(3000);
    struct entry other = {.link.hash = hash_of(77), .link.tag = 7, .key = 77};
    size_t seen = 0;
    for (size_t i = 0; i < 3000; i++)
        add(&m, &all[i]);
    map_replace(&m, &all[77].link, &other.link);
    CHECK(find(&m, 77, 7) == &other && m.count == 3000);
    map_replace(&m, &other.link, &all[77].link);
    CHECK(all_found(&m, all, 3000));
    for (size_t i = 0; i < map_buckets(&m); i++) {
        for (struct map_link **at = map_bucket(&m, i); *at;) {
            struct entry *e = (struct entry *)*at;
            e->in = e->key % 3 == 0;
            if (e->in)
                at = &(*at)->next;
            else
                map_cut(&m, at);
        }
    }
    CHECK(m.count == 1000 && all_found(&m, all, 3000));
    map_each(&m, count_one, &seen); /* an entry may be gone when its turn is over */
    CHECK(seen == 1000);
    map_clear(&m);
    CHECK(m.count == 0 && !map_first(&m, hash_of(3)) && map_buckets(&m) > 1000);
    map_release(&m);
    mem_free(all);
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    RUN(an_empty_map_has_nothing);
    RUN(what_was_added_is_found);
    RUN(buckets_can_be_had_beforehand);
    RUN(a_map_that_empties_gives_its_buckets_back);
    RUN(any_order_will_do);
    RUN(entries_are_replaced_cut_out_and_walked_over);
    return check_done();
}
