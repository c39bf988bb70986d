/* What handlers share: reading arguments with Redis' error texts, checking types. */
#ifndef LARDER_EXEC_ARGS_H
#define LARDER_EXEC_ARGS_H

#include <stdbool.h>
#include <stdint.h>

#include "exec/command.h"

extern const char ERR_SYNTAX[];    /* "ERR syntax error" */
extern const char ERR_WRONGTYPE[]; /* "WRONGTYPE Operation against a key holding the wrong kind of value" */
extern const char ERR_NOT_INT[];   /* "ERR value is not an integer or out of range" */
extern const char ERR_NOT_FLOAT[]; /* "ERR value is not a valid float" */
extern const char ERR_NO_KEY[];    /* "ERR no such key" */
extern const char ERR_OUT_OF_RANGE[]; /* "ERR index out of range" */

/* Each returns true with the value, or replies the error (err_text NULL: the usual one) and returns false. */
bool arg_i64(struct call *c, int i, int64_t *ret, const char *err_text);
bool arg_range(struct call *c, int i, int64_t min, int64_t max, int64_t *ret, const char *err_text);
bool arg_double(struct call *c, int i, double *ret, const char *err_text);

/* The live row under argv[i] in the session's database. *ret is NULL when absent, or when it has another type
   than `type`: then the WRONGTYPE error has been replied and *ret_wrong is true. */
enum status arg_row(struct call *c, int i, enum row_type type, const struct row **ret,
                    bool *ret_wrong) MUST_CHECK;

/* Any live row under argv[i]. */
enum status arg_any(struct call *c, int i, const struct row **ret) MUST_CHECK;

/* The same, and "no such key" is replied when there is none. */
enum status arg_present(struct call *c, int i, const struct row **ret) MUST_CHECK;

/* "string", "hash", ...: what TYPE answers. */
const char *row_type_name(enum row_type type);

/* The session's database. */
uint32_t call_db(const struct call *c);

/* What Redis would keep the value of a row, the one under argv[i], as (OBJECT ENCODING). */
enum status arg_encoding(struct call *c, int i, const struct row *row, const char **ret) MUST_CHECK;

/* For items drawn again and again, as many as a client says, of which `left` are still to come behind those
   that have been replied since `start`: true when the reply stays within what a server can hold. Else it
   becomes an error. Redis goes on until memory is out. */
bool reply_drawn_fits(struct call *c, size_t start, int64_t left);

/* "ERR wrong number of arguments for 'x' command" */
void reply_wrong_arity(struct call *c);

/* "ERR unknown subcommand or wrong number of arguments for '...'. Try X HELP." as Redis 7.0 words it. */
void reply_unknown_sub(struct call *c);

/* HELP texts: the container's header and footer lines around `lines` (ended by NULL), as Redis prints
   them. */
void reply_help(struct call *c, const char *const *lines);

#endif
