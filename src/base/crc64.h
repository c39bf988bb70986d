/* CRC-64 with the polynomial of Jones, reflected, from 0: the checksum at the end of Redis' dumps. */
#ifndef LARDER_BASE_CRC64_H
#define LARDER_BASE_CRC64_H

#include <stdint.h>

#include "base/slice.h"

uint64_t crc64(struct slice s);

#endif
