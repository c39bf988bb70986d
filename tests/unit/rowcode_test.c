/* Rows and entries as they lie in the database, and schemas as JSON. */
#include "table/rowcode.h"

#include <math.h>

#include "base/rand.h"
#include "check.h"
#include "table/keycode.h"

static struct arena arena;
static struct rand rng;

/* people (first TEXT, last TEXT, address TEXT, ssn INTEGER; PRIMARY KEY (first, last DESC)), two indexes. */
static struct schema *people(void)
{
    static struct column columns[4];
    static struct key_part key[2] = {{0, false}, {1, true}}, ssn[2] = {{3, false}, {1, false}},
                           one[1] = {{3, true}};
    static struct table_index indexes[2];
    static struct schema s;
    static const char *const names[] = {"first", "last", "address", "ssn"};
    for (int i = 0; i < 4; i++)
        columns[i] = (struct column){.name = slice_str(names[i]),
                                     .id = (uint16_t)(i + 1),
                                     .type = i == 3 ? COLUMN_INTEGER : COLUMN_TEXT};
    indexes[0] = (struct table_index){.name = SLICE("by_ssn"), .number = 1, .parts = ssn, .nparts = 2};
    indexes[1] = (struct table_index){
        .name = SLICE("one_ssn"), .number = 258, .unique = true, .parts = one, .nparts = 1};
    s = (struct schema){.columns = columns,
                        .ncolumns = 4,
                        .key = key,
                        .nkey = 2,
                        .indexes = indexes,
                        .nindexes = 2,
                        .next_column = 5,
                        .next_index = 259};
    return &s;
}

static struct value text(const char *t)
{
    return (struct value){.kind = VALUE_TEXT, .s = slice_str(t)};
}

static struct value integer(int64_t i)
{
    return (struct value){.kind = VALUE_INT, .i = i};
}

static bool decode(const struct schema *s, const char *value, struct table_row *ret)
{
    struct error err;
    struct buf exact = {0};
    buf_add(&exact, value, strlen(value)); /* so that a byte read too many is found */
    struct slice copy = arena_copy(&arena, buf_slice(&exact));
    buf_release(&exact);
    return rowcode_decode(s, SLICE("name"), copy, 77, &arena, ret, &err) == ST_OK;
}

/* ---- schemas ---- */

static void a_schema_goes_through_json(void)
{
    struct schema *s = people(), back, again;
    struct fault fault = {0};
    struct error err = {0};
    s->columns[2].has_default = true;
    s->columns[2].default_value = text("no\"where");
    s->columns[3].missing = integer(9);
    s->indexes[0].state = INDEX_FAILED;
    s->indexes[0].error = SLICE("two rows have it");
    static struct slice checks[] = {{"ssn > 0", 7}, {"first <> ''", 11}};
    s->checks = checks;
    s->nchecks = 2;
    CHECK(schema_check(s, &fault));
    CHECK(s->columns[0].not_null && s->columns[1].not_null && !s->columns[2].not_null);
    struct buf json = {0}, twice = {0};
    schema_encode(s, &json);
    REQUIRE_OK(schema_decode(buf_slice(&json), &arena, &back, &err), &err);
    schema_encode(&back, &twice);
    CHECK_SLICE(buf_slice(&twice), buf_slice(&json));
    CHECK_SLICE(
        buf_slice(&json),
        SLICE(
            "{\"format\":1,\"columns\":[{\"id\":1,\"name\":\"first\",\"type\":\"TEXT\",\"not_null\":true},"
            "{\"id\":2,\"name\":\"last\",\"type\":\"TEXT\",\"not_null\":true},"
            "{\"id\":3,\"name\":\"address\",\"type\":\"TEXT\",\"default\":\"no\\\"where\"},"
            "{\"id\":4,\"name\":\"ssn\",\"type\":\"INTEGER\",\"missing\":9}],"
            "\"key\":[{\"column\":1},{\"column\":2,\"desc\":true}],"
            "\"indexes\":[{\"number\":1,\"name\":\"by_ssn\",\"parts\":[{\"column\":4},{\"column\":2}],"
            "\"state\":\"failed\",\"error\":\"two rows have it\"},"
            "{\"number\":258,\"name\":\"one_ssn\",\"unique\":true,\"parts\":[{\"column\":4,\"desc\":true}]}],"
            "\"checks\":[\"ssn > 0\",\"first <> ''\"],\"next_column\":5,\"next_index\":259}"));
    CHECK_EQ(schema_column(&back, SLICE("SSN")), 3);
    CHECK_EQ(schema_column(&back, SLICE("ss")), -1);
    CHECK_EQ(schema_index(&back, SLICE("One_SSN")), 1);
    /* No beginning of it is one. */
    for (size_t n = 0; n < json.len; n++)
        CHECK_EQ(schema_decode(slice_of(json.p, n), &arena, &again, &err), ST_CORRUPT);
    buf_release(&json);
    buf_release(&twice);
}

static void refuses_json_that_is_no_schema(void)
{
#define COLUMN1 "{\"id\":1,\"name\":\"a\",\"type\":\"TEXT\"}"
#define REST    ",\"indexes\":[],\"checks\":[],\"next_column\":9,\"next_index\":1}"
    struct schema s;
    struct error err;
    CHECK_OK(schema_decode(SLICE("{\"format\":1,\"columns\":[" COLUMN1 "],\"key\":[{\"column\":1}]" REST),
                           &arena, &s, &err),
             &err);
    static const char *const bad[] = {
        "",
        "1",
        "[]",
        "{}",
        "null",
        "{\"format\":2,\"columns\":[" COLUMN1 "],\"key\":[{\"column\":1}]" REST,
        "{\"format\":1,\"more\":1,\"columns\":[" COLUMN1 "],\"key\":[{\"column\":1}]" REST,
        "{\"format\":1,\"columns\":[" COLUMN1 "],\"key\":[]" REST,
        "{\"format\":1,\"columns\":[" COLUMN1 "],\"key\":[{\"column\":2}]" REST,
        "{\"format\":1,\"columns\":[" COLUMN1 "],\"key\":[{\"column\":1},{\"column\":1}]" REST,
        "{\"format\":1,\"columns\":[" COLUMN1 "," COLUMN1 "],\"key\":[{\"column\":1}]" REST,
        "{\"format\":1,\"key\":[{\"column\":1}],\"columns\":[" COLUMN1 "]" REST,
        "{\"format\":1,\"columns\":[{\"id\":1,\"name\":\"a\"}],\"key\":[{\"column\":1}]" REST,
        "{\"format\":1,\"columns\":[{\"id\":1,\"name\":\"a\",\"type\":\"NONE\"}],\"key\":[{\"column\":1}"
        "]" REST,
        "{\"format\":1,\"columns\":[{\"id\":0,\"name\":\"a\",\"type\":\"TEXT\"}],\"key\":[{\"column\":0}"
        "]" REST,
        "{\"format\":1,\"columns\":[{\"id\":9,\"name\":\"a\",\"type\":\"TEXT\"}],\"key\":[{\"column\":9}"
        "]" REST,
        "{\"format\":1,\"columns\":[{\"id\":1,\"name\":\"a "
        "b\",\"type\":\"TEXT\"}],\"key\":[{\"column\":1}]" REST,
        "{\"format\":1,\"columns\":[{\"id\":1,\"name\":\"a\",\"type\":\"TEXT\",\"default\":5}],\"key\":[{"
        "\"column\":1}]" REST,
        "{\"format\":1,\"columns\":[{\"id\":1,\"name\":\"a\",\"type\":\"JSON\"}],\"key\":[{\"column\":1}"
        "]" REST,
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        check.context = bad[i];
        CHECK_EQ(schema_decode(slice_str(bad[i]), &arena, &s, &err), ST_CORRUPT);
    }
}

static enum fault_kind fault_of(struct schema *s)
{
    struct fault fault = {0};
    bool ok = schema_check(s, &fault);
    CHECK_EQ(ok, fault.kind == FAULT_NONE);
    return fault.kind;
}

static void refuses_schemas_that_do_not_fit(void)
{
    struct schema *s = people();
    CHECK_EQ(fault_of(s), FAULT_NONE);
    s->columns[3].name = SLICE("FIRST");
    CHECK_EQ(fault_of(s), FAULT_EXISTS);
    s->columns[3].name = SLICE("limit");
    CHECK_EQ(fault_of(s), FAULT_REFUSED);
    s = people();
    s->columns[3].type = COLUMN_JSON;
    CHECK_EQ(fault_of(s), FAULT_REFUSED);
    s = people();
    s->indexes[1].name = SLICE("BY_SSN");
    CHECK_EQ(fault_of(s), FAULT_EXISTS);
    s = people();
    s->next_index = SCHEMA_NUMBER_MAX + 2;
    CHECK_EQ(fault_of(s), FAULT_TOO_LONG);
    s = people();
    s->on_hashes = true;
    CHECK_EQ(fault_of(s), FAULT_REFUSED);
    s = people();
    s->columns[2].has_default = true;
    s->columns[2].not_null = true;
    CHECK_EQ(fault_of(s), FAULT_CONSTRAINT);
    char *big = arena_alloc(&arena, SCHEMA_BYTES_MAX);
    memset(big, 'x', SCHEMA_BYTES_MAX);
    struct slice check_text = slice_of(big, SCHEMA_BYTES_MAX);
    s = people();
    s->checks = &check_text;
    s->nchecks = 1;
    CHECK_EQ(fault_of(s), FAULT_TOO_LONG);
    CHECK(schema_name_ok(SLICE("_a9")) && !schema_name_ok(SLICE("9a")) && !schema_name_ok(SLICE("")));
    CHECK(!schema_name_ok(SLICE("Larder_x")) && !schema_name_ok(SLICE("sqlite_x")) &&
          !schema_name_ok(SLICE("\xc3\xa9")));
}

static void a_prefix_may_be_any_bytes(void)
{
    struct column c[1] = {{.name = SLICE("id"), .id = 1, .type = COLUMN_TEXT}};
    struct key_part key[1] = {{0, false}};
    static const struct slice prefixes[] = {{"users:", 6}, {"", 0}, {"\xff\x00", 2}, {"\"\n", 2}};
    for (size_t i = 0; i < 4; i++) {
        struct schema s = {.columns = c,
                           .ncolumns = 1,
                           .key = key,
                           .nkey = 1,
                           .next_column = 2,
                           .next_index = 1,
                           .on_hashes = true,
                           .prefix = prefixes[i]},
                      back;
        struct buf json = {0};
        struct error err;
        schema_encode(&s, &json);
        REQUIRE_OK(schema_decode(buf_slice(&json), &arena, &back, &err), &err);
        CHECK(back.on_hashes);
        CHECK_SLICE(back.prefix, prefixes[i]);
        buf_release(&json);
    }
}

/* ---- rows ---- */

static void a_row_is_a_json_array(void)
{
    struct schema *s = people();
    struct value values[] = {text("Mary"), text("Jane"), text("Heaven"), integer(9088)};
    struct table_row row = {.version = 7, .values = values}, back;
    struct buf name = {0}, value = {0};
    struct fault fault = {0};
    struct error err = {0};
    CHECK(rowcode_name(s, values, &name, &fault));
    CHECK_SLICE(buf_slice(&name), slice_of("\x14Mary\0\x01\xeb\xb5\x9e\x91\x9a\xff\xfe", 14));
    rowcode_encode(s, &row, &value);
    CHECK_SLICE(buf_slice(&value), SLICE("[7,\"Mary\",\"Jane\",\"Heaven\",9088]"));
    REQUIRE_OK(rowcode_decode(s, buf_slice(&name), buf_slice(&value), 55, &arena, &back, &err), &err);
    CHECK_EQ(back.version, 7);
    CHECK_EQ(back.expire_at, 55);
    for (int i = 0; i < 4; i++)
        CHECK(back.values[i].kind == values[i].kind && value_compare(&back.values[i], &values[i]) == 0);
    buf_release(&name);
    buf_release(&value);
}

static void a_missing_tail_and_dropped_columns(void)
{
    struct schema *s = people();
    struct table_row row;
    s->columns[2].missing = text("nowhere");
    s->columns[3].missing = integer(5);
    REQUIRE(decode(s, "[3,\"a\",\"b\"]", &row));
    CHECK_SLICE(row.values[2].s, SLICE("nowhere"));
    CHECK_EQ(row.values[3].i, 5);
    REQUIRE(decode(s, "[3,\"a\",\"b\",null]", &row)); /* an explicit NULL is no missing one */
    CHECK_EQ(row.values[2].kind, VALUE_NULL);
    CHECK_EQ(row.values[3].i, 5);
    REQUIRE(decode(s, "[3,\"a\",\"b\",\"c\",4,\"of a later column\",[1,{}]]", &row));
    CHECK_EQ(row.values[3].i, 4);
    s->columns[2].id = 7; /* 3 to 6 were dropped */
    s->columns[3].id = 9;
    s->next_column = 10;
    REQUIRE(decode(s, "[3,\"a\",\"b\",1,{\"x\":[2]},true,\"z\",\"seven\",8,9]", &row));
    CHECK_SLICE(row.values[2].s, SLICE("seven"));
    CHECK_EQ(row.values[3].i, 9);
    struct buf value = {0};
    rowcode_encode(s, &row, &value);
    CHECK_SLICE(buf_slice(&value), SLICE("[3,\"a\",\"b\",null,null,null,null,\"seven\",null,9]"));
    buf_release(&value);
}

static void refuses_what_is_no_row(void)
{
    struct schema *s = people();
    struct table_row row;
    static const char *const bad[] = {"",
                                      "[",
                                      "[]",
                                      "{}",
                                      "[\"1\",\"a\",\"b\"]",
                                      "[1.5,\"a\",\"b\"]",
                                      "[1,\"a\",\"b\"",
                                      "[1,\"a\",\"b\"]x",
                                      "[1,\"a\",\"b\",]",
                                      "[1,,\"a\",\"b\"]",
                                      "[1,\"a\"]",
                                      "[1,null,\"b\"]",
                                      "[1,5,\"b\"]",
                                      "[1,\"a\",\"b\",\"c\",\"d\"]",
                                      "[1,\"a\",\"b\",\"c\",1.5]",
                                      "[1,\"a\",\"b\",\"c\",9223372036854775808]",
                                      "[1,\"\xff\",\"b\"]",
                                      "[1,\"a\\u0000\",\"b\"]",
                                      "[1 \"a\",\"b\"]",
                                      "null"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        check.context = bad[i];
        CHECK(!decode(s, bad[i], &row));
    }
}

/* A text of every length with every kind of byte at every place: some are read quickly, some are not. */
static void reads_texts_of_every_shape(void)
{
    static const char *const bytes[] = {"x",    "\"", "\\",       "\n",           "\x1f",
                                        "\x7f", " ",  "\xc3\xbc", "\xe2\x82\xac", "/"};
    struct schema *s = people();
    for (size_t n = 0; n < 30; n++) {
        for (size_t at = 0; at < n; at++) {
            for (size_t b = 0; b < sizeof bytes / sizeof *bytes; b++) {
                char told[64] = "";
                memset(told, 'a', at);
                strcpy(told + at, bytes[b]);
                memset(told + strlen(told), 'z', n - at - 1);
                struct value values[] = {text("Mary"), text(told), text(told), integer(-(int64_t)n)};
                struct table_row row = {.version = (int64_t)at + 1, .values = values}, back;
                struct buf value = {0};
                struct error err;
                rowcode_encode(s, &row, &value);
                REQUIRE_OK(rowcode_decode(s, SLICE(""), buf_slice(&value), 0, &arena, &back, &err), &err);
                CHECK_SLICE(back.values[1].s, values[1].s);
                CHECK_SLICE(back.values[2].s, values[2].s);
                CHECK(back.values[3].i == values[3].i && back.version == row.version);
                for (size_t cut = 0; cut < value.len; cut++)
                    CHECK_EQ(rowcode_decode(s, SLICE(""), slice_of(value.p, cut), 0, &arena, &back, &err),
                             ST_CORRUPT);
                buf_release(&value);
            }
        }
    }
}

static void reads_numbers_of_every_length(void)
{
    struct schema *s = people();
    for (int64_t n = 1; n > 0 && n < INT64_MAX / 10; n *= 10) {
        const int64_t near[] = {n, n - 1, -n, 1 - n, n + 7, INT64_MAX, INT64_MIN};
        for (size_t i = 0; i < sizeof near / sizeof *near; i++) {
            struct value values[] = {text("a"), text("b"), {.kind = VALUE_NULL}, integer(near[i])};
            struct table_row row = {.version = near[i], .values = values}, back;
            struct buf value = {0};
            struct error err;
            rowcode_encode(s, &row, &value);
            REQUIRE_OK(rowcode_decode(s, SLICE(""), buf_slice(&value), 0, &arena, &back, &err), &err);
            CHECK(back.values[3].i == near[i] && back.version == near[i] &&
                  back.values[2].kind == VALUE_NULL);
            buf_release(&value);
        }
    }
    struct table_row row;
    CHECK(!decode(s, "[1,\"a\",\"b\",null,01]", &row));
    CHECK(!decode(s, "[1,\"a\",\"b\",null,-]", &row));
    CHECK(!decode(s, "[1,\"a\",\"b\",null,1x]", &row));
    CHECK(!decode(s, "[1,\"a\",\"b\",nullx,1]", &row));
    CHECK(!decode(s, "[1,\"a\nb\",\"b\",null,1]", &row));
}

/* ---- entries ---- */

static void entries_name_their_rows(void)
{
    struct schema *s = people();
    struct value values[] = {text("Mary"), text("Jane"), text("Heaven"), integer(9088)};
    struct buf name = {0}, entry = {0}, row = {0};
    struct fault fault = {0};
    struct error err = {0};
    bool unique;
    CHECK(rowcode_name(s, values, &name, &fault));
    CHECK(rowcode_entry(s, &s->indexes[0], values, &entry, &unique, &fault));
    CHECK(!unique);
    CHECK_SLICE(buf_slice(&entry), slice_of("\0\x01\x2a\x23\x80\x14Jane\0\x01\x14Mary\0\x01", 19));
    REQUIRE_OK(rowcode_entry_row(s, &s->indexes[0], buf_slice(&entry), SLICE(""), &row, &err), &err);
    CHECK_SLICE(buf_slice(&row), buf_slice(&name));
    /* Unique: the columns alone; its value names the row. */
    entry.len = row.len = 0;
    CHECK(rowcode_entry(s, &s->indexes[1], values, &entry, &unique, &fault));
    CHECK(unique);
    CHECK_SLICE(buf_slice(&entry), slice_of("\x01\x02\xd5\xdc\x7f", 5));
    REQUIRE_OK(rowcode_entry_row(s, &s->indexes[1], buf_slice(&entry), buf_slice(&name), &row, &err), &err);
    CHECK_SLICE(buf_slice(&row), buf_slice(&name));
    /* NULL is unlike every other: the key is part of its entry. */
    entry.len = row.len = 0;
    values[3] = (struct value){0};
    CHECK(rowcode_entry(s, &s->indexes[1], values, &entry, &unique, &fault));
    CHECK(!unique);
    REQUIRE_OK(rowcode_entry_row(s, &s->indexes[1], buf_slice(&entry), SLICE(""), &row, &err), &err);
    CHECK_SLICE(buf_slice(&row), buf_slice(&name));
    for (size_t n = 0; n < entry.len; n++)
        CHECK_EQ(rowcode_entry_row(s, &s->indexes[1], slice_of(entry.p, n), SLICE(""), &row, &err),
                 ST_CORRUPT);
    buf_release(&name);
    buf_release(&entry);
    buf_release(&row);
}

static void names_have_a_limit(void)
{
    struct schema *s = people();
    char *big = arena_alloc(&arena, 1001);
    memset(big, 'x', 1000);
    big[1000] = '\0';
    struct value values[] = {text(big + 100), text("J"), text("H"), integer(1)};
    struct buf out = {0};
    struct fault fault = {0};
    bool unique;
    CHECK(rowcode_name(s, values, &out, &fault));
    values[0] = text(big + 6); /* 994 + 3, and 4 of J */
    out.len = 0;
    CHECK(!rowcode_name(s, values, &out, &fault));
    CHECK(fault.kind == FAULT_TOO_LONG && out.len == 0);
    values[0] = text(big + 7);
    CHECK(rowcode_name(s, values, &out, &fault) && out.len == KEYCODE_MAX);
    fault = (struct fault){0};
    CHECK(!rowcode_entry(s, &s->indexes[0], values, &out, &unique, &fault));
    CHECK(fault.kind == FAULT_TOO_LONG && strstr(fault.text, "by_ssn") && out.len == KEYCODE_MAX);
    fault = (struct fault){0};
    values[1] = (struct value){0};
    CHECK(!rowcode_name(s, values, &out, &fault));
    CHECK(fault.kind == FAULT_CONSTRAINT && strstr(fault.text, "last"));
    buf_release(&out);
}

/* ---- random tables ---- */

static struct value random_value(enum column_type t, bool null)
{
    static const char *const texts[] = {"", "a", "\"\\", "h\xc3\xa9", "a\nb", "\x7f", "\xf0\x9f\x98\x80"};
    static const char *const documents[] = {"{}",         "[1,[2,{\"a\":\"]\"}]]", "\"x\"", "1e5", "true",
                                            "{\"a\" : 1}"};
    struct value v = {.kind = column_kind(t)};
    if (null && rand_below(&rng, 5) == 0)
        return (struct value){0};
    if (t == COLUMN_JSON)
        v.s = slice_str(documents[rand_below(&rng, 6)]);
    else if (t == COLUMN_TEXT)
        v.s = slice_str(texts[rand_below(&rng, 7)]);
    else if (t == COLUMN_BLOB)
        v.s = arena_copy(&arena, slice_of(&rng, rand_below(&rng, sizeof rng)));
    else if (t == COLUMN_BOOLEAN)
        v.i = (int64_t)rand_below(&rng, 2);
    else if (t == COLUMN_TIMESTAMP)
        v.i = (int64_t)rand_below(&rng, TIMESTAMP_MAX);
    else if (t == COLUMN_INTEGER)
        v.i = (int64_t)rand_u64(&rng) >> rand_below(&rng, 64);
    else
        v.d =
            ldexp((double)rand_u64(&rng), (int)rand_below(&rng, 200) - 100) * (rand_below(&rng, 2) ? 1 : -1);
    return v;
}

static struct key_part *random_parts(const struct schema *s, size_t n)
{
    struct key_part *parts = arena_alloc(&arena, n * sizeof *parts);
    for (size_t i = 0; i < n;) {
        parts[i] = (struct key_part){(uint16_t)rand_below(&rng, s->ncolumns), rand_below(&rng, 2)};
        bool again = s->columns[parts[i].column].type == COLUMN_JSON;
        for (size_t j = 0; j < i; j++)
            again = again || parts[j].column == parts[i].column;
        i += !again;
    }
    return parts;
}

/* Four columns at least that are no JSON, with gaps among their ids, a key and an index of up to four. */
static void random_schema(struct schema *s, struct table_index *x)
{
    size_t n = 4 + (size_t)rand_below(&rng, 5);
    *s = (struct schema){
        .ncolumns = n, .columns = arena_alloc(&arena, n * sizeof *s->columns), .next_column = 1};
    for (size_t i = 0; i < n; i++) {
        s->next_column = (uint16_t)(s->next_column + rand_below(&rng, 3));
        enum column_type t = (enum column_type)rand_below(&rng, i < 4 ? COLUMN_JSON : COLUMN_TYPES);
        s->columns[i] = (struct column){
            .name = SLICE("c"), .id = s->next_column++, .type = t, .missing = random_value(t, true)};
    }
    s->nkey = 1 + (size_t)rand_below(&rng, 4);
    s->key = random_parts(s, s->nkey);
    *x = (struct table_index){.name = SLICE("x"),
                              .number = (uint16_t)(1 + rand_below(&rng, SCHEMA_NUMBER_MAX)),
                              .unique = rand_below(&rng, 2),
                              .nparts = 1 + (size_t)rand_below(&rng, 4)};
    x->parts = random_parts(s, x->nparts);
}

static bool is_key(const struct schema *s, size_t column)
{
    for (size_t i = 0; i < s->nkey; i++)
        if (s->key[i].column == column)
            return true;
    return false;
}

static void any_row_and_entry_come_back(void)
{
    struct buf name = {0}, value = {0}, entry = {0}, back_name = {0};
    for (int round = 0; round < 3000; round++) {
        struct schema s;
        struct table_index x;
        struct error err = {0};
        struct fault fault = {0};
        struct table_row back;
        bool unique;
        random_schema(&s, &x);
        struct table_row row = {.version = (int64_t)rand_below(&rng, 1000),
                                .values = arena_alloc(&arena, s.ncolumns * sizeof *row.values)};
        for (size_t i = 0; i < s.ncolumns; i++)
            row.values[i] = random_value(s.columns[i].type, !is_key(&s, i));
        name.len = value.len = entry.len = back_name.len = 0;
        rowcode_encode(&s, &row, &value);
        REQUIRE(rowcode_name(&s, row.values, &name, &fault));
        REQUIRE_OK(rowcode_decode(&s, buf_slice(&name), buf_slice(&value), 0, &arena, &back, &err), &err);
        for (size_t i = 0; i < s.ncolumns; i++)
            CHECK(back.values[i].kind == row.values[i].kind &&
                  value_compare(&back.values[i], &row.values[i]) == 0);
        REQUIRE(rowcode_entry(&s, &x, back.values, &entry, &unique, &fault));
        REQUIRE_OK(rowcode_entry_row(&s, &x, buf_slice(&entry), unique ? buf_slice(&name) : SLICE(""),
                                     &back_name, &err),
                   &err);
        CHECK_SLICE(buf_slice(&back_name), buf_slice(&name));
        for (size_t n = 0; n < value.len; n++)
            CHECK_EQ(rowcode_decode(&s, buf_slice(&name), slice_of(value.p, n), 0, &arena, &back, &err),
                     ST_CORRUPT);
        arena_reset(&arena);
    }
    buf_release(&name);
    buf_release(&value);
    buf_release(&entry);
    buf_release(&back_name);
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    rand_seed(&rng, 3);
    RUN(a_schema_goes_through_json);
    RUN(refuses_json_that_is_no_schema);
    RUN(refuses_schemas_that_do_not_fit);
    RUN(a_prefix_may_be_any_bytes);
    RUN(a_row_is_a_json_array);
    RUN(a_missing_tail_and_dropped_columns);
    RUN(refuses_what_is_no_row);
    RUN(reads_texts_of_every_shape);
    RUN(reads_numbers_of_every_length);
    RUN(entries_name_their_rows);
    RUN(names_have_a_limit);
    RUN(any_row_and_entry_come_back);
    arena_release(&arena);
    return check_done();
}
