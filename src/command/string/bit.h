/* What the bit commands share. */
#ifndef LARDER_COMMAND_STRING_BIT_H
#define LARDER_COMMAND_STRING_BIT_H

#include <stdbool.h>
#include <stdint.h>

#include "exec/command.h"

/* argv[i] as the number of a bit that a string may have (proto-max-bulk-len), or the error has been replied.
   With `field` above 0, "#3" means the third field of so many bits. */
bool arg_bit(struct call *c, int i, unsigned field, uint64_t *ret);

#endif
