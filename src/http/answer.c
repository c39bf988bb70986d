/* From calls to answers: the sink that Redis' commands and our own handlers write to, the answer's head,
   errors as HTTP tells them. request.c is the way here. */
#include "http/api.h"

#include "base/clock.h"
#include "base/mem.h"
#include "exec/auth.h"
#include "exec/block.h"
#include "http/batch_outcomes.h"
#include "http/http_internal.h"
#include "table/fault.h"

/* ---- the sink ---- */

static void add_error(struct buf *out, const char *code, struct slice message)
{
    buf_addf(out, "{\"error\":\"%s\",\"message\":", code);
    json_add_lossy(out, message);
    buf_add(out, "}", 1);
}

/* One operation of a batch failed: the others may go on. */
static void fail_item(struct answer *a, int status, const char *code, struct slice message)
{
    a->out->len = a->item;
    a->failed = true;
    a->item_status = status;
    add_error(a->out, code, message);
}

void answer_error(struct answer *a, int status, const char *code, const char *message)
{
    if (a->dialect == DIALECT_BATCH) {
        fail_item(a, status, code, slice_str(message));
        return;
    }
    a->out->len = a->start;
    a->head = (struct http_head){.status = status, .content_type = "application/json"};
    add_error(a->out, code, slice_str(message));
}

/* What Redis' error codes are in HTTP, and in the resource style's words. */
static const struct error_code {
    const char *prefix;
    int status;
    const char *code;
} error_codes[] = {
    {"WRONGTYPE", 409, "wrong_type"},   {"NOAUTH", 401, "unauthorized"},
    {"MISCONF", 503, "misconfigured"},  {"READONLY", 503, "read_only"},
    {"TRYAGAIN", 503, "try_again"},     {"UNCERTAIN", 500, "uncertain"},
    {"IOERR", 503, "io_error"},         {"EXECABORT", 400, "exec_abort"},
    {"NOPERM", 403, "forbidden"},       {"STALE", 503, "too_stale"},
    {"BADTOKEN", 400, "bad_token"},     {"FOREIGNTOKEN", 409, "foreign_token"},
    {"LOSTWRITES", 409, "lost_writes"}, {"BUSY", 503, "busy"},
};

/* What is wrong with tables and rows is told by codes of its own, and the text goes without Redis' word for
   it. */
static bool fault_code_of(struct slice word, struct slice *text, struct error_code *ret)
{
    for (int kind = FAULT_NONE + 1; kind <= FAULT_CANCELLED; kind++) {
        const char *code = fault_code((enum fault_kind)kind);
        if (!slice_eq(word, slice_str(code)))
            continue;
        *ret = (struct error_code){code, fault_http_status((enum fault_kind)kind),
                                   fault_http_code((enum fault_kind)kind)};
        if (text->n > word.n)
            *text = slice_of(text->p + word.n + 1, text->n - word.n - 1);
        return true;
    }
    return false;
}

static struct error_code code_of(struct slice *text, enum http_dialect dialect)
{
    const char *space = memchr(text->p, ' ', text->n);
    struct slice word = slice_of(text->p, space ? (size_t)(space - text->p) : text->n);
    struct error_code fault;
    for (size_t i = 0; i < sizeof error_codes / sizeof *error_codes; i++)
        if (slice_eq(word, slice_str(error_codes[i].prefix)))
            return error_codes[i];
    if (dialect != DIALECT_UPSTASH && fault_code_of(word, text, &fault))
        return fault;
    switch (dialect) {
    case DIALECT_KEYS: /* our own handlers know what is wrong with a request: it is the server's fault */
        return (struct error_code){"ERR", 500, "internal_error"};
    case DIALECT_BATCH:
        return (struct error_code){"ERR", 422, "command_failed"};
    default:
        return (struct error_code){"ERR", 400, "error"};
    }
}

/* The `error` of the sink. */
static void say_error(struct reply *r, struct slice text)
{
    struct answer *a = (struct answer *)r;
    struct error_code e = code_of(&text, a->dialect);
    if (a->dialect == DIALECT_KEYS) {
        a->out->len = a->start;
        a->head = (struct http_head){.status = e.status, .content_type = "application/json"};
        add_error(a->out, e.code, text);
        return;
    }
    if (a->dialect == DIALECT_BATCH) {
        a->json.depth = 0;
        fail_item(a, e.status, e.code, text);
        return;
    }
    if (a->json.depth == 0)
        a->out->len = a->item;
    json_reply_ops.error(r, text);
    if (a->json.depth > 0)
        return;
    a->failed = true;
    if (a->failure_status) {
        a->head.status = a->failure_status;
    } else if (a->head.status == 200) {
        /* A wrong type is as good as any other mistake to those who know Redis' words. */
        a->head.status = strcmp(e.code, "wrong_type") == 0 ? 400 : e.status;
    }
}

void upstash_item_begin(struct answer *a)
{
    a->item = a->out->len;
    a->failed = false;
    buf_add_slice(a->out, SLICE("{\"result\":"));
    json_reply_begin(&a->json, a->out, a->json.base64);
}

void upstash_item_end(struct answer *a)
{
    json_reply_end(&a->json);
    if (!a->failed)
        buf_add(a->out, "}", 1);
}

/* ---- from calls to answers ---- */

static struct slice date_line(struct http_api *a)
{
    int64_t now = clock_wall_us() / 1000000;
    if (now != a->date_s) {
        a->date_s = now;
        a->ndate = http_format_date(a->date, now);
    }
    return slice_of(a->date, a->ndate);
}

static struct answer *begin_answer(struct http_api *api, struct http_call *x, struct buf *out)
{
    struct answer *a = &api->answer;
    a->head = (struct http_head){.status = 200, .content_type = "application/json"};
    a->call = x;
    a->out = out;
    a->start = a->item = out->len;
    a->dialect = DIALECT_KEYS;
    a->failed = false;
    a->failure_status = 0;
    a->json.out = out;
    a->json.base64 = false;
    return a;
}

/* A PUT that has created something is a 201 whatever is preferred. */
static void leave_body_out(struct answer *a)
{
    if (a->head.status == 200)
        a->head.status = 204;
    a->head.content_type = NULL;
    http_add_header(a->call, SLICE("Preference-Applied: return=minimal\r\n"));
}

static void end_answer(struct answer *a)
{
    const struct http_call *x = a->call;
    if (x && (a->head.status == 200 || a->head.status == 201) && http_wants_minimal(x))
        leave_body_out(a);
    a->head.date = date_line(a->api);
    a->head.close = x && x->close;
    a->head.keep = x && x->request.old;
    a->head.bodiless |= x && x->request.method == HTTP_HEAD;
    if (x && x->extra.n)
        a->head.extra = x->extra;
    books_count(&a->api->executor->books, BOOKS_HTTP_ANSWER, (uint32_t)a->head.status);
    http_add_head(a->out, a->start, &a->head);
}

static void refuse_stranger(struct http_api *api, struct http_call *x, struct answer *a)
{
    books_count(&api->executor->books, BOOKS_WRONG_PASSWORD, 0);
    http_add_challenge(x);
    answer_error(a, 401, "unauthorized",
                 "Send the password: Authorization: Bearer PASSWORD, or basic with the user \"default\".");
}

struct command_result http_run_command(struct http_api *api, struct session *s, struct http_call *x,
                                       const struct error *write_err)
{
    return command_run(api->executor, s, x->cmd, x->argv, x->argc, &api->answer.json.base, write_err);
}

/* Redis' clients look for the text in "error", everyone else for a code. */
static void answer_refusal(struct answer *a, const struct http_call *x)
{
    if (x->refusal.status == 204) {
        a->head = (struct http_head){.status = 204};
        return;
    }
    if (http_dialect_of(x) == DIALECT_KEYS) {
        answer_error(a, x->refusal.status, x->refusal.code, x->refusal.message);
        if (x->in_operation) {
            a->out->len--;
            buf_addf(a->out, ",\"operation\":%zu}", x->operation);
        }
        return;
    }
    a->head.status = x->refusal.status;
    buf_add_slice(a->out, SLICE("{\"error\":"));
    json_add_lossy(a->out, slice_str(x->refusal.message));
    buf_add(a->out, "}", 1);
}

/* Answers that need no password: that this is no request, that a page may not ask, and what may be asked,
   which browsers want to know before they send a password. */
static bool is_for_all(const struct http_call *x)
{
    return !x->request.path.p || x->refusal.status == 204 || x->refusal.status == 403;
}

static struct command_result answer_call(struct http_api *api, struct session *s, struct http_call *x,
                                         const struct error *write_err)
{
    s->several = x->route->run && x->route->run != upstash_run;
    struct command_result result = (x->route->run ? x->route->run : http_run_command)(api, s, x, write_err);
    if (x->tells_read)
        http_tell_reads(s, x);
    return result;
}

/* The session is what the request says. False: the call cannot run, which is the answer. */
static bool let_in(struct http_api *api, struct session *s, struct http_call *x, struct answer *a)
{
    bool open = x->route && x->route->open;
    a->dialect = http_dialect_of(x);
    s->request = a;
    s->state.db = x->db;
    auth_set_known(s,
                   open || http_authorized(api->executor, x->request.headers[HTTP_AUTHORIZATION], x->arena));
    if (!auth_is_known(s) && !is_for_all(x))
        refuse_stranger(api, x, a);
    else if (x->refusal.status)
        answer_refusal(a, x);
    else
        return true;
    return false;
}

struct command_result http_answer(struct http_api *api, struct session *s, struct http_call *x,
                                  struct buf *out, const struct error *write_err)
{
    struct answer *a = begin_answer(api, x, out);
    struct command_result result = {0};
    if (let_in(api, s, x, a) && http_begin_reads(s, x, a))
        result = answer_call(api, s, x, write_err);
    if (block_waits_for_job(s)) { /* the request will be run again, and answered then */
        json_reply_drop(&a->json);
        s->request = NULL;
        return result;
    }
    end_answer(a);
    if (x->token_name)
        result.token = http_token_place(x, slice_of(out->p + a->start, out->len - a->start));
    s->request = NULL;
    return result;
}

/* ---- while a script is busy ---- */

/* Whether the route asks neither the database nor other workers: /healthz, /version, /openapi.json. */
static bool needs_nothing(const struct route *r)
{
    return r && r->run && !r->prepare && !r->stops_workers;
}

static struct command_result answer_meanwhile(struct http_api *api, struct session *s, struct http_call *x,
                                              const char *refusal)
{
    if (needs_nothing(x->route))
        return x->route->run(api, s, x, NULL);
    if (x->route && x->route->run == upstash_run)
        return upstash_run_busy(api, s, x, refusal);
    reply_error(&api->answer.json.base, refusal);
    executor_note_error(api->executor, "BUSY");
    return (struct command_result){0};
}

static void make_answer(struct http_api *a)
{
    json_reply_init(&a->answer.json);
    a->answer.api = a;
    a->answer.ops = json_reply_ops;
    a->answer.ops.error = say_error;
    a->answer.json.base.ops = &a->answer.ops;
}

/* The script may be that of a request, whose answer is then in the midst of being made. */
struct command_result http_answer_busy(struct http_api *api, struct session *s, struct http_call *x,
                                       struct buf *out, const char *refusal)
{
    const struct answer of_script = api->answer;
    make_answer(api);
    struct answer *a = begin_answer(api, x, out);
    struct command_result result = {0};
    if (let_in(api, s, x, a))
        result = answer_meanwhile(api, s, x, refusal);
    if (a->head.status == 503)
        http_add_header(x, SLICE("Retry-After: 1\r\n"));
    end_answer(a);
    json_reply_release(&a->json);
    api->answer = of_script;
    s->request = NULL;
    return result;
}

/* ---- failures ---- */

/* Some pass by themselves, or when the operator acts; behind others is damage, or a bug. */
int http_failure_status(enum status st)
{
    switch (st) {
    case ST_CORRUPT:
    case ST_INTERNAL:
    case ST_INVALID:
    case ST_UNKNOWN:
        return 500;
    default:
        return 503;
    }
}

int http_failure_document(struct http_api *api, const struct error *err, enum http_dialect dialect,
                          struct buf *out)
{
    struct answer *a = begin_answer(api, NULL, out);
    a->dialect = dialect;
    reply_status(&a->json.base, err->code, err);
    executor_note_error(api->executor, a->json.base.code);
    return a->head.status;
}

void http_answer_failure(struct http_api *api, const struct error *err, enum http_dialect dialect,
                         bool bodiless, struct buf *out)
{
    http_failure_document(api, err, dialect, out);
    api->answer.head.bodiless = bodiless;
    end_answer(&api->answer);
}

/* ---- life ---- */

struct http_api *http_api_new(struct executor *s)
{
    struct http_api *a = mem_zalloc(sizeof *a);
    a->executor = s;
    a->outcomes = outcomes_new();
    make_answer(a);
    return a;
}

void http_api_free(struct http_api *a)
{
    if (!a)
        return;
    outcomes_free(a->outcomes);
    json_reply_release(&a->answer.json);
    mem_free(a);
}
