/* Whether a log and a file belong together: what is served, and what is refused with both ways out. */
#include "journal/redo_state.h"

#include "check.h"

#define URL "sqlite:larder.db"

static const struct redo_id a = {{1}}, b = {{2}};

/* A file with log a, up to 10 in the tables; beside it that log, with records up to 20. */
static struct redo_state state(void)
{
    struct redo_state s = {.known = true, .id = a, .open = true, .applied = 10, .cookie = 5};
    s.file = (struct store_file){.path = "/data/larder.db", .identity = "7.1.2", .cookie = 5};
    memcpy(s.inode, "7.1.2", 6);
    return s;
}

static struct redo_found found(void)
{
    return (struct redo_found){.any = true, .id = a, .ours = true, .tables = 8, .last = 20, .segments = 2};
}

static void expect(const struct redo_state *s, const struct redo_found *f, enum redo_verdict want)
{
    struct error err;
    enum redo_verdict is;
    REQUIRE_OK(redo_judge(s, f, URL, &is, &err), &err);
    CHECK_EQ(is, want);
}

static void expect_refusal(const struct redo_state *s, const struct redo_found *f, const char *why)
{
    struct error err = {.text = ""};
    enum redo_verdict is;
    CHECK_EQ(redo_judge(s, f, URL, &is, &err), ST_CORRUPT);
    CHECK(strstr(err.text, why) != NULL);
    CHECK(strstr(err.text, "--apply-log") != NULL);
    CHECK(strstr(err.text, "--discard-log) --store " URL) != NULL); /* nothing was cut off */
}

static void a_log_of_ours(void)
{
    struct redo_state s = state();
    struct redo_found f = found();
    expect(&s, &f, REDO_OURS);
    s.open = false; /* a crash between the end of applying and the removal */
    s.applied = 20;
    expect(&s, &f, REDO_OURS);
    s.applied = 30; /* an outsized change set, whose record did not come */
    expect(&s, &f, REDO_OURS);
    s.applied = 8;
    expect(&s, &f, REDO_OURS);
    s.inode[0] = '\0';
    expect(&s, &f, REDO_OURS);
}

/* A start made its segment, and ended before larder_meta knew. */
static void a_start_that_did_not_get_far(void)
{
    struct redo_state s = state();
    struct redo_found f = found();
    f.id = b;
    expect(&s, &f, REDO_OURS);
    f.ours = false; /* another server has had the file since: what it wrote is not this file's */
    expect_refusal(&s, &f, "is of another one");
    s = (struct redo_state){.file = s.file}; /* the first start ever */
    f = (struct redo_found){.any = true, .id = b, .segments = 1};
    expect(&s, &f, REDO_NONE);
}

static void no_log(void)
{
    struct redo_state s = state();
    struct redo_found f = {.any = false};
    struct error err;
    enum redo_verdict is;
    CHECK_EQ(redo_judge(&s, &f, URL, &is, &err), ST_MISSING);
    CHECK(strstr(err.text, "bring it back") != NULL &&
          strstr(err.text, "--discard-log) --store " URL) != NULL);
    s.inode[0] = '\0';
    CHECK_EQ(redo_judge(&s, &f, URL, &is, &err), ST_MISSING);
    memcpy(s.inode, "8.1.2", 6);
    expect(&s, &f, REDO_COPY);
    s = state();
    s.file.cookie = 1; /* a copy that SQLite has made was written over the file */
    expect(&s, &f, REDO_COPY);
    s.open = false;
    expect(&s, &f, REDO_NONE);
    s = (struct redo_state){.file = s.file};
    expect(&s, &f, REDO_NONE);
}

static void a_log_of_another(void)
{
    struct redo_state s = state();
    struct redo_found f = found();
    f.id = b;
    f.ours = false;
    expect_refusal(&s, &f, "is of another one");
    s = (struct redo_state){.file = s.file}; /* a restored backup that knows of no log */
    expect_refusal(&s, &f, "is of another one");
    f.last = 8; /* the tables that it belonged to have everything */
    expect(&s, &f, REDO_NONE);
}

/* What an earlier start has left holds nothing; the segments that got the writes were taken away. */
static void an_earlier_log_alone(void)
{
    struct redo_state s = state();
    struct redo_found f = {.any = true, .id = b, .tables = 8, .last = 8, .segments = 1};
    struct error err;
    enum redo_verdict is;
    CHECK_EQ(redo_judge(&s, &f, URL, &is, &err), ST_MISSING);
    s.file.cookie = 1;
    expect(&s, &f, REDO_COPY);
    s.open = false;
    expect(&s, &f, REDO_NONE);
}

static void another_file(void)
{
    struct redo_state s = state();
    struct redo_found f = found();
    memcpy(s.inode, "7.1.3", 6); /* the number was given out again */
    expect_refusal(&s, &f, "another file");
    s.applied = 20; /* there is nothing in it that could be applied */
    expect(&s, &f, REDO_OURS);
    s = state();
    s.file.cookie = 6;
    expect_refusal(&s, &f, "restored backup");
    s = state();
    s.applied = 7;
    expect_refusal(&s, &f, "ends at 7, the log begins behind 8");
}

/* However long its name is: what to do is said. */
static void a_long_name(void)
{
    struct redo_state s = state();
    struct redo_found f = found();
    char url[400];
    enum redo_verdict is;
    struct error err;
    memset(url, 'x', sizeof url - 1);
    url[sizeof url - 1] = '\0';
    s.applied = 7;
    CHECK_EQ(redo_judge(&s, &f, url, &is, &err), ST_CORRUPT);
    CHECK(strstr(err.text, "give it up (--discard-log)") != NULL);
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    RUN(a_log_of_ours);
    RUN(a_start_that_did_not_get_far);
    RUN(no_log);
    RUN(a_log_of_another);
    RUN(an_earlier_log_alone);
    RUN(another_file);
    RUN(a_long_name);
    return check_done();
}
