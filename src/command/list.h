/* What the list commands share. */
#ifndef LARDER_COMMAND_LIST_H
#define LARDER_COMMAND_LIST_H

#include "engine/coll.h"
#include "exec/command.h"

extern const char ERR_POSITIVE[]; /* "ERR value is out of range, must be positive" */

/* The list under argv[i]; *ret_wrong: it has another type, which has been replied. list_make never gives NULL
   otherwise. */
enum status list_open(struct call *c, int i, struct coll **ret, bool *ret_wrong) MUST_CHECK;
enum status list_make(struct call *c, int i, struct coll **ret, bool *ret_wrong) MUST_CHECK;

/* Takes up to n items from one end and replies them as an array. */
enum status list_pop(struct call *c, struct coll *list, bool front, int64_t n) MUST_CHECK;

/* A coll_fn: arg is the reply. */
enum status list_reply_item(void *arg, const struct coll_item *item);

#endif
