/* `larder check` of tables: what SQL cannot tell, because names and values are codes (table/rowcode.h).

     schemas   decode
     rows      decode, and their names are the codes of their key columns
     entries   of an index that is ready: one for each row that has not expired, and no others
               of one that is being built: none but those
               of any other number: none, unless they are in the trash

   Two passes over each table, a page at a time: rows in order, which are counted, and entries in order, each
   of which must be the very entry of a row that is there. A row has one entry in an index, so as many as
   there are rows means all of them; only where that is not so a third pass looks for those that are missing.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/check_hashes.h"
#include "admin/check_internal.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/vec.h"
#include "table/hashes/hashes.h"
#include "table/key_text.h"
#include "table/rowcode.h"

#define PAGE    500
#define NUMBERS (SCHEMA_NUMBER_MAX + 1)

/* ---- tables and trash ---- */

struct relation {
    int64_t seq, id;
    struct key_ref key;
};

struct relations {
    struct check_session *session;
    struct findings *f;
    struct error *err;
    struct arena arena;
    struct relation *at;
    size_t n, cap;
    struct trash_row *trash; /* of indexes */
    size_t ntrash, trash_cap;
    int64_t now; /* milliseconds */
};

static enum status note_key(void *arg, const struct key_row *k)
{
    struct relations *r = arg;
    VEC_PUSH(r->at, r->n, r->cap) = (struct relation){k->seq, k->id, {k->db, arena_copy(&r->arena, k->key)}};
    return ST_OK;
}

static enum status list_tables(struct relations *r)
{
    struct key_scan q = {.order = KEYS_TABLES, .every_db = true, .limit = UINT32_MAX};
    return store_scan_keys(r->session->store, &q, note_key, r, r->err);
}

/* A line that is no finding: "id type". */
static void note_trash(void *arg, struct slice line)
{
    struct relations *r = arg;
    const char *space = memchr(line.p, ' ', line.n);
    size_t n = space ? (size_t)(space - line.p) : 0;
    int64_t id, type;
    if (space && num_parse_i64(slice_of(line.p, n), &id) &&
        num_parse_i64(slice_of(space + 1, line.n - n - 1), &type))
        VEC_PUSH(r->trash, r->ntrash, r->trash_cap) = (struct trash_row){id, (enum row_type)type};
}

static bool in_trash(const struct relations *r, int64_t id, uint16_t number)
{
    for (size_t i = 0; i < r->ntrash; i++)
        if (r->trash[i].id == id && (int)r->trash[i].type == ROW_INDEX + number)
            return true;
    return false;
}

/* ---- one table ---- */

struct one {
    struct relations *all;
    const struct relation *of;
    struct arena arena; /* of the schema */
    struct schema schema;
    struct arena scratch; /* of a row */
    struct buf code, line;
    struct buf last_name; /* where the next page begins */
    uint32_t page;        /* ... of so many */
    uint64_t live;        /* rows that have not expired, and decode */
    struct index_count {
        const struct table_index *index; /* NULL: there is none of this number */
        uint64_t entries;                /* of live rows */
        bool told;                       /* that there are any at all */
    } * by_number;
    /* A page of entries. */
    struct pair {
        struct slice entry, value, row;
        bool found;
    } * pairs;
    size_t npairs, cap;
    struct arena page_arena;
    size_t next; /* the first pair whose row may come next */
};

static void __attribute__((format(printf, 2, 3))) found(struct one *o, const char *fmt, ...)
{
    char text[600];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    o->line.len = 0;
    buf_addf(&o->line, "table '");
    for (size_t i = 0; i < o->of->key.key.n && i < 63; i++) {
        unsigned char c = (unsigned char)o->of->key.key.p[i];
        buf_addf(&o->line, "%c", isprint(c) ? c : '?');
    }
    buf_addf(&o->line, "' (key row %" PRId64 "): %s", o->of->seq, text);
    check_found(o->all->f, buf_slice(&o->line));
}

/* The key of a row, valid until the next call. */
static const char *key_text(struct one *o, struct slice name)
{
    o->line.len = 0;
    key_text_add(&o->schema, name, &o->scratch, &o->line);
    buf_add(&o->line, "", 1);
    return (const char *)arena_copy(&o->scratch, buf_slice(&o->line)).p;
}

static bool expired(const struct one *o, int64_t expire_at)
{
    return expire_at != 0 && expire_at <= o->all->now;
}

/* What is scanned of a table next: behind the last name. */
static struct item_scan page_of(struct one *o, enum item_table table)
{
    struct item_scan q = {.table = table, .id = o->of->id, .order = ITEMS_BY_NAME, .limit = PAGE};
    q.has_min = o->last_name.len > 0;
    q.min_name = buf_slice(&o->last_name);
    o->page = 0;
    return q;
}

/* The place behind a name, where the next page begins. */
static void note_last(struct one *o, struct slice name)
{
    o->last_name.len = 0;
    buf_add_slice(&o->last_name, name);
    buf_add(&o->last_name, "", 1);
    o->page++;
}

/* ---- rows ---- */

static enum status check_row(void *arg, const struct item_row *row)
{
    struct one *o = arg;
    struct table_row t;
    struct error why;
    struct fault fault = {0};
    note_last(o, row->ref.name);
    arena_reset(&o->scratch);
    if (rowcode_decode(&o->schema, row->ref.name, row->value, row->expire_at, &o->scratch, &t, &why) !=
        ST_OK) {
        found(o, "row %s: %s", key_text(o, row->ref.name), why.text);
        return ST_OK;
    }
    o->code.len = 0;
    if (!rowcode_name(&o->schema, t.values, &o->code, &fault) ||
        !slice_eq(buf_slice(&o->code), row->ref.name))
        found(o, "row %s has another name than its columns say", key_text(o, row->ref.name));
    if (row->expire_at < 0)
        found(o, "row %s has the impossible expiry %" PRId64, key_text(o, row->ref.name), row->expire_at);
    o->live += !expired(o, row->expire_at);
    return ST_OK;
}

static enum status walk(struct one *o, enum item_table table, store_item_fn *fn)
{
    enum status st;
    o->last_name.len = 0;
    do {
        struct item_scan q = page_of(o, table);
        st = store_scan_items(o->all->session->store, &q, fn, o, o->all->err);
    } while (st == ST_OK && o->page == PAGE);
    return st;
}

/* ---- entries ---- */

static uint16_t number_of(struct slice entry)
{
    return (uint16_t)((unsigned char)entry.p[0] << 8 | (unsigned char)entry.p[1]);
}

/* An entry of no index that has any: those are in the trash, or are a build's place. */
static void check_stray(struct one *o, struct slice name, uint16_t number)
{
    uint16_t of = number == 0 && name.n == 4 ? number_of(slice_of(name.p + 2, 2)) : number;
    struct index_count *c = of < NUMBERS ? &o->by_number[of] : NULL;
    if (number == 0 && c && c->index && c->index->state == INDEX_BUILDING)
        return;
    if (number == 0) {
        found(o, "how far the build of index %u is, which is not being built", of);
    } else if (!in_trash(o->all, o->of->id, number) && !(c && c->told)) {
        found(o, "entries of index %u, which the table does not have", number);
        if (c)
            c->told = true;
    }
}

static enum status take_entry(void *arg, const struct item_row *row)
{
    struct one *o = arg;
    struct slice name = row->ref.name;
    struct error why;
    note_last(o, name);
    if (name.n < 2) {
        found(o, "an entry of %zu bytes", name.n);
        return ST_OK;
    }
    uint16_t number = number_of(name);
    if (o->schema.on_hashes && (number == HASHES_UNPARSED || number == HASHES_UNNAMED))
        return ST_OK;
    const struct table_index *i = number < NUMBERS ? o->by_number[number].index : NULL;
    if (!i || i->state == INDEX_FAILED) {
        check_stray(o, name, number);
        return ST_OK;
    }
    o->code.len = 0;
    if (o->schema.on_hashes)
        return ST_OK;
    if (rowcode_entry_row(&o->schema, i, name, row->value, &o->code, &why) != ST_OK) {
        found(o, "index %.*s: %s", (int)i->name.n, i->name.p, why.text);
        return ST_OK;
    }
    VEC_PUSH(o->pairs, o->npairs, o->cap) = (struct pair){
        arena_copy(&o->page_arena, name),
        arena_copy(&o->page_arena, row->value),
        arena_copy(&o->page_arena, buf_slice(&o->code)),
        false,
    };
    return ST_OK;
}

static int by_row(const void *a, const void *b)
{
    return slice_cmp(((const struct pair *)a)->row, ((const struct pair *)b)->row);
}

/* An entry against its row. */
static void check_pair(struct one *o, const struct pair *p, const struct item_row *row,
                       const struct table_row *t)
{
    struct index_count *c = &o->by_number[number_of(p->entry)];
    struct fault fault = {0};
    bool unique = false;
    o->code.len = 0;
    bool same = rowcode_entry(&o->schema, c->index, t->values, &o->code, &unique, &fault) &&
                slice_eq(buf_slice(&o->code), p->entry);
    if (!same)
        found(o, "index %.*s: an entry of row %s is not what the row says", (int)c->index->name.n,
              c->index->name.p, key_text(o, p->row));
    else if (!slice_eq(p->value, unique ? p->row : SLICE("")))
        found(o, "index %.*s: the entry of row %s has a wrong value", (int)c->index->name.n, c->index->name.p,
              key_text(o, p->row));
    c->entries += same && !expired(o, row->expire_at);
}

/* Rows come in the order asked, without those that are missing. */
static enum status check_pairs_of(void *arg, const struct item_row *row)
{
    struct one *o = arg;
    struct table_row t;
    struct error why;
    while (o->next < o->npairs && slice_cmp(o->pairs[o->next].row, row->ref.name) < 0)
        o->next++;
    arena_reset(&o->scratch);
    bool whole =
        rowcode_decode(&o->schema, row->ref.name, row->value, row->expire_at, &o->scratch, &t, &why) == ST_OK;
    for (; o->next < o->npairs && slice_eq(o->pairs[o->next].row, row->ref.name); o->next++) {
        o->pairs[o->next].found = true;
        if (whole) /* else it was told */
            check_pair(o, &o->pairs[o->next], row, &t);
    }
    return ST_OK;
}

/* Reads the rows of a page of entries. */
static enum status check_page(struct one *o)
{
    struct item_ref refs[PAGE];
    size_t n = 0;
    if (o->npairs)
        qsort(o->pairs, o->npairs, sizeof *o->pairs, by_row);
    for (size_t i = 0; i < o->npairs; i++)
        if (n == 0 || !slice_eq(refs[n - 1].name, o->pairs[i].row))
            refs[n++] = (struct item_ref){.table = ITEM_ROW, .id = o->of->id, .name = o->pairs[i].row};
    o->next = 0;
    enum status st =
        n ? store_get_items(o->all->session->store, refs, n, check_pairs_of, o, o->all->err) : ST_OK;
    for (size_t i = 0; st == ST_OK && i < o->npairs; i++) {
        const struct table_index *x = o->by_number[number_of(o->pairs[i].entry)].index;
        if (!o->pairs[i].found)
            found(o, "index %.*s: an entry names row %s, which is not there", (int)x->name.n, x->name.p,
                  key_text(o, o->pairs[i].row));
    }
    o->npairs = 0;
    arena_reset(&o->page_arena);
    return st;
}

static enum status check_entries(struct one *o)
{
    enum status st;
    o->last_name.len = 0;
    do {
        struct item_scan q = page_of(o, ITEM_ENTRY);
        st = store_scan_items(o->all->session->store, &q, take_entry, o, o->all->err);
        if (st == ST_OK)
            st = check_page(o);
    } while (st == ST_OK && o->page == PAGE);
    return st;
}

/* ---- entries that are missing ---- */

static bool misses_entries(const struct one *o, const struct table_index *i)
{
    return i->state == INDEX_READY && o->by_number[i->number].entries < o->live;
}

static void note_pair(struct one *o, const struct table_index *i, const struct item_row *row,
                      const struct table_row *t)
{
    struct fault fault = {0};
    bool unique;
    o->code.len = 0;
    if (!rowcode_entry(&o->schema, i, t->values, &o->code, &unique, &fault))
        found(o, "index %.*s: row %s: %s", (int)i->name.n, i->name.p, key_text(o, row->ref.name), fault.text);
    else
        VEC_PUSH(o->pairs, o->npairs, o->cap) =
            (struct pair){.entry = arena_copy(&o->page_arena, buf_slice(&o->code)),
                          .row = arena_copy(&o->page_arena, row->ref.name)};
}

static enum status take_row(void *arg, const struct item_row *row)
{
    struct one *o = arg;
    struct table_row t;
    struct error why;
    note_last(o, row->ref.name);
    arena_reset(&o->scratch);
    if (expired(o, row->expire_at) ||
        rowcode_decode(&o->schema, row->ref.name, row->value, row->expire_at, &o->scratch, &t, &why) != ST_OK)
        return ST_OK;
    for (size_t i = 0; i < o->schema.nindexes; i++)
        if (misses_entries(o, &o->schema.indexes[i]))
            note_pair(o, &o->schema.indexes[i], row, &t);
    return ST_OK;
}

static enum status note_there(void *arg, const struct item_row *row)
{
    struct one *o = arg;
    while (o->next < o->npairs && !slice_eq(o->pairs[o->next].entry, row->ref.name))
        o->next++;
    if (o->next < o->npairs)
        o->pairs[o->next++].found = true;
    return ST_OK;
}

static enum status tell_missing(struct one *o)
{
    enum status st = ST_OK;
    for (size_t from = 0; st == ST_OK && from < o->npairs;) {
        struct item_ref refs[PAGE];
        size_t n = 0;
        o->next = from;
        for (; n < PAGE && from < o->npairs; from++)
            refs[n++] = (struct item_ref){.table = ITEM_ENTRY, .id = o->of->id, .name = o->pairs[from].entry};
        st = store_get_items(o->all->session->store, refs, n, note_there, o, o->all->err);
    }
    for (size_t i = 0; st == ST_OK && i < o->npairs; i++) {
        const struct table_index *x = o->by_number[number_of(o->pairs[i].entry)].index;
        if (!o->pairs[i].found)
            found(o, "index %.*s has no entry of row %s", (int)x->name.n, x->name.p,
                  key_text(o, o->pairs[i].row));
    }
    o->npairs = 0;
    arena_reset(&o->page_arena);
    return st;
}

static enum status find_missing(struct one *o)
{
    enum status st;
    o->last_name.len = 0;
    do {
        struct item_scan q = page_of(o, ITEM_ROW);
        st = store_scan_items(o->all->session->store, &q, take_row, o, o->all->err);
        if (st == ST_OK)
            st = tell_missing(o);
    } while (st == ST_OK && o->page == PAGE);
    return st;
}

/* ---- all of it ---- */

static enum status decode_schema(void *arg, const struct key_row *k)
{
    struct one *o = arg;
    struct error why;
    if (schema_decode(arena_copy(&o->arena, k->value), &o->arena, &o->schema, &why) != ST_OK)
        found(o, "%s", why.text);
    else
        o->by_number = mem_zalloc(NUMBERS * sizeof *o->by_number);
    return ST_OK;
}

static void found_in_hashes(void *arg, const char *text)
{
    found(arg, "%s", text);
}

static enum status check_hashes(struct one *o)
{
    struct hash_table_check c = {.store = o->all->session->store,
                                 .db = o->of->key.db,
                                 .id = o->of->id,
                                 .schema = &o->schema,
                                 .now = o->all->now,
                                 .found = found_in_hashes,
                                 .arg = o};
    return check_hash_table(&c, o->all->err);
}

static enum status check_content(struct one *o)
{
    bool missing = false;
    for (size_t i = 0; i < o->schema.nindexes; i++)
        o->by_number[o->schema.indexes[i].number].index = &o->schema.indexes[i];
    enum status st = o->schema.on_hashes ? check_hashes(o) : walk(o, ITEM_ROW, check_row);
    if (st == ST_OK)
        st = check_entries(o);
    for (size_t i = 0; i < o->schema.nindexes; i++)
        missing |= !o->schema.on_hashes && misses_entries(o, &o->schema.indexes[i]);
    return st == ST_OK && missing ? find_missing(o) : st;
}

static enum status check_relation(struct relations *all, const struct relation *of)
{
    struct one o = {.all = all, .of = of};
    enum status st = store_get_keys(all->session->store, &of->key, 1, decode_schema, &o, all->err);
    if (st == ST_OK && o.by_number)
        st = check_content(&o);
    mem_free(o.by_number);
    mem_free(o.pairs);
    buf_release(&o.code);
    buf_release(&o.line);
    buf_release(&o.last_name);
    arena_release(&o.arena);
    arena_release(&o.scratch);
    arena_release(&o.page_arena);
    return st;
}

static enum status look_at_all(void *arg, const char *text, struct findings *f, struct error *err)
{
    struct relations *r = arg;
    (void)text;
    r->f = f;
    r->err = err;
    enum status st = list_tables(r);
    for (size_t i = 0; st == ST_OK && i < r->n; i++)
        st = check_relation(r, &r->at[i]);
    return st;
}

enum status check_relations(struct check_session *s, check_ask_fn *ask, void *arg, struct findings *f,
                            struct error *err)
{
    struct relations r = {.session = s, .now = clock_wall_us() / 1000};
    struct findings trash = {.take = note_trash, .arg = &r};
    enum status st = ask(arg, "SELECT id || ' ' || type FROM larder_trash WHERE type > 1000", &trash, err);
    if (st == ST_OK)
        st = check_one("tables, their rows and indexes", NULL, look_at_all, &r, f, err);
    mem_free(r.at);
    mem_free(r.trash);
    arena_release(&r.arena);
    return st;
}
