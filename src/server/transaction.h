/* Runs the calls of a batch in transactions: begin, run, commit; what a failure does; the replies leave when
   the commit is durable. */
#ifndef LARDER_SERVER_TRANSACTION_H
#define LARDER_SERVER_TRANSACTION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "server/held.h"

struct worker;

/* Runs what was gathered, commits, and sends what need not wait. */
void transaction_run_batch(struct worker *w);

/* Begins a transaction. write_err: why it cannot write, which is also counted and logged; ST_OK: it can. */
enum status transaction_begin(struct worker *w, bool write, struct error *write_err,
                              struct error *err) MUST_CHECK;

/* Commits, of this transaction or of earlier ones, have failed: those of the engine whose tickets are `from`
   or later. */
void transactions_failed(struct worker *w, struct held_for from, const struct error *err);

/* Learns which commits have become durable, or have failed, and lets go of the replies that waited. */
void transaction_progress(struct worker *w);

/* Sends what may leave. */
void transaction_flush(struct worker *w);

#endif
