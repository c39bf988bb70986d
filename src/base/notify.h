/* Tells the service manager that started us how we are, as sd_notify(3) does: a datagram to the socket that
   NOTIFY_SOCKET names. Without such a socket, nothing happens. */
#ifndef LARDER_BASE_NOTIFY_H
#define LARDER_BASE_NOTIFY_H

#include <stdbool.h>

/* state: lines such as "READY=1\nSTATUS=serving". Whether it was sent: nobody needs to know, but tests. From
   any thread. */
bool notify_manager(const char *state);

#endif
