/* Options from the environment: LARDER_CACHE_MEMORY is cache-memory.

   What is in the environment may be there for others: a variable of our prefix that is no option is ignored,
   and told in a warning. So are those that Kubernetes sets in every pod for a service called larder, or
   larder-something: there LARDER_PORT is an address, and no port. */
#include <ctype.h>
#include <stdio.h>

#include "config/config.h"

extern char **environ;

#define ENV_PREFIX "LARDER_"

/* LARDER_CACHE_MEMORY → cache-memory */
static void env_name(struct slice var, char *out)
{
    for (size_t i = 0; i < var.n; i++)
        out[i] = var.p[i] == '_' ? '-' : (char)tolower((unsigned char)var.p[i]);
}

static bool ends_with(struct slice s, const char *end)
{
    size_t n = strlen(end);
    return s.n >= n && memcmp(s.p + s.n - n, end, n) == 0;
}

static bool cut_end(struct slice *s, const char *end)
{
    bool there = ends_with(*s, end);
    if (there)
        s->n -= strlen(end);
    return there;
}

/* ..._PORT_6379_TCP, and the same with _ADDR, _PORT or _PROTO behind it. */
static bool names_a_port_of_a_service(struct slice var)
{
    if (!cut_end(&var, "_ADDR") && !cut_end(&var, "_PROTO"))
        cut_end(&var, "_PORT");
    if (!cut_end(&var, "_TCP") && !cut_end(&var, "_UDP") && !cut_end(&var, "_SCTP"))
        return false;
    size_t digits = 0;
    while (var.n && isdigit((unsigned char)var.p[var.n - 1])) {
        var.n--;
        digits++;
    }
    return digits && ends_with(var, "_PORT_");
}

/* Whether Kubernetes, or Docker's links, set it for a service. var: with the prefix. */
static bool is_injected(struct slice var, const char *value)
{
    bool address = strncmp(value, "tcp://", 6) == 0 || strncmp(value, "udp://", 6) == 0 ||
                   strncmp(value, "sctp://", 7) == 0;
    if (address && ends_with(var, "_PORT"))
        return true;
    for (size_t i = 0; i + 14 <= var.n; i++) { /* a service's ports may have names: ..._SERVICE_PORT_HTTP */
        if (memcmp(var.p + i, "_SERVICE_PORT_", 14) == 0)
            return true;
    }
    return ends_with(var, "_SERVICE_HOST") || ends_with(var, "_SERVICE_PORT") ||
           names_a_port_of_a_service(var);
}

static void warn_of_unknown(struct config *c, struct slice var, struct slice name)
{
    const struct option *near = config_nearest(name);
    buf_addf(&c->warnings, "%.*s is ignored: there is no option of this name%s", (int)var.n, var.p,
             near ? "; did you mean " ENV_PREFIX : "");
    for (const char *p = near ? near->name : ""; *p; p++)
        buf_addf(&c->warnings, "%c", *p == '-' ? '_' : toupper((unsigned char)*p));
    buf_addf(&c->warnings, "%s\n", near ? "?" : "");
}

/* One line for all that is there for services; it names LARDER_PORT, which would have been an option. */
static void warn_of_injected(struct config *c, struct slice var, int n)
{
    buf_addf(&c->warnings, "%.*s is ignored", (int)var.n, var.p);
    if (n > 1)
        buf_addf(&c->warnings, ", and %d more", n - 1);
    buf_addf(&c->warnings, ": Kubernetes sets such variables for a service, "
                           "unless the pod has enableServiceLinks: false\n");
}

/* One variable that Kubernetes did not set. */
static enum status take(struct config *c, struct slice var, const char *value, struct error *err)
{
    char lower[64] = "", origin[80];
    struct slice from = slice_of(var.p + strlen(ENV_PREFIX), var.n - strlen(ENV_PREFIX));
    if (from.n <= sizeof lower)
        env_name(from, lower);
    struct slice name = slice_of(lower, from.n <= sizeof lower ? from.n : 0);
    const struct option *o = config_find(name);
    snprintf(origin, sizeof origin, "%.*s", (int)var.n, var.p);
    if (o)
        return config_set(c, o, slice_str(value), origin, err);
    if (!slice_is(name, "config"))
        warn_of_unknown(c, var, name);
    return ST_OK;
}

enum status config_load_env(struct config *c, struct error *err)
{
    struct slice injected = {NULL, 0};
    int n = 0;
    c->source++;
    for (char **at = environ; at && *at; at++) {
        const char *equals = strchr(*at, '=');
        if (strncmp(*at, ENV_PREFIX, strlen(ENV_PREFIX)) != 0 || !equals)
            continue;
        struct slice var = slice_of(*at, (size_t)(equals - *at));
        if (!is_injected(var, equals + 1)) {
            enum status st = take(c, var, equals + 1, err);
            if (st != ST_OK)
                return st;
            continue;
        }
        if (n++ == 0 || slice_is(var, ENV_PREFIX "PORT"))
            injected = var;
    }
    if (n)
        warn_of_injected(c, injected, n);
    return ST_OK;
}
