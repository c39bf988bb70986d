/* The first line of a script: "#!lua flags=no-writes,rollback". */
#ifndef LARDER_SCRIPT_SHEBANG_H
#define LARDER_SCRIPT_SHEBANG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"

/* ret_text: what is Lua of the body, from the end of that line on, so that lines keep their numbers. Without
   such a line all of it, and SCRIPT_OLD. False: *err has the error reply. */
bool shebang_parse(struct slice body, struct slice *ret_text, uint32_t *ret_flags, struct buf *err);

#endif
