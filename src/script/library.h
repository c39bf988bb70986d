/* Libraries of functions: what the rows say (rows.h), compiled for one executor.

   The rows are the truth. What is compiled is a cache of them: a library is known by its name and its whole
   code, and the set that may be called is the one whose stamp the running transaction sees
   (libraries_sync). So a library that was loaded by a command which is undone, or run again, leaves no trace:
   the rows do not have it, and what was compiled for it is never found. Locals that a library's functions
   share are this executor's own, and last as long as the library is compiled here.

   A crash leaves what it leaves of the rows. A library that cannot be compiled here (no memory for it) has no
   functions, and is tried again by each sync until it can. */
#ifndef LARDER_SCRIPT_LIBRARY_H
#define LARDER_SCRIPT_LIBRARY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/slice.h"
#include "base/status.h"
#include "engine/hidden.h"
#include "engine/view.h"
#include "script/interp.h"

struct executor;
struct library;

struct function {
    struct map_link link; /* first; of the set that may be called, by its name without case */
    struct library *library;
    char *name; /* letters, digits and _ */
    bool described;
    struct slice description; /* its own */
    uint32_t flags;           /* enum script_flag */
    int ref;                  /* in the registry of the interpreter for functions */
};

struct library {
    struct slice name, code;     /* its own; the code has the first line in it */
    struct function **functions; /* in the order in which they were registered */
    size_t nfunctions, functions_cap;
    char *broken; /* why it could not be compiled; NULL: it was */
    bool current; /* its functions may be called */
    bool seen;    /* while the rows are walked over */
    bool leaving; /* while a command looks for clashes: it is going to replace this one */
};

#define LIBRARY_STAMPS 4

/* Of an executor. */
struct libraries {
    struct interp *in;
    struct library **all; /* by name; those that are not current were compiled by a command since the sync */
    size_t n, cap;
    struct map functions; /* of those that are */
    size_t nbroken;
    /* As which the primary's view, and replicas', see the very rows that it was synced with. */
    struct hidden_stamp stamps[LIBRARY_STAMPS];
    size_t nstamps;
};

/* NULL: there is no memory for an interpreter (script-memory). Made on first use. */
struct libraries *libraries_of(struct executor *s);
void libraries_free(struct libraries *ls); /* NULL: nothing. Before its interpreter */

/* What may be called becomes what the running transaction sees. */
enum status libraries_sync(struct libraries *ls, struct view *v) MUST_CHECK;

/* Of the set that was synced; NULL: there is none. A name of a function has no case. */
struct function *libraries_find(const struct libraries *ls, struct slice function);
struct library *libraries_named(const struct libraries *ls, struct slice library);

/* The parts of "#!lua name=mylib\n...": code is what is behind the first line, the end of that included, so
   that lines are counted as they stand. False: *err has the error reply. */
struct library_head {
    struct slice engine, name, code;
};
bool library_parse(struct slice text, struct arena *arena, struct library_head *ret, struct buf *err);

/* Compiles a library and runs its body, which registers its functions; afterwards it is one of ls->all, not
   yet to be called: whoever writes it to the rows makes it so, with the next sync. NULL: *err has the error
   reply, and nothing is left of it. */
struct library *libraries_load(struct libraries *ls, struct slice text, const struct library_head *head,
                               struct buf *err);

/* What was loaded since the last sync is forgotten: the command that did so writes none of it. */
void libraries_forget_loaded(struct libraries *ls);

/* A function of that library which is also in one that may be called and is not leaving; NULL: none. */
const struct function *libraries_clash(const struct libraries *ls, const struct library *one);

/* The same for two libraries. */
const struct function *library_clash(const struct library *one, const struct library *other);

/* ---- for load.c ---- */

/* Letters, digits and _, at least one. */
bool library_name_is_valid(struct slice name);

/* A function joins a library; ref is the library's from here on. False: the library has one of this name. */
bool library_add(struct library *lib, struct slice name, uint32_t flags, int ref,
                 const struct slice *description);

#endif
