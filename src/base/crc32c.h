/* CRC-32C (Castagnoli): a checksum that stays the same from one program and one day to the next. */
#ifndef LARDER_BASE_CRC32C_H
#define LARDER_BASE_CRC32C_H

#include <stdint.h>

#include "base/slice.h"

uint32_t crc32c(struct slice s);

#endif
