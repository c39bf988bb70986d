/* The LZF format, in which Redis compresses strings in its dumps: runs of up to 32 bytes as they are, and
   references of 3 to 264 bytes to what stands up to 8192 bytes before.

   What lzf_pack writes is, byte for byte, what Redis writes for the same input: which of the earlier places
   it refers to follows from a table of one place for each hash of three bytes, and the rules for that are
   part of the interface. A dump of the same library is the same string on both. */
#ifndef LARDER_BASE_LZF_H
#define LARDER_BASE_LZF_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/slice.h"

/* Appends the packed bytes if they are fewer than `limit`, about; else nothing, and returns false. */
bool lzf_pack(struct slice from, size_t limit, struct buf *to);

/* How many bytes n packed ones can become at most. */
size_t lzf_most(size_t n);

/* Unpacks into exactly n bytes. False: from is no such thing. What is in `to` then means nothing. */
bool lzf_unpack(struct slice from, char *to, size_t n);

#endif
