/* clang-format off */
/* For how long a server that has a database server's tables for itself may answer from memory.

   Such a server answers most reads without asking the database. When it is frozen, or cut off, another server
   may take the tables over and write; until the first one notices, what it answers is out of date. So it
   answers from memory only while it has a lease of L, and the server that takes over waits for L before it
   writes.

     the owner       asks the database, at a of its clock; an answer comes: its session was there, and held
                     the tables' lock, at some moment after a. So the lease ends at a + L, however late the
                     answer came. Every answer to either of its sessions renews it; when it has run out, the
                     next batch asks before it runs.
     the successor   has the tables' lock at b, which is after that moment: locks end with their sessions. It
                     sleeps for L, and some more because clocks differ in their rates, and changes nothing
                     before that.

   Why no read is out of date: a batch looks at the lease when all of its requests have been read from their
   sockets, at t < a + L. No successor has written by then: it writes after b + L > a + L. So
   memory has, at t, what the last acknowledged write has left, and t is after each request came and before
   its reply leaves: each read can be taken to have happened at t. A process that is frozen between t and the
   moment when the replies leave tells what was true while the request was on its way, which is all that
   a client can know of a reply. What was sent to it meanwhile is read later, and its batch looks again.

   Only durations are compared, each by one clock: one that goes on while the process is stopped or the
   machine suspended (CLOCK_BOOTTIME), and that runs as fast as the other's but for LEASE_DRIFT. A hypervisor
   that stops a machine together with its clock breaks that.

   larder_meta's `owner` has the length of the lease behind the owner's name, for the successor. That does not
   wait for an owner that has ended well (`owner` is empty then), nor for a process of this machine that is
   not there any more.

   SQLite needs none of this: its lock (flock) is the operating system's, and is held for as long as the
   process exists, frozen or not. */
/* clang-format on */
#ifndef LARDER_STORE_REMOTE_LEASE_H
#define LARDER_STORE_REMOTE_LEASE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LEASE_DRIFT       100 /* clocks may differ by one part in so many */
#define LEASE_OWNER_BYTES 256

/* Of one server; its sessions share it. Thread-safe. */
struct lease {
    int64_t length_us; /* 0: there is none, memory is always believed */
    atomic_int_fast64_t until_us;
};

/* An answer has come to what was asked at asked_us (clock_boot_us) or later. */
void lease_renew(struct lease *l, int64_t asked_us);

/* Whether memory can be believed at that moment. */
bool lease_holds(const struct lease *l, int64_t now_us);

/* "pid 4711 on host box since 2024-05-01 12:00:00 UTC (5f3a91c2); lease 5000 ms; process BOOT.SPACE 8123":
   who this process is, for `owner`. No two are called the same. */
void lease_describe(char out[LEASE_OWNER_BYTES], uint32_t lease_ms);

/* How much of it is for people. */
int lease_name_length(const char *owner);

/* How long a successor that finds this `owner` has to wait, counted from when it had the tables' lock. */
int64_t lease_patience_us(const char *owner);

#endif
