/* `larder check --salvage`, `--apply-log`, `--discard-log`: ways out when what the tables lack (the journal,
   or the log beside a file) is damaged, or does not belong to them, and no server starts on it.

   A group builds on those before it: the tables are whole after each of them, in order. So what is kept of a
   damaged journal or log is what comes before the first damaged group. Two exceptions:
   - The server may have been killed while it brought rows of the journal into the tables
   (larder_meta.applying). What it brought in cannot be told from what it did not, so all rows up to there
   that can be read are kept: then everything is as it was in the end, but for what only the damaged rows say.
   - The user wants all that can be read (SALVAGE_SKIP), whether it fits together or not.
   Afterwards the tables are checked, and the report says what does not fit.

   Nothing is thrown away: what is left out is copied first. A crash between any two steps leaves the copy,
   and either the database and the log as they were, or a database that has what it should and a log that
   holds nothing more for it, which the next start removes. */
#ifndef LARDER_ADMIN_SALVAGE_H
#define LARDER_ADMIN_SALVAGE_H

#include <stdbool.h>
#include <stdio.h>

#include "base/status.h"

enum salvage_mode {
    SALVAGE_PREFIX, /* if something is damaged: apply what is before it */
    SALVAGE_SKIP,   /* if something is damaged: apply all but that */
    SALVAGE_APPLY, /* apply everything, although the log is not known to be this file's; nothing is damaged */
    SALVAGE_DISCARD, /* leave out everything that the log beside a file holds */
};

/* Copies the rows that are left out, with the keys that they change: into another file, NAME.salvaged, or on
   a database server into tables beside the others; applies the others, empties the journal and removes the
   log. Writes what it does to out. Nothing damaged, and only that was asked for: it leaves the database
   alone. ST_LOCKED when a server has it. *ret_ok: the tables are as whole as can be told. */
enum status store_salvage(const char *url, enum salvage_mode mode, FILE *out, bool *ret_ok,
                          struct error *err) MUST_CHECK;

#endif
