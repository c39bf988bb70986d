/* What the commands on strings share. */
#ifndef LARDER_COMMAND_STRING_VALUE_H
#define LARDER_COMMAND_STRING_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "exec/command.h"

/* Replies bytes [off, off + len) of a string row as one bulk, piece by piece: it never is in memory twice. */
enum status reply_row_range(struct call *c, const struct row *row, int64_t off, int64_t len) MUST_CHECK;

/* Replies a string row's value, or null for NULL. */
enum status reply_row(struct call *c, const struct row *row) MUST_CHECK;

/* Brings an inclusive range into [0, size), negative positions counting from the end. False: nothing is
   left. */
bool range_within(int64_t *start, int64_t *end, int64_t size);

/* May a string have size + more bytes (proto-max-bulk-len)? If not, the error has been replied. */
bool value_fits(struct call *c, int64_t size, int64_t more);

/* Adds to a floating point number; false: the error has been replied. */
bool add_float(struct call *c, long double *v, long double by);

/* Replaces a key by a short string, which is copied. */
enum status put_short(struct call *c, struct slice key, struct slice value, int64_t expire_at,
                      enum row_form form) MUST_CHECK;

#endif
