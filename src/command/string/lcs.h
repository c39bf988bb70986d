/* The longest common subsequence of two strings. */
#ifndef LARDER_COMMAND_STRING_LCS_H
#define LARDER_COMMAND_STRING_LCS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

/* Can strings of these lengths be compared in reasonable time and memory? */
bool lcs_affordable(size_t a, size_t b);

/* The length of the longest common subsequence. */
size_t lcs_length(struct slice a, struct slice b);

/* Calls fn for each run of one longest common subsequence, from the last to the first: n bytes, at `at_a` in
   a and at `at_b` in b. A run ends where one of the strings goes on with another byte. Returns the length of
   all. */
typedef void lcs_run_fn(void *arg, size_t at_a, size_t at_b, size_t n);
size_t lcs_each_run(struct slice a, struct slice b, lcs_run_fn *fn, void *arg);

#endif
