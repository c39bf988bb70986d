/* Can the database be written? Only a commit tells: a disk may be full, or gone, while reading goes on. */
#include "engine/view.h"

#include "engine/view_internal.h"

/* An id that nothing has, noted for the sweeper: a row that comes and goes, in no database. */
enum status view_probe(struct view *v)
{
    int64_t id;
    enum status st = view_new_id(v, &id);
    if (st != ST_OK)
        return st;
    view_discard(v, id, ROW_STRING);
    view_saw(v, v->batch.ticket);
    return ST_OK;
}
