/* What commands share across clients: configuration, clients, statistics, logs of slow commands. One for each
 * worker. */
#ifndef LARDER_COMMAND_SERVER_H
#define LARDER_COMMAND_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/slice.h"
#include "config/config.h"

struct engine;
struct session;
struct command;
struct slowlog;
struct latency;

struct command_stat {
    uint64_t calls, us, rejected, failed;
    uint64_t
        histogram[40]; /* calls by latency: bucket i holds those below 2^i microseconds (LATENCY HISTOGRAM) */
};

struct server_stats {
    uint64_t connections, rejected_connections, commands;
    uint64_t net_in, net_out;
    uint64_t errors; /* total_error_replies */
    uint64_t acl_denied_auth;
    uint64_t evicted_clients, output_limit_disconnections, query_limit_disconnections;
    uint64_t ops_samples[16], ops_sample_at;
    uint64_t peak_memory;
};

enum pause_mode { PAUSE_NONE, PAUSE_WRITE, PAUSE_ALL };

struct server {
    struct config *config;
    struct engine *engine;
    struct session *first, *last; /* every client, oldest first */
    uint32_t nsessions;
    uint32_t nmonitors;
    uint64_t next_id; /* of a session; the first is 1 */
    struct server_stats stats;
    struct command_stat *command_stats; /* by command_index */
    struct slowlog *slowlog;
    struct latency *latency;
    struct arena call_arena;
    char run_id[41];
    int64_t start_us; /* monotonic */
    int64_t start_wall_ms;
    int tcp_port; /* the one really bound */
    enum pause_mode pause;
    int64_t pause_until_us; /* monotonic */
    bool sweep_active;      /* DEBUG SET-ACTIVE-EXPIRE */
    bool stopping;          /* SHUTDOWN: the worker ends after this batch */
    /* Error statistics by code for INFO errorstats. */
    struct {
        char code[24];
        uint64_t count;
    } error_codes[64];
    uint32_t nerror_codes;
    /* How configuration that lives elsewhere changes at run time; set by the worker. */
    void (*config_changed)(struct server *s, const struct option *o);
    void *worker;
};

/* Everything but config, engine and config_changed, which the caller sets before. */
void server_init(struct server *s, struct config *config, struct engine *engine);
void server_release(struct server *s);

void server_add_session(struct server *s, struct session *c); /* numbers it */
void server_remove_session(struct server *s, struct session *c);

/* Once a second: samples for instantaneous_ops_per_sec, peak memory. */
void server_tick(struct server *s);

/* True while commands of this kind must wait (CLIENT PAUSE). */
bool server_paused(struct server *s, const struct command *c, int64_t mono_us);

#endif
