/* Keys, fields and members in an index of a database server, whose entries have a limit. A name of up to
   NAME_PLAIN bytes stands there as it is. Of a longer one the index has the first NAME_LEFT bytes and the
   SHA-256 of the whole, NAME_INDEXED bytes together, so that no plain name can be taken for it; what follows
   the first NAME_LEFT bytes is in a column of its own, which no index has.

   Equality is that of the whole. Order is too, but for names that agree in their first NAME_LEFT bytes: where
   such names meet, scans that need their order compare the whole (remote_read.c). */
#ifndef LARDER_STORE_REMOTE_REMOTE_NAMES_H
#define LARDER_STORE_REMOTE_REMOTE_NAMES_H

#include "base/arena.h"
#include "base/slice.h"

#define NAME_PLAIN   1000
#define NAME_LEFT    992
#define NAME_INDEXED 1024

/* What the index has of a name, and the rest of it (empty for a plain one). Memory comes from the arena. */
struct slice remote_name_index(struct arena *a, struct slice name);
struct slice remote_name_rest(struct slice name);

/* Whether the index may have the name in another order than it has among others that begin alike; and the
   lowest and the highest place there that a name which begins as this one does can have. Other names are
   their own lowest and highest. */
static inline bool remote_name_is_long(struct slice name)
{
    return name.n > NAME_LEFT;
}

struct slice remote_name_low(struct slice name);
struct slice remote_name_high(struct arena *a, struct slice name);

/* The whole name again. */
struct slice remote_name_whole(struct arena *a, struct slice index, struct slice rest);

#endif
