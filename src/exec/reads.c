/* Which calls replicas may answer, see reads.h. */
#include "exec/reads.h"

#include "engine/engine.h"
#include "exec/executor.h"
#include "exec/session.h"
#include "exec/txn.h"
#include "replica/token.h"
#include "store/replicated.h"

bool reads_only(const struct command *cmd)
{
    uint32_t never =
        CMD_WRITE | CMD_BLOCKING | CMD_MAY_REPLICATE | CMD_OUTSIDE | CMD_STOPS_WORKERS | CMD_ALONE;
    return (cmd->flags & CMD_READONLY) && !(cmd->flags & never);
}

bool reads_by_key(const struct command *cmd)
{
    for (int i = 0; i < COMMAND_KEY_SPECS && cmd->keys[i].flags; i++)
        if (cmd->keys[i].unknown)
            return false;
    return cmd->keys[0].flags != 0 && !(cmd->flags & (CMD_SCRIPTS | CMD_LIBRARIES));
}

const struct command *reads_inside(const struct command *cmd, const struct slice **argv, int *argc,
                                   struct consistency *ret_how)
{
    struct consistency how;
    if (cmd && cmd->reads_as) {
        int at = cmd->reads_as(*argv, *argc, &how);
        if (at <= 0 || at >= *argc)
            return NULL;
        if (ret_how)
            *ret_how = how;
        *argv += at;
        *argc -= at;
        cmd = command_find((*argv)[0]);
    }
    if (cmd && cmd->subs && *argc > 1)
        cmd = command_find_sub(cmd, (*argv)[1]);
    return cmd;
}

enum status session_position(struct call *c, struct position *ret)
{
    struct store *store = engine_store(c->executor->engine);
    struct session_state *state = &c->session->state;
    if (state->unplaced && store_replicated(store) && !position_lost(store, &state->position)) {
        struct position now;
        enum status st = store->replicated->now(store, &now, c->err);
        if (st != ST_OK)
            return st;
        position_merge(&state->position, &now);
        state->unplaced = false;
    }
    if (store_commits_later(store) && state->position.kind != POSITION_NONE)
        c->result->ticket = store_last_ticket(store);
    *ret = state->position;
    return ST_OK;
}

enum status session_placed(struct call *c)
{
    struct session_state *state = &c->session->state;
    struct position p;
    enum status st = session_position(c, &p);
    if (st != ST_OK || !position_lost(engine_store(c->executor->engine), &p))
        return st;
    state->position = (struct position){0};
    state->unplaced = true;
    return error_set(c->err, ST_REWOUND, SESSION_LOST_TEXT);
}

enum status session_take_token(struct session *s, struct slice text, struct error *refusal, struct error *err)
{
    struct store *store = engine_store(s->executor->engines[0]);
    struct error why;
    struct position p;
    enum lineage lineage = LINEAGE_FOREIGN; /* a store that tells no positions knows none either */
    refusal->code = ST_OK;
    if (token_read(text, &p, &why) != ST_OK) {
        error_set(refusal, ST_INVALID, "BADTOKEN %.200s", why.text);
        return ST_OK;
    }
    if (p.kind == POSITION_NONE)
        return ST_OK;
    if (store_replicated(store)) {
        enum status st = store->replicated->judge(store, &p, &lineage, err);
        if (st != ST_OK)
            return st;
    }
    if (lineage == LINEAGE_FOREIGN)
        error_set(refusal, ST_INVALID, "FOREIGNTOKEN the token is of another database");
    else if (lineage == LINEAGE_LOST)
        error_set(
            refusal, ST_LOST,
            "LOSTWRITES a failover, or a backup that was restored, has lost writes that this token has seen "
            "acknowledged");
    else
        position_merge(&s->state.position, &p);
    return ST_OK;
}

struct reads reads_of(const struct session *s, const struct command *cmd, const struct slice *argv, int argc)
{
    struct reads r = {.how = s->state.consistency, .need = &s->state.position, .unplaced = s->state.unplaced};
    cmd = reads_inside(cmd, &argv, &argc, &r.how);
    r.replica = cmd && reads_only(cmd) && !txn_open(s);
    r.watches = txn_watches(s);
    r.by_key = cmd && reads_by_key(cmd);
    return r;
}
