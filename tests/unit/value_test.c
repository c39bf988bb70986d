/* Values of columns: which texts and values a column takes, how they compare, how they are printed. */
#include "table/value.h"

#include <float.h>
#include <math.h>
#include <sqlite3.h>

#include "base/rand.h"
#include "check.h"
#include "table/timestamp.h"

static struct arena arena;

static bool parse(enum column_type t, const char *text, struct value *ret)
{
    struct fault fault = {0};
    bool ok = value_parse(t, SLICE("c"), slice_str(text), &arena, ret, &fault);
    CHECK_EQ(ok, fault.kind == FAULT_NONE);
    CHECK(ok || (fault.kind == FAULT_BAD_TYPE && strstr(fault.text, "column c") &&
                 strstr(fault.text, column_type_name(t))));
    return ok;
}

static bool takes_int(enum column_type t, const char *text, int64_t expected)
{
    struct value v;
    return parse(t, text, &v) && v.i == expected && v.kind == column_kind(t);
}

static bool refuses(enum column_type t, const char *text)
{
    struct value v;
    return !parse(t, text, &v);
}

static void knows_types_and_their_aliases(void)
{
    enum column_type t;
    for (int i = 0; i < COLUMN_TYPES; i++)
        CHECK(column_type_find(slice_str(column_type_name((enum column_type)i)), &t) &&
              t == (enum column_type)i);
    CHECK(column_type_find(SLICE("bigint"), &t) && t == COLUMN_INTEGER);
    CHECK(column_type_find(SLICE("Double"), &t) && t == COLUMN_REAL);
    CHECK(column_type_find(SLICE("varchar"), &t) && t == COLUMN_TEXT);
    CHECK(column_type_find(SLICE("bytea"), &t) && t == COLUMN_BLOB);
    CHECK(column_type_find(SLICE("bool"), &t) && t == COLUMN_BOOLEAN);
    CHECK(column_type_find(SLICE("datetime"), &t) && t == COLUMN_TIMESTAMP);
    CHECK(!column_type_find(SLICE("NUMERIC"), &t) && !column_type_find(SLICE(""), &t));
}

static void reads_integers_of_64_bits(void)
{
    CHECK(takes_int(COLUMN_INTEGER, "0", 0));
    CHECK(takes_int(COLUMN_INTEGER, "-0", 0));
    CHECK(takes_int(COLUMN_INTEGER, "+007", 7));
    CHECK(takes_int(COLUMN_INTEGER, "9007199254740993", 9007199254740993));
    CHECK(takes_int(COLUMN_INTEGER, "9223372036854775807", INT64_MAX));
    CHECK(takes_int(COLUMN_INTEGER, "-9223372036854775808", INT64_MIN));
    static const char *const bad[] = {"",
                                      "-",
                                      "+",
                                      "1.0",
                                      "1e3",
                                      " 1",
                                      "1 ",
                                      "0x1",
                                      "9223372036854775808",
                                      "-9223372036854775809",
                                      "99999999999999999999999",
                                      "one",
                                      "--1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        check.context = bad[i];
        CHECK(refuses(COLUMN_INTEGER, bad[i]));
    }
}

static void reads_decimal_numbers(void)
{
    struct value v;
    CHECK(parse(COLUMN_REAL, "0.1", &v) && v.d == 0.1);
    CHECK(parse(COLUMN_REAL, "5", &v) && v.d == 5.0 && v.kind == VALUE_REAL);
    CHECK(parse(COLUMN_REAL, ".5", &v) && v.d == 0.5);
    CHECK(parse(COLUMN_REAL, "5.", &v) && v.d == 5.0);
    CHECK(parse(COLUMN_REAL, "-1e-3", &v) && v.d == -0.001);
    CHECK(parse(COLUMN_REAL, "-0.0", &v) && v.d == 0 && !signbit(v.d));
    CHECK(parse(COLUMN_REAL, "1.7976931348623157e308", &v) && v.d == DBL_MAX);
    CHECK(parse(COLUMN_REAL, "5e-324", &v) && v.d == 5e-324);
    static const char *const bad[] = {"",          ".",     "-",     "e5",     "1e", "1e+", "nan", "inf",
                                      "-Infinity", "0x1p3", "1e309", "-1e309", " 1", "1 ",  "1,5", "1.2.3"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        check.context = bad[i];
        CHECK(refuses(COLUMN_REAL, bad[i]));
    }
}

static void reads_texts_blobs_and_booleans(void)
{
    struct value v;
    struct fault fault = {0};
    CHECK(parse(COLUMN_TEXT, "", &v) && v.s.n == 0 && v.kind == VALUE_TEXT);
    CHECK(parse(COLUMN_TEXT, "h\xc3\xa9", &v) && v.s.n == 3);
    CHECK(refuses(COLUMN_TEXT, "\xff") && refuses(COLUMN_TEXT, "\xed\xa0\x80"));
    CHECK(!value_parse(COLUMN_TEXT, SLICE("c"), slice_of("a\0b", 3), &arena, &v, &fault));
    CHECK(value_parse(COLUMN_BLOB, SLICE("c"), slice_of("\0\xff", 2), &arena, &v, &fault) && v.s.n == 2);
    static const char *const yes[] = {"true", "1", "T", "YES"}, *const no[] = {"False", "0", "f", "no"};
    for (int i = 0; i < 4; i++)
        CHECK(takes_int(COLUMN_BOOLEAN, yes[i], 1) && takes_int(COLUMN_BOOLEAN, no[i], 0));
    CHECK(refuses(COLUMN_BOOLEAN, "2") && refuses(COLUMN_BOOLEAN, "") && refuses(COLUMN_BOOLEAN, "on"));
}

static void reads_json_documents(void)
{
    struct value v;
    CHECK(parse(COLUMN_JSON, " {\"a\": [1, 2]}\n", &v));
    CHECK_SLICE(v.s, SLICE("{\"a\": [1, 2]}"));
    CHECK(parse(COLUMN_JSON, "null", &v) && v.kind == VALUE_NULL);
    CHECK(parse(COLUMN_JSON, "\"\\\\u0000\"", &v)); /* a backslash, then letters */
    CHECK(refuses(COLUMN_JSON, "\"\\u0000\"") && refuses(COLUMN_JSON, "{\"\\\\\\u0000\":1}"));
    CHECK(refuses(COLUMN_JSON, "") && refuses(COLUMN_JSON, "{") && refuses(COLUMN_JSON, "NaN"));
}

static void reads_moments(void)
{
    CHECK(takes_int(COLUMN_TIMESTAMP, "0", 0));
    CHECK(takes_int(COLUMN_TIMESTAMP, "-5", -5));
    CHECK(takes_int(COLUMN_TIMESTAMP, "1970-01-01", 0));
    CHECK(takes_int(COLUMN_TIMESTAMP, "2026-11-16T10:00:00.123Z", 1794823200123));
    CHECK(takes_int(COLUMN_TIMESTAMP, "2026-11-16 10:00", 1794823200000));
    CHECK(takes_int(COLUMN_TIMESTAMP, "2026-11-16t10:00:00z", 1794823200000));
    CHECK(takes_int(COLUMN_TIMESTAMP, "2026-11-16T11:30:00.5+01:30", 1794823200500));
    CHECK(takes_int(COLUMN_TIMESTAMP, "2026-11-16T07:00-0300", 1794823200000));
    CHECK(takes_int(COLUMN_TIMESTAMP, "2026-11-16T11:00+01", 1794823200000));
    CHECK(takes_int(COLUMN_TIMESTAMP, "2026-11-16T10:00:00.123000000", 1794823200123));
    CHECK(takes_int(COLUMN_TIMESTAMP, "0000-01-01T00:00:00Z", TIMESTAMP_MIN));
    CHECK(takes_int(COLUMN_TIMESTAMP, "9999-12-31T23:59:59.999Z", TIMESTAMP_MAX));
    CHECK(takes_int(COLUMN_TIMESTAMP, "253402300799999", TIMESTAMP_MAX));
    CHECK(takes_int(COLUMN_TIMESTAMP, "2000-02-29", 951782400000));
    static const char *const bad[] = {"",
                                      "2026",
                                      "2026-11",
                                      "2026-11-16T",
                                      "2026-11-16T10",
                                      "2026-13-01",
                                      "2026-00-01",
                                      "2026-02-29",
                                      "1900-02-29",
                                      "2026-11-31",
                                      "2026-11-16T24:00",
                                      "2026-11-16T10:60",
                                      "2026-11-16T10:00:60",
                                      "2026-11-16T10:00:00.",
                                      "2026-11-16T10:00:00.1234",
                                      "2026-11-16T10:00:00+",
                                      "2026-11-16T10:00+1",
                                      "2026-11-16T10:00+01:",
                                      "2026-11-16T10:00+16:00",
                                      "2026-11-16T10:00ZZ",
                                      "2026-11-16Z",
                                      "2026-11-16X10:00",
                                      "253402300800000",
                                      "-62167219200001",
                                      "0000-01-01T00:00+01:00",
                                      "9999-12-31T23:59:59-01:00",
                                      "+2026-11-16",
                                      "99999999999999999999",
                                      "now",
                                      "2026-1-1",
                                      "2026-11-16T10:00:00,5"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        check.context = bad[i];
        CHECK(i == 1 || refuses(COLUMN_TIMESTAMP, bad[i])); /* 2026 is a number of milliseconds */
    }
}

/* Every day has the date that SQLite gives it. */
static void counts_days_as_sqlite_does(void)
{
    sqlite3 *db;
    sqlite3_stmt *stmt;
    REQUIRE(sqlite3_open(":memory:", &db) == SQLITE_OK);
    REQUIRE(sqlite3_prepare_v2(db, "SELECT strftime('%Y-%m-%dT%H:%M:%fZ', ?1 / 1000.0, 'unixepoch')", -1,
                               &stmt, NULL) == SQLITE_OK);
    struct buf out = {0};
    for (int64_t ms = TIMESTAMP_MIN; ms <= TIMESTAMP_MAX; ms += (int64_t)86400000 * 97 + 12345678) {
        out.len = 0;
        int64_t back = 0;
        const char *why;
        timestamp_print(&out, ms);
        CHECK(timestamp_parse(buf_slice(&out), &back, &why) && back == ms);
        sqlite3_reset(stmt);
        sqlite3_bind_int64(stmt, 1, ms);
        REQUIRE(sqlite3_step(stmt) == SQLITE_ROW);
        CHECK_SLICE(buf_slice(&out), slice_str((const char *)sqlite3_column_text(stmt, 0)));
        if (check.checks_failed > 5)
            break;
    }
    buf_release(&out);
    sqlite3_finalize(stmt);
    sqlite3_close(db);
}

/* ---- conversion ---- */

static struct value vi(int64_t i)
{
    return (struct value){.kind = VALUE_INT, .i = i};
}

static struct value vd(double d)
{
    return (struct value){.kind = VALUE_REAL, .d = d};
}

static struct value vb(bool b)
{
    return (struct value){.kind = VALUE_BOOL, .i = b};
}

static struct value vt(const char *s)
{
    return (struct value){.kind = VALUE_TEXT, .s = slice_str(s)};
}

static struct value vx(const char *s)
{
    return (struct value){.kind = VALUE_BLOB, .s = slice_str(s)};
}

static bool converts(enum column_type t, struct value from, struct value to)
{
    struct value v;
    struct fault fault = {0};
    return value_convert(t, SLICE("c"), &from, &arena, &v, &fault) && v.kind == to.kind &&
           value_compare(&v, &to) == 0;
}

static bool cannot(enum column_type t, struct value from)
{
    struct value v;
    struct fault fault = {0};
    return !value_convert(t, SLICE("c"), &from, &arena, &v, &fault) && fault.kind == FAULT_BAD_TYPE;
}

static void converts_what_loses_nothing(void)
{
    CHECK(converts(COLUMN_INTEGER, vd(5.0), vi(5)));
    CHECK(converts(COLUMN_INTEGER, vd(-9223372036854775808.0), vi(INT64_MIN)));
    CHECK(converts(COLUMN_INTEGER, vb(true), vi(1)));
    CHECK(converts(COLUMN_INTEGER, vt("42"), vi(42)));
    CHECK(converts(COLUMN_REAL, vi(5), vd(5)));
    CHECK(converts(COLUMN_REAL, vt("0.1"), vd(0.1)));
    CHECK(converts(COLUMN_BOOLEAN, vi(1), vb(true)));
    CHECK(converts(COLUMN_BOOLEAN, vd(0), vb(false)));
    CHECK(converts(COLUMN_TIMESTAMP, vt("1970-01-02"), vi(86400000)));
    CHECK(converts(COLUMN_TIMESTAMP, vd(1000.0), vi(1000)));
    CHECK(converts(COLUMN_TEXT, vi(-7), vt("-7")));
    CHECK(converts(COLUMN_TEXT, vd(0.1), vt("0.1")));
    CHECK(converts(COLUMN_TEXT, vx("abc"), vt("abc")));
    CHECK(converts(COLUMN_BLOB, vt("abc"), vx("abc")));
    CHECK(converts(COLUMN_JSON, vi(5), vt("5")));
    CHECK(converts(COLUMN_JSON, vb(true), vt("true")));
    CHECK(converts(COLUMN_JSON, vt("[1]"), vt("[1]")));
    for (int t = 0; t < COLUMN_TYPES; t++)
        CHECK(converts((enum column_type)t, (struct value){0}, (struct value){0}));
    struct value v;
    struct fault fault = {0};
    struct value minus_zero = vd(-0.0);
    CHECK(value_convert(COLUMN_REAL, SLICE("c"), &minus_zero, &arena, &v, &fault) && !signbit(v.d));
}

static void refuses_what_loses_something(void)
{
    CHECK(cannot(COLUMN_INTEGER, vd(5.5)));
    CHECK(cannot(COLUMN_INTEGER, vd(9223372036854775808.0)));
    CHECK(cannot(COLUMN_INTEGER, vd(NAN)));
    CHECK(cannot(COLUMN_INTEGER, vt("5.0")));
    CHECK(cannot(COLUMN_INTEGER, vx("5")));
    CHECK(cannot(COLUMN_REAL, vi(9007199254740993)));
    CHECK(cannot(COLUMN_REAL, vi(INT64_MAX)));
    CHECK(cannot(COLUMN_REAL, vd(INFINITY)));
    CHECK(cannot(COLUMN_REAL, vd(NAN)));
    CHECK(cannot(COLUMN_REAL, vb(true)));
    CHECK(cannot(COLUMN_BOOLEAN, vi(2)));
    CHECK(cannot(COLUMN_TIMESTAMP, vi(INT64_MAX)));
    CHECK(cannot(COLUMN_TIMESTAMP, vb(true)));
    CHECK(cannot(COLUMN_TEXT, vx("\xff")));
    CHECK(cannot(COLUMN_TEXT, vb(true)));
    CHECK(cannot(COLUMN_TEXT, vd(NAN)));
    CHECK(cannot(COLUMN_BLOB, vi(5)));
    CHECK(cannot(COLUMN_JSON, vx("{}")));
    CHECK(cannot(COLUMN_JSON, vd(INFINITY)));
}

static void compares_as_sqlite(void)
{
    struct value order[] = {{0},
                            vd(-1e300),
                            vi(INT64_MIN),
                            vd(-2.5),
                            vi(-2),
                            vb(false),
                            vd(0.5),
                            vb(true),
                            vd(1.5),
                            vi(9007199254740992),
                            vi(9007199254740993),
                            vi(INT64_MAX),
                            vd(9223372036854775808.0),
                            vt(""),
                            vt("a"),
                            vt("ab"),
                            vt("b"),
                            vx(""),
                            vx("a")};
    size_t n = sizeof order / sizeof *order;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            int c = value_compare(&order[i], &order[j]);
            CHECK_EQ((c > 0) - (c < 0), (i > j) - (i < j));
        }
    struct value a = vd(-0.0), b = vd(0.0), c = vi(0);
    CHECK(value_compare(&a, &b) == 0 && value_compare(&a, &c) == 0);
}

/* ---- printing ---- */

static void prints_the_shortest_number(void)
{
    static const struct {
        double d;
        const char *text;
    } cases[] = {{5, "5.0"},
                 {0.1, "0.1"},
                 {-0.5, "-0.5"},
                 {1e300, "1e+300"},
                 {1e15, "1e+15"},
                 {123456789012345, "123456789012345.0"},
                 {5e-324, "5e-324"},
                 {0.30000000000000004, "0.30000000000000004"},
                 {DBL_MAX, "1.7976931348623157e+308"},
                 {1e22, "1e+22"},
                 {0, "0.0"},
                 {100, "100.0"},
                 {1.5e-7, "1.5e-07"}};
    char out[VALUE_REAL_CHARS];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK_SLICE(slice_of(out, value_print_real(out, cases[i].d)), slice_str(cases[i].text));
    struct rand r;
    rand_seed(&r, 7);
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = rand_u64(&r);
        struct value v, back;
        struct fault fault = {0};
        memcpy(&v.d, &bits, sizeof bits);
        if (!isfinite(v.d))
            continue;
        size_t n = value_print_real(out, v.d);
        REQUIRE(n <= VALUE_REAL_CHARS);
        REQUIRE(value_parse(COLUMN_REAL, SLICE("c"), slice_of(out, n), &arena, &back, &fault));
        CHECK(back.d == v.d);
    }
}

static void prints_what_can_be_read_again(void)
{
    static const struct {
        enum column_type t;
        const char *text;
    } cases[] = {{COLUMN_INTEGER, "-9223372036854775808"},
                 {COLUMN_REAL, "0.1"},
                 {COLUMN_TEXT, "a b"},
                 {COLUMN_BLOB, "\xff\x01"},
                 {COLUMN_BOOLEAN, "true"},
                 {COLUMN_BOOLEAN, "false"},
                 {COLUMN_TIMESTAMP, "2026-11-16T10:00:00.001Z"},
                 {COLUMN_TIMESTAMP, "0000-02-29T00:00:00.000Z"},
                 {COLUMN_JSON, "{\"a\": 1}"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct value v;
        struct buf out = {0};
        REQUIRE(parse(cases[i].t, cases[i].text, &v));
        value_print(&out, cases[i].t, &v);
        CHECK_SLICE(buf_slice(&out), slice_str(cases[i].text));
        buf_release(&out);
    }
}

static void goes_through_json(void)
{
    static const struct {
        enum column_type t;
        const char *text, *json;
    } cases[] = {{COLUMN_INTEGER, "9223372036854775807", "9223372036854775807"},
                 {COLUMN_REAL, "5", "5.0"},
                 {COLUMN_REAL, "123456.789", "123456.789"},
                 {COLUMN_REAL, "1e300", "1e+300"},
                 {COLUMN_TEXT, "a\"b\n", "\"a\\\"b\\n\""},
                 {COLUMN_BLOB, "\xff", "\"/w==\""},
                 {COLUMN_BOOLEAN, "yes", "true"},
                 {COLUMN_TIMESTAMP, "1970-01-01T00:00:01Z", "1000"},
                 {COLUMN_JSON, "[1, 2]", "[1, 2]"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct value v, back;
        struct buf out = {0};
        struct json j;
        const char *why;
        size_t at;
        REQUIRE(parse(cases[i].t, cases[i].text, &v));
        value_add_json(&out, cases[i].t, &v);
        CHECK_SLICE(buf_slice(&out), slice_str(cases[i].json));
        REQUIRE(json_check(buf_slice(&out), &j, &why, &at));
        CHECK(value_read_json(cases[i].t, &j, &arena, &back) && back.kind == v.kind &&
              !value_compare(&v, &back));
        buf_release(&out);
    }
}

static void a_fault_is_one_line(void)
{
    struct fault f = {0};
    struct slice name = SLICE("a\nb\xff");
    CHECK(!fault_set(&f, FAULT_NO_COLUMN, "column %.*s", FAULT_CUT(name)));
    CHECK_STR(f.text, "column a b?");
    CHECK(!fault_set(&f, FAULT_SYNTAX, "later"));
    CHECK_EQ(f.kind, FAULT_NO_COLUMN);
    char longer[700];
    struct fault g = {0};
    longer[0] = 'x';
    for (int i = 1; i < 699; i += 2)
        memcpy(longer + i, "\xc3\xa9", 2);
    longer[699] = '\0';
    fault_set(&g, FAULT_SYNTAX, "%s", longer);
    CHECK_EQ(strlen(g.text), FAULT_CHARS - 1);
    struct fault h = {0};
    fault_set(&h, FAULT_SYNTAX, "%s", longer + 1);
    CHECK_EQ(strlen(h.text), FAULT_CHARS - 2);
    CHECK_STR(fault_code(FAULT_NO_TABLE), "NOTABLE");
    CHECK_STR(fault_http_code(FAULT_BAD_TOKEN), "bad_cursor");
    CHECK_EQ(fault_http_status(FAULT_CONSTRAINT), 422);
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    RUN(knows_types_and_their_aliases);
    RUN(reads_integers_of_64_bits);
    RUN(reads_decimal_numbers);
    RUN(reads_texts_blobs_and_booleans);
    RUN(reads_json_documents);
    RUN(reads_moments);
    RUN(counts_days_as_sqlite_does);
    RUN(converts_what_loses_nothing);
    RUN(refuses_what_loses_something);
    RUN(compares_as_sqlite);
    RUN(prints_the_shortest_number);
    RUN(prints_what_can_be_read_again);
    RUN(goes_through_json);
    RUN(a_fault_is_one_line);
    arena_release(&arena);
    return check_done();
}
