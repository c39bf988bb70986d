/* How far a database has got: a place in the log that its replicas replay. Positions of one lineage are
   ordered; of two lineages nothing can be said but through the history of the newer one (lost, below).

     PostgreSQL  an LSN, and the timeline that it was written on
     MariaDB     a GTID for each replication domain
     SQLite      the journal's sequence: one file, where everything that was acknowledged is there

   A position is a value: it is copied, and restored with a session's state. */
#ifndef LARDER_STORE_POSITION_H
#define LARDER_STORE_POSITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

enum position_kind { POSITION_NONE, POSITION_LSN, POSITION_GTID, POSITION_SEQUENCE };

#define POSITION_DOMAINS 4 /* of a MariaDB; more are refused */

struct position_gtid {
    uint32_t domain, server;
    uint64_t seq;
};

struct position {
    enum position_kind kind; /* NONE: everywhere reached */
    uint32_t timeline;       /* LSN, GTID: the branch (store/history.h). SEQUENCE: the run of the server */
    uint64_t database;       /* which database: a random number of larder_meta, the same on its replicas */
    uint64_t number;         /* LSN, SEQUENCE */
    uint32_t ndomains;       /* GTID: in ascending order of domains */
    struct position_gtid gtids[POSITION_DOMAINS];
};

/* Whether a server that is at `at` has everything up to `need`. Positions of different databases or kinds:
   false. Of different branches as well, because numbers are given anew on each: after a failover nobody is
   known to have what was needed before, until lineage was asked (judge, replicated.h) or the primary has been
   read. */
bool position_reached(const struct position *at, const struct position *need);

/* The later of both, domain by domain. A position of another database replaces what was there. Of LSNs the
   higher number counts, whatever its timeline: a position that a failover has cut off stays until lineage is
   asked (judge, replicated.h), which is to be done before it is merged with what comes later. */
void position_merge(struct position *to, const struct position *from);

/* Moves one domain of a GTID position forward. One that finds no room is left out: whoever reads positions
   from a database refuses those with more domains. */
void position_add_gtid(struct position *p, struct position_gtid g);

/* "0-1-42,1-7-3", or nothing, as MariaDB writes it, into the domains of p. False: it is none, or has more
   domains than there is room for. */
bool position_read_gtids(struct slice text, struct position *p);

/* For people and INFO: "0/3000148", "0-1-42", "17". */
#define POSITION_TEXT 176
const char *position_text(const struct position *p, char out[POSITION_TEXT]);

/* A number that grows with it, for offsets in INFO and lag in bytes or transactions. */
uint64_t position_offset(const struct position *p);

#endif
