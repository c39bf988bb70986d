/* A line is put together in memory and written with one write(2), so that lines of several threads (or of
   several processes appending to one file) do not mix. */
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"

#define LINE_BYTES 2048

static _Atomic int level_now = LOG_INFO;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of file and path */
static int file = STDERR_FILENO;
static char *path; /* NULL: standard error */

void log_set_level(enum log_level level)
{
    atomic_store_explicit(&level_now, (int)level, memory_order_relaxed);
}

enum log_level log_get_level(void)
{
    return (enum log_level)atomic_load_explicit(&level_now, memory_order_relaxed);
}

/* With the lock held. The old file stays in use when the new one cannot be opened. */
static enum status switch_to(const char *to, struct error *err)
{
    int fd = STDERR_FILENO;
    if (to) {
        fd = open(to, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640);
        if (fd < 0)
            return error_set(err, errno == EACCES ? ST_DENIED : ST_IO, "cannot open the log file %s: %s", to,
                             strerror(errno));
    }
    if (file != STDERR_FILENO)
        close(file);
    file = fd;
    return ST_OK;
}

enum status log_set_file(const char *to, struct error *err)
{
    char *copy = to && *to ? mem_strdup(to) : NULL;
    pthread_mutex_lock(&lock);
    enum status st = switch_to(copy, err);
    if (st == ST_OK) {
        char *old = path;
        path = copy;
        copy = old;
    }
    pthread_mutex_unlock(&lock);
    mem_free(copy);
    return st;
}

enum status log_reopen(struct error *err)
{
    pthread_mutex_lock(&lock);
    enum status st = switch_to(path, err);
    pthread_mutex_unlock(&lock);
    return st;
}

static size_t put_time(char *out, size_t cap)
{
    /* The real clock: a test that fakes time still wants to know when things happened. */
    struct timespec now;
    struct tm tm;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);
    size_t n = strftime(out, cap, "ts=%Y-%m-%dT%H:%M:%S", &tm);
    return n + (size_t)snprintf(out + n, cap - n, ".%03ldZ", now.tv_nsec / 1000000);
}

void log_write(enum log_level level, const char *msg, const char *fields, ...)
{
    static const char *const names[] = {"debug", "info", "warning", "error"};
    if (level < log_get_level())
        return;
    char line[LINE_BYTES];
    size_t n = put_time(line, sizeof line);
    n += (size_t)snprintf(line + n, sizeof line - n, " level=%s msg=\"%s\"", names[level], msg);
    if (fields && n < sizeof line - 2) {
        line[n++] = ' ';
        va_list args;
        va_start(args, fields);
        n += (size_t)vsnprintf(line + n, sizeof line - n, fields, args);
        va_end(args);
    }
    if (n > sizeof line - 1)
        n = sizeof line - 1; /* cut, but still a line */
    for (size_t i = 0; i < n; i++) {
        if ((unsigned char)line[i] < ' ')
            line[i] = ' ';
    }
    line[n++] = '\n';
    pthread_mutex_lock(&lock);
    /* There is nobody to tell when a log cannot be written. */
    ssize_t written = write(file, line, n);
    (void)written;
    pthread_mutex_unlock(&lock);
}

const char *log_quote(char *out, unsigned long cap, const char *s)
{
    size_t n = 0;
    if (cap < 3) {
        if (cap)
            out[0] = '\0';
        return out;
    }
    out[n++] = '"';
    for (; *s; s++) {
        char c = *s;
        char escape = c == '"' || c == '\\' ? c : c == '\n' ? 'n' : c == '\r' ? 'r' : c == '\t' ? 't' : '\0';
        if (n + (escape ? 2 : 1) > cap - 2)
            break;
        if (escape) {
            out[n++] = '\\';
            out[n++] = escape;
        } else {
            out[n++] = (unsigned char)c < ' ' ? '?' : c;
        }
    }
    out[n++] = '"';
    out[n] = '\0';
    return out;
}
