#include "sql/remote.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "sql/remote_internal.h"

#define PREFIX      "larder_"
#define IDLE_MIN_MS 10000
#define LOOK_MS     100 /* between two looks whether a server that does not answer is away */

typedef enum status open_fn(const struct remote_options *o, const struct url *u, struct remote **ret,
                            struct error *err);

/* A new kind of server is one more line here. */
static const struct scheme {
    const char *name;
    open_fn *open;
    bool (*refuses)(const struct remote_options *o, const struct url *u); /* NULL: open says so itself */
} schemes[] = {
    {"postgres", postgres_open, postgres_refuses},
    {"postgresql", postgres_open, postgres_refuses},
    {"mysql", mariadb_open, NULL},
    {"mariadb", mariadb_open, NULL},
};

static const struct scheme *scheme_of(const char *url)
{
    const char *end = strstr(url, "://");
    for (size_t i = 0; end && i < sizeof schemes / sizeof schemes[0]; i++)
        if (slice_is(slice_of(url, (size_t)(end - url)), schemes[i].name))
            return &schemes[i];
    return NULL;
}

bool remote_is_url(const char *url)
{
    return scheme_of(url) != NULL;
}

bool remote_is_exclusive(const char *url)
{
    struct url u;
    if (url_parse(url, &u, NULL) != ST_OK)
        return false;
    const char *mode = url_param(&u, "mode");
    bool exclusive = mode && strcmp(mode, "exclusive") == 0;
    url_release(&u);
    return exclusive;
}

enum status remote_open(const struct remote_options *o, struct remote **ret, struct error *err)
{
    const struct scheme *s = scheme_of(o->url);
    struct url u;
    if (!s)
        return error_set(err, ST_INVALID, "not the URL of a database server");
    enum status st = url_parse(o->url, &u, err);
    if (st != ST_OK)
        return st;
    st = s->open(o, &u, ret, err);
    url_release(&u);
    return st;
}

bool remote_refuses(const struct remote_options *o)
{
    const struct scheme *s = scheme_of(o->url);
    struct url u;
    if (!s || !s->refuses || url_parse(o->url, &u, NULL) != ST_OK)
        return false;
    bool refuses = s->refuses(o, &u);
    url_release(&u);
    return refuses;
}

bool remote_plain_name(const char *name)
{
    if (!name[0] || isdigit((unsigned char)name[0]))
        return false;
    for (const char *p = name; *p; p++)
        if (!islower((unsigned char)*p) && !isdigit((unsigned char)*p) && *p != '_')
            return false;
    return true;
}

enum status remote_init(struct remote *c, const struct remote_options *o, const struct url *u,
                        struct error *err)
{
    const char *prefix = url_param(u, "prefix");
    if (!prefix)
        prefix = PREFIX;
    if (!remote_plain_name(prefix) || strlen(prefix) > 32)
        return error_set(err, ST_INVALID,
                         "prefix=%s: up to 32 small letters, digits and underscores are possible", prefix);
    const char *mode = url_param(u, "mode");
    c->exclusive = mode && strcmp(mode, "exclusive") == 0;
    if (mode && !c->exclusive && strcmp(mode, "shared") != 0)
        return error_set(err, ST_INVALID, "mode=%s: known are shared and exclusive", mode);
    snprintf(c->prefix, sizeof c->prefix, "%s", prefix);
    c->timeout_ms = o->timeout_ms;
    const char *host = u->nhosts && u->hosts[0].name[0] ? u->hosts[0].name : "localhost";
    snprintf(c->place, sizeof c->place, "%s on %s", u->database ? u->database : "the database", host);
    return ST_OK;
}

enum status remote_wait(struct remote *c, struct pollfd *fd, int64_t deadline_us, struct error *err)
{
    bool asks = c->away && !c->patient;
    for (;;) {
        int64_t left = (deadline_us - clock_mono_us() + 999) / 1000, most = asks ? LOOK_MS : INT32_MAX;
        int n = left > 0 ? poll(fd, 1, (int)(left < most ? left : most)) : 0;
        if (n < 0 && errno == EINTR)
            continue;
        if (n != 0) /* what it is, reading tells */
            return ST_OK;
        if (left <= most) {
            c->lost = true;
            return error_set(err, ST_IO, "%s: no answer within %u ms", c->place, c->timeout_ms);
        }
        if (asks && c->away(c->away_arg)) {
            c->lost = true;
            return error_set(err, ST_IO, "%s: it is away, and has not answered yet", c->place);
        }
    }
}

unsigned remote_idle_ms(const struct remote *c)
{
    return c->timeout_ms > IDLE_MIN_MS ? c->timeout_ms : IDLE_MIN_MS;
}

void remote_expand(const struct remote *c, struct slice text, struct buf *out)
{
    const size_t n = sizeof PREFIX - 1;
    const char *p = text.p, *end = text.p + text.n;
    while (p < end) {
        const char *found = memmem(p, (size_t)(end - p), PREFIX, n);
        if (!found)
            break;
        buf_add(out, p, (size_t)(found - p));
        buf_add(out, c->prefix, strlen(c->prefix));
        p = found + n;
    }
    buf_add(out, p, (size_t)(end - p));
}

void remote_add_text(struct remote *c, const char *text)
{
    struct request r = {.text = text};
    remote_add(c, &r);
}

static int64_t from_network(struct slice s)
{
    uint64_t v = s.n && (s.p[0] & 0x80) ? UINT64_MAX : 0;
    for (size_t i = 0; i < s.n; i++)
        v = v << 8 | (unsigned char)s.p[i];
    return (int64_t)v;
}

int64_t remote_i64(const struct remote_row *row, int column)
{
    struct slice s = row->cells[column];
    if (!s.p)
        return 0;
    return row->binary ? from_network(s) : strtoll(s.p, NULL, 10);
}

double remote_double(const struct remote_row *row, int column)
{
    struct slice s = row->cells[column];
    if (!s.p)
        return 0;
    if (!row->binary)
        return strtod(s.p, NULL);
    int64_t bits = from_network(s);
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}
