/* A library's body: compiled, and run once to register its functions. While it runs, globals are others than
   those that its functions will find: redis.register_function, redis.log and a few constants, and no way to
   the database. Both are seen through the one face of the globals, so that a function which is made now looks
   into the true ones later. */
#ifndef LARDER_SCRIPT_LOAD_H
#define LARDER_SCRIPT_LOAD_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/slice.h"
#include "script/interp.h"

struct library;

#define LIBRARY_BAD_NAME                                                                                     \
    "Library names can only contain letters, numbers, or underscores(_) and must be at least one character " \
    "long"

/* Functions that were registered join lib, also when it fails. again: it has been loaded before, as the rows
   say; it logs nothing this time, and may take longer. False: *err has the error reply. */
bool load_library(struct interp *in, struct library *lib, struct slice code, bool again, struct buf *err);

#endif
