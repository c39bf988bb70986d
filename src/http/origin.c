/* Browsers. A web page can make its visitor's browser send requests to any address that the visitor can
   reach, this one included, and needs no permission for that, only for reading the answer (CORS). So what a
   browser sends on behalf of a page of another origin is refused, unless http-cors-origins has the origin;
   and without a password, so is a host name that is none of this machine's: a page may have pointed its own
   name here.

   The page's origin is what Origin says. A browser leaves it out of some requests, those for an image among
   them, and such a GET may be a command that writes: then Sec-Fetch-Site and the Referer tell. */
#include "http/http_internal.h"

#include "exec/auth.h"

/* ---- which origins ---- */

static bool is_listed(const struct executor *s, struct slice origin, bool *ret_any)
{
    const char *p = s->config->http_cors_origins;
    *ret_any = false;
    while (*p) {
        size_t n = strcspn(p, " ");
        struct slice listed = slice_of(p, n);
        *ret_any = slice_eq(listed, SLICE("*"));
        if (n && (*ret_any || slice_eq(listed, origin)))
            return true;
        p += n + (p[n] == ' ');
    }
    return false;
}

/* "https://example.com" of "https://example.com/page?x". p is NULL: there is no Referer. */
static struct slice referring_origin(struct slice referer)
{
    size_t n = 0;
    if (referer.n == 0)
        return slice_of(NULL, 0);
    for (size_t slashes = 0; n < referer.n; n++) {
        slashes += referer.p[n] == '/';
        if (slashes == 3 || referer.p[n] == '?' || referer.p[n] == '#')
            break;
    }
    return slice_of(referer.p, n);
}

/* The page came from here. */
static bool is_own(struct slice origin, struct slice host)
{
    static const struct slice schemes[] = {{"http://", 7}, {"https://", 8}};
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        size_t n = schemes[i].n;
        if (origin.n > n && memcmp(origin.p, schemes[i].p, n) == 0 &&
            slice_eq(slice_of(origin.p + n, origin.n - n), host))
            return true;
    }
    return false;
}

/* "127.0.0.1:8080", "[::1]", "localhost:8080": no name that someone else may have made. */
static bool is_plain_host(struct slice host)
{
    const char *colon = host.n ? memchr(host.p, ':', host.n) : NULL;
    struct slice name = slice_of(host.p, colon ? (size_t)(colon - host.p) : host.n);
    if (host.n == 0 || host.p[0] == '[' || slice_is(name, "localhost"))
        return true;
    for (size_t i = 0; i < name.n; i++)
        if (name.p[i] != '.' && (name.p[i] < '0' || name.p[i] > '9'))
            return false;
    return true;
}

/* ---- headers ---- */

static const char allowed_headers[] =
    "Access-Control-Allow-Headers: Authorization, Content-Type, If-Match, If-None-Match, Prefer, "
    "Larder-Consistency, Larder-Token, Upstash-Encoding, "
    "Upstash-Sync-Token, Upstash-Telemetry-Runtime, Upstash-Telemetry-Sdk, Upstash-Telemetry-Platform\r\n"
    "Access-Control-Allow-Methods: GET, HEAD, PUT, POST, PATCH, DELETE\r\n"
    "Access-Control-Max-Age: 7200\r\n";

static void add_cors(struct http_call *x, struct slice origin, bool any)
{
    struct buf line = {0};
    buf_addf(&line,
             "Access-Control-Allow-Origin: %.*s\r\n%sAccess-Control-Expose-Headers: ETag, Larder-Read, "
             "Larder-Token, Larder-Token-State, Location, Preference-Applied, Upstash-Sync-Token\r\n",
             any ? 1 : (int)origin.n, any ? "*" : origin.p, any ? "" : "Vary: Origin\r\n");
    http_add_header(x, buf_slice(&line));
    buf_release(&line);
    if (x->request.method == HTTP_OPTIONS && x->request.headers[HTTP_REQUEST_METHOD].p)
        http_add_header(x, slice_str(allowed_headers));
}

void http_check_origin(const struct http_api *a, struct http_call *x)
{
    struct slice origin = x->request.headers[HTTP_ORIGIN], host = x->request.headers[HTTP_HOST];
    struct slice site = x->request.headers[HTTP_SEC_FETCH_SITE];
    if (!origin.p)
        origin = referring_origin(x->request.headers[HTTP_REFERER]);
    bool any = false, foreign = site.p && !slice_is(site, "same-origin") && !slice_is(site, "none");
    if ((origin.p || foreign) && is_listed(a->executor, origin.p ? origin : SLICE(""), &any)) {
        add_cors(x, origin, any);
        return;
    }
    if (foreign || (origin.p && !is_own(origin, host)))
        http_refuse(x, 403, "origin_not_allowed",
                    "A browser asks for a page of another origin: http-cors-origins must list it.");
    else if (auth_is_protected(a->executor->config) && !is_plain_host(host))
        http_refuse(
            x, 403, "host_not_allowed",
            "Without a password only addresses and localhost are taken as the host: set requirepass, or "
            "protected-mode no.");
}
