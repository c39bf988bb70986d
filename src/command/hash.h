/* What the files of hash commands share. */
#ifndef LARDER_COMMAND_HASH_H
#define LARDER_COMMAND_HASH_H

#include <stdbool.h>

#include "engine/coll.h"
#include "exec/command.h"

/* The hash under argv[1], NULL when there is none. *ret_wrong: the key holds another type, and the error has
   been replied. hash_make gives an empty one in the place of none. */
enum status hash_open(struct call *c, struct coll **ret, bool *ret_wrong) MUST_CHECK;
enum status hash_make(struct call *c, struct coll **ret, bool *ret_wrong) MUST_CHECK;

/* Replies a field's value, or null when h is NULL or has no such field. */
enum status hash_reply_value(struct call *c, struct coll *h, struct slice field) MUST_CHECK;

/* ---- fields that expire ---- */

enum time_unit { SECONDS = 1000, MILLISECONDS = 1 }; /* in milliseconds */
enum time_base { FROM_NOW, FROM_EPOCH };

/* argv[i] as a moment, or replies the error and returns false. */
bool hash_read_moment(struct call *c, int i, enum time_base base, enum time_unit unit, int64_t *ret);

/* "FIELDS n field ..." up to the last argument. */
struct hash_fields {
    int first; /* argument */
    int n;
};

/* Reads it from argv[i] on, or replies the error (count_error when n is no positive number). */
bool hash_read_fields(struct call *c, int i, const char *count_error, struct hash_fields *ret);

/* Gives a field that h has another expiry. One that has come removes it. */
enum status hash_expire_field(struct call *c, struct coll *h, const struct coll_item *item,
                              int64_t expire_at) MUST_CHECK;

#endif
