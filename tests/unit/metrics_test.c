/* What is rendered without clients: the server's tests scrape a real one. */
#include "stats/metrics.h"

#include "base/process.h"
#include "exec/command.h"
#include "exec/executor.h"
#include "stats/stats.h"
#include "world.h"

/* A sample's whole line is in the text. */
static bool has(const struct buf *text, const char *line)
{
    size_t n = strlen(line);
    for (size_t i = 0; i + n < text->len; i++)
        if ((i == 0 || text->p[i - 1] == '\n') && text->p[i + n] == '\n' && memcmp(text->p + i, line, n) == 0)
            return true;
    printf("    no line: %s\n", line);
    return false;
}

static void render(struct executor *s, struct buf *out)
{
    out->len = 0;
    metrics_render(s, out);
}

static void what_was_counted_is_told(void)
{
    struct world w = {0};
    struct config config;
    struct server server;
    struct executor s = {0};
    struct buf out = {0};
    REQUIRE(world_start(&w));
    config_init(&config);
    server_init(&server);
    stats_init(&server);
    executor_init(&s, &server, &config, w.engine);

    render(&s, &out);
    CHECK(has(&out, "larder_commit_duration_seconds_count 0"));
    CHECK(has(&out, "larder_command_duration_seconds_count{family=\"sorted-set\"} 0"));
    CHECK(has(&out, "larder_database_errors_total{status=\"full\"} 0"));
    CHECK(has(&out, "larder_database_up 1"));

    const struct command *get = command_find(SLICE("get")), *list = command_find_full(SLICE("client|list"));
    histogram_add(&s.command_stats[command_index(get)].us, 3);
    histogram_add(&s.command_stats[command_index(get)].us, 5);
    s.command_stats[command_index(get)].failed = 1;
    s.command_stats[command_index(list)].rejected = 4;
    executor_note_failure(&s, ST_FULL);
    executor_note_error(&s, "WRONGTYPE");
    s.unreadable = true;
    render(&s, &out);
    CHECK(has(&out, "larder_commands_total{command=\"get\",result=\"ok\"} 1"));
    CHECK(has(&out, "larder_commands_total{command=\"get\",result=\"error\"} 1"));
    CHECK(has(&out, "larder_commands_total{command=\"client|list\",result=\"rejected\"} 4"));
    CHECK(has(&out, "larder_command_seconds_total{command=\"get\"} 0.000008"));
    CHECK(has(&out, "larder_command_duration_seconds_bucket{family=\"string\",le=\"0.000004\"} 1"));
    CHECK(has(&out, "larder_command_duration_seconds_sum{family=\"string\"} 0.000008"));
    CHECK(has(&out, "larder_error_replies_total{code=\"WRONGTYPE\"} 1"));
    CHECK(has(&out, "larder_database_errors_total{status=\"full\"} 1"));
    CHECK(has(&out, "larder_database_up 0"));

    executor_reset_stats(&s);
    render(&s, &out);
    CHECK(has(&out, "larder_command_duration_seconds_count{family=\"string\"} 0"));
    CHECK(has(&out, "larder_database_errors_total{status=\"full\"} 0"));

    buf_release(&out);
    executor_release(&s);
    stats_release(&server);
    server_release(&server);
    config_release(&config);
    world_end(&w);
}

static void the_process_knows_itself(void)
{
    struct process_usage u = process_usage();
    CHECK(u.resident_bytes > 0 && u.virtual_bytes >= u.resident_bytes);
    CHECK(u.threads >= 1);
    CHECK(u.open_fds >= 3 && u.open_fds < u.max_fds);
    int64_t now = clock_wall_us();
    CHECK(u.start_us > 0 && (int64_t)u.start_us < now + 1000000);
    int fd = dup(0);
    CHECK_EQ(process_usage().open_fds, u.open_fds + 1);
    close(fd);
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    RUN(what_was_counted_is_told);
    RUN(the_process_knows_itself);
    return check_done();
}
