#include "store/remote/remote_names.h"

#include <openssl/sha.h>

_Static_assert(NAME_LEFT + SHA256_DIGEST_LENGTH == NAME_INDEXED && NAME_INDEXED > NAME_PLAIN,
               "a long name's entry is longer than any plain name");

struct slice remote_name_index(struct arena *a, struct slice name)
{
    if (name.n <= NAME_PLAIN)
        return name;
    unsigned char *p = arena_alloc(a, NAME_INDEXED);
    memcpy(p, name.p, NAME_LEFT);
    SHA256((const unsigned char *)name.p, name.n, p + NAME_LEFT);
    return slice_of(p, NAME_INDEXED);
}

struct slice remote_name_rest(struct slice name)
{
    if (name.n <= NAME_PLAIN)
        return SLICE("");
    return slice_of(name.p + NAME_LEFT, name.n - NAME_LEFT);
}

struct slice remote_name_low(struct slice name)
{
    return remote_name_is_long(name) ? slice_of(name.p, NAME_LEFT) : name;
}

struct slice remote_name_high(struct arena *a, struct slice name)
{
    if (!remote_name_is_long(name))
        return name;
    char *p = arena_alloc(a, NAME_INDEXED + 1);
    memcpy(p, name.p, NAME_LEFT);
    memset(p + NAME_LEFT, 0xff, NAME_INDEXED + 1 - NAME_LEFT);
    return slice_of(p, NAME_INDEXED + 1);
}

struct slice remote_name_whole(struct arena *a, struct slice index, struct slice rest)
{
    if (rest.n == 0)
        return index;
    char *p = arena_alloc(a, NAME_LEFT + rest.n);
    memcpy(p, index.p, NAME_LEFT);
    memcpy(p + NAME_LEFT, rest.p, rest.n);
    return slice_of(p, NAME_LEFT + rest.n);
}
