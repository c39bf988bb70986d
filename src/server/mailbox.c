#include "server/mailbox.h"

#define BYTES_MAX ((size_t)64 << 20) /* of bounded messages that may wait */

void mailbox_init(struct mailbox *m)
{
    *m = (struct mailbox){0};
    pthread_mutex_init(&m->lock, NULL);
    m->end = &m->first;
}

/* Takes out all messages, oldest first. */
static struct message *take(struct mailbox *m)
{
    pthread_mutex_lock(&m->lock);
    struct message *first = m->first;
    m->first = NULL;
    m->end = &m->first;
    m->bytes = 0;
    pthread_mutex_unlock(&m->lock);
    return first;
}

void mailbox_release(struct mailbox *m)
{
    for (struct message *it = take(m), *next; it; it = next) {
        next = it->next;
        if (it->kind->discard)
            it->kind->discard(it);
    }
    pthread_mutex_destroy(&m->lock);
}

/* With the lock held. */
static void add(struct mailbox *m, struct message *message)
{
    message->next = NULL;
    *m->end = message;
    m->end = &message->next;
}

void mailbox_post(struct mailbox *m, struct message *message)
{
    pthread_mutex_lock(&m->lock);
    add(m, message);
    pthread_mutex_unlock(&m->lock);
}

bool mailbox_post_bounded(struct mailbox *m, struct message *message, size_t bytes)
{
    pthread_mutex_lock(&m->lock);
    bool room = m->bytes + bytes <= BYTES_MAX;
    if (room) {
        m->bytes += bytes;
        add(m, message);
    }
    pthread_mutex_unlock(&m->lock);
    return room;
}

void mailbox_post_once(struct mailbox *m, struct message *message)
{
    if (!atomic_exchange(&message->waiting, true))
        mailbox_post(m, message);
}

void mailbox_read(struct mailbox *m, struct worker *w)
{
    for (struct message *it = take(m), *next; it; it = next) {
        next = it->next;
        atomic_store(&it->waiting, false); /* from here on it may be posted again */
        it->kind->receive(w, it);
    }
}
