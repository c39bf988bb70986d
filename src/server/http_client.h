/* The way in for HTTP. */
#ifndef LARDER_SERVER_HTTP_CLIENT_H
#define LARDER_SERVER_HTTP_CLIENT_H

#include "net/conn.h"

struct worker;

/* Serves a connection that was counted for w, or turns it away. */
void http_welcome(struct worker *w, struct conn conn);

/* There are too many already. */
void http_turn_away(struct conn *conn);

#endif
