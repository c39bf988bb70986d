/* What the files of a client share: client.c (states, time, life), client_input.c, client_output.c,
   client_session.c (what commands may ask of it). */
#ifndef LARDER_SERVER_CLIENT_INTERNAL_H
#define LARDER_SERVER_CLIENT_INTERNAL_H

#include "base/log.h"
#include "server/client.h"

/* What an empty buffer may hold on to while its client is busy. */
#define KEEP_BUFFER ((size_t)64 << 10)

extern const struct session_ops client_session_ops;

/* What the loop calls. */
void client_on_readable(evutil_socket_t fd, short what, void *arg);
void client_on_writable(evutil_socket_t fd, short what, void *arg);
void client_on_block_timeout(evutil_socket_t fd, short what, void *arg);

/* Sets the timer for block_until_us. */
void client_arm_block_timer(struct client *c);

/* client-output-buffer-limit: true when the client had to go. */
bool client_over_limit(struct client *c);

void client_log_close(const struct client *c, enum log_level level, const char *why);

#endif
