/* Redis' glob patterns: * ? [a-z] [^a] \x. */
#ifndef LARDER_BASE_GLOB_H
#define LARDER_BASE_GLOB_H

#include <stdbool.h>

#include "base/slice.h"

bool glob_match(struct slice pattern, struct slice text, bool ignore_case);

/* The literal bytes that every match starts with (borrowed from pattern; stops at the first special byte). */
struct slice glob_prefix(struct slice pattern);

#endif
