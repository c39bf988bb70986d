/* Key codes: their bytes, that they are read again as what they were, and that their order is SQLite's. */
#include "table/keycode.h"

#include <float.h>
#include <math.h>
#include <sqlite3.h>

#include "base/rand.h"
#include "check.h"

static struct arena arena;
static struct rand rng;

static struct value vi(int64_t i)
{
    return (struct value){.kind = VALUE_INT, .i = i};
}

static struct value vd(double d)
{
    return (struct value){.kind = VALUE_REAL, .d = d};
}

static struct value vt(const char *s, size_t n)
{
    return (struct value){.kind = VALUE_TEXT, .s = slice_of(s, n)};
}

static bool code_is(struct value v, bool desc, const char *hex)
{
    struct buf out = {0};
    char text[256] = "";
    keycode_add(&out, &v, desc);
    for (size_t i = 0; i < out.len; i++)
        snprintf(text + 2 * i, 3, "%02x", (unsigned)(unsigned char)out.p[i]);
    bool same = strcmp(text, hex) == 0;
    if (!same)
        printf("    %s is not %s\n", text, hex);
    buf_release(&out);
    return same;
}

static void has_the_bytes_that_are_documented(void)
{
    CHECK(code_is((struct value){0}, false, "05"));
    CHECK(code_is((struct value){0}, true, "fa"));
    CHECK(code_is(vi(0), false, "28"));
    CHECK(code_is(vi(256), false, "2a0100"));
    CHECK(code_is(vi(-1), false, "27fe"));
    CHECK(code_is(vi(-255), false, "2700"));
    CHECK(code_is(vi(-256), false, "26feff"));
    CHECK(code_is(vi(INT64_MAX), false, "307fffffffffffffff"));
    CHECK(code_is(vi(INT64_MIN), false, "207fffffffffffffff"));
    CHECK(code_is(vi(255), true, "d600"));
    CHECK(code_is(vt("a\0b", 3), false, "146100ff620001"));
    CHECK(code_is(vt("", 0), false, "140001"));
    CHECK(code_is(vt("", 0), true, "ebfffe"));
    CHECK(code_is((struct value){.kind = VALUE_BLOB, .s = slice_of("\0", 1)}, false, "1200ff0001"));
    CHECK(code_is(vd(0.0), false, "348000000000000000"));
    CHECK(code_is(vd(-0.0), false, "348000000000000000"));
    CHECK(code_is(vd(1.0), false, "34bff0000000000000"));
    CHECK(code_is(vd(-1.0), false, "34400fffffffffffff"));
    CHECK(code_is((struct value){.kind = VALUE_BOOL, .i = 0}, false, "38"));
    CHECK(code_is((struct value){.kind = VALUE_BOOL, .i = 1}, true, "c6"));
}

/* ---- random values ---- */

static int64_t random_int(void)
{
    static const int64_t edges[] = {0,
                                    1,
                                    -1,
                                    255,
                                    256,
                                    -255,
                                    -256,
                                    65535,
                                    65536,
                                    INT64_MAX,
                                    INT64_MIN,
                                    INT64_MIN + 1,
                                    (int64_t)1 << 53,
                                    -((int64_t)1 << 32),
                                    (int64_t)1 << 56};
    uint64_t n = rand_below(&rng, 4);
    if (n == 0)
        return edges[rand_below(&rng, sizeof edges / sizeof *edges)];
    if (n == 1)
        return (int64_t)rand_below(&rng, 20) - 10;
    return (int64_t)rand_u64(&rng) >> rand_below(&rng, 64);
}

static double random_real(void)
{
    static const double edges[] = {0.0,     -0.0,     1,       -1,     0.1,     -0.1,
                                   DBL_MAX, -DBL_MAX, DBL_MIN, 5e-324, -5e-324, 1e15};
    uint64_t n = rand_below(&rng, 3), bits = rand_u64(&rng);
    double d;
    if (n == 0)
        return edges[rand_below(&rng, sizeof edges / sizeof *edges)];
    if (n == 1)
        return (double)((int64_t)rand_below(&rng, 100) - 50) / 4;
    memcpy(&d, &bits, sizeof d);
    return isfinite(d) ? d : 2.5;
}

/* Few different bytes, so that one is often another's beginning. */
static struct slice random_bytes(bool text)
{
    static const char any[] = {0, 1, (char)0xff, (char)0xfe, 'a', 'b', 0, (char)0x80};
    static const char letters[] = "ab\x01\x7f ~";
    size_t n = (size_t)rand_below(&rng, 6);
    char *p = arena_alloc(&arena, n + 1);
    for (size_t i = 0; i < n; i++)
        p[i] = text ? letters[rand_below(&rng, 6)] : any[rand_below(&rng, 8)];
    return slice_of(p, n);
}

static struct value random_value(enum column_type t)
{
    struct value v = {.kind = column_kind(t)};
    if (rand_below(&rng, 8) == 0)
        v.kind = VALUE_NULL;
    else if (v.kind == VALUE_INT)
        v.i = random_int();
    else if (v.kind == VALUE_REAL)
        v.d = random_real();
    else if (v.kind == VALUE_BOOL)
        v.i = (int64_t)rand_below(&rng, 2);
    else
        v.s = random_bytes(t == COLUMN_TEXT);
    return v;
}

static enum column_type random_type(void)
{
    return (enum column_type)rand_below(&rng, COLUMN_JSON);
}

static bool same(const struct value *x, const struct value *y)
{
    return x->kind == y->kind && value_compare(x, y) == 0;
}

/* ---- properties ---- */

static void reads_again_what_it_wrote(void)
{
    struct buf out = {0};
    for (int round = 0; round < 20000; round++) {
        struct value v = random_value(random_type()), back;
        bool desc = rand_below(&rng, 2);
        out.len = 0;
        keycode_add(&out, &v, desc);
        size_t n = out.len;
        buf_add(&out, "\x14xyz", rand_below(&rng, 5));
        struct slice in = buf_slice(&out), again = in, code;
        REQUIRE(keycode_take(&in, desc, &arena, &back));
        CHECK(same(&v, &back) && in.n == out.len - n);
        CHECK(keycode_skip(&again, desc, &code) && code.n == n && again.n == out.len - n);
        for (size_t cut = 0; cut < n; cut++) {
            struct slice part = slice_of(out.p, cut);
            CHECK(!keycode_take(&part, desc, &arena, &back) && part.n == cut);
            CHECK(!keycode_skip(&part, desc, &code));
        }
    }
    buf_release(&out);
    arena_reset(&arena);
}

/* Neither is the beginning of the other, and they compare as their values, DESC the other way. */
static void orders_pairs_whatever_is_behind(void)
{
    struct buf a = {0}, b = {0};
    for (int round = 0; round < 40000; round++) {
        enum column_type t = random_type();
        struct value x = random_value(t), y = random_value(t);
        bool desc = rand_below(&rng, 2);
        int expected = value_compare(&x, &y);
        a.len = b.len = 0;
        keycode_add(&a, &x, desc);
        keycode_add(&b, &y, desc);
        if (expected == 0) {
            CHECK(slice_eq(buf_slice(&a), buf_slice(&b)));
            continue;
        }
        size_t n = a.len < b.len ? a.len : b.len;
        CHECK(memcmp(a.p, b.p, n) != 0);
        buf_add(&a, rand_below(&rng, 2) ? "\xff" : "\0", 1);
        buf_add(&b, rand_below(&rng, 2) ? "\xff" : "\0", 1);
        CHECK_EQ(slice_cmp(buf_slice(&a), buf_slice(&b)) < 0, (expected < 0) != desc);
        CHECK((uint8_t)a.p[0] != 0 && (uint8_t)a.p[0] != 0xff);
    }
    buf_release(&a);
    buf_release(&b);
    arena_reset(&arena);
}

/* A text lies within the bounds of a prefix just when it begins with it. */
static void bounds_what_begins_with_a_prefix(void)
{
    struct buf low = {0}, high = {0}, code = {0};
    for (int round = 0; round < 20000; round++) {
        enum column_type t = rand_below(&rng, 2) ? COLUMN_TEXT : COLUMN_BLOB;
        struct value p = {.kind = column_kind(t), .s = random_bytes(t == COLUMN_TEXT)};
        struct value v = {.kind = column_kind(t), .s = random_bytes(t == COLUMN_TEXT)};
        bool desc = rand_below(&rng, 2);
        low.len = high.len = code.len = 0;
        keycode_add_prefix(&low, &p, desc);
        buf_add_slice(&high, buf_slice(&low));
        REQUIRE(keycode_behind(&high, 0));
        keycode_add(&code, &v, desc);
        bool inside = slice_cmp(buf_slice(&low), buf_slice(&code)) <= 0 &&
                      slice_cmp(buf_slice(&code), buf_slice(&high)) < 0;
        bool begins = v.s.n >= p.s.n && slice_eq(slice_of(v.s.p, p.s.n), p.s);
        CHECK_EQ(inside, begins);
    }
    struct buf all = {0};
    buf_add(&all, "x\xff\xff", 3);
    CHECK(!keycode_behind(&all, 1));
    buf_release(&all);
    buf_release(&low);
    buf_release(&high);
    buf_release(&code);
    arena_reset(&arena);
}

static void refuses_what_it_would_not_write(void)
{
    static const struct {
        const char *bytes;
        size_t n;
    } bad[] = {{"", 0},
               {"\x00", 1},
               {"\xff", 1},
               {"\x29\x00", 2},                             /* 0 in one byte */
               {"\x27\xff", 2},                             /* -0 */
               {"\x2a\x00\x01", 3},                         /* 1 in two */
               {"\x30\x80\x00\x00\x00\x00\x00\x00\x00", 9}, /* 2^63 */
               {"\x20\x7f\xff\xff\xff\xff\xff\xff\xfe", 9}, /* -2^63 - 1 */
               {"\x31\x01\x01\x01\x01\x01\x01\x01\x01\x01", 10},
               {"\x34\x7f\xff\xff\xff\xff\xff\xff\xff", 9}, /* -0.0 */
               {"\x34\xff\xf0\x00\x00\x00\x00\x00\x00", 9}, /* infinity */
               {"\x34\xff\xf8\x00\x00\x00\x00\x00\x00", 9}, /* NaN */
               {"\x14\x61\x00\x02", 4},
               {"\x14\x61\x00", 3},
               {"\x3a", 1}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct slice in = slice_of(bad[i].bytes, bad[i].n);
        struct value v;
        CHECK(!keycode_take(&in, false, &arena, &v) && in.n == bad[i].n);
    }
}

/* ---- against SQLite ---- */

#define ROWS    60
#define TABLES  400
#define COLUMNS 5

static void bind(sqlite3_stmt *stmt, int at, const struct value *v)
{
    if (v->kind == VALUE_NULL)
        sqlite3_bind_null(stmt, at);
    else if (v->kind == VALUE_REAL)
        sqlite3_bind_double(stmt, at, v->d);
    else if (v->kind == VALUE_TEXT)
        sqlite3_bind_text(stmt, at, v->s.n ? v->s.p : "", (int)v->s.n, SQLITE_TRANSIENT);
    else if (v->kind == VALUE_BLOB)
        sqlite3_bind_blob(stmt, at, v->s.n ? v->s.p : "", (int)v->s.n, SQLITE_TRANSIENT);
    else
        sqlite3_bind_int64(stmt, at, v->i);
}

/* One table of random columns and rows: SQLite orders by the columns, then by the codes. Where the codes of
   two rows are the same, so are the values. */
static void one_table(sqlite3 *db)
{
    struct buf sql = {0}, code = {0};
    sqlite3_stmt *insert = NULL, *select = NULL;
    int n = 1 + (int)rand_below(&rng, COLUMNS);
    enum column_type types[COLUMNS];
    bool desc[COLUMNS];
    sqlite3_exec(db, "DELETE FROM t", NULL, NULL, NULL);
    buf_addf(&sql, "SELECT rowid, code FROM t ORDER BY ");
    for (int i = 0; i < n; i++) {
        types[i] = random_type();
        desc[i] = rand_below(&rng, 2);
        buf_addf(&sql, "c%d %s, ", i, desc[i] ? "DESC" : "ASC");
    }
    buf_addf(&sql, "code");
    REQUIRE(sqlite3_prepare_v2(db, "INSERT INTO t VALUES (?1, ?2, ?3, ?4, ?5, ?6)", -1, &insert, NULL) ==
            SQLITE_OK);
    for (int row = 0; row < ROWS; row++) {
        code.len = 0;
        sqlite3_reset(insert);
        sqlite3_clear_bindings(insert);
        for (int i = 0; i < n; i++) {
            struct value v = random_value(types[i]);
            bind(insert, i + 1, &v);
            keycode_add(&code, &v, desc[i]);
        }
        sqlite3_bind_blob(insert, 6, code.p, (int)code.len, SQLITE_TRANSIENT);
        REQUIRE(sqlite3_step(insert) == SQLITE_DONE);
    }
    REQUIRE(sqlite3_prepare_v2(db, sql.p, (int)sql.len, &select, NULL) == SQLITE_OK);
    code.len = 0;
    int seen = 0;
    for (; sqlite3_step(select) == SQLITE_ROW; seen++) {
        struct slice next = slice_of(sqlite3_column_blob(select, 1), (size_t)sqlite3_column_bytes(select, 1));
        CHECK(slice_cmp(buf_slice(&code), next) <= 0);
        code.len = 0;
        buf_add_slice(&code, next);
    }
    CHECK_EQ(seen, ROWS);
    sqlite3_finalize(insert);
    sqlite3_finalize(select);
    buf_release(&sql);
    buf_release(&code);
    arena_reset(&arena);
}

static void orders_tables_as_sqlite_does(void)
{
    sqlite3 *db;
    REQUIRE(sqlite3_open(":memory:", &db) == SQLITE_OK);
    sqlite3_exec(db, "CREATE TABLE t (c0, c1, c2, c3, c4, code BLOB); BEGIN", NULL, NULL, NULL);
    for (int i = 0; i < TABLES; i++)
        one_table(db);
    sqlite3_close(db);
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    rand_seed(&rng, 14);
    RUN(has_the_bytes_that_are_documented);
    RUN(reads_again_what_it_wrote);
    RUN(orders_pairs_whatever_is_behind);
    RUN(bounds_what_begins_with_a_prefix);
    RUN(refuses_what_it_would_not_write);
    RUN(orders_tables_as_sqlite_does);
    arena_release(&arena);
    return check_done();
}
