#include <string.h>

#include "replica/replicas_internal.h"

/* How many samples somebody at p has reached: those are the first ones. */
static uint32_t count_reached(const struct ring *ring, const struct position *p)
{
    uint32_t low = 0, high = ring->n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (position_reached(p, &ring->samples[middle].at))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Drops the sample that is missed least: where the gap that it leaves is smallest for its age. The oldest and
   the newest stay. */
static void drop_one(struct ring *ring, int64_t now)
{
    struct sample *s = ring->samples;
    uint32_t least = 1;
    double smallest = 0;
    for (uint32_t i = 1; i + 1 < ring->n; i++) {
        double gap = (double)(s[i + 1].asked - s[i - 1].asked) / (double)(now - s[i].asked + 1);
        if (i == 1 || gap < smallest) {
            least = i;
            smallest = gap;
        }
    }
    ring->n--;
    memmove(s + least, s + least + 1, (ring->n - least) * sizeof *s);
}

/* Later samples replace those at the same position: of an idle primary one stays. So they do with positions
   that are not there any more, because a crash took back what was not durable: no replica has them. */
void ring_add(struct ring *ring, int64_t asked, const struct position *at)
{
    ring->n = count_reached(ring, at);
    if (ring->n && position_reached(&ring->samples[ring->n - 1].at, at))
        ring->n--;
    if (ring->n == RING_SAMPLES)
        drop_one(ring, asked);
    ring->samples[ring->n++] = (struct sample){asked, *at};
}

int64_t ring_reached(const struct ring *ring, const struct position *p)
{
    uint32_t n = count_reached(ring, p);
    return n ? ring->samples[n - 1].asked : INT64_MIN;
}
