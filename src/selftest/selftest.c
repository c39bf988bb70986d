#include "selftest/selftest.h"

#include <string.h>

#include "proto/json.h"
#include "selftest/selftest_internal.h"

/* clang-format off */
static const struct check checks[] = {
    {.name = "tables, indexes and views", .run = try_tables},
    {.name = "bytes of keys and values", .run = try_bytes},
    {.name = "numbers of 64 bits", .run = try_numbers},
    {.name = "scores", .run = try_scores},
    {.name = "large values", .run = try_large},
    {.name = "order of keys", .run = try_order},
    {.name = "numbers for new rows", .run = try_ids},
    {.name = "rollback and savepoints", .run = try_whole},
    {.name = "removal of expired rows", .run = try_sweeping},
    {.name = "uncommitted rows are not seen", .run = try_unseen, .plain = true},
    {.name = "readers see one state", .run = try_snapshot},
    {.name = "no lost updates", .run = try_lost_update},
    {.name = "no write skew", .run = try_write_skew},
    {.name = "row locks", .run = try_row_locks, .plain = true},
    {.name = "deadlocks are conflicts", .run = try_deadlock, .plain = true},
    {.name = "duplicate keys are conflicts", .run = try_duplicate, .plain = true},
    {.name = "a lost session is rolled back", .run = try_lost_session, .plain = true},
    {.name = "several servers at once", .run = try_load},
    {.name = "locks of sessions", .run = try_session_locks, .plain = true, .without = "rows of larder_lock are locked"},
    {.name = "mode=exclusive", .run = try_alone, .without = "it is refused"},
    {.name = "LISTEN", .run = try_listen, .without = "waiting clients are served by looking"},
    {.name = "SKIP LOCKED", .run = try_skip_locked, .plain = true, .without = "removing expired rows waits for locked ones"},
    {.name = "functions for applications", .run = try_functions, .advice = true, .without = "applications cannot call larder_set"},
    {.name = "commits are on the disk", .run = try_durable, .advice = true, .without = "a crash may lose what was acknowledged"},
};
/* clang-format on */

#define CHECKS (sizeof checks / sizeof *checks)

static volatile sig_atomic_t stop;

static void ask_to_stop(int number)
{
    stop = number;
}

/* ---- trying ---- */

struct results {
    struct finding of[CHECKS];
    struct remote_identity server;
    bool fit;
    bool marked; /* a mark was left that it is */
};

static bool is_fatal(const struct check *c, const struct finding *f)
{
    return !c->advice && f->verdict != VERDICT_HOLDS && f->verdict != VERDICT_NOT_NEEDED && !f->missing;
}

static void try_one(struct selftest *t, const struct check *c, struct finding *f)
{
    struct error err;
    *f = (struct finding){.verdict = VERDICT_HOLDS};
    enum status st = c->run(t, f, &err);
    if (st == ST_OK)
        return;
    f->verdict = VERDICT_DOES_NOT;
    snprintf(f->text, sizeof f->text, "%.190s", err.text);
}

static void try_all(struct selftest *t, bool quiet, struct results *r)
{
    r->fit = true;
    for (size_t i = 0; i < CHECKS; i++)
        r->of[i].verdict = VERDICT_UNTRIED;
    for (size_t i = 0; i < CHECKS && !stop; i++) {
        struct error err;
        if (!r->fit && checks[i].run == try_load)
            continue; /* nothing is proven by it then */
        if (!quiet)
            fprintf(stderr, "%2zu/%zu %s\n", i + 1, CHECKS, checks[i].name);
        if (i > 0 && scratch_open(t, &err) != ST_OK) {
            r->of[i] = (struct finding){.verdict = VERDICT_DOES_NOT};
            snprintf(r->of[i].text, sizeof r->of[i].text, "%.190s", err.text);
            r->fit = false;
            return;
        }
        try_one(t, &checks[i], &r->of[i]);
        r->fit &= !is_fatal(&checks[i], &r->of[i]);
        /* What one check leaves of locks and transactions is not the next one's. */
        if (r->of[i].verdict != VERDICT_HOLDS)
            scratch_close(t);
        else if (checks[i].plain)
            scratch_close_plain(t);
        if (i == 0 && !r->fit)
            return; /* nothing can be tried without tables */
    }
}

/* Whether a server starts there by itself: it is one that the tests run, and lacks nothing. */
static bool is_proven(const struct results *r)
{
    bool lacks = false;
    for (size_t i = 0; i < CHECKS; i++)
        lacks |= r->of[i].missing;
    return r->server.tested && !lacks;
}

/* Who may try may not always write to that table: what was found counts all the same, and is told. */
static enum status leave_mark(struct selftest *t, struct results *r, struct error *err)
{
    if (r->fit && is_proven(r))
        return ST_OK;
    enum status st = scratch_return(&t->scratch, err);
    if (st == ST_OK)
        st = r->fit ? remote_put_mark(t->scratch.admin, &r->server, err)
                    : remote_drop_mark(t->scratch.admin, &r->server, err);
    r->marked = r->fit && st == ST_OK;
    if (st != ST_DENIED)
        return st;
    fprintf(stderr, "larder: the table larder_tested cannot be written, %s: %s\n",
            r->fit ? "so that servers need --accept-untested" : "where an older mark may be", err->text);
    return ST_OK;
}

/* ---- telling ---- */

static const char *const verdict_names[] = {"holds", "does not", "not needed", "not tried"};

/* What is said behind the verdict. */
static void add_remark(struct buf *out, const struct check *c, const struct finding *f)
{
    bool fails = f->verdict == VERDICT_DOES_NOT;
    buf_addf(out, "%s", f->text);
    if (fails && c->without && (f->missing || c->advice))
        buf_addf(out, "%s%s", f->text[0] ? ": " : "without it: ", c->without);
}

static void add_table(struct buf *out, const struct results *r)
{
    for (size_t i = 0; i < CHECKS; i++) {
        buf_addf(out, "%-32s %-11s", checks[i].name, verdict_names[r->of[i].verdict]);
        add_remark(out, &checks[i], &r->of[i]);
        while (out->p[out->len - 1] == ' ')
            out->len--;
        buf_addf(out, "\n");
    }
    buf_addf(out, "\n%s: Larder %s.\n", r->server.text,
             r->fit ? "can be used there" : "should not be used there");
    if (r->marked)
        buf_addf(out, "The table larder_tested says so now: servers start there, until it is upgraded.\n");
}

static void add_member(struct buf *out, const char *name, const char *text)
{
    buf_addf(out, "\"%s\":", name);
    json_add_lossy(out, slice_str(text));
}

static void add_json(struct buf *out, const struct results *r)
{
    buf_addf(out, "{");
    add_member(out, "server", r->server.text);
    buf_addf(out, ",\"fit\":%s,\"tested\":%s,\"marked\":%s,\"features\":[", r->fit ? "true" : "false",
             r->server.tested ? "true" : "false", r->marked ? "true" : "false");
    for (size_t i = 0; i < CHECKS; i++) {
        const struct finding *f = &r->of[i];
        buf_addf(out, "%s{", i ? "," : "");
        add_member(out, "name", checks[i].name);
        buf_addf(out, ",");
        add_member(out, "verdict", verdict_names[f->verdict]);
        buf_addf(out, ",");
        add_member(out, "text", f->text);
        buf_addf(out, ",\"needed\":%s,",
                 checks[i].advice || f->missing || f->verdict == VERDICT_NOT_NEEDED ? "false" : "true");
        add_member(out, "without", checks[i].without ? checks[i].without : "Larder cannot be used");
        buf_addf(out, "}");
    }
    buf_addf(out, "]}\n");
}

static void tell(const struct selftest_options *o, const struct results *r)
{
    struct buf out = {0};
    if (o->json)
        add_json(&out, r);
    else
        add_table(&out, r);
    fwrite(out.p, 1, out.len, o->out);
    buf_release(&out);
}

/* What is left there has to be known, whatever else went wrong. */
static enum status told_left(const char *name, enum status st, const struct error *why, struct error *err)
{
    struct error first = *err;
    if (st == ST_OK)
        return error_set(err, ST_IO, "%s is left there, and has to be dropped: %.150s", name, why->text);
    return error_set(err, st, "%.160s; %s is left there, and has to be dropped", first.text, name);
}

/* ---- the whole ---- */

static void catch_signals(struct sigaction was[2])
{
    struct sigaction a = {.sa_handler = ask_to_stop, .sa_flags = SA_RESTART};
    sigemptyset(&a.sa_mask);
    sigaction(SIGINT, &a, &was[0]);
    sigaction(SIGTERM, &a, &was[1]);
}

static enum status run_in_scratch(struct selftest *t, const struct selftest_options *o, struct results *r,
                                  struct error *err)
{
    enum status st = remote_identify(t->scratch.admin, &r->server, err);
    if (st != ST_OK)
        return st;
    if (!o->quiet)
        fprintf(stderr, "%s: trying in %s %s, which is removed at the end\n", r->server.text,
                t->scratch.admin->dialect == REMOTE_POSTGRES ? "the schema" : "the database",
                t->scratch.name);
    try_all(t, o->quiet, r);
    scratch_close(t);
    if (stop)
        return error_set(err, ST_BUSY, "ended by a signal");
    return o->mark ? leave_mark(t, r, err) : ST_OK;
}

enum status selftest_run(const struct selftest_options *o, bool *ret_fit, struct error *err)
{
    struct selftest t = {.stop = &stop, .load_us = (int64_t)(o->load_s * 1e6)};
    struct results r = {.fit = false};
    struct sigaction was[2];
    struct error removing;
    stop = 0;
    *ret_fit = false;
    if (!remote_is_url(o->url))
        return error_set(err, ST_INVALID,
                         "selftest is for database servers: --store postgres://... or mysql://...");
    catch_signals(was);
    enum status st = scratch_make(o->url, &t.scratch, err);
    if (st == ST_OK)
        st = run_in_scratch(&t, o, &r, err);
    char name[sizeof t.scratch.name];
    memcpy(name, t.scratch.name, sizeof name);
    bool removed = scratch_remove(&t.scratch, &removing) == ST_OK;
    sigaction(SIGINT, &was[0], NULL);
    sigaction(SIGTERM, &was[1], NULL);
    if (st == ST_OK)
        tell(o, &r);
    if (!removed)
        st = told_left(name, st, &removing, err);
    *ret_fit = st == ST_OK && r.fit;
    return st;
}
