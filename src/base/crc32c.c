#include "base/crc32c.h"

static uint32_t by_table(uint32_t crc, const unsigned char *p, size_t n)
{
    /* What four bits make of the checksum, for the reflected polynomial 0x82f63b78. */
    static const uint32_t table[16] = {
        0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
        0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
    };
    while (n--) {
        crc ^= *p++;
        crc = table[crc & 15] ^ (crc >> 4);
        crc = table[crc & 15] ^ (crc >> 4);
    }
    return crc;
}

uint32_t crc32c_portable(uint32_t crc, struct slice s)
{
    return ~by_table(~crc, (const unsigned char *)s.p, s.n);
}

#if defined(__x86_64__)

__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t crc, const unsigned char *p,
                                                                 size_t n)
{
    uint64_t c = crc;
    for (; n >= 8; n -= 8, p += 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        c = __builtin_ia32_crc32di(c, word);
    }
    crc = (uint32_t)c;
    while (n--)
        crc = __builtin_ia32_crc32qi(crc, *p++);
    return crc;
}

uint32_t crc32c_more(uint32_t crc, struct slice s)
{
    if (!__builtin_cpu_supports("sse4.2"))
        return crc32c_portable(crc, s);
    return ~by_instruction(~crc, (const unsigned char *)s.p, s.n);
}

#else

uint32_t crc32c_more(uint32_t crc, struct slice s)
{
    return crc32c_portable(crc, s);
}

#endif

uint32_t crc32c(struct slice s)
{
    return crc32c_more(0, s);
}
