#include "sql/pace.h"

#include <fcntl.h>

#define PIECE_BYTES ((int64_t)1 << 20)

struct pace pace_of(int fd, struct meanwhile m)
{
    return (struct pace){.fd = fd, .meanwhile = m};
}

static void begin_piece(struct pace *p)
{
    p->last = p->from;
    p->last_to = p->to;
    p->bytes = 0;
    (void)sync_file_range(p->fd, p->last, p->last_to - p->last, SYNC_FILE_RANGE_WRITE);
}

static void await_piece(const struct pace *p)
{
    const unsigned wait = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
    if (p->last_to > p->last)
        (void)sync_file_range(p->fd, p->last, p->last_to - p->last, wait);
}

void pace_wrote(struct pace *p, int64_t at, int64_t n)
{
    if (p->fd < 0)
        return;
    if (p->bytes == 0 || at < p->from)
        p->from = at;
    if (p->bytes == 0 || at + n > p->to)
        p->to = at + n;
    p->bytes += n;
    if (p->bytes < PIECE_BYTES)
        return;
    await_piece(p);
    begin_piece(p);
    if (p->meanwhile.fn)
        p->meanwhile.fn(p->meanwhile.arg);
}
