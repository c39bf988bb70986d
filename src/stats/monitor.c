#include "stats/monitor.h"

#include "base/buf.h"
#include "base/clock.h"
#include "exec/command.h"
#include "exec/executor.h"
#include "exec/session.h"
#include "stats/redact.h"

/* s in double quotes, with what is not printable escaped, so that a line stays a line. */
static void add_quoted(struct buf *out, struct slice s)
{
    buf_add(out, "\"", 1);
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        switch (c) {
        case '\\':
        case '"':
            buf_addf(out, "\\%c", c);
            break;
        case '\n':
            buf_add(out, "\\n", 2);
            break;
        case '\r':
            buf_add(out, "\\r", 2);
            break;
        case '\t':
            buf_add(out, "\\t", 2);
            break;
        case '\a':
            buf_add(out, "\\a", 2);
            break;
        case '\b':
            buf_add(out, "\\b", 2);
            break;
        default:
            if (c >= ' ' && c <= '~')
                buf_add(out, &s.p[i], 1);
            else
                buf_addf(out, "\\x%02x", c);
        }
    }
    buf_add(out, "\"", 1);
}

void monitor_tell(struct executor *executor, struct slice line)
{
    for (struct session *s = executor->first; s; s = s->next)
        if (s->state.monitor)
            s->ops->push(s, line);
}

void monitor_feed(struct executor *executor, const struct session *from, const struct command *cmd,
                  const struct slice *argv, int argc)
{
    struct buf line = {0};
    int64_t now = clock_wall_us();
    buf_addf(&line, "+%lld.%06lld [%u ", (long long)(now / 1000000), (long long)(now % 1000000),
             from->state.db);
    if (from->unix_socket) /* by the server's side of it: the client's has no name */
        buf_addf(&line, "unix:%s]", executor->config->unixsocket);
    else
        buf_addf(&line, "%s]", from->addr);
    for (int i = 0; i < argc; i++) {
        buf_add(&line, " ", 1);
        add_quoted(&line, redact(cmd, argv, i));
    }
    buf_add(&line, "\r\n", 2);
    uint32_t mine = atomic_load_explicit(&executor->nmonitors, memory_order_relaxed);
    if (mine)
        monitor_tell(executor, buf_slice(&line));
    if (atomic_load_explicit(&executor->server->nmonitors, memory_order_relaxed) != mine)
        buf_add_slice(&executor->lines, buf_slice(&line));
    buf_release(&line);
}
