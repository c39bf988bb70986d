/* MEMORY: what keys, clients and the process take. */
#ifndef LARDER_STATS_MEMORY_H
#define LARDER_STATS_MEMORY_H

#include "exec/command.h"

extern const struct command memory_commands[];

#endif
