/* Strings as bits. A long string is read chunk by chunk, and only as far as a command needs. */
#include "command/string/bit.h"

#include "base/num.h"
#include "command/families.h"
#include "command/string/bits.h"
#include "command/string/value.h"
#include "exec/args.h"
#include "exec/executor.h"

bool arg_bit(struct call *c, int i, unsigned field, uint64_t *ret)
{
    struct slice s = c->argv[i];
    int64_t v;
    bool fields = field && s.n && s.p[0] == '#';
    if (fields)
        s = slice_of(s.p + 1, s.n - 1);
    bool good = num_parse_i64(s, &v);
    if (good && fields)
        good = !__builtin_mul_overflow(v, field, &v);
    if (!good || v < 0 || (uint64_t)v >> 3 >= c->executor->config->proto_max_bulk_len) {
        reply_error(c->reply, "ERR bit offset is not an integer or out of range");
        return false;
    }
    *ret = (uint64_t)v;
    return true;
}

/* ---- single bits ---- */

/* The byte at `off`; 0 behind the end and for no row. */
static enum status read_byte(struct call *c, const struct row *r, int64_t off, unsigned char *ret)
{
    struct slice s;
    *ret = 0;
    if (!r || off >= row_string_size(r))
        return ST_OK;
    enum status st = view_string_range(c->view, r, off, 1, c->arena, &s);
    if (st == ST_OK)
        *ret = (unsigned char)s.p[0];
    return st;
}

static enum status setbit_command(struct call *c)
{
    uint64_t bit;
    int64_t on;
    const struct row *r;
    bool wrong;
    unsigned char byte;
    if (!arg_bit(c, 2, 0, &bit) || !arg_range(c, 3, 0, 1, &on, "ERR bit is not an integer or out of range"))
        return ST_OK;
    enum status st = arg_row(c, 1, ROW_STRING, &r, &wrong);
    if (st != ST_OK || wrong)
        return st;
    int64_t off = (int64_t)(bit >> 3);
    if ((st = read_byte(c, r, off, &byte)) != ST_OK)
        return st;
    unsigned char mask = (unsigned char)(0x80 >> (bit & 7));
    bool was = byte & mask;
    if (was != on || !r || off >= row_string_size(r)) {
        char *p = arena_alloc(view_arena(c->view), 1);
        *p = (char)(byte ^ (was != on ? mask : 0));
        st = view_write_range(c->view, call_db(c), c->argv[1], off, slice_of(p, 1));
    }
    if (st == ST_OK)
        reply_integer(c->reply, was);
    return st;
}

static enum status getbit_command(struct call *c)
{
    uint64_t bit;
    const struct row *r;
    bool wrong;
    unsigned char byte;
    if (!arg_bit(c, 2, 0, &bit))
        return ST_OK;
    enum status st = arg_row(c, 1, ROW_STRING, &r, &wrong);
    if (st != ST_OK || wrong || (st = read_byte(c, r, (int64_t)(bit >> 3), &byte)) != ST_OK)
        return st;
    reply_integer(c->reply, byte >> (7 - (bit & 7)) & 1);
    return ST_OK;
}

/* ---- ranges of bits ---- */

/* Bytes of a string, of whose first and last only some bits count. */
struct bit_range {
    int64_t off, len; /* len 0: empty */
    unsigned char first_mask, last_mask;
};

/* BYTE or BIT in argv[i]; *ret_bits stays false when there is no such argument. */
static bool parse_unit(struct call *c, int i, bool *ret_bits)
{
    *ret_bits = i < c->argc && slice_is(c->argv[i], "bit");
    if (i >= c->argc || *ret_bits || slice_is(c->argv[i], "byte"))
        return true;
    reply_error(c->reply, ERR_SYNTAX);
    return false;
}

/* The range from start to end, inclusive, in bytes or bits of a string of `size` bytes. */
static struct bit_range range_of(int64_t start, int64_t end, bool bits, int64_t size)
{
    struct bit_range range = {.first_mask = 0xff, .last_mask = 0xff};
    if (!range_within(&start, &end, bits ? size * 8 : size))
        return range;
    if (bits) {
        range.first_mask = (unsigned char)(0xff >> (start & 7));
        range.last_mask = (unsigned char)(0xff << (7 - (end & 7)));
        start >>= 3;
        end >>= 3;
    }
    range.off = start;
    range.len = end - start + 1;
    return range;
}

/* A range on its way through the pieces of a string. */
struct bit_walk {
    unsigned char first_mask, last_mask; /* of the next piece; of the last */
    int64_t left;                        /* bytes still to come */
    uint64_t count;                      /* bits set so far */
    bool bit;                            /* the one looked for */
    int64_t passed, found;               /* bits passed without finding it; where it is, -1: not yet */
};

static struct bit_walk walk_of(const struct bit_range *range)
{
    return (struct bit_walk){.first_mask = range->first_mask,
                             .last_mask = range->last_mask,
                             .left = range->len,
                             .passed = range->off * 8,
                             .found = -1};
}

/* The masks of a piece's first and last byte. */
static void walk_masks(struct bit_walk *w, struct slice piece, unsigned char *ret_first,
                       unsigned char *ret_last)
{
    w->left -= (int64_t)piece.n;
    *ret_first = w->first_mask;
    *ret_last = w->left ? 0xff : w->last_mask;
    w->first_mask = 0xff;
}

static enum status count_piece(void *arg, struct slice piece)
{
    struct bit_walk *w = arg;
    unsigned char first, last;
    walk_masks(w, piece, &first, &last);
    w->count += bits_count(piece, first, last);
    return ST_OK;
}

static enum status find_in_piece(void *arg, struct slice piece)
{
    struct bit_walk *w = arg;
    unsigned char first, last;
    walk_masks(w, piece, &first, &last);
    int64_t at = w->found < 0 ? bits_find(piece, w->bit, first, last) : -1;
    if (at >= 0)
        w->found = w->passed + at;
    w->passed += (int64_t)piece.n * 8;
    return ST_OK;
}

/* Chunk by chunk, so that none is read behind the one with the bit. */
static enum status find_in_range(struct call *c, const struct row *r, const struct bit_range *range, bool bit,
                                 int64_t *ret)
{
    struct bit_walk w = walk_of(range);
    enum status st = ST_OK;
    w.bit = bit;
    while (st == ST_OK && w.found < 0 && w.left) {
        int64_t off = w.passed / 8, len = STORE_CHUNK_BYTES - off % STORE_CHUNK_BYTES;
        st = view_string_each(c->view, r, off, len < w.left ? len : w.left, find_in_piece, &w);
    }
    *ret = w.found;
    return st;
}

/* Replies an error for bad arguments only when the key exists, as Redis 7.0 does. */
static enum status bitcount_command(struct call *c)
{
    const struct row *r;
    bool wrong, bits;
    int64_t start = 0, end = -1;
    enum status st = arg_row(c, 1, ROW_STRING, &r, &wrong);
    if (st != ST_OK || wrong)
        return st;
    if (!r) {
        reply_integer(c->reply, 0);
        return ST_OK;
    }
    if (c->argc == 3 || c->argc > 5) {
        reply_error(c->reply, ERR_SYNTAX);
        return ST_OK;
    }
    if (c->argc >= 4 && (!arg_i64(c, 2, &start, NULL) || !arg_i64(c, 3, &end, NULL)))
        return ST_OK;
    if (start < 0 && end < 0 && start > end) {
        reply_integer(c->reply, 0);
        return ST_OK;
    }
    if (!parse_unit(c, 4, &bits))
        return ST_OK;
    struct bit_range range = range_of(start, end, bits, row_string_size(r));
    struct bit_walk w = walk_of(&range);
    if ((st = view_string_each(c->view, r, range.off, range.len, count_piece, &w)) == ST_OK)
        reply_integer(c->reply, (int64_t)w.count);
    return st;
}

/* As if an absent or empty string were followed by zeros without end; so is any string when no end is
   given. */
static enum status bitpos_command(struct call *c)
{
    const struct row *r;
    bool wrong, bits;
    int64_t bit, start = 0, end = -1, at;
    if (!arg_i64(c, 2, &bit, NULL))
        return ST_OK;
    if (bit != 0 && bit != 1) {
        reply_error(c->reply, "ERR The bit argument must be 1 or 0.");
        return ST_OK;
    }
    enum status st = arg_row(c, 1, ROW_STRING, &r, &wrong);
    if (st != ST_OK || wrong)
        return st;
    if (!r) {
        reply_integer(c->reply, bit ? -1 : 0);
        return ST_OK;
    }
    if (c->argc > 6) {
        reply_error(c->reply, ERR_SYNTAX);
        return ST_OK;
    }
    if ((c->argc >= 4 && !arg_i64(c, 3, &start, NULL)) || !parse_unit(c, 5, &bits) ||
        (c->argc >= 5 && !arg_i64(c, 4, &end, NULL)))
        return ST_OK;
    struct bit_range range = range_of(start, end, bits, row_string_size(r));
    if ((st = find_in_range(c, r, &range, bit, &at)) != ST_OK)
        return st;
    if (at < 0 && !bit && range.len && c->argc < 5)
        at = row_string_size(r) * 8;
    reply_integer(c->reply, at);
    return ST_OK;
}

/* ---- BITOP ---- */

static bool parse_op(struct call *c, enum bits_op *ret)
{
    static const char *const words[] = {
        [BITS_AND] = "and", [BITS_OR] = "or", [BITS_XOR] = "xor", [BITS_NOT] = "not"};
    for (int op = BITS_AND; op <= BITS_NOT; op++) {
        if (!slice_is(c->argv[1], words[op]))
            continue;
        *ret = (enum bits_op)op;
        if (op != BITS_NOT || c->argc == 4)
            return true;
        reply_error(c->reply, "ERR BITOP NOT must be called with a single source key.");
        return false;
    }
    reply_error(c->reply, ERR_SYNTAX);
    return false;
}

/* A key to combine; row is NULL when there is none. */
struct source {
    const struct row *row;
    int64_t size;
};

struct combination {
    enum bits_op op;
    char *at;
};

static enum status combine_piece(void *arg, struct slice piece)
{
    struct combination *to = arg;
    bits_combine(to->op, to->at, piece.p, piece.n);
    to->at += piece.n;
    return ST_OK;
}

/* Combines a source into the result; its missing bytes are zeros. */
static enum status combine_source(struct call *c, enum bits_op op, const struct source *from, char *result,
                                  size_t len)
{
    struct combination to = {op, result};
    enum status st = ST_OK;
    if (from->row)
        st = view_string_each(c->view, from->row, 0, from->size, combine_piece, &to);
    if (op == BITS_AND || op == BITS_COPY)
        memset(to.at, 0, len - (size_t)(to.at - result));
    return st;
}

static enum status bitop_command(struct call *c)
{
    enum bits_op op;
    int64_t len = 0;
    int n = c->argc - 3;
    if (!parse_op(c, &op))
        return ST_OK;
    enum status st = ST_OK;
    struct source *from = arena_alloc(c->arena, (size_t)n * sizeof *from);
    view_count_lookups(c->view, true);
    for (int i = 0; i < n; i++) {
        bool wrong;
        if ((st = arg_row(c, i + 3, ROW_STRING, &from[i].row, &wrong)) != ST_OK || wrong)
            return st;
        from[i].size = from[i].row ? row_string_size(from[i].row) : 0;
        if (len < from[i].size)
            len = from[i].size;
    }
    if (len) {
        char *p = arena_alloc(view_arena(c->view), (size_t)len);
        struct slice result = slice_of(p, (size_t)len);
        st = combine_source(c, op == BITS_NOT ? op : BITS_COPY, &from[0], p, (size_t)len);
        for (int i = 1; st == ST_OK && i < n; i++)
            st = combine_source(c, op, &from[i], p, (size_t)len);
        if (st == ST_OK)
            st = view_set_raw_string(c->view, call_db(c), c->argv[2], result);
    } else {
        st = view_del(c->view, call_db(c), c->argv[2], NULL);
    }
    if (st == ST_OK)
        reply_integer(c->reply, len);
    return st;
}

/* ---- table ---- */

const struct command bit_commands[] = {
    {.name = "setbit",
     .fn = setbit_command,
     .arity = 4,
     .flags = CMD_WRITE | CMD_DENYOOM,
     .categories = CAT_WRITE | CAT_BITMAP | CAT_SLOW,
     .keys = {{.flags = KEY_RW | KEY_ACCESS | KEY_UPDATE, .index = 1, .step = 1}},
     .summary = "Sets or clears a bit of a string, which grows as needed, and returns what it was.",
     .since = "2.2.0",
     .group = "bitmap",
     .complexity = "O(1) row or chunk"},
    {.name = "getbit",
     .fn = getbit_command,
     .arity = 3,
     .flags = CMD_READONLY | CMD_FAST | CMD_ROWS_ONLY,
     .categories = CAT_READ | CAT_BITMAP | CAT_FAST,
     .keys = {{.flags = KEY_RO | KEY_ACCESS, .index = 1, .step = 1}},
     .summary = "Returns a bit of a string.",
     .since = "2.2.0",
     .group = "bitmap",
     .complexity = "O(1) row or chunk"},
    {.name = "bitcount",
     .fn = bitcount_command,
     .arity = -2,
     .flags = CMD_READONLY,
     .categories = CAT_READ | CAT_BITMAP | CAT_SLOW,
     .keys = {{.flags = KEY_RO | KEY_ACCESS, .index = 1, .step = 1}},
     .summary = "Counts the bits that are set in a string or a part of it.",
     .since = "2.6.0",
     .group = "bitmap",
     .complexity = "O(1) row; above 64 KiB O(N) chunks of the part"},
    {.name = "bitpos",
     .fn = bitpos_command,
     .arity = -3,
     .flags = CMD_READONLY,
     .categories = CAT_READ | CAT_BITMAP | CAT_SLOW,
     .keys = {{.flags = KEY_RO | KEY_ACCESS, .index = 1, .step = 1}},
     .summary = "Finds the first bit that is set, or clear, in a string or a part of it.",
     .since = "2.8.7",
     .group = "bitmap",
     .complexity = "O(1) row; above 64 KiB O(N) chunks up to the bit found"},
    {.name = "bitop",
     .fn = bitop_command,
     .arity = -4,
     .flags = CMD_WRITE | CMD_DENYOOM,
     .categories = CAT_WRITE | CAT_BITMAP | CAT_SLOW,
     .keys = {{.flags = KEY_OW | KEY_UPDATE, .index = 2, .step = 1},
              {.flags = KEY_RO | KEY_ACCESS, .index = 3, .last = -1, .step = 1}},
     .summary = "Combines strings bit by bit (AND, OR, XOR, NOT) and stores the result.",
     .since = "2.6.0",
     .group = "bitmap",
     .complexity = "O(N) rows for N keys; above 64 KiB all their chunks"},
    {.name = NULL},
};
