/* XXH3 over a secret that this process draws at its start. A whole random secret rather than a seed: a seed
   only shifts the well-known secret, which leaves collisions that hold for every seed. */
#include "base/hash.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/rand.h"

static unsigned char secret[192];

__attribute__((constructor)) static void draw_secret(void)
{
    rand_secure(secret, sizeof secret);
}

static uint64_t mix(uint64_t h, uint64_t salt)
{
    h ^= salt * 0x9E3779B97F4A7C15u;
    h ^= h >> 32;
    h *= 0xD6E8FEB86659FD93u;
    return h ^ (h >> 32);
}

uint64_t hash_bytes(struct slice s, uint64_t salt)
{
    return mix(XXH3_64bits_withSecret(s.n ? s.p : "", s.n, secret, sizeof secret), salt);
}

uint32_t hash_place(int64_t place, uint64_t salt)
{
    uint64_t seed;
    memcpy(&seed, secret, sizeof seed);
    return (uint32_t)mix(seed, salt) + (uint32_t)place;
}
