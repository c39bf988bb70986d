#include "base/crc64.h"

uint64_t crc64(struct slice s)
{
    /* What four bits make of the checksum, for the reflected polynomial 0x95ac9329ac4bc9b5. */
    static const uint64_t table[16] = {
        0x0000000000000000, 0x7d08ff3b88be6f81, 0xfa11fe77117cdf02, 0x8719014c99c2b083,
        0xdf7adabd7a6e2d6f, 0xa2722586f2d042ee, 0x256b24ca6b12f26d, 0x5863dbf1e3ac9dec,
        0x95ac9329ac4bc9b5, 0xe8a46c1224f5a634, 0x6fbd6d5ebd3716b7, 0x12b5926535897936,
        0x4ad64994d625e4da, 0x37deb6af5e9b8b5b, 0xb0c7b7e3c7593bd8, 0xcdcf48d84fe75459,
    };
    const unsigned char *p = (const unsigned char *)s.p;
    uint64_t crc = 0;
    for (size_t n = s.n; n; n--) {
        crc ^= *p++;
        crc = table[crc & 15] ^ (crc >> 4);
        crc = table[crc & 15] ^ (crc >> 4);
    }
    return crc;
}
