/* Finds, but for the reading: which names bounds allow, against comparing values one by one; filters, LIKE,
   bounds of any constant, tokens, EXPLAIN. */
#include "base/rand.h"
#include "check.h"
#include "table/find_internal.h"

static struct arena arena;

static struct value integer(int64_t i)
{
    return (struct value){.kind = VALUE_INT, .i = i};
}

static struct value real(double d)
{
    return (struct value){.kind = VALUE_REAL, .d = d};
}

static struct value text(const char *s)
{
    return (struct value){.kind = VALUE_TEXT, .s = slice_str(s)};
}

/* ---- a table of random columns ---- */

#define COLUMNS 4

struct sample {
    struct column columns[COLUMNS];
    struct key_part key[2], parts[3];
    struct table_index index;
    struct table table;
};

static void make_sample(struct sample *x, struct rand *r)
{
    static const enum column_type types[] = {COLUMN_INTEGER, COLUMN_REAL,    COLUMN_TEXT,
                                             COLUMN_BLOB,    COLUMN_BOOLEAN, COLUMN_TIMESTAMP};
    static const char *const names[COLUMNS] = {"a", "b", "c", "d"};
    *x = (struct sample){0};
    for (size_t i = 0; i < COLUMNS; i++)
        x->columns[i] = (struct column){
            .name = slice_str(names[i]), .id = (uint16_t)(i + 1), .type = types[rand_below(r, 6)]};
    for (size_t i = 0; i < 2; i++)
        x->key[i] = (struct key_part){.column = (uint16_t)i, .desc = rand_below(r, 2)};
    for (size_t i = 0; i < 3; i++)
        x->parts[i] = (struct key_part){.column = (uint16_t)(3 - i), .desc = rand_below(r, 2)};
    x->index = (struct table_index){.name = SLICE("by_d"),
                                    .number = 7,
                                    .unique = rand_below(r, 2),
                                    .parts = x->parts,
                                    .nparts = 1 + rand_below(r, 3)};
    x->table = (struct table){.id = 9,
                              .name = SLICE("t"),
                              .schema = {.columns = x->columns,
                                         .ncolumns = COLUMNS,
                                         .key = x->key,
                                         .nkey = 2,
                                         .indexes = &x->index,
                                         .nindexes = 1}};
}

/* Few values, so that they meet; ends and bytes that codes treat in a way of their own among them. */
static struct value some_value(enum column_type t, struct rand *r)
{
    static const char *const texts[] = {"", "a", "ab", "abc", "b", "\xc3\xa9", "a\x01", "z", "\x7f"};
    static const struct slice blobs[] = {{"", 0},         {"\0", 1},  {"\0\0", 2},  {"\xff", 1},
                                         {"\xff\xff", 2}, {"a\0", 2}, {"a\xff", 2}, {"a", 1},
                                         {"\0\xff", 2},   {"\0\1", 2}};
    static const int64_t integers[] = {0, 1, -1, 255, 256, -255, -256, INT64_MAX, INT64_MIN, 5};
    static const double reals[] = {0.0, -0.0, 1.5, -1.5, 1e300, -1e300, 5e-324, 5, -5e-324, 0.1};
    switch (column_kind(t)) {
    case VALUE_INT:
        return integer(integers[rand_below(r, 10)]);
    case VALUE_REAL:
        return real(reals[rand_below(r, 10)]);
    case VALUE_TEXT:
        return text(texts[rand_below(r, 9)]);
    case VALUE_BLOB:
        return (struct value){.kind = VALUE_BLOB, .s = blobs[rand_below(r, 10)]};
    default:
        return (struct value){.kind = VALUE_BOOL, .i = (int64_t)rand_below(r, 2)};
    }
}

static void some_find(struct sample *x, struct rand *r, struct find *f, struct value eq[3])
{
    *f = (struct find){.index = rand_below(r, 2) ? &x->index : NULL, .eq = eq};
    struct find_order o = find_order_of(&x->table.schema, f->index);
    f->neq = rand_below(r, o.nparts + 1);
    for (size_t i = 0; i < f->neq; i++) {
        eq[i] = some_value(x->columns[o.parts[i].column].type, r);
        if (f->index && rand_below(r, 8) == 0)
            eq[i] = (struct value){.kind = VALUE_NULL};
    }
    if (f->neq == o.nparts)
        return;
    enum column_type t = x->columns[o.parts[f->neq].column].type;
    f->low = (struct bound){rand_below(r, 3) == 0, rand_below(r, 2), some_value(t, r)};
    f->high = (struct bound){rand_below(r, 3) == 0, rand_below(r, 2), some_value(t, r)};
    if ((t == COLUMN_TEXT || t == COLUMN_BLOB) && rand_below(r, 3) == 0)
        f->prefix = some_value(t, r).s;
}

static bool starts(struct slice s, struct slice prefix)
{
    return s.n >= prefix.n && memcmp(s.p, prefix.p, prefix.n) == 0;
}

static bool should_match(const struct sample *x, const struct find *f, const struct value *values)
{
    struct find_order o = find_order_of(&x->table.schema, f->index);
    for (size_t i = 0; i < f->neq; i++) {
        if (value_compare(&values[o.parts[i].column], &f->eq[i]) != 0)
            return false;
    }
    if (f->neq == o.nparts || (!f->low.on && !f->high.on && !f->prefix.p))
        return true;
    const struct value *v = &values[o.parts[f->neq].column];
    if (v->kind == VALUE_NULL)
        return false;
    int low = f->low.on ? value_compare(v, &f->low.value) : 1;
    int high = f->high.on ? value_compare(v, &f->high.value) : -1;
    return low >= (f->low.exclusive && f->low.on) && high <= -(f->high.exclusive && f->high.on) &&
           (!f->prefix.p || starts(v->s, f->prefix));
}

/* The name of a row, or of its entry. */
static void name_of(const struct sample *x, const struct find *f, const struct value *values, struct buf *out)
{
    struct fault fault = {0};
    bool unique;
    out->len = 0;
    if (f->index)
        CHECK(rowcode_entry(&x->table.schema, f->index, values, out, &unique, &fault));
    else
        CHECK(rowcode_name(&x->table.schema, values, out, &fault));
}

static bool within(const struct find_range *range, struct slice name)
{
    return slice_cmp(name, buf_slice(&range->min)) >= 0 &&
           (!range->has_max || slice_cmp(name, buf_slice(&range->max)) < 0);
}

static void allows_what_values_say(void)
{
    struct rand r;
    rand_seed(&r, 20261116);
    struct buf name = {0};
    for (int round = 0; round < 20000; round++) {
        struct sample x;
        struct find f;
        struct value eq[3], values[COLUMNS];
        if (round % 200 == 0)
            arena_reset(&arena);
        make_sample(&x, &r);
        some_find(&x, &r, &f, eq);
        struct find_range range;
        find_range_make(&x.table.schema, &f, &range);
        for (int i = 0; i < 8; i++) {
            for (size_t k = 0; k < COLUMNS; k++)
                values[k] = k >= 2 && rand_below(&r, 6) == 0 ? (struct value){.kind = VALUE_NULL}
                                                             : some_value(x.columns[k].type, &r);
            for (size_t k = 0; i < 4 && k < f.neq; k++) /* else hardly any would match */
                values[find_order_of(&x.table.schema, f.index).parts[k].column] = eq[k];
            name_of(&x, &f, values, &name);
            bool expected = should_match(&x, &f, values);
            CHECK_EQ(within(&range, buf_slice(&name)), expected);
            if (expected && range.whole_name)
                CHECK_SLICE(buf_slice(&name), buf_slice(&range.min));
            if (range.empty)
                CHECK(!expected);
        }
        find_range_release(&range);
    }
    buf_release(&name);
}

static void goes_on_behind_a_name(void)
{
    static const char *const names[] = {"a", "a\1", "ab", "b", "ba"};
    for (size_t i = 0; i < 5; i++) {
        for (int reverse = 0; reverse < 2; reverse++) {
            struct find_range range = {0};
            find_range_behind(&range, reverse, slice_str(names[i]));
            for (size_t k = 0; k < 5; k++)
                CHECK_EQ(within(&range, slice_str(names[k])), reverse ? k < i : k > i);
            find_range_release(&range);
        }
    }
}

/* Bounds longer than any name are brought to KEYCODE_MAX bytes, and divide names as before. */
static void shortens_long_bounds(void)
{
    struct rand r;
    rand_seed(&r, 3);
    struct sample x;
    do
        make_sample(&x, &r);
    while (x.columns[0].type != COLUMN_TEXT || x.key[0].desc);
    char long_text[2000];
    memset(long_text, 'm', sizeof long_text);
    struct find f = {.low = {true, false, {.kind = VALUE_TEXT, .s = {long_text, sizeof long_text}}}};
    struct find_range range;
    find_range_make(&x.table.schema, &f, &range);
    CHECK(range.min.len <= KEYCODE_MAX);
    struct buf name = {0};
    struct value v = {.kind = VALUE_TEXT, .s = {long_text, 900}};
    keycode_add(&name, &v, false);
    CHECK(!within(&range, buf_slice(&name)));
    long_text[500] = 'n';
    name.len = 0;
    keycode_add(&name, &v, false);
    CHECK(within(&range, buf_slice(&name)));
    find_range_release(&range);
    char most[KEYCODE_MAX];
    memset(most, 'q', sizeof most);
    range = (struct find_range){0};
    find_range_behind(&range, false, slice_of(most, sizeof most));
    CHECK(range.min.len <= KEYCODE_MAX);
    CHECK(!within(&range, slice_of(most, sizeof most)));
    most[sizeof most - 1] = 'r';
    CHECK(within(&range, slice_of(most, sizeof most)));
    find_range_release(&range);
    buf_release(&name);
}

/* ---- filters ---- */

static void likes(void)
{
    static const struct {
        const char *text, *pattern;
        bool expected;
    } cases[] = {
        {"", "", true},
        {"", "%", true},
        {"", "_", false},
        {"a", "", false},
        {"abc", "abc", true},
        {"ABC", "abc", true},
        {"abc", "a%", true},
        {"abc", "%c", true},
        {"abc", "%b%", true},
        {"abc", "_b_", true},
        {"abc", "__", false},
        {"abc", "____", false},
        {"abc", "%%%", true},
        {"aaab", "%ab", true},
        {"aab", "%aab", true},
        {"abab", "%ab", true},
        {"abc", "a%d", false},
        {"\xc3\xa9", "_", true},
        {"\xc3\xa9", "__", false},
        {"x\xc3\xa9y", "x_y", true},
        {"\xc3\xa9", "\xc3\x89", false},
        {"a%b", "a%b", true},
        {"mississippi", "%iss%ip%", true},
        {"mississippi", "%iss%ipx%", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check.context = cases[i].pattern;
        CHECK_EQ(find_like(slice_str(cases[i].text), slice_str(cases[i].pattern)), cases[i].expected);
    }
    check.context = NULL;
}

static void filters(void)
{
    struct value five = integer(5), list[] = {integer(3), {.kind = VALUE_NULL}, integer(5)};
    struct value values[2] = {integer(5), {.kind = VALUE_NULL}};
    static const bool at_five[] = {
        [FILTER_EQ] = true,  [FILTER_NE] = false, [FILTER_LT] = false,  [FILTER_LE] = true,
        [FILTER_GT] = false, [FILTER_GE] = true,  [FILTER_LIKE] = false};
    for (int op = FILTER_EQ; op <= FILTER_LIKE; op++) {
        struct filter f = {.op = (enum filter_op)op, .values = &five, .nvalues = 1};
        struct find q = {.filters = &f, .nfilters = 1};
        CHECK_EQ(find_filters_meet(&q, values, NULL), at_five[op]);
        f.column = 1; /* NULL meets no comparison ... */
        CHECK(!find_filters_meet(&q, values, NULL));
        CHECK(find_filters_meet(&q, values, (bool[]){true, false})); /* ... but is not asked */
    }
    struct filter in = {.op = FILTER_IN, .values = list, .nvalues = 3};
    struct find q = {.filters = &in, .nfilters = 1};
    CHECK(find_filters_meet(&q, values, NULL));
    in.nvalues = 2;
    CHECK(!find_filters_meet(&q, values, NULL));
    in = (struct filter){.op = FILTER_IS_NULL, .column = 1};
    CHECK(find_filters_meet(&q, values, NULL));
    in.op = FILTER_NOT_NULL;
    CHECK(!find_filters_meet(&q, values, NULL));
}

/* What a comparison holds for is within its bound, whatever the constant is. */
static void bounds_are_never_narrower(void)
{
    static const int64_t columns_i[] = {INT64_MIN,        -2,       -1, 0, 1, 2, 9007199254740992,
                                        9007199254740993, INT64_MAX};
    static const double columns_d[] = {-1e19, -1.5, 0, 1, 1.5, 9007199254740992.0, 9007199254740994.0, 1e19};
    struct value constants[] = {real(1.5),
                                real(-1.5),
                                real(1e19),
                                real(-1e19),
                                real(9007199254740993.0),
                                integer(1),
                                integer(9007199254740993),
                                integer(INT64_MAX),
                                integer(INT64_MIN)};
    static const enum filter_op ops[] = {FILTER_LT, FILTER_LE, FILTER_GT, FILTER_GE};
    for (size_t c = 0; c < sizeof constants / sizeof *constants; c++) {
        for (size_t o = 0; o < 4; o++) {
            struct filter x = {.op = ops[o], .values = &constants[c], .nvalues = 1};
            struct find q = {.filters = &x, .nfilters = 1};
            for (size_t i = 0; i < 17; i++) {
                struct value v = i < 9 ? integer(columns_i[i]) : real(columns_d[i - 9]);
                struct bound b = {0};
                bool has =
                    find_bound(i < 9 ? COLUMN_INTEGER : COLUMN_REAL, ops[o], &constants[c], &arena, &b);
                if (!has || !find_filters_meet(&q, &v, NULL))
                    continue;
                int order = value_compare(&v, &b.value);
                CHECK(o < 2 ? order <= -b.exclusive : order >= b.exclusive);
            }
        }
    }
    struct bound b;
    struct value null = {.kind = VALUE_NULL}, word = text("x");
    CHECK(!find_bound(COLUMN_INTEGER, FILTER_LT, &null, &arena, &b));
    CHECK(!find_bound(COLUMN_INTEGER, FILTER_LT, &word, &arena, &b));
    CHECK(!find_bound(COLUMN_INTEGER, FILTER_EQ, &constants[0], &arena, &b));
}

/* ---- tokens ---- */

static struct sample fixed;

static void make_fixed(void)
{
    struct rand r;
    rand_seed(&r, 1);
    make_sample(&fixed, &r);
    for (size_t i = 0; i < COLUMNS; i++)
        fixed.columns[i].type = i % 2 ? COLUMN_TEXT : COLUMN_INTEGER;
    fixed.index.nparts = 2;
    fixed.index.unique = false;
}

static bool resumes(const struct table *t, const struct find *f, struct slice token, struct find_place *place)
{
    struct fault fault = {0};
    bool good = find_resume(t, f, token, &arena, place, &fault);
    CHECK_EQ(fault.kind, good ? FAULT_NONE : FAULT_BAD_TOKEN);
    return good;
}

static void tokens_come_back(void)
{
    make_fixed();
    struct value eq[] = {text("x"), integer(4)};
    struct find f = {.index = &fixed.index, .eq = eq, .neq = 1};
    struct find_place place = {.begun = true, .nafter = 5, .after = "\0\7abc"}, back;
    struct buf token = {0};
    find_token(&fixed.table, &f, &place, &token);
    REQUIRE(resumes(&fixed.table, &f, buf_slice(&token), &back));
    CHECK(back.begun && !back.ended);
    CHECK_SLICE(slice_of(back.after, back.nafter), slice_of(place.after, place.nafter));
    for (size_t i = 0; i < token.len; i++) /* any damage is found */
        for (char c = 1; c < 127; c++) {
            char was = token.p[i];
            token.p[i] = c;
            CHECK_EQ(resumes(&fixed.table, &f, buf_slice(&token), &back), c == was);
            token.p[i] = was;
        }
    for (size_t i = 0; i < token.len; i++)
        CHECK(!resumes(&fixed.table, &f, slice_of(token.p, i), &back));
    buf_release(&token);
}

static void refuses_tokens_of_others(void)
{
    make_fixed();
    struct value eq[] = {text("x"), integer(4)}, other[] = {text("y")};
    struct filter filter = {.column = 1, .op = FILTER_EQ, .values = eq, .nvalues = 1};
    struct find f = {.index = &fixed.index, .eq = eq, .neq = 1};
    struct find others[] = {f, f, f, f, f, f, f, f};
    others[0].index = NULL;
    others[1].eq = other;
    others[2].neq = 2;
    others[3].reverse = true;
    others[4].low = (struct bound){true, false, integer(1)};
    others[5].high = (struct bound){true, false, integer(1)};
    others[6].filters = &filter;
    others[6].nfilters = 1;
    others[7].prefix = SLICE("");
    struct find_place place = {.begun = true, .nafter = 3, .after = "abc"}, back;
    struct buf token = {0};
    find_token(&fixed.table, &f, &place, &token);
    for (size_t i = 0; i < 8; i++)
        CHECK(!resumes(&fixed.table, &others[i], buf_slice(&token), &back));
    struct find same = f; /* how much is asked for, and what of the rows, may change from page to page */
    same.limit = 7;
    same.scan = 9;
    same.keys_only = true;
    CHECK(resumes(&fixed.table, &same, buf_slice(&token), &back));
    fixed.table.id++;
    CHECK(!resumes(&fixed.table, &f, buf_slice(&token), &back));
    buf_release(&token);
}

/* ---- what a find says ---- */

static void explains(void)
{
    make_fixed();
    fixed.parts[0] = (struct key_part){.column = 2};
    fixed.parts[1] = (struct key_part){.column = 1};
    struct value eq = integer(9088), list[] = {integer(1), integer(2)}, quoted = text("it's\n");
    struct filter filters_[] = {{.column = 3, .op = FILTER_EQ, .values = &quoted, .nvalues = 1},
                                {.column = 0, .op = FILTER_IN, .values = list, .nvalues = 2},
                                {.column = 3, .op = FILTER_IS_NULL}};
    struct find f = {.index = &fixed.index,
                     .eq = &eq,
                     .neq = 1,
                     .low = {true, true, text("J")},
                     .filters = filters_,
                     .nfilters = 3,
                     .reverse = true};
    struct buf out = {0};
    find_explain(&fixed.table, &f, &out);
    CHECK_SLICE(buf_slice(&out),
                SLICE("t: by_d (c = 9088 AND b > 'J'), filter d = 'it''s ' AND a IN (2 values) "
                      "AND d IS NULL, reverse"));
    out.len = 0;
    find_explain(&fixed.table, &(struct find){0}, &out);
    CHECK_SLICE(buf_slice(&out), SLICE("t: primary key"));
    buf_release(&out);
}

static void checks(void)
{
    make_fixed();
    struct value eq[] = {text("x"), integer(4), integer(3)};
    struct find good = {.index = &fixed.index, .eq = eq, .neq = 2};
    struct fault fault = {0};
    CHECK(find_check(&fixed.table, &good, &fault));
    struct find many = good, wrong = good, late = good, prefix = {.prefix = SLICE("x")};
    many.neq = 3;
    CHECK(!find_check(&fixed.table, &many, &fault));
    CHECK_EQ(fault.kind, FAULT_SYNTAX);
    fault = (struct fault){0};
    wrong.eq = eq + 1;
    CHECK(!find_check(&fixed.table, &wrong, &fault));
    CHECK_EQ(fault.kind, FAULT_BAD_TYPE);
    fault = (struct fault){0};
    late.low = (struct bound){.on = true, .value = integer(1)};
    CHECK(!find_check(&fixed.table, &late, &fault));
    CHECK_EQ(fault.kind, FAULT_SYNTAX);
    fault = (struct fault){0};
    CHECK(!find_check(&fixed.table, &prefix, &fault));
    CHECK_EQ(fault.kind, FAULT_BAD_TYPE);
    for (int state = INDEX_BUILDING; state <= INDEX_FAILED; state++) {
        fault = (struct fault){0};
        fixed.index.state = (enum index_state)state;
        CHECK(!find_check(&fixed.table, &good, &fault));
        CHECK_EQ(fault.kind, FAULT_BUILDING);
    }
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    RUN(allows_what_values_say);
    RUN(goes_on_behind_a_name);
    RUN(shortens_long_bounds);
    RUN(likes);
    RUN(filters);
    RUN(bounds_are_never_narrower);
    RUN(tokens_come_back);
    RUN(refuses_tokens_of_others);
    RUN(explains);
    RUN(checks);
    arena_release(&arena);
    return check_done();
}
