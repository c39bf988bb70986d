#include "store/remote/lease.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rand.h"

#define LEASE   "; lease "
#define PROCESS "; process "

#define MACHINE_BYTES 80

void lease_renew(struct lease *l, int64_t asked_us)
{
    int_fast64_t until = asked_us + l->length_us;
    int_fast64_t before = atomic_load(&l->until_us);
    while (before < until && !atomic_compare_exchange_weak(&l->until_us, &before, until))
        continue;
}

bool lease_holds(const struct lease *l, int64_t now_us)
{
    return l->length_us == 0 || now_us < atomic_load(&l->until_us);
}

/* ---- processes of this machine ---- */

static size_t read_file(const char *path, char *out, size_t cap)
{
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(out, 1, cap - 1, f) : 0;
    if (f)
        fclose(f);
    out[n] = '\0';
    return n;
}

/* Numbers of processes mean the same wherever this is the same: since the machine's start, and within one
   namespace of them. Empty: not known. */
static void name_machine(char out[MACHINE_BYTES])
{
    struct stat space;
    read_file("/proc/sys/kernel/random/boot_id", out, 48);
    out[strcspn(out, "\n ")] = '\0';
    size_t n = strlen(out);
    if (n == 0 || stat("/proc/self/ns/pid", &space) != 0)
        out[0] = '\0';
    else
        snprintf(out + n, MACHINE_BYTES - n, ".%ju", (uintmax_t)space.st_ino);
}

/* When a process was started, in ticks since the machine was: another that gets its number has another. 0: it
   is not known, -1: it has ended, and only waits for its parent to hear of it. */
static int64_t started(int64_t pid)
{
    char path[40], text[1024];
    snprintf(path, sizeof path, "/proc/%" PRId64 "/stat", pid);
    read_file(path, text, sizeof text);
    const char *p = strrchr(text, ')'); /* behind its name, which may be anything */
    if (!p || strlen(p) < 3)
        return 0;
    if (p[2] == 'Z')
        return -1;
    for (int field = 2; p && field < 22; field++)
        p = strchr(p + 1, ' ');
    return p ? strtoll(p, NULL, 10) : 0;
}

/* For certain: a process that cannot be seen may be there. */
static bool is_gone(const char *owner)
{
    char here[MACHINE_BYTES];
    const char *p = strstr(owner, PROCESS);
    int64_t pid = strncmp(owner, "pid ", 4) == 0 ? strtoll(owner + 4, NULL, 10) : 0;
    name_machine(here);
    size_t n = strlen(here);
    if (!p || pid <= 0 || n == 0)
        return false;
    p += strlen(PROCESS);
    if (strncmp(p, here, n) != 0 || p[n] != ' ')
        return false;
    if (kill((pid_t)pid, 0) != 0)
        return errno == ESRCH;
    int64_t then = strtoll(p + n, NULL, 10), now = started(pid);
    return then > 0 && now != 0 && now != then;
}

/* ---- telling and reading ---- */

void lease_describe(char out[LEASE_OWNER_BYTES], uint32_t lease_ms)
{
    char host[65] = "?", when[32] = "", here[MACHINE_BYTES];
    struct tm tm;
    time_t now = (time_t)(clock_wall_us() / 1000000);
    uint32_t token;
    rand_secure(&token, sizeof token);
    name_machine(here);
    (void)gethostname(host, sizeof host - 1);
    if (gmtime_r(&now, &tm))
        strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", &tm);
    snprintf(out, LEASE_OWNER_BYTES,
             "pid %ld on host %s since %s UTC (%08x)" LEASE "%u ms" PROCESS "%s %" PRId64, (long)getpid(),
             host, when, token, lease_ms, here, started(getpid()));
}

int lease_name_length(const char *owner)
{
    const char *end = strstr(owner, LEASE);
    return (int)(end ? end - owner : (ptrdiff_t)strlen(owner));
}

int64_t lease_patience_us(const char *owner)
{
    const char *p = strstr(owner, LEASE);
    int64_t us = p ? strtoll(p + strlen(LEASE), NULL, 10) * 1000 : 0;
    if (us <= 0 || is_gone(owner))
        return 0;
    return us + us / LEASE_DRIFT + 1000;
}
