/* The way in for HTTP. */
#ifndef LARDER_SERVER_HTTP_H
#define LARDER_SERVER_HTTP_H

#include "net/conn.h"

struct worker;

/* Serves a connection that has just been made, or turns it away. */
void http_welcome(struct worker *w, struct conn conn);

#endif
