/* What TABLE.INFO tells of a table over hashes. */
#ifndef LARDER_COMMAND_TABLE_TABLE_HASHES_H
#define LARDER_COMMAND_TABLE_TABLE_HASHES_H

#include "exec/command.h"
#include "table/rows.h"

#define HASHES_INFO_FIELDS 3 /* of the map, that reply_hashes_info adds */
enum status reply_hashes_info(struct call *c, struct rows *r) MUST_CHECK;

#endif
