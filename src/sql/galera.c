#include "sql/galera.h"

#include <stdio.h>
#include <stdlib.h>

#define SYNCED "4"

/* wsrep_on comes before wsrep_provider; a server that was built without knows neither. */
static enum status take_variable(void *arg, const struct remote_row *row)
{
    struct remote_node *g = arg;
    struct slice value = remote_bytes(row, 1);
    if (slice_is(remote_bytes(row, 0), "wsrep_on"))
        g->on = slice_is(value, "ON");
    else
        g->on &= value.n > 0 && !slice_is(value, "none");
    return ST_OK;
}

void galera_ask(struct remote *c)
{
    struct request r = {.text = "SHOW VARIABLES WHERE Variable_name IN ('wsrep_on', 'wsrep_provider')",
                        .fn = take_variable,
                        .arg = &c->galera};
    c->galera = (struct remote_node){0};
    remote_add(c, &r);
}

/* ---- how it is ---- */

struct health {
    struct remote_node *node;
    bool primary, ready, synced;
};

static enum status take_status(void *arg, const struct remote_row *row)
{
    struct health *h = arg;
    struct slice name = remote_bytes(row, 0), value = remote_bytes(row, 1);
    if (slice_is(name, "wsrep_cluster_status"))
        h->primary = slice_is(value, "Primary");
    else if (slice_is(name, "wsrep_ready"))
        h->ready = slice_is(value, "ON");
    else if (slice_is(name, "wsrep_local_state"))
        h->synced = slice_is(value, SYNCED);
    else if (slice_is(name, "wsrep_local_state_comment"))
        snprintf(h->node->state, sizeof h->node->state, "%.*s", (int)value.n, value.p);
    else if (slice_is(name, "wsrep_cluster_size"))
        h->node->size = (uint32_t)strtoul(value.p, NULL, 10);
    else
        h->node->index = (uint32_t)strtoul(value.p, NULL, 10);
    return ST_OK;
}

enum status galera_check(struct remote *c, struct error *err)
{
    struct health h = {.node = &c->galera};
    struct request r = {.text = "SHOW STATUS WHERE Variable_name IN ('wsrep_cluster_status', 'wsrep_ready',"
                                " 'wsrep_local_state', 'wsrep_local_state_comment', 'wsrep_cluster_size',"
                                " 'wsrep_local_index')",
                        .fn = take_status,
                        .arg = &h};
    remote_add(c, &r);
    enum status st = remote_run(c, err);
    if (st != ST_OK || (h.primary && h.ready && h.synced))
        return st;
    return error_set(err, ST_IO, "%s: the node is not a synchronized member of its Galera cluster (%s%s)",
                     c->place, c->galera.state, h.primary ? "" : ", not in the primary component");
}

/* ---- its sessions ---- */

static enum status take_name(void *arg, const struct remote_row *row)
{
    struct remote_node *g = arg;
    struct slice name = remote_bytes(row, 1);
    snprintf(g->name, sizeof g->name, "%.*s", (int)name.n, name.p);
    g->session = (uint64_t)remote_i64(row, 0);
    return ST_OK;
}

/* Streamed transactions would be certified piece by piece, and seen by nobody else sooner. */
enum status galera_set_up(struct remote *c, struct error *err)
{
    struct request r = {
        .text = "SELECT CONNECTION_ID(), @@wsrep_node_name", .fn = take_name, .arg = &c->galera};
    remote_add_text(c, "SET wsrep_sync_wait = 1, wsrep_trx_fragment_size = 0");
    remote_add(c, &r);
    return remote_run(c, err);
}
