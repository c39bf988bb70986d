/* Telling other servers that something has appeared which their clients may wait for (LISTEN and NOTIFY, on
   PostgreSQL alone).

   A notification makes commits wait for each other, so it is sent only when a session listens. All sessions
   that listen hold one lock, shared. A session that commits a transaction which made a list or a sorted set
   appear tries to take that lock alone for a moment, in the round trip of the commit: if it gets it, no
   session listens, and it sends nothing. A transaction that tried just before another session began to
   listen, and commits just after, sends nothing either: so a session that has begun to listen goes on looking
   at the keys for a while, and now and then later. */
#include <assert.h>

#include "store/remote/remote_session.h"

bool rwake_listen(struct store *base, bool on, struct store_wakeup *ret)
{
    struct rstore *s = rstore_of(base);
    assert(s->asked == TXN_NONE);
    if (s->pos.replica) /* LISTEN fails there */
        return false;
    if (!s->conn || s->conn->lost || !rtext(s, R_LISTEN))
        return false;
    if (on != s->listening) {
        remote_add_text(s->conn, rtext(s, on ? R_LISTEN_LOCK : R_LISTEN_UNLOCK));
        remote_add_text(s->conn, rtext(s, on ? R_LISTEN : R_UNLISTEN));
        remote_post(s->conn);
        s->listening = on;
    }
    *ret = (struct store_wakeup){.fd = remote_socket(s->conn), .number = s->reconnects + 1};
    return on && !s->conn->lost;
}

bool rwake_notified(struct store *base)
{
    struct rstore *s = rstore_of(base);
    return s->listening && s->conn && !s->conn->lost && remote_notified(s->conn);
}

void rwake_tell(struct rstore *s)
{
    if (s->appeared && s->shared && rtext(s, R_NOTIFY))
        remote_add_text(s->conn, rtext(s, R_NOTIFY));
}
