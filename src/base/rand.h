/* Random numbers: fast, seeded from the system, or from a test. One state per thread. */
#ifndef LARDER_BASE_RAND_H
#define LARDER_BASE_RAND_H

#include <stddef.h>
#include <stdint.h>

struct rand {
    uint64_t s[4];
};

void rand_init(struct rand *r);                /* from the system */
void rand_seed(struct rand *r, uint64_t seed); /* repeatable */
uint64_t rand_u64(struct rand *r);
uint64_t rand_below(struct rand *r, uint64_t n); /* uniform in [0, n), n > 0 */

/* Unpredictable bytes for ids and secrets. */
void rand_secure(void *out, size_t n);

#endif
