#include "stats/monitor.h"

#include "base/buf.h"
#include "exec/command.h"
#include "exec/executor.h"
#include "exec/session.h"

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

void monitor_tell(struct executor *executor, struct slice lines)
{
    for (struct session *s = executor->first; s; s = s->next)
        if (s->state.monitor)
            s->ops->push(s, lines);
}

static void add_line(struct buf *out, const struct books_note *note)
{
    buf_addf(out, "+%lld.%06lld [%u %s]", (long long)(note->wall_us / 1000000),
             (long long)(note->wall_us % 1000000), note->db, note->from);
    for (int i = 0; i < note->nargs; i++) {
        buf_add(out, " ", 1);
        add_quoted(out, note->argv[i].shown);
    }
    buf_add(out, "\r\n", 2);
}

void monitor_feed(struct executor *executor, const struct books_note *notes)
{
    const struct server *all = executor->server;
    struct buf lines = {0};
    for (const struct books_note *note = notes; note; note = note->next)
        if (note->monitored)
            add_line(&lines, note);
    for (uint32_t i = 0; i < all->nexecutors && lines.len; i++) {
        struct executor *to = all->executors[i];
        if (to == executor)
            monitor_tell(to, buf_slice(&lines));
        else if (atomic_load_explicit(&to->nmonitors, memory_order_relaxed))
            to->tell_monitors(to, buf_slice(&lines));
    }
    buf_release(&lines);
}
