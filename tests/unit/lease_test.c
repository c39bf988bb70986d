/* Leases: when memory may be believed, and how long whoever comes next has to wait. */
#include "store/remote/lease.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define MS 1000

static void it_is_counted_from_the_question(void)
{
    struct lease l = {.length_us = 100 * MS};
    CHECK(!lease_holds(&l, 0));
    CHECK(!lease_holds(&l, 1000 * MS));
    lease_renew(&l, 1000 * MS); /* however late the answer came */
    CHECK(lease_holds(&l, 1000 * MS));
    CHECK(lease_holds(&l, 1100 * MS - 1));
    CHECK(!lease_holds(&l, 1100 * MS));
    lease_renew(&l, 1050 * MS);
    CHECK(lease_holds(&l, 1150 * MS - 1));
    lease_renew(&l, 1010 * MS); /* an answer to something older: of the other session, say */
    CHECK(lease_holds(&l, 1150 * MS - 1));
    CHECK(!lease_holds(&l, 1150 * MS));
}

static void without_one_memory_is_always_believed(void)
{
    struct lease l = {.length_us = 0};
    CHECK(lease_holds(&l, 0));
    CHECK(lease_holds(&l, INT64_MAX));
}

/* Whatever the moments: a server asks at a, its session ends, another has the lock at b > a and waits. When
   the other may write, the first one's lease is over, though their clocks have rates of their own. */
static void nobody_writes_while_it_lasts(void)
{
    static const double rates[] = {0.996, 0.9995, 1.0, 1.0005, 1.004};
    static const int lengths_ms[] = {1, 10, 600, 5000, 600000};
    char owner[LEASE_OWNER_BYTES];
    for (size_t n = 0; n < sizeof lengths_ms / sizeof lengths_ms[0]; n++) {
        lease_describe(owner, (uint32_t)lengths_ms[n]);
        int64_t patience = lease_patience_us(owner);
        for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
            for (size_t k = 0; k < sizeof rates / sizeof rates[0]; k++) {
                double asked = 5e6, locked = asked + 1, written = locked + (double)patience / rates[k];
                struct lease l = {.length_us = (int64_t)lengths_ms[n] * MS};
                lease_renew(&l, (int64_t)(asked * rates[i]));
                CHECK(!lease_holds(&l, (int64_t)(written * rates[i])));
            }
        }
    }
}

static void owners_are_told_apart(void)
{
    char a[LEASE_OWNER_BYTES], b[LEASE_OWNER_BYTES], prefetch[64];
    lease_describe(a, 5000);
    lease_describe(b, 5000);
    CHECK(strcmp(a, b) != 0);
    snprintf(prefetch, sizeof prefetch, "pid %ld on host ", (long)getpid());
    CHECK(strncmp(a, prefetch, strlen(prefetch)) == 0);
    CHECK(a[lease_name_length(a) - 1] == ')');
    CHECK_EQ(lease_name_length(""), 0);
    CHECK_EQ(lease_name_length("somebody"), 8);
}

static void patience(void)
{
    char owner[LEASE_OWNER_BYTES];
    CHECK_EQ(lease_patience_us(""), 0);
    CHECK_EQ(lease_patience_us("pid 1 on host box since 2024-05-01 12:00:00 UTC (5f3a91c2)"), 0);
    CHECK_EQ(lease_patience_us("pid 1 on host box since 2024 UTC (5f3a91c2); lease 2000 ms; process x.1 77"),
             2021000);
    CHECK_EQ(lease_patience_us("pid 1 on host box since 2024 UTC (5f3a91c2); lease 2000 ms; process  0"),
             2021000);
    lease_describe(owner, 0);
    CHECK_EQ(lease_patience_us(owner), 0);
    lease_describe(owner, 1000); /* ourselves: we are there */
    CHECK_EQ(lease_patience_us(owner), 1011000);
}

static void nobody_waits_for_a_process_that_is_gone(void)
{
    char owner[LEASE_OWNER_BYTES], described[LEASE_OWNER_BYTES];
    int ready[2];
    CHECK(pipe(ready) == 0);
    pid_t child = fork();
    if (child == 0) {
        lease_describe(described, 1000);
        ssize_t ignored = write(ready[1], described, sizeof described);
        (void)ignored;
        for (;;)
            pause();
    }
    CHECK_EQ(read(ready[0], described, sizeof described), (int64_t)sizeof described);
    CHECK_EQ(lease_patience_us(described), 1011000);
    kill(child, SIGSTOP);
    CHECK_EQ(waitpid(child, NULL, WUNTRACED), child);
    CHECK_EQ(lease_patience_us(described), 1011000); /* frozen is not gone */
    snprintf(owner, sizeof owner, "%.*s 1", (int)(strrchr(described, ' ') - described), described);
    CHECK_EQ(lease_patience_us(owner), 0); /* this one was started later, and was given its number */
    kill(child, SIGKILL);
    siginfo_t info;
    CHECK_EQ(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    CHECK_EQ(lease_patience_us(described), 0); /* nobody has heard of its end yet */
    CHECK_EQ(waitpid(child, NULL, 0), child);
    CHECK_EQ(lease_patience_us(described), 0);
    close(ready[0]);
    close(ready[1]);
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    RUN(it_is_counted_from_the_question);
    RUN(without_one_memory_is_always_believed);
    RUN(nobody_writes_while_it_lasts);
    RUN(owners_are_told_apart);
    RUN(patience);
    RUN(nobody_waits_for_a_process_that_is_gone);
    return check_done();
}
