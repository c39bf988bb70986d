/* `larder backup FILE`: a copy of an SQLite database with everything that was acknowledged, beside a running
   server or without one.

   The copy is one state that was: that of one snapshot of the tables, and what the log beside the file
   (redo/redo.h) had behind it when the snapshot had been taken. So whatever was acknowledged before the
   command was started is in it. Copies by SQLite's own means have the tables alone. */
#ifndef LARDER_ADMIN_BACKUP_H
#define LARDER_ADMIN_BACKUP_H

#include <stdbool.h>
#include <stdio.h>

#include "base/status.h"

/* Makes FILE.part, brings the log's tail into it, syncs it and gives it its name; FILE is never there in
   part. A FILE that is there is replaced only by force. Writes what it does to out. */
enum status store_backup(const char *url, const char *file, bool force, FILE *out,
                         struct error *err) MUST_CHECK;

#endif
