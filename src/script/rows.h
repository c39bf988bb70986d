/* Scripts and libraries of functions as the database has them: rows of the hidden database (engine/hidden.h),
   read and written in the transaction of the command that asks, so that EXEC, undo, a re-run, the journal, a
   crash and a replica's snapshot treat them as any rows. Every server, and every worker, sees what its
   running transaction sees: nothing is told from one to another.

     "functions"        hash   a library's name -> its code
     "scripts"          hash   sha1, 40 lower case hex digits -> the script, of SCRIPT LOAD
     "script-flushes"   string how many times SCRIPT FLUSH has run

   What keeps a process from reading them again each time: of libraries a stamp, of scripts the version of
   "script-flushes". Both come from rows that a command with CMD_LIBRARIES or CMD_SCRIPTS (exec/command.h) has
   read with the round trip that begins its transaction, without a lock.

   Changes of libraries are made by commands with CMD_WRITE, CMD_LIBRARIES and no keys: over shared tables no
   other transaction that writes runs beside them (view_declare_libraries). SCRIPT LOAD and SCRIPT FLUSH lock
   what they change, and wait for nobody who runs scripts.

   Two clients, or servers, that load one library: the second waits for the first, and finds it there. A name
   and a code together have up to STORE_ITEM_BYTES, more than the protocol brings. */
#ifndef LARDER_SCRIPT_ROWS_H
#define LARDER_SCRIPT_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/slice.h"
#include "base/status.h"
#include "engine/hidden.h"
#include "engine/view.h"

/* ---- libraries ---- */

/* As which state the running transaction sees the libraries: while an executor's stamp is equal
   (stamps_equal) what it has loaded are they. version 0: there is no library. */
enum status rows_stamp(struct view *v, struct hidden_stamp *ret) MUST_CHECK;

/* Each library, in no particular order. name and code are valid inside fn only, which must not use the view
   and may end the walk with ST_STOP. */
typedef enum status rows_library_fn(void *arg, struct slice name, struct slice code);
enum status rows_each_library(struct view *v, rows_library_fn *fn, void *arg) MUST_CHECK;

/* The code is copied to arena. */
enum status rows_get_library(struct view *v, struct slice name, struct arena *arena, bool *ret_found,
                             struct slice *ret_code) MUST_CHECK;

/* Adds a library or replaces it. name and code are copied. */
enum status rows_put_library(struct view *v, struct slice name, struct slice code) MUST_CHECK;
enum status rows_delete_library(struct view *v, struct slice name, bool *ret_existed) MUST_CHECK;

/* FUNCTION FLUSH: in constant time. */
enum status rows_flush_libraries(struct view *v) MUST_CHECK;

/* ---- scripts ---- */

/* Grows with each SCRIPT FLUSH: what a process came to know under a smaller number was flushed since. */
enum status rows_flushes(struct view *v, int64_t *ret) MUST_CHECK;

/* sha: any case; the script is copied to arena. A sha of another length than 40 is never found. */
enum status rows_get_script(struct view *v, struct slice sha, struct arena *arena, bool *ret_found,
                            struct slice *ret_body) MUST_CHECK;
enum status rows_has_script(struct view *v, struct slice sha, bool *ret) MUST_CHECK;

/* SCRIPT LOAD. body is copied. What is there already is not written again, and not locked. */
enum status rows_put_script(struct view *v, struct slice sha, struct slice body) MUST_CHECK;

/* SCRIPT FLUSH: in constant time. */
enum status rows_flush_scripts(struct view *v) MUST_CHECK;

#endif
