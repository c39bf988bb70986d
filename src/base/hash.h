/* Hashing with a seed of this process, so that no client can choose colliding keys. */
#ifndef LARDER_BASE_HASH_H
#define LARDER_BASE_HASH_H

#include <stdint.h>

#include "base/slice.h"

uint64_t hash_bytes(struct slice s, uint64_t salt);

/* Of places that this program gives out, not a client. Places in a row have hashes in a row, so that a map
   has them in buckets that lie together; where they begin depends on the salt. */
uint32_t hash_place(int64_t place, uint64_t salt);

#endif
