/* Time. Wall time can be faked by tests; the monotonic clock cannot. Thread-safe. */
#ifndef LARDER_BASE_CLOCK_H
#define LARDER_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* Microseconds since the epoch. */
int64_t clock_wall_us(void);

/* Microseconds of a clock that never jumps, for durations and timeouts. */
int64_t clock_mono_us(void);

/* The same, but it goes on while the machine is suspended. */
int64_t clock_boot_us(void);

/* Wall time stands at this moment until it is set again; 0 gives the real clock back. */
void clock_fake_us(int64_t us);
bool clock_is_fake(void);

#endif
