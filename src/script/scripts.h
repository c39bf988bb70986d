/* What an executor has for scripts: its interpreters, made on first use, and what it has compiled. */
#ifndef LARDER_SCRIPT_SCRIPTS_H
#define LARDER_SCRIPT_SCRIPTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/slice.h"
#include "base/status.h"
#include "engine/view.h"
#include "proto/resp_reply.h"
#include "script/cache.h"
#include "script/interp.h"

struct call;
struct executor;
struct libraries;
struct script_run;

/* A script, compiled in the state of EVAL. */
struct compiled {
    struct map_link by_sha; /* first */
    struct map_link by_body;
    struct compiled *prev, *next; /* most recently used first */
    struct script *script;
    int ref;
};

#define COMPILED_MAX 5000
#define SAID_KEPT    (1u << 20) /* bytes of a buffer that is kept for the next reply */

struct scripts {
    struct executor *executor;
    struct interp *interps[INTERPS];
    struct map by_sha, by_body;
    struct compiled *first, *last;
    size_t ncompiled;
    struct libraries *libraries; /* of functions (library.h); NULL: none has been asked for */
    int64_t flushes;             /* as the running transaction sees them (scripts_begin) ... */
    int64_t flushed;             /* ... and up to which this executor has let flushed ones go */
    /* For redis.call, used again and again. */
    struct slice *argv;
    int argv_cap;
    struct buf numbers;      /* arguments that were numbers, as text */
    struct buf said;         /* what the inner command has replied, as RESP */
    struct resp_reply reply; /* says it */
};

/* Of an executor; made on first use. */
struct scripts *scripts_of(struct executor *s);
void scripts_free(struct scripts *s); /* NULL: nothing */

/* NULL: there is no memory for it (script-memory). */
struct interp *scripts_interp(struct scripts *s, enum interp_kind kind);

/* Bytes that all interpreters of this executor have. */
size_t scripts_memory(const struct scripts *s);

/* Before what follows, in each transaction: which scripts were flushed, as it sees that. */
enum status scripts_begin(struct scripts *s, struct view *v) MUST_CHECK;

/* The compiled script of a body, valid until the next call of one of these. One that is new is a script of
   this process from now on. NULL: *err has the error reply. */
struct compiled *scripts_by_body(struct scripts *s, struct slice body, struct buf *err);

/* That of a sha1, known to the process or to the database. *ret is NULL: there is none, or, when there is
   something in *err, that is the error reply. */
enum status scripts_by_sha(struct scripts *s, struct call *c, struct slice sha, struct compiled **ret,
                           struct buf *err) MUST_CHECK;

/* The text of a script that is known to the process or to the database, in the call's arena; p is NULL: there
   is none. */
enum status scripts_text(struct scripts *s, struct call *c, struct slice sha, struct slice *ret) MUST_CHECK;

#endif
