/* CRC-32C (Castagnoli): a checksum that stays the same from one program and one day to the next. */
#ifndef LARDER_BASE_CRC32C_H
#define LARDER_BASE_CRC32C_H

#include <stdint.h>

#include "base/slice.h"

uint32_t crc32c(struct slice s);

/* The same, as a processor without an instruction for it does it. */
uint32_t crc32c_portable(struct slice s);

#endif
