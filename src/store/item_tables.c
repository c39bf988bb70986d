#include "store/item_tables.h"

#include <assert.h>

const struct item_table_desc item_tables[ITEM_TABLES] = {
    [ITEM_CHUNK] =
        {
            .name = "larder_chunk",
            .owner = ROW_STRING,
            .key = "pos",
            .columns = {[COLUMN_VALUE] = "value"},
            .sweep_weight = 4,
            .title = "long strings",
            .items = "chunks",
        },
    [ITEM_HASH] =
        {
            .name = "larder_hash",
            .owner = ROW_HASH,
            .key = "field",
            .named = true,
            .columns = {[COLUMN_VALUE] = "value", [COLUMN_EXPIRY] = "expire_at", [COLUMN_ORD] = "ord"},
            .indexes = {[ITEMS_BY_ORD] = "larder_hash_ord", [ITEMS_BY_EXPIRY] = "larder_hash_expire"},
            .by_arrival = true,
            .sweep_weight = 1,
            .title = "hashes",
            .items = "fields",
        },
    [ITEM_LIST] =
        {
            .name = "larder_list",
            .owner = ROW_LIST,
            .key = "pos",
            .columns = {[COLUMN_VALUE] = "value"},
            .sweep_weight = 1,
            .title = "lists",
            .items = "list items",
        },
    [ITEM_SET] =
        {
            .name = "larder_set",
            .owner = ROW_SET,
            .key = "member",
            .named = true,
            .columns = {[COLUMN_ORD] = "ord"},
            .indexes = {[ITEMS_BY_ORD] = "larder_set_ord"},
            .sweep_weight = 1,
            .title = "sets",
            .items = "set members",
        },
    [ITEM_ZSET] =
        {
            .name = "larder_zset",
            .owner = ROW_ZSET,
            .key = "member",
            .named = true,
            .columns = {[COLUMN_SCORE] = "score", [COLUMN_ORD] = "ord"},
            .indexes = {[ITEMS_BY_ORD] = "larder_zset_ord", [ITEMS_BY_SCORE] = "larder_zset_score"},
            .sweep_weight = 1,
            .title = "sorted sets",
            .items = "sorted set members",
        },
    [ITEM_ZBLOCK] =
        {
            .name = "larder_zset_block",
            .owner = ROW_ZSET,
            .key = "block",
            .columns = {[COLUMN_VALUE] = "member", [COLUMN_SCORE] = "score", [COLUMN_ORD] = "count"},
            .sweep_weight = 1,
            .title = "rank blocks",
            .items = "rank blocks",
        },
    [ITEM_ROW] =
        {
            .name = "larder_row",
            .owner = ROW_TABLE,
            .key = "name",
            .named = true,
            .columns = {[COLUMN_VALUE] = "value", [COLUMN_EXPIRY] = "expire_at"},
            .indexes = {[ITEMS_BY_EXPIRY] = "larder_row_expire"},
            .sweep_weight = 1,
            .title = "rows of tables",
            .items = "rows of tables",
        },
    [ITEM_ENTRY] =
        {
            .name = "larder_entry",
            .owner = ROW_TABLE,
            .key = "name",
            .named = true,
            .columns = {[COLUMN_VALUE] = "value"},
            .sweep_weight = 1,
            .title = "entries of indexes",
            .items = "entries of indexes",
        },
};

static void put_index(char out[2], int number)
{
    out[0] = (char)(number >> 8);
    out[1] = (char)number;
}

enum trash_part item_trashed(enum item_table t, enum row_type type, char ret_low[2], char ret_high[2])
{
    if (type <= ROW_INDEX)
        return item_tables[t].owner == type ? TRASH_ALL : TRASH_NONE;
    if (t != ITEM_ENTRY)
        return TRASH_NONE;
    put_index(ret_low, (int)type - ROW_INDEX);
    put_index(ret_high, (int)type - ROW_INDEX + 1);
    return TRASH_RANGE;
}

const char *item_order_column(enum item_table t, enum item_order order)
{
    assert(item_ordered(t, order));
    switch (order) {
    case ITEMS_BY_ORD:
        return item_tables[t].columns[COLUMN_ORD];
    case ITEMS_BY_SCORE:
        return item_tables[t].columns[COLUMN_SCORE];
    case ITEMS_BY_EXPIRY:
        return item_tables[t].columns[COLUMN_EXPIRY];
    case ITEMS_BY_NAME:
    case ITEMS_BY_POS:
        break;
    }
    return item_tables[t].key;
}

enum item_table item_table_of(enum row_type type)
{
    int t = 0;
    while (item_tables[t].owner != type) {
        t++;
        assert(t < ITEM_TABLES);
    }
    return (enum item_table)t;
}
