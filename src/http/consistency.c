/* What a request may be read from, what its client has written or seen, and the headers that tell both.

   A request chooses its mode by Larder-Consistency or ?consistent=, else it has the server's. Its token is
   Larder-Token, or Upstash-Sync-Token, which Upstash's clients send by themselves, empty at first; the answer
   has the token of what the request came with, wrote and saw, under the name that was asked with. Where the
   request's writes are in the database's log is known only when they are committed: the head has the
   token that is known before, with room for the one that the server puts there then (command_result.token).
   Each request stands alone: what an earlier one on the same connection has written or seen counts only if
   its token says so.

   A Larder-Token of another database, or of writes that a failover has lost, is refused: its client is told.
   Upstash's clients take a token from good answers alone, and would be refused for ever: their request is
   served from what there is, and the answer, with its new token, has Larder-Token-State: foreign or lost. */
#include "http/http_internal.h"

#include <stdio.h>

#include "replica/token.h"

#define UPSTASH_TOKEN "Upstash-Sync-Token"

/* ---- requests ---- */

/* Refused in the words of the route's dialect; word is what Redis' clients know it by. */
static void refuse_token(struct http_call *x, int status, const char *code, const char *word, const char *why)
{
    if (http_dialect_of(x) == DIALECT_UPSTASH)
        http_refuse(x, status, code, "%s %s", word, why);
    else
        http_refuse(x, status, code, "%s", why);
}

/* The mode that the request names. False: it names none. */
static bool read_mode(struct http_call *x)
{
    struct slice header = x->request.headers[HTTP_LARDER_CONSISTENCY];
    struct slice param = x->query[PARAM_CONSISTENT];
    struct error err;
    if (param.p && !slice_eq(param, SLICE("true")) && !slice_eq(param, SLICE("false")))
        http_refuse(x, 400, "bad_parameter", "consistent must be true or false.");
    if (header.p) {
        if (consistency_parse(http_trim(header), &x->reads.how, &err) != ST_OK)
            refuse_token(x, 400, "bad_consistency", "ERR", err.text);
        return true;
    }
    if (param.p)
        x->reads.how =
            (struct consistency){.mode = slice_eq(param, SLICE("true")) ? READ_STRONG : READ_EVENTUAL};
    return param.p;
}

/* The token that the request comes with, in *ret; p is NULL: none. Sets the name of the answer's. */
static struct slice find_token(struct http_call *x)
{
    static const struct {
        enum http_header header;
        const char *name;
    } names[] = {{HTTP_LARDER_TOKEN, "Larder-Token"}, {HTTP_UPSTASH_SYNC_TOKEN, UPSTASH_TOKEN}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct slice text = x->request.headers[names[i].header];
        if (!text.p)
            continue;
        x->token_name = names[i].name;
        return http_trim(text);
    }
    return slice_of(NULL, 0);
}

void http_read_consistency(const struct http_api *a, struct http_call *x)
{
    struct error err;
    x->reads.how = a->executor->config->read_consistency;
    bool chosen = read_mode(x);
    x->token = find_token(x);
    if (!x->token_name && x->reads.how.mode == READ_SESSION && chosen)
        x->token_name = "Larder-Token";
    x->tells_read = chosen || x->token_name || a->executor->nengines > 1;
    if (x->token.n && token_read(x->token, &x->position, &err) != ST_OK)
        refuse_token(x, 400, "bad_token", "BADTOKEN", err.text);
    /* Who sends a token wants to read what it has written, also where the server's default promises less. */
    if (x->token.n && !chosen && x->reads.how.mode != READ_STRONG)
        x->reads.how = (struct consistency){.mode = READ_SESSION};
    x->reads.need = &x->position;
}

/* ---- answers ---- */

/* Goes on without the token, if the client could not get rid of it. */
static bool forgive_token(struct http_call *x, const struct error *refusal)
{
    if (!x->token_name || strcmp(x->token_name, UPSTASH_TOKEN) != 0)
        return false;
    x->position = (struct position){.kind = POSITION_NONE};
    http_add_header(x, refusal->code == ST_LOST ? SLICE("Larder-Token-State: lost\r\n")
                                                : SLICE("Larder-Token-State: foreign\r\n"));
    return true;
}

bool http_begin_reads(struct session *s, struct http_call *x, struct answer *a)
{
    struct error refusal = {.code = ST_OK}, err;
    s->state.position = (struct position){.kind = POSITION_NONE};
    s->state.unplaced = false;
    enum status st = x->token.n ? session_take_token(s, x->token, &refusal, &err) : ST_OK;
    if (st != ST_OK)
        reply_status(&a->json.base, st, &err);
    else if (refusal.code != ST_OK && !forgive_token(x, &refusal))
        reply_error(&a->json.base, refusal.text);
    else
        return true;
    executor_note_error(s->executor, a->json.base.code);
    return false;
}

/* Whether the call has read something: where from, its answer tells. */
static bool has_read(const struct http_call *x)
{
    return x->cmd ? (x->cmd->flags & CMD_READONLY) != 0 : x->only_reads;
}

/* "Larder-Read: replica; lag=12": from the place that the running call reads, and how old that is at most, in
   milliseconds, where it is known. A server that only reads has a replica in the primary's place. */
static void tell_place(const struct executor *s, struct http_call *x)
{
    char line[64], age[32] = "";
    bool memory = s->place == READ_FROM_MEMORY;
    if (s->place && s->place_age_us != INT64_MAX)
        snprintf(age, sizeof age, "; %s=%lld", memory ? "age" : "lag",
                 (long long)(s->place_age_us + 999) / 1000);
    int n = snprintf(line, sizeof line, "Larder-Read: %s%s\r\n",
                     memory                               ? "memory"
                     : s->place || executor_only_reads(s) ? "replica"
                                                          : "primary",
                     age);
    http_add_header(x, slice_of(line, (size_t)n));
}

void http_tell_reads(const struct session *s, struct http_call *x)
{
    char line[TOKEN_ROOM + 64], token[TOKEN_ROOM];
    if (x->tells_read && has_read(x))
        tell_place(s->executor, x);
    if (x->token_name) {
        token_fill(&s->state.position, token);
        int n = snprintf(line, sizeof line, "%s: %.*s\r\n", x->token_name, TOKEN_ROOM, token);
        http_add_header(x, slice_of(line, (size_t)n));
    }
}

uint16_t http_token_place(const struct http_call *x, struct slice answer)
{
    char line[64];
    if (!x->token_name)
        return 0;
    int n = snprintf(line, sizeof line, "\r\n%s: ", x->token_name);
    const char *at = memmem(answer.p, answer.n, line, (size_t)n);
    size_t place = at ? (size_t)(at + n - answer.p) : 0;
    return place <= UINT16_MAX ? (uint16_t)place : 0;
}
