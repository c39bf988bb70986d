/* Where values come from: a file in redis.conf's syntax, the environment (env.c), flags. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/words.h"
#include "config/config.h"
#include "config/file.h"

static enum status unknown(const char *origin, struct slice name, struct error *err)
{
    const struct option *near = config_nearest(name);
    int n = (int)(name.n < 60 ? name.n : 60);
    if (near)
        return error_set(err, ST_INVALID, "%s: there is no option \"%.*s\"; did you mean %s?", origin, n,
                         name.p, near->name);
    return error_set(err, ST_INVALID, "%s: there is no option \"%.*s\"; larder --help lists them all", origin,
                     n, name.p);
}

/* The words of a line or of the arguments behind a flag, as one value. */
static enum status set_words(struct config *c, const struct option *o, const struct slice *words, int n,
                             const char *origin, struct error *err)
{
    if (n == 0 || (n > 1 && !o->multi))
        return error_set(err, ST_INVALID, "%s: %s takes one value, expected %s%s", origin, o->name,
                         o->accepts, n ? " (put quotes around a value with spaces)" : "");
    if (n == 1)
        return config_set(c, o, words[0], origin, err);
    struct buf value = {0};
    for (int i = 0; i < n; i++) {
        buf_addf(&value, "%s", i ? " " : "");
        buf_add_slice(&value, words[i]);
    }
    enum status st = config_set(c, o, buf_slice(&value), origin, err);
    buf_release(&value);
    return st;
}

enum status config_file_line(struct slice line, struct arena *arena, struct slice **ret_words, int *ret_n,
                             const char *origin, struct error *err)
{
    *ret_n = 0;
    size_t i = 0;
    while (i < line.n && (line.p[i] == ' ' || line.p[i] == '\t'))
        i++;
    if (i < line.n && line.p[i] == '#')
        return ST_OK;
    if (!words_split(line, arena, ret_words, ret_n))
        return error_set(err, ST_INVALID, "%s: unbalanced quotes", origin);
    return ST_OK;
}

struct slice config_file_next(struct slice *rest)
{
    const char *end = rest->n ? memchr(rest->p, '\n', rest->n) : NULL;
    size_t n = end ? (size_t)(end - rest->p) : rest->n;
    struct slice line = slice_of(rest->p, n);
    size_t used = end ? n + 1 : n;
    *rest = slice_of(rest->p + used, rest->n - used);
    return line;
}

enum status config_file_read(const char *path, struct buf *out, struct error *err)
{
    enum status st = ST_OK;
    FILE *f = fopen(path, "re");
    if (!f)
        return error_set(err,
                         errno == ENOENT   ? ST_MISSING
                         : errno == EACCES ? ST_DENIED
                                           : ST_IO,
                         "cannot open the config file %s: %s", path, strerror(errno));
    for (;;) {
        size_t n = fread(buf_reserve(out, 4096), 1, 4096, f);
        out->len += n;
        if (n == 0)
            break;
    }
    if (ferror(f))
        st = error_set(err, ST_IO, "cannot read the config file %s: %s", path, strerror(errno));
    fclose(f);
    return st;
}

enum status config_parse(struct config *c, const char *path, struct slice text, struct error *err)
{
    struct arena arena = {0};
    enum status st = ST_OK;
    c->source++;
    for (int number = 1; text.n && st == ST_OK; number++) {
        char origin[PATH_MAX + 16];
        struct slice *words;
        int n;
        snprintf(origin, sizeof origin, "%s:%d", path, number);
        st = config_file_line(config_file_next(&text), &arena, &words, &n, origin, err);
        if (st == ST_OK && n > 0) {
            const struct option *o = config_find(words[0]);
            st = o ? set_words(c, o, words + 1, n - 1, origin, err) : unknown(origin, words[0], err);
        }
        arena_reset(&arena);
    }
    arena_release(&arena);
    return st;
}

enum status config_load_file(struct config *c, const char *path, struct error *err)
{
    struct buf text = {0};
    enum status st = config_file_read(path, &text, err);
    if (st == ST_OK)
        st = config_parse(c, path, buf_slice(&text), err);
    buf_release(&text);
    if (st == ST_OK) {
        char *absolute = realpath(path, NULL);
        mem_free(c->file);
        c->file = mem_strdup(absolute ? absolute : path);
        free(absolute);
    }
    return st;
}

/* Takes one flag and its values off the arguments. */
struct flag {
    struct slice name;
    struct slice values[32];
    int n;
};

static bool is_flag(const char *arg)
{
    return arg[0] == '-' && arg[1] == '-' && arg[2] != '\0';
}

/* --name=value, or --name and what stands between it and the next flag. Returns the arguments used. */
static int take_flag(int argc, char *const *argv, struct flag *f)
{
    const char *name = argv[0] + 2;
    const char *equals = strchr(name, '=');
    f->n = 0;
    if (equals) {
        f->name = slice_of(name, (size_t)(equals - name));
        f->values[f->n++] = slice_str(equals + 1);
        return 1;
    }
    f->name = slice_str(name);
    const struct option *o = config_find(f->name);
    int most = o && o->multi ? (int)(sizeof f->values / sizeof f->values[0]) : 1;
    int i = 1;
    while (i < argc && !is_flag(argv[i]) && f->n < most)
        f->values[f->n++] = slice_str(argv[i++]);
    return i;
}

enum status config_load_args(struct config *c, int argc, char *const *argv, struct error *err)
{
    c->source++;
    for (int i = 0; i < argc;) {
        if (!is_flag(argv[i]))
            return error_set(err, ST_INVALID, "unexpected argument \"%.60s\"; options start with --",
                             argv[i]);
        struct flag f;
        char origin[80];
        i += take_flag(argc - i, argv + i, &f);
        snprintf(origin, sizeof origin, "--%.*s", (int)(f.name.n < 64 ? f.name.n : 64), f.name.p);
        const struct option *o = config_find(f.name);
        enum status st = ST_OK;
        if (o && o->bare && f.n == 0)
            f.values[f.n++] = slice_str(o->bare);
        if (o)
            st = set_words(c, o, f.values, f.n, origin, err);
        else if (!slice_is(f.name, "config"))
            st = unknown(origin, f.name, err);
        else if (f.n == 0)
            st = error_set(err, ST_INVALID, "--config takes a file");
        if (st != ST_OK)
            return st;
    }
    return ST_OK;
}

/* What --config names: the last one counts, as with any flag. Copied; NULL when there is none. */
static char *file_of_args(int argc, char *const *argv)
{
    struct slice path = {NULL, 0};
    for (int i = 0; i < argc;) {
        struct flag f = {0};
        i += is_flag(argv[i]) ? take_flag(argc - i, argv + i, &f) : 1;
        if (f.n && slice_is(f.name, "config"))
            path = f.values[0];
    }
    return path.p ? mem_strndup(path) : NULL;
}

enum status config_load(struct config *c, int argc, char *const *argv, struct error *err)
{
    char *path = NULL;
    const char *env = getenv("LARDER_CONFIG");
    if (argc > 0 && argv[0][0] != '-') {
        /* As redis-server: a file may come first without a flag. */
        path = mem_strdup(argv[0]);
        argc--;
        argv++;
    } else {
        path = file_of_args(argc, argv);
        if (!path && env && *env)
            path = mem_strdup(env);
    }
    enum status st = path ? config_load_file(c, path, err) : ST_OK;
    mem_free(path);
    if (st == ST_OK)
        st = config_load_env(c, err);
    if (st == ST_OK)
        st = config_load_args(c, argc, argv, err);
    if (st == ST_OK)
        config_share_memory(c);
    return st;
}
