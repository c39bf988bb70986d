/* What the system tells about this process. */
#ifndef LARDER_BASE_PROCESS_H
#define LARDER_BASE_PROCESS_H

#include <stdint.h>

struct process_usage {
    uint64_t cpu_us;   /* user and system, of all threads */
    uint64_t start_us; /* wall time, since the epoch */
    uint64_t virtual_bytes, resident_bytes;
    uint64_t open_fds, max_fds; /* max_fds is UINT64_MAX where there is no limit */
    uint64_t threads;
};

/* What cannot be had is 0. */
struct process_usage process_usage(void);

#endif
