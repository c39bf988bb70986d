/* Values of options: from text, to text. */
#include "config/config.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/words.h"
#include "config/redis_options.h"
#include "replica/consistency.h"

/* One value being set: who asks, and where a refusal goes. */
struct setting {
    struct config *config;
    const struct option *option;
    struct slice value;
    const char *origin;
    struct error *err;
};

/* Where the value of an option is. */
static const void *place(const struct config *c, const struct option *o)
{
    return o->idle ? (const void *)&c->idle[redis_option_index(o)] : (const char *)c + o->offset;
}

static void *member(const struct setting *s)
{
    const struct option *o = s->option;
    return o->idle ? (void *)&s->config->idle[redis_option_index(o)] : (char *)s->config + o->offset;
}

/* reason: Redis' words, for CONFIG SET, which names the option itself. */
__attribute__((format(printf, 2, 3))) static enum status refuse(const struct setting *s, const char *reason,
                                                                ...)
{
    if (!s->origin) {
        char text[sizeof s->err->text];
        va_list args;
        va_start(args, reason);
        vsnprintf(text, sizeof text, reason, args);
        va_end(args);
        return error_set(s->err, ST_INVALID, "%s", text);
    }
    char shown[48] = "this value";
    if (!s->option->secret && !s->option->url) {
        size_t n = s->value.n < 40 ? s->value.n : 40;
        snprintf(shown, sizeof shown, "\"%.*s\"%s", (int)n, n ? s->value.p : "", n < s->value.n ? "..." : "");
    }
    return error_set(s->err, ST_INVALID, "%s: %s is no value for %s: expected %s", s->origin, shown,
                     s->option->name, s->option->accepts);
}

static enum status refuse_range(const struct setting *s)
{
    return refuse(s, "argument must be between %" PRId64 " and %" PRId64 " inclusive", s->option->min,
                  s->option->max);
}

static enum status set_string(const struct setting *s)
{
    if (s->value.n && memchr(s->value.p, '\0', s->value.n))
        return refuse(s, "argument must not contain a NUL byte");
    for (size_t i = 0; s->option->chars && i < s->value.n; i++) {
        if (!strchr(s->option->chars, s->value.p[i]))
            return refuse(s, "%s", s->option->refusal);
    }
    if (s->option->redis && !s->option->live && !slice_is(s->value, s->option->initial))
        return refuse(s, "can't set immutable config");
    char **at = member(s);
    mem_free(*at);
    *at = mem_strndup(s->value);
    return ST_OK;
}

/* Where a URL of a list begins: a scheme and "://". */
static bool starts_url(struct slice s)
{
    size_t n = 0;
    while (n < s.n && ((s.p[n] >= 'a' && s.p[n] <= 'z') || (s.p[n] >= 'A' && s.p[n] <= 'Z')))
        n++;
    return n > 0 && s.n - n >= 3 && memcmp(s.p + n, "://", 3) == 0;
}

/* The length of the first URL: up to a space, or a comma with a URL behind it (a URL may hold commas). */
static size_t url_length(struct slice s)
{
    size_t n = 0;
    while (n < s.n && s.p[n] != ' ' && s.p[n] != '\t' &&
           !(s.p[n] == ',' && starts_url(slice_of(s.p + n + 1, s.n - n - 1))))
        n++;
    return n;
}

/* Adds to what the same source has said before, and replaces what another one has. */
static enum status set_urls(const struct setting *s)
{
    struct config *c = s->config;
    char **at = member(s);
    struct buf list = {0};
    struct slice rest = s->value;
    if (rest.n && memchr(rest.p, '\0', rest.n))
        return refuse(s, "argument must not contain a NUL byte");
    if (c->source && c->replica_source == c->source)
        buf_addf(&list, "%s", *at);
    while (rest.n) {
        size_t n = url_length(rest);
        if (n && !starts_url(rest)) {
            buf_release(&list);
            return refuse(s, "argument must be URLs");
        }
        if (n)
            buf_addf(&list, "%s%.*s", list.len ? " " : "", (int)n, rest.p);
        n += n < rest.n;
        rest = slice_of(rest.p + n, rest.n - n);
    }
    mem_free(*at);
    *at = mem_strndup(buf_slice(&list));
    buf_release(&list);
    c->replica_source = c->source;
    return ST_OK;
}

static enum status set_int(const struct setting *s)
{
    int64_t v;
    if (!num_parse_i64(s->value, &v))
        return refuse(s, "argument couldn't be parsed into an integer");
    if (v < s->option->min || v > s->option->max)
        return refuse_range(s);
    *(int64_t *)member(s) = v;
    return ST_OK;
}

static enum status set_octal(const struct setting *s)
{
    int64_t v = 0;
    for (size_t i = 0; i < s->value.n; i++) {
        if (s->value.p[i] < '0' || s->value.p[i] > '7' || i > 8)
            return refuse(s, "argument couldn't be parsed into an integer");
        v = v * 8 + (s->value.p[i] - '0');
    }
    if (s->value.n == 0 || v > s->option->max)
        return refuse_range(s);
    *(int64_t *)member(s) = v;
    return ST_OK;
}

static enum status set_bool(const struct setting *s)
{
    bool yes = slice_is(s->value, "yes");
    if (!yes && !slice_is(s->value, "no"))
        return refuse(s, "argument must be 'yes' or 'no'");
    *(bool *)member(s) = yes;
    return ST_OK;
}

static enum status set_size(const struct setting *s)
{
    uint64_t v;
    if (!num_parse_size(s->value, &v))
        return refuse(s, "argument must be a memory value");
    if (v < (uint64_t)s->option->min || v > (uint64_t)s->option->max)
        return refuse_range(s);
    *(uint64_t *)member(s) = v;
    return ST_OK;
}

/* 60 is 60 ms to some and 60 s to others: the file must say which. */
static enum status refuse_bare(const struct setting *s, int64_t n)
{
    if (!s->origin)
        return refuse(s, "argument needs a unit: %" PRId64 "ms or %" PRId64 "s?", n, n);
    return error_set(s->err, ST_INVALID,
                     "%s: \"%" PRId64 "\" has no unit, and %s needs one: %" PRId64 "ms or %" PRId64 "s?",
                     s->origin, n, s->option->name, n, n);
}

static enum status set_duration(const struct setting *s)
{
    uint64_t ms;
    int64_t bare;
    uint64_t unit = s->option->unit ? s->option->unit : 1;
    bool is_bare = num_parse_i64(s->value, &bare);
    if (is_bare && bare < 0)
        return refuse_range(s);
    if (is_bare && bare > 0 && !s->option->unit)
        return refuse_bare(s, bare);
    if (!num_parse_duration(s->value, unit, &ms))
        return refuse(s, s->option->unit ? "argument couldn't be parsed into an integer"
                                         : "argument must be a time such as 250ms, 5s, 2m, 1h");
    if (ms < (uint64_t)s->option->min * unit || ms / unit > (uint64_t)s->option->max)
        return refuse_range(s);
    *(uint64_t *)member(s) = ms;
    return ST_OK;
}

static enum status set_enum(const struct setting *s)
{
    const struct option *o = s->option;
    struct slice word = s->value;
    for (int i = 0; o->alias && o->alias[i]; i += 2) {
        if (slice_is(word, o->alias[i]))
            word = slice_str(o->alias[i + 1]);
    }
    char all[128] = "";
    for (int i = 0; o->words[i]; i++) {
        if (slice_is(word, o->words[i])) {
            *(int64_t *)member(s) = i;
            return ST_OK;
        }
        size_t n = strlen(all);
        snprintf(all + n, sizeof all - n, "%s%s", i ? ", " : "", o->words[i]);
    }
    return refuse(s, "argument(s) must be one of the following: %s", all);
}

static enum status set_consistency(const struct setting *s)
{
    struct consistency c;
    struct error why;
    if (consistency_parse(s->value, &c, &why) != ST_OK)
        return refuse(s, "%s", why.text);
    *(struct consistency *)member(s) = c;
    return ST_OK;
}

static bool parse_limit(const struct slice *words, struct output_limit *ret)
{
    return num_parse_size(words[0], &ret->hard) && num_parse_size(words[1], &ret->soft) &&
           num_parse_duration(words[2], 1000, &ret->soft_ms);
}

static enum status set_output_limit_words(const struct setting *s, const struct slice *words, int n)
{
    struct config *c = s->config;
    struct output_limit normal = {c->output_hard, c->output_soft, c->output_soft_ms};
    struct output_limit replica = c->output_replica, pubsub = c->output_pubsub;
    if (n % 4)
        return refuse(s, "Wrong number of arguments in buffer limit configuration.");
    for (int i = 0; i < n; i += 4) {
        bool is_replica = slice_is(words[i], "replica") || slice_is(words[i], "slave");
        struct output_limit *to = slice_is(words[i], "normal")   ? &normal
                                  : is_replica                   ? &replica
                                  : slice_is(words[i], "pubsub") ? &pubsub
                                                                 : NULL;
        if (!to)
            return refuse(s, "Invalid client class specified in buffer limit configuration.");
        if (!parse_limit(words + i + 1, to))
            return refuse(s, "Error in hard, soft or soft_seconds setting in buffer limit configuration.");
    }
    c->output_hard = normal.hard;
    c->output_soft = normal.soft;
    c->output_soft_ms = normal.soft_ms;
    c->output_replica = replica;
    c->output_pubsub = pubsub;
    return ST_OK;
}

static enum status set_output_limit(const struct setting *s)
{
    struct arena arena = {0};
    struct slice *words = NULL;
    int n = 1; /* unbalanced quotes: not a multiple of four */
    words_split(s->value, &arena, &words, &n);
    enum status st = set_output_limit_words(s, words, n);
    arena_release(&arena);
    return st;
}

static enum status set(const struct setting *s)
{
    switch (s->option->kind) {
    case OPT_STRING:
        return set_string(s);
    case OPT_URLS:
        return set_urls(s);
    case OPT_INT:
        return set_int(s);
    case OPT_OCTAL:
        return set_octal(s);
    case OPT_BOOL:
        return set_bool(s);
    case OPT_SIZE:
        return set_size(s);
    case OPT_DURATION:
        return set_duration(s);
    case OPT_ENUM:
        return set_enum(s);
    case OPT_CONSISTENCY:
        return set_consistency(s);
    case OPT_OUTPUT_LIMIT:
        return set_output_limit(s);
    }
    return error_set(s->err, ST_INTERNAL, "option %s has no kind", s->option->name);
}

enum status config_set(struct config *c, const struct option *o, struct slice value, const char *origin,
                       struct error *err)
{
    const struct setting s = {c, o, value, origin, err};
    enum status st = set(&s);
    if (st == ST_OK)
        c->given[config_index(o)] = true;
    return st;
}

bool config_given(const struct config *c, const char *name)
{
    return c->given[config_index(config_find(slice_str(name)))];
}

static void give_part(struct config *c, const char *name, uint64_t *part, unsigned sixteenths)
{
    const struct option *o = config_find(slice_str(name));
    uint64_t v = c->memory / 16 * sixteenths;
    uint64_t least = (uint64_t)o->min, most = (uint64_t)o->max;
    if (!config_given(c, name))
        *part = v < least ? least : v > most ? most : v;
}

void config_share_memory(struct config *c)
{
    bool alone = !config_given(c, "cache-memory") && !config_given(c, "journal-max");
    c->journal_loan = alone ? c->memory / 16 * 2 : 0;
    give_part(c, "cache-memory", &c->cache_memory, 10);
    give_part(c, "journal-max", &c->journal_max, 5);
    give_part(c, "page-cache", &c->page_cache, 1);
}

static void put_size(struct buf *out, uint64_t v, bool human)
{
    static const char *const units[] = {"", "kb", "mb", "gb"};
    int unit = 0;
    while (human && v && v % 1024 == 0 && unit < 3) {
        v /= 1024;
        unit++;
    }
    buf_addf(out, "%" PRIu64 "%s", v, units[unit]);
}

/* A bare number where Redis has a unit for it and it allows: that is what Redis' clients expect to read. */
static void put_duration(struct buf *out, uint64_t ms, uint64_t unit, bool human)
{
    if (ms == 0)
        buf_addf(out, "0");
    else if (!human && unit && ms % unit == 0)
        buf_addf(out, "%" PRIu64, ms / unit);
    else if (ms % 1000 == 0)
        buf_addf(out, "%" PRIu64 "s", ms / 1000);
    else
        buf_addf(out, "%" PRIu64 "ms", ms);
}

static void put_output_limit(struct buf *out, const char *name, struct output_limit limit, bool human)
{
    buf_addf(out, "%s ", name);
    put_size(out, limit.hard, human);
    buf_addf(out, " ");
    put_size(out, limit.soft, human);
    buf_addf(out, " ");
    put_duration(out, limit.soft_ms, 1000, human && limit.soft_ms % 1000);
}

void config_get(const struct config *c, const struct option *o, bool human, struct buf *out)
{
    const void *at = place(c, o);
    char text[CONSISTENCY_TEXT];
    switch (o->kind) {
    case OPT_STRING:
    case OPT_URLS:
        buf_add_slice(out, slice_str(*(char *const *)at));
        break;
    case OPT_INT:
        buf_addf(out, "%" PRId64, *(const int64_t *)at);
        break;
    case OPT_OCTAL:
        buf_addf(out, "%" PRIo64, (uint64_t) * (const int64_t *)at);
        break;
    case OPT_BOOL:
        buf_addf(out, "%s", *(const bool *)at ? "yes" : "no");
        break;
    case OPT_SIZE:
        put_size(out, *(const uint64_t *)at, human);
        break;
    case OPT_DURATION:
        put_duration(out, *(const uint64_t *)at, o->unit, human);
        break;
    case OPT_ENUM:
        buf_addf(out, "%s", o->words[*(const int64_t *)at]);
        break;
    case OPT_CONSISTENCY:
        buf_addf(out, "%s", consistency_text(*(const struct consistency *)at, text));
        break;
    case OPT_OUTPUT_LIMIT:
        put_output_limit(out, "normal",
                         (struct output_limit){c->output_hard, c->output_soft, c->output_soft_ms}, human);
        buf_addf(out, " ");
        put_output_limit(out, "slave", c->output_replica, human);
        buf_addf(out, " ");
        put_output_limit(out, "pubsub", c->output_pubsub, human);
        break;
    }
}

void config_init(struct config *c)
{
    *c = (struct config){0};
    const struct option *o;
    for (int i = 0; (o = config_option(i)); i++) {
        struct error err = {0};
        if (config_set(c, o, slice_str(o->initial), "default", &err) != ST_OK) {
            fprintf(stderr, "larder: %s\n", err.text); /* a mistake in the table */
            abort();
        }
        c->given[i] = false;
    }
}

void config_release(struct config *c)
{
    const struct option *o;
    for (int i = 0; (o = config_option(i)); i++) {
        if (o->kind == OPT_STRING || o->kind == OPT_URLS)
            mem_free(*(char *const *)place(c, o));
    }
    mem_free(c->file);
    buf_release(&c->warnings);
    *c = (struct config){0};
}
