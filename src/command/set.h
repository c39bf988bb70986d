/* What the files of set commands share. */
#ifndef LARDER_COMMAND_SET_H
#define LARDER_COMMAND_SET_H

#include <stdbool.h>

#include "engine/coll.h"
#include "exec/command.h"

/* The set under argv[i], NULL when there is none. *ret_wrong: the key holds another type, and the error has
   been replied. */
enum status set_open(struct call *c, int i, struct coll **ret, bool *ret_wrong) MUST_CHECK;

#endif
