/* What the files of sorted set commands share. */
#ifndef LARDER_COMMAND_ZSET_H
#define LARDER_COMMAND_ZSET_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/coll.h"
#include "exec/command.h"

/* ---- opening and replying ---- */

/* The sorted set under argv[i], NULL when there is none. *ret_wrong: the key holds another type, and the
   error has been replied. */
enum status zset_open(struct call *c, int i, struct coll **ret, bool *ret_wrong) MUST_CHECK;

/* Announces n members: with their scores they are n pairs in RESP3, and one list in RESP2. */
void zset_reply_begin(struct reply *r, size_t n, bool with_scores);
void zset_reply_member(struct reply *r, const struct coll_item *item, bool with_scores);

/* Members on their way into a reply; a coll_fn. */
struct zset_output {
    struct reply *reply;
    bool with_scores;
};
enum status zset_reply_item(void *output, const struct coll_item *item) MUST_CHECK;

/* A set up to this size is a listpack in Redis, unless a member has more bytes than this. */
#define ZSET_LISTPACK_ENTRIES 128
#define ZSET_LISTPACK_VALUE   64

/* Members gathered from a walk; a coll_fn. Names live until the commit. */
struct zset_gather {
    struct arena *names;
    struct coll_item *items;
    size_t n, cap;
};
enum status zset_gather_item(void *gather, const struct coll_item *item) MUST_CHECK;
void zset_gather_release(struct zset_gather *g);

/* Puts members, none twice, in the place of whatever is under key; none at all deletes it. */
enum status zset_store(struct call *c, struct slice key, const struct coll_item *items, size_t n) MUST_CHECK;

/* ---- ranges ---- */

struct score_range {
    double min, max;
    bool min_exclusive, max_exclusive;
};

/* One end of a range of names. */
struct lex_end {
    int infinite; /* -1: before every name, 1: behind every name */
    struct slice name;
    bool exclusive;
};

struct lex_range {
    struct lex_end min, max;
};

/* Read argv[min] and argv[max], or reply the error and return false. */
bool score_range_read(struct call *c, int min, int max, struct score_range *ret);
bool lex_range_read(struct call *c, int min, int max, struct lex_range *ret);

/* The ranks of the members in a range: [*ret_from, *ret_to], nothing when from > to. When no more than `most`
   of them are needed, from the first or (reverse) from the last on, fewer may be told than there are; below
   0: all are needed. */
enum status score_range_ranks(struct coll *z, const struct score_range *r, bool reverse, int64_t most,
                              int64_t *ret_from, int64_t *ret_to) MUST_CHECK;
/* *offset members are left out at the start, as LIMIT says: what is still to be left out is told. */
enum status lex_range_ranks(struct coll *z, const struct lex_range *r, bool reverse, int64_t *offset,
                            int64_t *ret_from, int64_t *ret_to) MUST_CHECK;

#endif
