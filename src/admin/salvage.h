/* `larder check --salvage`: a way out when the journal is damaged and no server starts on it.

   A row of the journal builds on those before it: the tables are whole after each of them, in order. So what
   is kept is what comes before the first damaged row. Two exceptions:
   - The server may have been killed while it brought rows into the tables (larder_meta.applying). What it
     brought in cannot be told from what it did not, so all rows up to there that can be read are kept: then
     everything is as it was in the end, but for what only the damaged rows say.
   - The user wants all that can be read (`skip`), whether it fits together or not.
   Afterwards the tables are checked, and the report says what does not fit. */
#ifndef LARDER_ADMIN_SALVAGE_H
#define LARDER_ADMIN_SALVAGE_H

#include <stdbool.h>
#include <stdio.h>

#include "base/status.h"

/* Copies the rows that are left out, with the keys that they change: into another file, NAME.salvaged, or on
   a database server into tables beside the others; applies the others, and empties the journal. Writes what
   it does to out. Nothing damaged: it leaves the database alone. ST_LOCKED when a server has it. *ret_ok: the
   tables are as whole as can be told. */
enum status store_salvage(const char *url, bool skip, FILE *out, bool *ret_ok, struct error *err) MUST_CHECK;

#endif
