/* A store that has no tables: what it is asked for, it does not know (ST_STALE). The engine over it serves
   what its memory has and nothing else (engine/recent.h).

   Its databases have the numbers that clients select. Nothing can be written, nothing waits. */
#ifndef LARDER_STORE_BLANK_H
#define LARDER_STORE_BLANK_H

#include "store/store.h"

struct store *blank_new(void);

#endif
