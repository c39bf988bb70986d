#include "base/status.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

enum status error_set(struct error *err, enum status code, const char *fmt, ...)
{
    if (err) {
        va_list args;
        va_start(args, fmt);
        err->code = code;
        vsnprintf(err->text, sizeof err->text, fmt, args);
        va_end(args);
    }
    return code;
}

const char *status_name(enum status st)
{
    static const char *const names[] = {
        [ST_OK] = "ok",
        [ST_INVALID] = "invalid",
        [ST_FULL] = "full",
        [ST_READONLY] = "readonly",
        [ST_LOCKED] = "locked",
        [ST_BUSY] = "busy",
        [ST_CONFLICT] = "conflict",
        [ST_CORRUPT] = "corrupt",
        [ST_DENIED] = "denied",
        [ST_IO] = "io",
        [ST_NEWER] = "newer",
        [ST_MISSING] = "missing",
        [ST_LOST] = "lost",
        [ST_UNKNOWN] = "unknown",
        [ST_STALE] = "stale",
        [ST_REWOUND] = "rewound",
        [ST_INTERNAL] = "internal",
        [ST_STOP] = "stop",
    };
    return (size_t)st < sizeof names / sizeof names[0] ? names[st] : "?";
}
