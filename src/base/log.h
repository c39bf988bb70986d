/* Logfmt lines on standard error or in a file: ts=... level=info msg="..." name=value.
   Library code never logs; net, server, replica and main do. Keys and values never appear at info or above.
 */
#ifndef LARDER_BASE_LOG_H
#define LARDER_BASE_LOG_H

#include <stdbool.h>

#include "base/status.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERROR };

void log_set_level(enum log_level level);
enum log_level log_get_level(void);

/* NULL or "" means standard error. Reopened by log_reopen (for log rotation). */
enum status log_set_file(const char *path, struct error *err) MUST_CHECK;
enum status log_reopen(struct error *err) MUST_CHECK;

/* msg is a constant sentence; fields is a printf format of the rest: "port=%d path=%s", or NULL.
   A field that may hold spaces or quotes goes through log_quote. */
void log_write(enum log_level level, const char *msg, const char *fields, ...)
    __attribute__((format(printf, 3, 4)));

#define log_debug(...)   log_write(LOG_DEBUG, __VA_ARGS__)
#define log_info(...)    log_write(LOG_INFO, __VA_ARGS__)
#define log_warning(...) log_write(LOG_WARNING, __VA_ARGS__)
#define log_error(...)   log_write(LOG_ERROR, __VA_ARGS__)

/* s as a quoted logfmt value in out (cut when it does not fit). Returns out. */
const char *log_quote(char *out, unsigned long cap, const char *s);

#endif
