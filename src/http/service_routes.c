/* What operators and their programs ask: is it alive, does it work, which version is it, what has it done. */
#include "http/http_internal.h"

#include "command/families.h"
#include "proto/prometheus.h"
#include "stats/metrics.h"
#include "stats/replication.h"

struct command_result http_healthz(struct http_api *a, struct session *s, struct http_call *x,
                                   const struct error *write_err)
{
    (void)s, (void)x, (void)write_err;
    buf_add_slice(a->answer.out, SLICE("{\"status\":\"ok\"}"));
    return (struct command_result){0};
}

struct command_result http_version(struct http_api *a, struct session *s, struct http_call *x,
                                   const struct error *write_err)
{
    (void)s, (void)x, (void)write_err;
    buf_add_slice(a->answer.out, SLICE("{\"name\":\"larder\",\"version\":\"" LARDER_VERSION
                                       "\",\"redis_version\":\"" REDIS_VERSION "\"}"));
    return (struct command_result){0};
}

struct command_result http_metrics(struct http_api *a, struct session *s, struct http_call *x,
                                   const struct error *write_err)
{
    (void)s, (void)x, (void)write_err;
    a->answer.head.content_type = PROM_CONTENT_TYPE;
    metrics_render(a->executor, a->answer.out);
    return (struct command_result){0};
}

/* A write that no client sees goes all the way to the database; the answer waits for it as any other does. Of
   a server that only reads, a read. */
void http_readyz(struct http_api *a, struct http_call *x)
{
    bool reads = executor_only_reads(a->executor);
    x->argv = arena_alloc(x->arena, sizeof *x->argv);
    x->cmd = &http_service_commands[reads];
    x->argv[0] = slice_str(x->cmd->name);
    x->argc = 1;
    x->writes = !reads;
}

size_t http_declare_nothing(const struct http_api *a, const struct http_call *x)
{
    (void)a, (void)x;
    return 0;
}

static enum status probe(struct call *c)
{
    struct buf *out = answer_of(c)->out;
    const struct row *row;
    enum status st = c->cmd->flags & CMD_WRITE ? view_probe(c->view) : view_get(c->view, 0, SLICE(""), &row);
    uint32_t in_rotation, n = replication_count(c->executor, &in_rotation);
    buf_add_slice(out, SLICE("{\"status\":\"ready\""));
    if (n)
        buf_addf(out, ",\"replicas\":%u,\"in_rotation\":%u", n, in_rotation);
    buf_add(out, "}", 1);
    return st;
}

/* clang-format off */
const struct command http_service_commands[] = {
    {.name = "http|readyz", .fn = probe, .arity = 1, .flags = CMD_WRITE, .group = "http"},
    {.name = "http|readyz-read", .fn = probe, .arity = 1, .flags = CMD_READONLY, .group = "http"},
    {.name = NULL},
};
/* clang-format on */
