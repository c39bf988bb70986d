/* Bits of byte strings, numbered as Redis does: bit 0 is the highest bit of the first byte. */
#ifndef LARDER_COMMAND_STRING_BITS_H
#define LARDER_COMMAND_STRING_BITS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

/* How many bits of s are set, when in its first and last byte only those of the masks count. */
uint64_t bits_count(struct slice s, unsigned char first_mask, unsigned char last_mask);

/* The first bit of s that equals `bit`, with the same masks; -1 when there is none. */
int64_t bits_find(struct slice s, bool bit, unsigned char first_mask, unsigned char last_mask);

enum bits_op { BITS_AND, BITS_OR, BITS_XOR, BITS_NOT, BITS_COPY };

/* Combines dst and src, of n bytes each, into dst. NOT and COPY ignore what dst held. */
void bits_combine(enum bits_op op, char *dst, const char *src, size_t n);

/* An integer of 1 to 64 bits at bit `off`, big-endian as bits are numbered. */
uint64_t bits_get(const char *p, uint64_t off, unsigned bits);
void bits_put(char *p, uint64_t off, unsigned bits, uint64_t v);

/* An integer as its type says: i1 .. i64, u1 .. u63. */
struct bits_type {
    bool is_signed;
    unsigned bits;
};

enum bits_overflow { BITS_WRAP, BITS_SAT, BITS_FAIL };

int64_t bits_get_typed(const char *p, uint64_t off, struct bits_type t);

/* value + incr as an integer of type t. Returns false when it does not fit; *ret is then what the overflow
   mode makes of it (for BITS_FAIL, nothing that should be used). For an unsigned type, value is the bits of a
   uint64_t. */
bool bits_add(struct bits_type t, enum bits_overflow mode, int64_t value, int64_t incr, int64_t *ret);

#endif
