#include "sql/url.h"

#include "base/mem.h"
#include "check.h"

static void check_turned(const char *from, const char *want)
{
    char *text = mem_strdup(from);
    url_turn_hosts(text);
    CHECK_STR(text, want);
    mem_free(text);
}

static void hosts_take_turns(void)
{
    check_turned("postgres://a,b/x", "postgres://b,a/x");
    check_turned("postgres://u:p,w@a:1,bb:22,ccc:333/x?y=1,2", "postgres://u:p,w@bb:22,ccc:333,a:1/x?y=1,2");
    check_turned("mysql://u@[::1]:1,b?mode=shared", "mysql://u@b,[::1]:1?mode=shared");
    check_turned("postgres://a,b", "postgres://b,a");
    check_turned("postgres://u:p,w@a/x", "postgres://u:p,w@a/x");
    check_turned("postgres:///x?a,b", "postgres:///x?a,b");
    check_turned("a,b", "a,b");
}

static void parameters_are_removed(void)
{
    char text[] = "postgres://a/x?prefix=p_&mode=shared&b=c";
    url_remove_param(text, "mode");
    CHECK_STR(text, "postgres://a/x?prefix=p_&b=c");
    url_remove_param(text, "b");
    CHECK_STR(text, "postgres://a/x?prefix=p_");
    url_remove_param(text, "pre");
    CHECK_STR(text, "postgres://a/x?prefix=p_");
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    RUN(hosts_take_turns);
    RUN(parameters_are_removed);
    return check_done();
}
