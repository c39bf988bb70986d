#include "base/process.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

/* Field n, from 1, of /proc/self/stat, counted from behind the name, which may hold anything. */
#define STAT_THREADS 20
#define STAT_START   22
#define STAT_VSIZE   23

static void read_stat(struct process_usage *u, uint64_t *ret_start_ticks)
{
    char text[1024] = "";
    FILE *f = fopen("/proc/self/stat", "re");
    if (!f)
        return;
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = '\0';
    const char *at = strrchr(text, ')');
    for (int field = 3; at && (at = strchr(at, ' ')) != NULL; field++) {
        at++;
        if (field == STAT_THREADS)
            u->threads = strtoull(at, NULL, 10);
        else if (field == STAT_START)
            *ret_start_ticks = strtoull(at, NULL, 10);
        else if (field == STAT_VSIZE)
            u->virtual_bytes = strtoull(at, NULL, 10);
    }
}

/* When the system was started, in seconds since the epoch. */
static uint64_t boot_time(void)
{
    char line[256];
    uint64_t seconds = 0;
    FILE *f = fopen("/proc/stat", "re");
    if (!f)
        return 0;
    while (seconds == 0 && fgets(line, sizeof line, f))
        if (strncmp(line, "btime ", 6) == 0)
            seconds = strtoull(line + 6, NULL, 10);
    fclose(f);
    return seconds;
}

/* Newer systems tell the number of descriptors as the folder's size; elsewhere they are counted. */
static uint64_t count_fds(void)
{
    struct stat sb;
    if (stat("/proc/self/fd", &sb) == 0 && sb.st_size > 0)
        return (uint64_t)sb.st_size;
    DIR *dir = opendir("/proc/self/fd");
    uint64_t n = 0;
    if (!dir)
        return 0;
    for (const struct dirent *e; (e = readdir(dir)) != NULL;)
        n += e->d_name[0] != '.';
    closedir(dir);
    return n - 1; /* the folder's own */
}

static uint64_t microseconds(struct timeval t)
{
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_usec;
}

struct process_usage process_usage(void)
{
    struct process_usage u = {0};
    struct rusage usage;
    struct rlimit fds;
    uint64_t start_ticks = 0, boot = boot_time();
    long hz = sysconf(_SC_CLK_TCK);
    read_stat(&u, &start_ticks);
    if (boot && start_ticks && hz > 0)
        u.start_us = boot * 1000000 + start_ticks * 1000000 / (uint64_t)hz;
    if (getrusage(RUSAGE_SELF, &usage) == 0)
        u.cpu_us = microseconds(usage.ru_utime) + microseconds(usage.ru_stime);
    if (getrlimit(RLIMIT_NOFILE, &fds) == 0)
        u.max_fds = fds.rlim_cur == RLIM_INFINITY ? UINT64_MAX : fds.rlim_cur;
    u.resident_bytes = mem_rss();
    u.open_fds = count_fds();
    return u;
}
