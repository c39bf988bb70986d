#include "base/clock.h"

#include <stdatomic.h>
#include <time.h>

static _Atomic int64_t fake_us;

static int64_t now_us(clockid_t id)
{
    struct timespec ts;
    clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

int64_t clock_wall_us(void)
{
    int64_t us = atomic_load_explicit(&fake_us, memory_order_relaxed);
    return us ? us : now_us(CLOCK_REALTIME);
}

int64_t clock_mono_us(void)
{
    return now_us(CLOCK_MONOTONIC);
}

int64_t clock_boot_us(void)
{
    return now_us(CLOCK_BOOTTIME);
}

void clock_fake_us(int64_t us)
{
    atomic_store_explicit(&fake_us, us, memory_order_relaxed);
}

bool clock_is_fake(void)
{
    return atomic_load_explicit(&fake_us, memory_order_relaxed) != 0;
}
