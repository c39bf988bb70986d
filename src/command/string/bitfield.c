/* BITFIELD: integers of any width inside a string.

   All operations are parsed before the first is run. They run on a window: the bytes that a run of
   neighbouring operations touches, read at once, changed in memory and written at once. So many operations on
   a few bytes cost one read and one write, and operations far apart in a long string read only the chunks
   they touch. */
#include "base/num.h"
#include "command/families.h"
#include "command/string/bit.h"
#include "command/string/bits.h"
#include "command/string/value.h"
#include "exec/args.h"

#define WINDOW_BYTES STORE_CHUNK_BYTES

enum op_kind { OP_GET, OP_SET, OP_INCRBY };

struct op {
    enum op_kind kind;
    struct bits_type type;
    enum bits_overflow overflow;
    uint64_t bit;
    int64_t value; /* to set or to add */
};

/* The bytes that an operation touches. */
static int64_t op_off(const struct op *op)
{
    return (int64_t)(op->bit / 8);
}

static int64_t op_end(const struct op *op)
{
    return (int64_t)((op->bit + op->type.bits - 1) / 8 + 1);
}

/* ---- arguments ---- */

static bool parse_type(struct call *c, int i, struct bits_type *ret)
{
    struct slice s = c->argv[i];
    int64_t bits;
    bool is_signed = s.n && s.p[0] == 'i';
    if ((is_signed || (s.n && s.p[0] == 'u')) && num_parse_i64(slice_of(s.p + 1, s.n - 1), &bits) &&
        bits >= 1 && bits <= (is_signed ? 64 : 63)) {
        *ret = (struct bits_type){is_signed, (unsigned)bits};
        return true;
    }
    reply_error(c->reply,
                "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported "
                "but i64 is.");
    return false;
}

static bool parse_overflow(struct call *c, int i, enum bits_overflow *ret)
{
    if (slice_is(c->argv[i], "wrap")) {
        *ret = BITS_WRAP;
    } else if (slice_is(c->argv[i], "sat")) {
        *ret = BITS_SAT;
    } else if (slice_is(c->argv[i], "fail")) {
        *ret = BITS_FAIL;
    } else {
        reply_error(c->reply, "ERR Invalid OVERFLOW type specified");
        return false;
    }
    return true;
}

/* The kind of operation that argv[i] names, when it has all its arguments. */
static bool op_kind(struct call *c, int i, enum op_kind *ret)
{
    int args = c->argc - i - 1;
    if (slice_is(c->argv[i], "get") && args >= 2)
        *ret = OP_GET;
    else if (slice_is(c->argv[i], "set") && args >= 3)
        *ret = OP_SET;
    else if (slice_is(c->argv[i], "incrby") && args >= 3)
        *ret = OP_INCRBY;
    else
        return false;
    return true;
}

/* The operations in arena memory, or an error has been replied. *ret_end: bytes that a string needs for all
   that may write; 0 when none does. */
static bool parse_ops(struct call *c, struct op **ret_ops, size_t *ret_n, int64_t *ret_end)
{
    struct op *ops = arena_alloc(c->arena, (size_t)c->argc * sizeof *ops);
    enum bits_overflow overflow = BITS_WRAP;
    size_t n = 0;
    *ret_end = 0;
    for (int i = 2; i < c->argc;) {
        struct op *op = &ops[n];
        if (slice_is(c->argv[i], "overflow") && i + 1 < c->argc) {
            if (!parse_overflow(c, i + 1, &overflow))
                return false;
            i += 2;
            continue;
        }
        *op = (struct op){.overflow = overflow};
        if (!op_kind(c, i, &op->kind)) {
            reply_error(c->reply, ERR_SYNTAX);
            return false;
        }
        if (!parse_type(c, i + 1, &op->type) || !arg_bit(c, i + 2, op->type.bits, &op->bit))
            return false;
        if (op->kind != OP_GET) {
            if (!arg_i64(c, i + 3, &op->value, NULL))
                return false;
            if (*ret_end < op_end(op))
                *ret_end = op_end(op);
        }
        n++;
        i += op->kind == OP_GET ? 3 : 4;
    }
    *ret_ops = ops;
    *ret_n = n;
    return true;
}

/* ---- running them ---- */

struct window {
    char *bytes;
    int64_t off, end;
    int64_t dirty_off,
        dirty_end; /* what was changed; a GET may have made the window longer than the string */
};

/* How many of the operations fit in one window, at least one, and its borders. */
static size_t window_fit(const struct op *ops, size_t n, struct window *w)
{
    size_t i = 0;
    *w = (struct window){0};
    for (; i < n; i++) {
        int64_t off = op_off(&ops[i]), end = op_end(&ops[i]);
        int64_t low = i && w->off < off ? w->off : off, high = i && w->end > end ? w->end : end;
        if (i && high - low > WINDOW_BYTES)
            break;
        w->off = low;
        w->end = high;
    }
    w->dirty_off = w->end;
    w->dirty_end = w->off;
    return i;
}

/* Reads the window; what the string does not have is zero. Its memory lives until the commit, as it may be
   written. */
static enum status window_read(struct call *c, struct window *w)
{
    const struct row *r;
    struct slice s;
    size_t len = (size_t)(w->end - w->off);
    enum status st = arg_any(c, 1, &r);
    if (st != ST_OK)
        return st;
    w->bytes = arena_alloc(view_arena(c->view), len);
    memset(w->bytes, 0, len);
    int64_t size = r ? row_string_size(r) : 0;
    int64_t end = size < w->end ? size : w->end;
    if (end <= w->off)
        return ST_OK;
    if ((st = view_string_range(c->view, r, w->off, end - w->off, c->arena, &s)) == ST_OK)
        memcpy(w->bytes, s.p, s.n);
    return st;
}

static void run_op(struct call *c, const struct op *op, struct window *w)
{
    uint64_t bit = op->bit - (uint64_t)w->off * 8;
    int64_t old = bits_get_typed(w->bytes, bit, op->type), fresh;
    if (op->kind == OP_GET) {
        reply_integer(c->reply, old);
        return;
    }
    bool fits = op->kind == OP_SET ? bits_add(op->type, op->overflow, op->value, 0, &fresh)
                                   : bits_add(op->type, op->overflow, old, op->value, &fresh);
    if (!fits && op->overflow == BITS_FAIL) {
        reply_null(c->reply);
        return;
    }
    reply_integer(c->reply, op->kind == OP_SET ? old : fresh);
    if (fresh == old)
        return;
    bits_put(w->bytes, bit, op->type.bits, (uint64_t)fresh);
    if (w->dirty_off > op_off(op))
        w->dirty_off = op_off(op);
    if (w->dirty_end < op_end(op))
        w->dirty_end = op_end(op);
}

static enum status run_ops(struct call *c, const struct op *ops, size_t n)
{
    reply_array(c->reply, n);
    for (size_t done = 0; done < n;) {
        struct window w;
        size_t fit = window_fit(ops + done, n - done, &w);
        enum status st = window_read(c, &w);
        if (st != ST_OK)
            return st;
        for (size_t i = 0; i < fit; i++)
            run_op(c, &ops[done + i], &w);
        done += fit;
        if (w.dirty_end <= w.dirty_off)
            continue;
        struct slice changed = slice_of(w.bytes + (w.dirty_off - w.off), (size_t)(w.dirty_end - w.dirty_off));
        if ((st = view_write_range(c->view, call_db(c), c->argv[1], w.dirty_off, changed)) != ST_OK)
            return st;
    }
    return ST_OK;
}

static enum status bitfield(struct call *c, bool readonly)
{
    struct op *ops;
    size_t n;
    int64_t end;
    const struct row *r;
    bool wrong;
    if (!parse_ops(c, &ops, &n, &end))
        return ST_OK;
    if (readonly && end) {
        reply_error(c->reply, "ERR BITFIELD_RO only supports the GET subcommand");
        return ST_OK;
    }
    view_count_lookups(c->view, end == 0);
    enum status st = arg_row(c, 1, ROW_STRING, &r, &wrong);
    view_count_lookups(c->view, false);
    if (st != ST_OK || wrong)
        return st;
    /* Whatever becomes of the operations, the string grows to the last bit that one of them may write: a zero
       byte at its new end does it. */
    if (end > (r ? row_string_size(r) : 0))
        st = view_write_range(c->view, call_db(c), c->argv[1], end - 1, slice_of("", 1));
    return st == ST_OK ? run_ops(c, ops, n) : st;
}

static enum status bitfield_command(struct call *c)
{
    return bitfield(c, false);
}

static enum status bitfield_ro_command(struct call *c)
{
    return bitfield(c, true);
}

/* BITFIELD with nothing but GET (and OVERFLOW) only reads its key. */
static uint32_t bitfield_key_flags(const struct slice *argv, int argc)
{
    for (int i = 2; i < argc; i++) {
        if (slice_is(argv[i], "get") && i + 2 < argc)
            i += 2;
        else if (slice_is(argv[i], "overflow") && i + 1 < argc)
            i += 1;
        else
            return KEY_RW | KEY_ACCESS | KEY_UPDATE;
    }
    return KEY_RO | KEY_ACCESS;
}

/* ---- table ---- */

const struct command bitfield_commands[] = {
    {.name = "bitfield",
     .fn = bitfield_command,
     .arity = -2,
     .flags = CMD_WRITE | CMD_DENYOOM,
     .categories = CAT_WRITE | CAT_BITMAP | CAT_SLOW,
     .keys = {{.flags = KEY_RW | KEY_ACCESS | KEY_UPDATE | KEY_VARIABLE,
               .index = 1,
               .step = 1,
               .notes = "This command allows both access and modification of the key"}},
     .key_flags = bitfield_key_flags,
     .summary = "Reads and changes integers of any width inside a string.",
     .since = "3.2.0",
     .group = "bitmap",
     .complexity = "O(1) row; above 64 KiB O(N) chunks for N operations"},
    {.name = "bitfield_ro",
     .fn = bitfield_ro_command,
     .arity = -2,
     .flags = CMD_READONLY | CMD_FAST,
     .categories = CAT_READ | CAT_BITMAP | CAT_FAST,
     .keys = {{.flags = KEY_RO | KEY_ACCESS, .index = 1, .step = 1}},
     .summary = "Reads integers of any width inside a string.",
     .since = "6.0.0",
     .group = "bitmap",
     .complexity = "O(1) row; above 64 KiB O(N) chunks for N operations"},
    {.name = NULL},
};
