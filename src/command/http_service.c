/* What operators and their programs ask: is it alive, which version is it. */
#include "command/http_internal.h"

int64_t http_healthz(struct http_api *a, struct session *s, struct http_call *x,
                     const struct error *write_err)
{
    (void)s, (void)x, (void)write_err;
    buf_add_slice(a->answer.out, SLICE("{\"status\":\"ok\"}"));
    return 0;
}

int64_t http_version(struct http_api *a, struct session *s, struct http_call *x,
                     const struct error *write_err)
{
    (void)s, (void)x, (void)write_err;
    buf_add_slice(a->answer.out, SLICE("{\"name\":\"larder\",\"version\":\"" LARDER_VERSION
                                       "\",\"redis_version\":\"" REDIS_VERSION "\"}"));
    return 0;
}
