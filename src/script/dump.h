/* FUNCTION DUMP's payload, byte for byte as Redis 7.0 writes it: for each library a type byte (245) and its
   code as a string, whole or packed by LZF; then the format's version in two bytes and a CRC-64 of all that
   in eight, the lowest byte first. The form that Redis had before 7.0 was released is read, too. What is read
   may come from anywhere: nothing in it is believed, and no more memory is taken than so many bytes can stand
   for. */
#ifndef LARDER_SCRIPT_DUMP_H
#define LARDER_SCRIPT_DUMP_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/slice.h"

void dump_add(struct buf *to, struct slice code);
void dump_end(struct buf *to); /* behind the last one, even if there is none */

struct dump_reader {
    const unsigned char *at;
    size_t left;
};

/* False: it has no version that is known, or its checksum is another. */
bool dump_open(struct dump_reader *r, struct slice payload);

/* The next library's code, borrowed from the payload or in arena. False: that was the last one, or *ret_err
   says, in Redis' words, why it cannot be read. */
bool dump_next(struct dump_reader *r, struct arena *arena, struct slice *ret_code, const char **ret_err);

#endif
