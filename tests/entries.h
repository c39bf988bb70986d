/* Entries of the journal: whether two say the same, and one encoded again. For its unit test and its fuzzer.
 */
#ifndef LARDER_TESTS_ENTRIES_H
#define LARDER_TESTS_ENTRIES_H

#include <string.h>

#include "journal/encoding.h"

static inline bool same_ref(const struct item_ref *a, const struct item_ref *b)
{
    return a->table == b->table && a->id == b->id && a->pos == b->pos && slice_eq(a->name, b->name);
}

static inline bool same_key(const struct key_row *a, const struct key_row *b)
{
    return a->seq == b->seq && a->db == b->db && slice_eq(a->key, b->key) && a->type == b->type &&
           a->id == b->id && a->size == b->size && a->first == b->first && a->numbers == b->numbers &&
           slice_eq(a->value, b->value) && a->version == b->version && a->expire_at == b->expire_at;
}

/* By bits: -0.0 is not 0. */
static inline bool same_score(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

static inline bool same_entry(const struct journal_entry *a, const struct journal_entry *b)
{
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case JOURNAL_KEY:
        return same_key(&a->key, &b->key);
    case JOURNAL_ITEM:
        return same_ref(&a->item.ref, &b->item.ref) && slice_eq(a->item.value, b->item.value) &&
               same_score(a->item.score, b->item.score) && a->item.expire_at == b->item.expire_at &&
               a->item.ord == b->item.ord;
    case JOURNAL_LOST:
        return same_ref(&a->lost, &b->lost);
    case JOURNAL_RANGE:
        return a->range.table == b->range.table && a->range.id == b->range.id &&
               a->range.order == b->range.order && a->range.min == b->range.min &&
               a->range.max == b->range.max && same_score(a->range.min_score, b->range.min_score) &&
               same_score(a->range.max_score, b->range.max_score) &&
               slice_eq(a->range.min_name, b->range.min_name) &&
               slice_eq(a->range.max_name, b->range.max_name);
    case JOURNAL_TRASH:
        return a->trash.id == b->trash.id && a->trash.type == b->trash.type;
    case JOURNAL_DB:
        return a->db.db == b->db.db && a->db.number == b->db.number && a->db.keys == b->db.keys &&
               a->db.expires == b->db.expires;
    case JOURNAL_IDS:
        return a->next_id == b->next_id;
    }
    return false;
}

static inline void encode_entry(struct buf *out, const struct journal_entry *e)
{
    struct key_row key = e->key;
    struct changes c = {0};
    switch (e->kind) {
    case JOURNAL_KEY:
        c.keys = &key;
        c.nkeys = 1;
        break;
    case JOURNAL_ITEM:
        c.items = &e->item;
        c.nitems = 1;
        break;
    case JOURNAL_LOST:
        c.gone = &e->lost;
        c.ngone = 1;
        break;
    case JOURNAL_RANGE:
        c.ranges = &e->range;
        c.nranges = 1;
        break;
    case JOURNAL_TRASH:
        c.trash = &e->trash;
        c.ntrash = 1;
        break;
    case JOURNAL_DB:
        c.dbs = &e->db;
        c.ndbs = 1;
        break;
    case JOURNAL_IDS:
        journal_add_next_id(out, e->next_id);
        return;
    }
    journal_add_changes(out, &c);
}

#endif
