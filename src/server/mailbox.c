#include "server/mailbox.h"

#include <string.h>

#include "base/mem.h"

#define LINES_MAX ((size_t)64 << 20) /* bytes of lines that may wait */

void mailbox_init(struct mailbox *m)
{
    *m = (struct mailbox){0};
    pthread_mutex_init(&m->lock, NULL);
    m->end = &m->first;
}

void mailbox_release(struct mailbox *m)
{
    bool lost;
    for (struct letter *l = mailbox_take(m, &lost), *next; l; l = next) {
        next = l->next;
        if (l->listener >= 0)
            conn_close(&l->conn);
        letter_free(l);
    }
    pthread_mutex_destroy(&m->lock);
}

/* With the lock held. */
static void add(struct mailbox *m, struct letter *l)
{
    *m->end = l;
    m->end = &l->next;
}

void mailbox_post_conn(struct mailbox *m, struct conn conn, int listener)
{
    struct letter *l = mem_zalloc(sizeof *l);
    l->listener = listener;
    l->conn = conn;
    pthread_mutex_lock(&m->lock);
    add(m, l);
    pthread_mutex_unlock(&m->lock);
}

void mailbox_post_line(struct mailbox *m, struct slice line)
{
    struct letter *l = mem_zalloc(sizeof *l + line.n);
    l->listener = -1;
    memcpy(l->bytes, line.p, line.n);
    l->line = slice_of(l->bytes, line.n);
    pthread_mutex_lock(&m->lock);
    bool room = m->bytes + line.n <= LINES_MAX;
    m->lost |= !room;
    if (room) {
        m->bytes += line.n;
        add(m, l);
    }
    pthread_mutex_unlock(&m->lock);
    if (!room)
        letter_free(l);
}

struct letter *mailbox_take(struct mailbox *m, bool *ret_lost)
{
    pthread_mutex_lock(&m->lock);
    struct letter *l = m->first;
    m->first = NULL;
    m->end = &m->first;
    m->bytes = 0;
    *ret_lost = m->lost;
    m->lost = false;
    pthread_mutex_unlock(&m->lock);
    return l;
}

void letter_free(struct letter *l)
{
    mem_free(l);
}
