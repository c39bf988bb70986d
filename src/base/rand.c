/* xoshiro256** by Blackman and Vigna, its state filled by splitmix64 as they recommend. */
#include "base/rand.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static uint64_t rotl(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

static uint64_t splitmix(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

void rand_secure(void *out, size_t n)
{
    char *p = out;
    while (n) {
        ssize_t got = getrandom(p, n, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            fprintf(stderr, "larder: the system gives no random bytes: %s\n", strerror(errno));
            abort();
        }
        p += got;
        n -= (size_t)got;
    }
}

void rand_seed(struct rand *r, uint64_t seed)
{
    for (int i = 0; i < 4; i++)
        r->s[i] = splitmix(&seed);
}

void rand_init(struct rand *r)
{
    uint64_t seed;
    rand_secure(&seed, sizeof seed);
    rand_seed(r, seed);
}

uint64_t rand_u64(struct rand *r)
{
    uint64_t result = rotl(r->s[1] * 5, 7) * 9;
    uint64_t t = r->s[1] << 17;
    r->s[2] ^= r->s[0];
    r->s[3] ^= r->s[1];
    r->s[1] ^= r->s[2];
    r->s[0] ^= r->s[3];
    r->s[2] ^= t;
    r->s[3] = rotl(r->s[3], 45);
    return result;
}

uint64_t rand_below(struct rand *r, uint64_t n)
{
    assert(n > 0);
    /* What is left over when 2^64 is divided by n would favour small numbers: draw again. */
    uint64_t reject = (0 - n) % n;
    uint64_t x;
    do {
        x = rand_u64(r);
    } while (x < reject);
    return x % n;
}
