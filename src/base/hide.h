/* URLs as people may see them. */
#ifndef LARDER_BASE_HIDE_H
#define LARDER_BASE_HIDE_H

#include <stddef.h>

/* A copy of url (cut to cap) with *** in the place of a password: scheme://user:password@host, and
   ?password=... Returns out. */
const char *hide_password(char *out, size_t cap, const char *url);

/* The same for several URLs, separated by spaces. */
const char *hide_passwords(char *out, size_t cap, const char *urls);

#endif
