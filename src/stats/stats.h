/* What is counted and logged about commands: where the books of a transaction (exec/books.h) are posted. */
#ifndef LARDER_STATS_STATS_H
#define LARDER_STATS_STATS_H

struct books;
struct executor;
struct server;

/* The slow log and the latency monitor of the process. */
void stats_init(struct server *all);
void stats_release(struct server *all);

/* Posts the books of a transaction that has ended, and of one that will not be run again so far as it has
   got: into the statistics, the slow log and the latency monitor, and to clients that monitor, whichever
   server's they are. While it may be run again nothing happens: sums that are asked for then include the
   books (sums.h). */
void stats_post(struct executor *s);

/* Posts and empties books that are no transaction's. */
void stats_post_books(struct executor *s, struct books *b);

#endif
