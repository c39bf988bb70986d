/* Every command there is: the families' tables, and what finds a command in them.

   The lookup table is built before main() and never changes afterwards. A name is folded into two words (its
   first and last eight bytes, so every name of up to sixteen bytes is covered whole), which are hash, key and
   comparison at once: finding a command costs a multiplication and two comparisons, whatever its case. A
   base/map would cost every command a seeded hash of its name and a walk through memory elsewhere. */
#include "command/families.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"

static const struct command *const families[] = {
    string_commands,       counter_commands,      range_commands,
    lcs_commands,          bit_commands,          bitfield_commands,
    key_commands,          object_commands,       expire_commands,
    scan_commands,         connection_commands,   client_commands,
    introspect_commands,   config_commands,       info_commands,
    server_commands,       memory_commands,       slowlog_commands,
    latency_commands,      debug_commands,        txn_commands,
    zset_commands,         zset_range_commands,   zset_pop_commands,
    zset_combine_commands, list_commands,         list_move_commands,
    hash_commands,         hash_expire_commands,  hash_ex_commands,
    set_commands,          set_algebra_commands,  sort_commands,
    consistency_commands,  wait_commands,         eval_commands,
    script_commands,       function_commands,     row_commands,
    row_query_commands,    table_commands,        sql_commands,
    table_alter_commands,  table_hashes_commands, NULL,
};

/* In no list and without a name to find them by. */
static const struct command *const internal[] = {
    http_key_commands,   http_ttl_commands,   http_item_commands,    http_listing_commands,
    http_multi_commands, http_batch_commands, http_service_commands, http_table_commands,
    http_row_commands,   http_rows_commands,  http_sql_commands,     NULL,
};

#define MAX_COMMANDS 512
#define SLOTS        1024 /* a power of two, well above MAX_COMMANDS */
#define MAX_NAME     24   /* of a command; a subcommand's is compared byte by byte */
#define WHOLE_NAME   16   /* what the folded words have all of */

struct slot {
    uint64_t head, tail;       /* the folded name */
    const struct command *cmd; /* NULL: free */
    uint8_t length;
    bool letters; /* nothing but letters, and not too many: equal folded words mean equal names */
};

struct entry {
    const struct command *cmd;
    const struct command *parent; /* of a subcommand */
};

/* Written once by build_tables. */
static struct {
    struct slot slots[SLOTS];
    struct entry entries[MAX_COMMANDS]; /* by command_index */
    uint16_t by_address[SLOTS];         /* 1 + command_index; 0: free */
    const struct command *top[MAX_COMMANDS];
    int nentries, ntop;
} tables;

/* ---- lookup by name ---- */

#define FOLD 0x2020202020202020u

static inline uint64_t load8(const char *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* The first and last eight bytes of a name of 1 to MAX_NAME bytes, upper case folded to lower. A short name's
   bytes are put together without reading beyond it. */
static inline void fold_name(struct slice name, uint64_t *ret_head, uint64_t *ret_tail)
{
    uint64_t head = 0, tail = 0;
    if (name.n >= 8) {
        head = load8(name.p);
        tail = load8(name.p + name.n - 8);
    } else if (name.n >= 4) {
        uint32_t a, b;
        memcpy(&a, name.p, sizeof a);
        memcpy(&b, name.p + name.n - 4, sizeof b);
        head = a;
        tail = b;
    } else {
        head = (uint8_t)name.p[0] | (uint64_t)(uint8_t)name.p[name.n / 2] << 8 |
               (uint64_t)(uint8_t)name.p[name.n - 1] << 16;
    }
    *ret_head = head | FOLD;
    *ret_tail = tail | FOLD;
}

static inline size_t slot_of(uint64_t head, uint64_t tail, size_t length)
{
    uint64_t h = (head ^ (tail << 7 | tail >> 57) ^ length) * 0x9E3779B97F4A7C15u;
    return (size_t)(h >> 54);
}
_Static_assert(SLOTS == 1 << (64 - 54), "slot_of keeps as many bits as there are slots");

const struct command *command_find(struct slice name)
{
    if (name.n == 0 || name.n > MAX_NAME)
        return NULL;
    uint64_t head, tail;
    fold_name(name, &head, &tail);
    for (size_t i = slot_of(head, tail, name.n);; i = (i + 1) & (SLOTS - 1)) {
        const struct slot *s = &tables.slots[i];
        if (!s->cmd)
            return NULL;
        if (s->head == head && s->tail == tail && s->length == name.n &&
            (s->letters || slice_is(name, s->cmd->name)))
            return s->cmd;
    }
}

const struct command *command_find_sub(const struct command *parent, struct slice name)
{
    for (const struct command *c = parent->subs; c && c->name; c++)
        if (slice_is(name, c->name))
            return c;
    return NULL;
}

const struct command *command_find_full(struct slice name)
{
    const char *bar = memchr(name.p, '|', name.n);
    if (!bar)
        return command_find(name);
    size_t n = (size_t)(bar - name.p);
    const struct command *parent = command_find(slice_of(name.p, n));
    return parent ? command_find_sub(parent, slice_of(bar + 1, name.n - n - 1)) : NULL;
}

/* ---- lists and numbers ---- */

static size_t address_slot(const struct command *c)
{
    return (size_t)((uint64_t)(uintptr_t)c * 0x9E3779B97F4A7C15u >> 54);
}

int command_index(const struct command *c)
{
    size_t i = address_slot(c);
    while (tables.entries[tables.by_address[i] - 1].cmd != c)
        i = (i + 1) & (SLOTS - 1);
    return tables.by_address[i] - 1;
}

int command_count(void)
{
    return tables.nentries;
}

const struct command *command_by_index(int i, const struct command **ret_parent)
{
    assert(i >= 0 && i < tables.nentries);
    if (ret_parent)
        *ret_parent = tables.entries[i].parent;
    return tables.entries[i].cmd;
}

const struct command *command_at(int i)
{
    return i < tables.ntop ? tables.top[i] : NULL;
}

const struct command *command_parent(const struct command *c)
{
    return tables.entries[command_index(c)].parent;
}

void command_full_name(const struct command *c, char out[COMMAND_NAME_CHARS])
{
    const struct command *parent = command_parent(c);
    snprintf(out, COMMAND_NAME_CHARS, "%s%s%s", parent ? parent->name : "", parent ? "|" : "", c->name);
}

static void add_entry(const struct command *c, const struct command *parent)
{
    assert(tables.nentries < MAX_COMMANDS);
    tables.entries[tables.nentries++] = (struct entry){c, parent};
    size_t i = address_slot(c);
    while (tables.by_address[i])
        i = (i + 1) & (SLOTS - 1);
    tables.by_address[i] = (uint16_t)tables.nentries;
}

static void add_name(const struct command *c)
{
    struct slice name = slice_str(c->name);
    assert(name.n > 0 && name.n <= MAX_NAME && !command_find(name));
    struct slot s = {.cmd = c, .length = (uint8_t)name.n, .letters = name.n <= WHOLE_NAME};
    fold_name(name, &s.head, &s.tail);
    for (size_t i = 0; i < name.n; i++)
        s.letters = s.letters && name.p[i] >= 'a' && name.p[i] <= 'z';
    size_t i = slot_of(s.head, s.tail, name.n);
    while (tables.slots[i].cmd)
        i = (i + 1) & (SLOTS - 1);
    tables.slots[i] = s;
}

__attribute__((constructor)) static void build_tables(void)
{
    for (const struct command *const *family = families; *family; family++) {
        for (const struct command *c = *family; c->name; c++) {
            tables.top[tables.ntop++] = c;
            add_name(c);
            add_entry(c, NULL);
            for (const struct command *sub = c->subs; sub && sub->name; sub++)
                add_entry(sub, c);
        }
    }
    for (const struct command *const *family = internal; *family; family++)
        for (const struct command *c = *family; c->name; c++)
            add_entry(c, NULL);
}

/* ---- keys ---- */

/* Where the search for a spec's keys begins, or -1 when its keyword is not among the arguments. */
static int begin_search(const struct key_spec *k, const struct slice *argv, int argc)
{
    if (k->unknown)
        return k->find ? k->find(argv, argc) : -1;
    if (!k->keyword)
        return k->index < argc ? k->index : -1;
    int step = k->index >= 0 ? 1 : -1;
    int from = k->index >= 0 ? k->index : argc + k->index;
    for (int i = from; i > 0 && i < argc; i += step)
        if (slice_is(argv[i], k->keyword))
            return i + 1 < argc ? i + 1 : -1;
    return -1;
}

/* The range of a spec's keys; false when the arguments make no sense for it. */
static bool key_range(const struct key_spec *k, const struct slice *argv, int argc, int begin, int *ret_first,
                      int *ret_last)
{
    int first = begin, last;
    if (k->keynum) {
        int64_t n;
        if (begin + k->first >= argc || !num_parse_i64(argv[begin + k->first], &n) || n < 0 || n > argc)
            return false;
        first = begin + k->keynum_first;
        last = first + ((int)n - 1) * k->step;
    } else if (k->last >= 0) {
        last = first + k->last;
    } else if (k->limit <= 1) {
        last = argc + k->last;
    } else {
        last = first + (argc - first) / k->limit + k->last;
    }
    *ret_first = first;
    *ret_last = last;
    return last < argc && first < argc && last >= first;
}

int command_keys(const struct command *c, const struct slice *argv, int argc, int *ret_index,
                 uint32_t *ret_flags, int cap)
{
    int n = 0;
    for (int s = 0; s < COMMAND_KEY_SPECS && c->keys[s].flags; s++) {
        const struct key_spec *k = &c->keys[s];
        if (k->flags & KEY_NOT_KEY)
            continue;
        int first, last, begin = begin_search(k, argv, argc);
        if (begin < 0)
            continue;
        if (!key_range(k, argv, argc, begin, &first, &last))
            return -1;
        for (int i = first; i <= last && n < cap; i += k->step) {
            ret_index[n] = i;
            if (ret_flags)
                ret_flags[n] = k->flags & KEY_VARIABLE ? c->key_flags(argv, argc) : k->flags;
            n++;
        }
    }
    return n;
}
