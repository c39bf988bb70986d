/* What the files of hash commands share. */
#ifndef LARDER_COMMAND_HASH_H
#define LARDER_COMMAND_HASH_H

#include <stdbool.h>

#include "command/command.h"
#include "engine/coll.h"

/* The hash under argv[1], NULL when there is none. *ret_wrong: the key holds another type, and the error has
   been replied. hash_make gives an empty one in the place of none. */
enum status hash_open(struct call *c, struct coll **ret, bool *ret_wrong) MUST_CHECK;
enum status hash_make(struct call *c, struct coll **ret, bool *ret_wrong) MUST_CHECK;

/* Replies a field's value, or null when h is NULL or has no such field. */
enum status hash_reply_value(struct call *c, struct coll *h, struct slice field) MUST_CHECK;

#endif
