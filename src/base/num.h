/* Numbers as Redis reads and prints them. */
#ifndef LARDER_BASE_NUM_H
#define LARDER_BASE_NUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

#define NUM_I64_CHARS    21
#define NUM_DOUBLE_CHARS 5120 /* 17 significant digits in fixed notation, any exponent */

/* The whole slice is a decimal number without spaces, plus sign or leading zeros ("-0" is none either). */
bool num_parse_i64(struct slice s, int64_t *ret);
bool num_parse_u64(struct slice s, uint64_t *ret);

/* What strtold takes to the last byte, without leading space, not NaN; "inf", "-inf", "+inf" included. */
bool num_parse_double(struct slice s, double *ret);
bool num_parse_long_double(struct slice s, long double *ret);

/* Writes without NUL, returns the length. */
size_t num_format_i64(char out[NUM_I64_CHARS], int64_t v);
size_t num_format_u64(char out[NUM_I64_CHARS], uint64_t v);

/* As Redis 7.0 prints scores and RESP3 doubles: %.17g, "inf", "-inf", "nan". */
size_t num_format_double(char out[128], double v);

/* As INCRBYFLOAT prints: up to 17 digits after the point, trailing zeros removed, never an exponent. */
size_t num_format_long_double(char out[NUM_DOUBLE_CHARS], long double v);

/* "64mb", "1gb", "100k", "100kb", "512" (bytes; k = 1000, kb = 1024 as in redis.conf). */
bool num_parse_size(struct slice s, uint64_t *ret);

/* "250ms", "5s", "2m", "1h", "1d" into milliseconds; a bare number counts in `unit_ms`. */
bool num_parse_duration(struct slice s, uint64_t unit_ms, uint64_t *ret_ms);

#endif
