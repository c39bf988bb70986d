/* The modes of a read as words, and positions as tokens: what is taken, what is refused and leaves
   everything as it was. */
#include "base/crc32c.h"
#include "base/mem.h"
#include "check.h"
#include "replica/consistency.h"
#include "replica/token.h"

/* ---- consistency ---- */

static void reads_modes_in_any_case(void)
{
    static const struct {
        const char *text;
        struct consistency c;
    } good[] = {
        {"strong", {READ_STRONG, 0}},         {"Session", {READ_SESSION, 0}},
        {"EVENTUAL", {READ_EVENTUAL, 0}},     {"bounded=1", {READ_BOUNDED, 1}},
        {"Bounded=500", {READ_BOUNDED, 500}}, {"bounded=86400000", {READ_BOUNDED, READ_BOUND_MAX_MS}},
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct consistency c = {READ_EVENTUAL, 7};
        struct error err = {0};
        char text[CONSISTENCY_TEXT];
        check.context = good[i].text;
        CHECK_OK(consistency_parse(slice_str(good[i].text), &c, &err), &err);
        CHECK_EQ(c.mode, good[i].c.mode);
        CHECK_EQ(c.bound_ms, good[i].c.bound_ms);
        CHECK(slice_is(slice_str(consistency_text(c, text)), good[i].text));
    }
}

static void refuses_modes_and_changes_nothing(void)
{
    static const char *const bad[] = {"",
                                      " ",
                                      "strong ",
                                      "linear",
                                      "bounded",
                                      "bounded=",
                                      "bounded=0",
                                      "bounded=-1",
                                      "bounded=1000000000000000000",
                                      "bounded=1e3",
                                      "bounded=1.5",
                                      "bounded=+5",
                                      "bounded=05",
                                      "bounded= 5",
                                      "bounded=5 ",
                                      "bounded=86400001",
                                      "bounded=99999999999999999999",
                                      "session=5",
                                      "strong=",
                                      "=",
                                      "=5",
                                      "bounded=5=5"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct consistency c = {READ_SESSION, 7};
        struct error err = {0};
        check.context = bad[i];
        CHECK_EQ(consistency_parse(slice_str(bad[i]), &c, &err), ST_INVALID);
        CHECK(err.code == ST_INVALID && strlen(err.text) > 20);
        CHECK(c.mode == READ_SESSION && c.bound_ms == 7);
    }
}

static void huge_words_are_no_modes(void)
{
    size_t n = (size_t)64 << 10;
    char *word = mem_alloc(n);
    memset(word, '9', n);
    struct consistency c = {READ_SESSION, 7};
    struct error err;
    int64_t bound = 7;
    enum read_mode mode;
    CHECK_EQ(consistency_parse(slice_of(word, n), &c, &err), ST_INVALID);
    CHECK_EQ(consistency_parse_bound(slice_of(word, n), &bound, &err), ST_INVALID);
    memcpy(word, "bounded=", 8);
    CHECK_EQ(consistency_parse(slice_of(word, n), &c, &err), ST_INVALID);
    memcpy(word, "strong", 7);
    CHECK(!read_mode_parse(slice_of(word, n), &mode));
    CHECK(!read_mode_parse(slice_of(word, 7), &mode)); /* with its NUL */
    CHECK(read_mode_parse(slice_of(word, 6), &mode) && mode == READ_STRONG);
    CHECK(c.mode == READ_SESSION && bound == 7);
    mem_free(word);
}

/* ---- tokens ---- */

static const struct position places[] = {
    {.kind = POSITION_NONE},
    {.kind = POSITION_LSN, .timeline = 3, .database = UINT64_MAX, .number = 0x300014800},
    {.kind = POSITION_SEQUENCE, .timeline = UINT32_MAX, .database = 1, .number = UINT64_MAX},
    {.kind = POSITION_GTID, .database = 77, .ndomains = 1, .gtids = {{0, 1, 42}}},
    {.kind = POSITION_GTID,
     .database = 77,
     .ndomains = 4,
     .gtids = {{0, 1, 42}, {1, UINT32_MAX, 1}, {7, 0, UINT64_MAX}, {UINT32_MAX, 9, 0}}},
};
#define PLACES (sizeof places / sizeof *places)

static bool same(const struct position *a, const struct position *b)
{
    bool gtids = a->ndomains == b->ndomains;
    for (uint32_t i = 0; gtids && i < a->ndomains; i++)
        gtids = a->gtids[i].domain == b->gtids[i].domain && a->gtids[i].server == b->gtids[i].server &&
                a->gtids[i].seq == b->gtids[i].seq;
    return gtids && a->kind == b->kind && a->timeline == b->timeline && a->database == b->database &&
           a->number == b->number;
}

static void a_token_is_its_position(void)
{
    for (size_t i = 0; i < PLACES; i++) {
        char text[TOKEN_TEXT];
        struct position back = places[1];
        struct error err = {0};
        size_t n = token_write(&places[i], text);
        CHECK_EQ(n, strlen(text));
        CHECK_EQ(strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"), n);
        CHECK_OK(token_read(slice_of(text, n), &back, &err), &err);
        CHECK(same(&back, &places[i]));
    }
}

static void a_token_fits_where_another_was(void)
{
    for (size_t i = 0; i < PLACES; i++) {
        char room[TOKEN_ROOM + 1], text[TOKEN_TEXT];
        room[TOKEN_ROOM] = '|';
        token_fill(&places[i], room);
        size_t n = token_write(&places[i], text);
        CHECK_SLICE(slice_of(room + TOKEN_ROOM - n, n), slice_str(text));
        CHECK_EQ(strspn(room, " "), TOKEN_ROOM - n);
        CHECK_EQ(room[TOKEN_ROOM], '|');
    }
}

/* Refused, with a reason, and *ret is as it was. */
static bool refused(const char *text, size_t n)
{
    struct position p = places[4];
    struct error err = {0};
    return token_read(slice_of(text, n), &p, &err) == ST_INVALID && err.code == ST_INVALID &&
           strstr(err.text, "token") && same(&p, &places[4]);
}

static void torn_tokens_are_refused(void)
{
    for (size_t i = 0; i < PLACES; i++) {
        char text[TOKEN_TEXT + 1];
        size_t n = token_write(&places[i], text);
        for (size_t keep = 0; keep < n; keep++) {
            CHECK(refused(text, keep));
            CHECK(refused(text + n - keep, keep));
        }
        text[n] = 'A';
        CHECK(refused(text, n + 1));
    }
}

static void flipped_bits_are_refused(void)
{
    for (size_t i = 0; i < PLACES; i++) {
        char text[TOKEN_TEXT];
        size_t n = token_write(&places[i], text);
        for (size_t bit = 0; bit < 8 * n; bit++) {
            char was = text[bit / 8];
            text[bit / 8] = (char)(was ^ (1 << bit % 8));
            CHECK(refused(text, n));
            text[bit / 8] = was;
        }
    }
}

/* A token from its bytes, with the right checksum. */
static size_t forge(const uint8_t *bytes, size_t n, char out[2 * TOKEN_TEXT])
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    uint8_t all[128] = {0};
    memcpy(all, bytes, n);
    uint32_t sum = crc32c(slice_of(all, n));
    for (int i = 0; i < 4; i++)
        all[n + (size_t)i] = (uint8_t)(sum >> 8 * i);
    size_t bits = (n + 4) * 8, len = 0;
    for (size_t at = 0; at < bits; at += 6) {
        uint32_t two = (uint32_t)all[at / 8] << 8 | all[at / 8 + 1];
        out[len++] = letters[two >> (10 - at % 8) & 63];
    }
    return len;
}

/* What no server writes, under a checksum that is right. */
static void sound_checksums_do_not_make_a_token(void)
{
    static const struct {
        const char *what;
        size_t n;
        uint8_t bytes[64];
    } bad[] = {
        {"form 2", 24, {2, POSITION_LSN}},
        {"form 0", 24, {0, POSITION_LSN}},
        {"a kind that is none", 24, {1, 9}},
        {"shard 1", 24, {1, POSITION_LSN, 1}},
        {"shard 256", 24, {1, POSITION_LSN, 0, 1}},
        {"nothing, of a database", 16, {1, POSITION_NONE, 0, 0, 0, 0, 0, 0, 1}},
        {"nothing, at a place", 24, {1, POSITION_NONE}},
        {"an LSN without number", 16, {1, POSITION_LSN}},
        {"an LSN with two", 32, {1, POSITION_LSN}},
        {"a GTID without domain", 16, {1, POSITION_GTID}},
        {"half a GTID", 24, {1, POSITION_GTID}},
        {"a domain twice", 48, {1, POSITION_GTID}},
        {"no head", 4, {1, POSITION_LSN}},
    };
    char text[2 * TOKEN_TEXT];
    struct position p;
    struct error err;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        check.context = bad[i].what;
        CHECK(refused(text, forge(bad[i].bytes, bad[i].n, text)));
    }
    check.context = "what is right";
    uint8_t good[24] = {1, POSITION_LSN};
    CHECK_OK(token_read(slice_of(text, forge(good, sizeof good, text)), &p, &err), &err);
    check.context = "a domain too many";
    uint8_t five[16 + 5 * 16] = {1, POSITION_GTID};
    for (uint8_t i = 0; i < 5; i++)
        five[16 + i * 16] = i;
    CHECK(refused(text, forge(five, sizeof five, text)));
    CHECK_OK(token_read(slice_of(text, forge(five, sizeof five - 16, text)), &p, &err), &err);
}

static void huge_tokens_are_refused(void)
{
    size_t n = (size_t)64 << 10;
    char *text = mem_alloc(n);
    memset(text, 'A', n);
    CHECK(refused(text, n));
    CHECK(refused(text, TOKEN_TEXT));
    CHECK(refused(text, TOKEN_TEXT - 1));
    mem_free(text);
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    RUN(reads_modes_in_any_case);
    RUN(refuses_modes_and_changes_nothing);
    RUN(huge_words_are_no_modes);
    RUN(a_token_is_its_position);
    RUN(a_token_fits_where_another_was);
    RUN(torn_tokens_are_refused);
    RUN(flipped_bits_are_refused);
    RUN(sound_checksums_do_not_make_a_token);
    RUN(huge_tokens_are_refused);
    return check_done();
}
