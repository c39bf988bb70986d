/* What became of batches whose clients did not wait: kept for a while, for GET /batch/{id}. A bounded number,
   and a bounded size: the oldest go first. */
#ifndef LARDER_HTTP_BATCH_OUTCOMES_H
#define LARDER_HTTP_BATCH_OUTCOMES_H

#include <stdint.h>

#include "base/status.h"
#include "exec/command.h"

struct http_api;
struct http_call;
struct outcomes;
struct session;

struct outcomes *outcomes_new(void);
void outcomes_free(struct outcomes *o);

/* Runs the call, keeps its answer, and answers 202 with an id. */
struct command_result outcomes_run(struct http_api *api, struct session *s, struct http_call *x,
                                   const struct error *write_err);

#endif
