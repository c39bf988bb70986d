/* The second part of the table of options: those of Redis alone. Private to config/. */
#ifndef LARDER_CONFIG_REDIS_OPTIONS_H
#define LARDER_CONFIG_REDIS_OPTIONS_H

struct option;

const struct option *redis_option(int i); /* NULL at the end */

/* Of an option of this part: where it stands, and its value in config's `idle`. */
int redis_option_index(const struct option *o);

#endif
