/* Names of a collection's items (engine/memo.h): one that was added is always found, others hardly ever. */
#include "engine/memo.h"

#include "base/hash.h"
#include "check.h"

static uint32_t hash_of(uint32_t i)
{
    return (uint32_t)hash_bytes(slice_of(&i, sizeof i), 7);
}

/* Through several layers, and after each one of those that came before. */
static void finds_what_was_added(void)
{
    struct item_names *n = names_new(100);
    for (uint32_t i = 0; i < 200000; i++) {
        names_add(n, hash_of(i));
        if ((i & (i + 1)) == 0)
            for (uint32_t j = 0; j <= i; j++)
                CHECK(names_may_have(n, hash_of(j)));
    }
    CHECK(n->nlayers > 4);
    uint32_t wrong = 0;
    for (uint32_t i = 200000; i < 400000; i++)
        wrong += names_may_have(n, hash_of(i));
    CHECK(wrong < 200000 / 20);
    CHECK(n->bytes < 200000 * 6);
    names_free(n);
}

static void is_empty_at_first(void)
{
    struct item_names *n = names_new(1);
    for (uint32_t i = 0; i < 1000; i++)
        CHECK(!names_may_have(n, hash_of(i)));
    names_free(n);
    names_free(NULL);
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    RUN(finds_what_was_added);
    RUN(is_empty_at_first);
    return check_done();
}
