/* INFO: what the process knows of itself, in sections. */
#ifndef LARDER_STATS_INFO_H
#define LARDER_STATS_INFO_H

#include "exec/command.h"

extern const struct command info_commands[];

#endif
