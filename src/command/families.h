/* Which commands there are: a table for each family, at the foot of the family's file, ended by a NULL name.
   A new family adds a line here and one in table.c. */
#ifndef LARDER_COMMAND_FAMILIES_H
#define LARDER_COMMAND_FAMILIES_H

#include "exec/command.h"
#include "exec/txn.h"
#include "stats/info.h"
#include "stats/latency.h"
#include "stats/memory.h"
#include "stats/slowlog.h"

struct buf;

extern const struct command bit_commands[];
extern const struct command bitfield_commands[];
extern const struct command client_commands[];
extern const struct command config_commands[];
extern const struct command connection_commands[];
extern const struct command consistency_commands[];
extern const struct command counter_commands[];
extern const struct command debug_commands[];
extern const struct command eval_commands[];
extern const struct command expire_commands[];
extern const struct command function_commands[];
extern const struct command hash_commands[];
extern const struct command hash_ex_commands[];
extern const struct command hash_expire_commands[];
extern const struct command introspect_commands[];
extern const struct command key_commands[];
extern const struct command lcs_commands[];
extern const struct command object_commands[];
extern const struct command range_commands[];
extern const struct command row_commands[];
extern const struct command row_query_commands[];
extern const struct command scan_commands[];
extern const struct command script_commands[];
extern const struct command server_commands[];
extern const struct command set_commands[];
extern const struct command set_algebra_commands[];
extern const struct command list_commands[];
extern const struct command list_move_commands[];
extern const struct command sort_commands[];
extern const struct command sql_commands[];
extern const struct command string_commands[];
extern const struct command table_commands[];
extern const struct command table_alter_commands[];
extern const struct command table_hashes_commands[];
extern const struct command wait_commands[];
extern const struct command zset_commands[];
extern const struct command zset_combine_commands[];
extern const struct command zset_pop_commands[];
extern const struct command zset_range_commands[];

/* What the HTTP API runs (http/api.h). Clients cannot call these by name, but they are counted as any
   other. */
extern const struct command http_key_commands[];
extern const struct command http_ttl_commands[];
extern const struct command http_item_commands[];
extern const struct command http_listing_commands[];
extern const struct command http_multi_commands[];
extern const struct command http_batch_commands[];
extern const struct command http_service_commands[];
extern const struct command http_table_commands[];
extern const struct command http_row_commands[];
extern const struct command http_rows_commands[];
extern const struct command http_sql_commands[];

/* docs/commands.md. */
void command_print_markdown(struct buf *out);

#endif
