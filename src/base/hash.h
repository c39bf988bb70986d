/* Hashing with a seed of this process, so that no client can choose colliding keys. */
#ifndef LARDER_BASE_HASH_H
#define LARDER_BASE_HASH_H

#include <stdint.h>

#include "base/slice.h"

uint64_t hash_bytes(struct slice s, uint64_t salt);

#endif
