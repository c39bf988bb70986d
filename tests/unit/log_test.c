#include "base/log.h"

#include <unistd.h>

#include "check.h"

static char path[64];

/* What the log holds so far, behind the time of its last line. */
static const char *last_line(char *out, size_t cap)
{
    FILE *f = fopen(path, "r");
    char line[4096];
    out[0] = '\0';
    while (f && fgets(line, sizeof line, f)) {
        const char *level = strstr(line, " level=");
        snprintf(out, cap, "%s", level ? level + 1 : "no level");
    }
    if (f)
        fclose(f);
    return out;
}

static void lines_are_logfmt(void)
{
    char line[4096];
    log_info("it works", "port=%d name=%s", 7, "x");
    CHECK_STR(last_line(line, sizeof line), "level=info msg=\"it works\" port=7 name=x\n");
    log_warning("alone", NULL);
    CHECK_STR(last_line(line, sizeof line), "level=warning msg=\"alone\"\n");
    log_error("forged", "name=%s", "a\nts=1 level=info");
    CHECK_STR(last_line(line, sizeof line), "level=error msg=\"forged\" name=a ts=1 level=info\n");
}

static void levels_filter(void)
{
    char line[4096];
    log_info("before", NULL);
    log_debug("hidden", NULL);
    CHECK_STR(last_line(line, sizeof line), "level=info msg=\"before\"\n");
    log_set_level(LOG_DEBUG);
    CHECK_EQ(log_get_level(), LOG_DEBUG);
    log_debug("shown", NULL);
    CHECK_STR(last_line(line, sizeof line), "level=debug msg=\"shown\"\n");
    log_set_level(LOG_INFO);
}

static void long_lines_are_cut(void)
{
    static char text[10000];
    char line[4096];
    memset(text, 'x', sizeof text - 1);
    log_info("long", "text=%s", text);
    last_line(line, sizeof line);
    CHECK(strlen(line) < 2048 && line[strlen(line) - 1] == '\n');
    log_info("after", NULL);
    CHECK_STR(last_line(line, sizeof line), "level=info msg=\"after\"\n");
}

static void values_are_quoted(void)
{
    char out[32];
    CHECK_STR(log_quote(out, sizeof out, "a b"), "\"a b\"");
    CHECK_STR(log_quote(out, sizeof out, "a\"b\\c\n\x01"), "\"a\\\"b\\\\c\\n?\"");
    CHECK_STR(log_quote(out, 6, "abcdefgh"), "\"abc\"");
    CHECK_STR(log_quote(out, 6, "ab\"\""), "\"ab\"");
    CHECK_STR(log_quote(out, 2, "ab"), "");
}

static void files_are_reopened(void)
{
    char line[4096], moved[80];
    struct error err;
    snprintf(moved, sizeof moved, "%s.1", path);
    CHECK(rename(path, moved) == 0);
    CHECK_OK(log_reopen(&err), &err);
    log_info("fresh", NULL);
    CHECK_STR(last_line(line, sizeof line), "level=info msg=\"fresh\"\n");
    CHECK(unlink(moved) == 0);
    CHECK_EQ(log_set_file("/nonexistent/folder/log", &err), ST_IO);
    CHECK(strstr(err.text, "/nonexistent/folder/log") != NULL);
    log_info("still here", NULL);
    CHECK_STR(last_line(line, sizeof line), "level=info msg=\"still here\"\n");
    CHECK_OK(log_set_file("", &err), &err);
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    struct error err;
    snprintf(path, sizeof path, "/tmp/larder-log-test-%d", (int)getpid());
    if (log_set_file(path, &err) != ST_OK)
        return EXIT_FAILURE;
    RUN(lines_are_logfmt);
    RUN(levels_filter);
    RUN(long_lines_are_cut);
    RUN(values_are_quoted);
    RUN(files_are_reopened);
    unlink(path);
    return check_done();
}
