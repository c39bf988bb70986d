/* The certificates of the ports: read at the start, on SIGHUP, and when CONFIG SET changes where they
   are. */
#ifndef LARDER_SERVER_CERTIFICATES_H
#define LARDER_SERVER_CERTIFICATES_H

#include "base/status.h"

struct workers;

/* Connections from now on get what the configuration names; those that exist keep what they have. When it
   cannot be used everything stays as it was, and the log says why. Does nothing when no port has TLS. The
   workers do not run. */
enum status certificates_load(struct workers *t, struct error *err) MUST_CHECK;

#endif
