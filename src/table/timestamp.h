/* Moments as texts: dates of the Gregorian calendar, which is carried back before it was made. Milliseconds
   since 1970-01-01T00:00:00Z, from year 0000 to 9999; there are no leap seconds. */
#ifndef LARDER_TABLE_TIMESTAMP_H
#define LARDER_TABLE_TIMESTAMP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"

/* 2026-11-16, with T or a space 10:00, 10:00:00 or 10:00:00.123 behind it, and then Z, +01:00, +0100 or +01.
   False: it is none; *ret_why says what is wrong. */
bool timestamp_parse(struct slice text, int64_t *ret_ms, const char **ret_why);

/* 2026-11-16T10:00:00.123Z; a moment out of range as its milliseconds. */
void timestamp_print(struct buf *out, int64_t ms);

#endif
