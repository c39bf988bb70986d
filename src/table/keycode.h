/* The encoding of key columns: bytes whose order is the order of the values. One code for each column:

     NULL            05
     BLOB / TEXT     12 / 14, the bytes with 00 as 00 ff, end 00 01
     INT             28 + n (negative: 28 - n), then n big-endian bytes of it, as few as hold it (negative: of
                     it + 256^n - 1): 0 is 28, 256 is 2a 0100, -1 is 27 fe
     REAL            34, 8 bytes: sign set: all bits flipped; else the sign bit set. -0.0 is keyed as 0.0
     BOOL            38 false, 39 true
     DESC            the same with every byte complemented

   Each code ends by itself and none is the beginning of another, so codes one behind the other order tuples,
   and complementing reverses (proof: two different codes of one direction differ at some byte before either
   ends; what is behind it does not matter). No code begins with 00 or ff: what begins with a prefix lies from
   the prefix to before prefix ‖ ff. */
#ifndef LARDER_TABLE_KEYCODE_H
#define LARDER_TABLE_KEYCODE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/slice.h"
#include "table/value.h"

/* What the name of a row or an entry may have: longer names are not kept whole in the indexes of database
   servers. */
#define KEYCODE_MAX 1000

void keycode_add(struct buf *out, const struct value *v, bool desc);

/* Takes one code off the front. False: there is none (nor one that keycode_add would not write), and in is as
   it was. The value borrows in where it can, else arena. */
bool keycode_take(struct slice *in, bool desc, struct arena *arena, struct value *ret);

/* The same without reading it: the bytes of the code. */
bool keycode_skip(struct slice *in, bool desc, struct slice *ret);

/* What the codes of all texts (blobs) begin with that begin with this one. */
void keycode_add_prefix(struct buf *out, const struct value *v, bool desc);

/* Makes of a prefix (from byte `from` on) the least bytes that lie behind everything that begins with it.
   False: there are none, it is all ff. */
bool keycode_behind(struct buf *prefix, size_t from);

#endif
