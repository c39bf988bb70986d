/* What threads.c (the pool) and thread.c (one of its threads) share. */
#ifndef LARDER_QUERY_THREADS_INTERNAL_H
#define LARDER_QUERY_THREADS_INTERNAL_H

#include <pthread.h>

#include "query/threads.h"

#define QUERY_THREADS_MAX 64

struct query_thread {
    struct query_threads *pool;
    pthread_t id;
    struct query_job *job; /* that runs */
    struct store *store;   /* NULL: it has none yet */
    struct engine *engine;
    const struct query_job_kind *kind; /* that tools are of; NULL: there are none yet */
    void *tools;
};

struct query_threads {
    struct query_threads_options options;
    pthread_mutex_t lock;
    pthread_cond_t work; /* there is a job, or the end has come */
    pthread_cond_t less; /* a snapshot was closed */
    /* With the lock held. */
    struct query_job *first, *last; /* that wait */
    struct query_thread threads[QUERY_THREADS_MAX];
    uint32_t nthreads, idle;
    uint32_t snapshots; /* that are open */
    bool stop;
    struct query_stats stats;
    struct histogram us, open_us; /* one adds at a time */
};

/* A thread's life. */
void *query_thread_run(void *query_thread);

/* For both: one who has the job has it no more. */
void query_job_unref(struct query_job *j);

/* On the executor's thread (s is NULL: that has ended): the job is over. */
void query_job_over(struct executor *s, struct block_job *b);

#endif
