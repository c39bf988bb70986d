/* CONFIG REWRITE: the file says afterwards what the server does, and still looks as its author left it.

   Only options whose value differs from what the file says are touched: their first line gets the new value,
   further lines of the same option go. What the file does not mention and is not the default comes at the
   end. The new file is complete on disk before it takes the old one's place. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/words.h"
#include "config/config.h"
#include "config/file.h"

#define MARK "# Added by CONFIG REWRITE"

static bool same_value(const struct config *a, const struct config *b, const struct option *o)
{
    struct buf x = {0}, y = {0};
    config_get(a, o, false, &x);
    config_get(b, o, false, &y);
    bool same = slice_eq(buf_slice(&x), buf_slice(&y));
    buf_release(&x);
    buf_release(&y);
    return same;
}

static bool is_plain(struct slice s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] <= ' ' || s.p[i] == '"' || s.p[i] == '\'' || s.p[i] == '\\' || s.p[i] == 127)
            return false;
    }
    return s.n > 0;
}

void config_put_line(const struct config *c, const struct option *o, struct buf *out)
{
    struct buf value = {0};
    config_get(c, o, true, &value);
    buf_addf(out, "%s ", o->name);
    if (is_plain(buf_slice(&value)) || (o->multi && value.len))
        buf_add_slice(out, buf_slice(&value));
    else
        words_quote(out, buf_slice(&value));
    buf_addf(out, "\n");
    buf_release(&value);
}

/* One line of the old file, which parsed before: kept, replaced or dropped. done: options written already. */
static enum status rewrite_line(const struct config *now, const struct config *was, struct slice line,
                                struct arena *arena, bool *done, struct buf *out, struct error *err)
{
    struct slice *words;
    int n;
    enum status st = config_file_line(line, arena, &words, &n, "config file", err);
    if (st != ST_OK)
        return st;
    const struct option *o = n ? config_find(words[0]) : NULL;
    if (!o || same_value(now, was, o)) {
        buf_add_slice(out, line);
        buf_addf(out, "\n");
    } else {
        bool *written = &done[config_index(o)];
        if (!*written)
            config_put_line(now, o, out);
        *written = true;
    }
    return ST_OK;
}

static enum status rewrite_text(const struct config *now, struct slice old, struct buf *out,
                                struct error *err)
{
    struct config was;
    struct arena arena = {0};
    bool done[CONFIG_OPTIONS_MAX] = {false};
    bool marked = false;
    config_init(&was);
    enum status st = config_parse(&was, now->file, old, err);
    config_share_memory(&was);
    while (old.n && st == ST_OK) {
        struct slice line = config_file_next(&old);
        marked = marked || slice_eq(line, SLICE(MARK));
        st = rewrite_line(now, &was, line, &arena, done, out, err);
        arena_reset(&arena);
    }
    const struct option *o;
    for (int i = 0; st == ST_OK && (o = config_option(i)); i++) {
        if (done[i] || same_value(now, &was, o))
            continue;
        if (!marked)
            buf_addf(out, "\n" MARK "\n");
        marked = true;
        config_put_line(now, o, out);
    }
    arena_release(&arena);
    config_release(&was);
    return st;
}

static bool write_all(int fd, struct slice s)
{
    while (s.n) {
        ssize_t n = write(fd, s.p, s.n);
        if (n < 0 && errno != EINTR)
            return false;
        if (n > 0)
            s = slice_of(s.p + n, s.n - (size_t)n);
    }
    return true;
}

/* The rename itself must survive a crash too. */
static void sync_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash ? mem_strndup(slice_of(path, (size_t)(slash - path) + 1)) : mem_strdup(".");
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
    mem_free(folder);
}

static enum status replace_file(const char *path, struct slice text, struct error *err)
{
    struct buf temp = {0};
    struct stat old;
    mode_t mode = stat(path, &old) == 0 ? old.st_mode & 0777 : 0640; /* it may hold a password */
    buf_addf(&temp, "%s.%d.tmp", path, (int)getpid());
    buf_add(&temp, "", 1);
    int fd = open(temp.p, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool ok = fd >= 0 && write_all(fd, text) && fchmod(fd, mode) == 0 && fsync(fd) == 0;
    ok = ok && rename(temp.p, path) == 0;
    int why = errno;
    if (fd >= 0)
        close(fd);
    if (fd >= 0 && !ok)
        unlink(temp.p);
    buf_release(&temp);
    if (!ok)
        return error_set(err, why == EACCES || why == EPERM ? ST_DENIED : ST_IO, "%s", strerror(why));
    sync_folder(path);
    return ST_OK;
}

enum status config_rewrite(const struct config *c, struct error *err)
{
    if (!c->file)
        return error_set(err, ST_MISSING, "The server is running without a config file");
    struct buf old = {0}, text = {0};
    enum status st = config_file_read(c->file, &old, err);
    if (st == ST_OK)
        st = rewrite_text(c, buf_slice(&old), &text, err);
    if (st == ST_OK)
        st = replace_file(c->file, buf_slice(&text), err);
    buf_release(&old);
    buf_release(&text);
    return st;
}
