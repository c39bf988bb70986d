/* CRC-32C (Castagnoli): a checksum that stays the same from one program and one day to the next. */
#ifndef LARDER_BASE_CRC32C_H
#define LARDER_BASE_CRC32C_H

#include <stdint.h>

#include "base/slice.h"

uint32_t crc32c(struct slice s);

/* Of bytes whose first part has the checksum crc, and which end with s; 0 is that of no bytes. */
uint32_t crc32c_more(uint32_t crc, struct slice s);

/* The same, as a processor without an instruction for it does it. */
uint32_t crc32c_portable(uint32_t crc, struct slice s);

#endif
