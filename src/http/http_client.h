/* HTTP as the server sees it: a protocol beside RESP. */
#ifndef LARDER_HTTP_HTTP_CLIENT_H
#define LARDER_HTTP_HTTP_CLIENT_H

#include "server/protocol.h"

extern const struct protocol http_protocol;

#endif
