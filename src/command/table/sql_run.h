/* A text of SQL as a part of a call: what SQL and POST /sql have in common. */
#ifndef LARDER_COMMAND_TABLE_SQL_RUN_H
#define LARDER_COMMAND_TABLE_SQL_RUN_H

#include "exec/command.h"
#include "query/move.h"
#include "query/query.h"

/* Fills in where q reads (its text, arguments and sink are the caller's) and runs it on the loop. What a text
   has done before a fault is taken back. Not ST_OK: the call has to fail. */
enum status sql_run(struct call *c, struct query *q, struct query_result *ret) MUST_CHECK;

/* After QUERY_MOVE: it goes on on a thread, and this call says nothing. False: the call cannot wait, and this
   is what is wrong. */
bool sql_move(struct call *c, const struct query *q, query_answer_fn *fn, struct fault *fault);

#endif
