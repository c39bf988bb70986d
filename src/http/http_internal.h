/* What the files of the HTTP API share. */
#ifndef LARDER_HTTP_HTTP_INTERNAL_H
#define LARDER_HTTP_HTTP_INTERNAL_H

#include "engine/coll.h"
#include "exec/args.h"
#include "exec/command.h"
#include "exec/executor.h"
#include "exec/session.h"
#include "http/api.h"
#include "proto/json.h"
#include "proto/json_reply.h"

/* ---- limits, which the OpenAPI document tells ---- */

#define HTTP_MAX_TTL_MS     4503599627370496 /* 2^52; of expire_at, too */
#define HTTP_MAX_TTL        4503599627370
#define HTTP_MAX_OPERATIONS 100000
#define HTTP_MAX_TIMEOUT_MS 3600000

#define HTTP_TEXT(number)  HTTP_TEXT_(number)
#define HTTP_TEXT_(number) #number

/* ---- routes ---- */

/* Decodes what is the route's own: sets cmd, argv, writes, detail, or refuses. */
typedef void http_prepare_fn(struct http_api *a, struct http_call *x);

/* Runs the call. Returns the ticket that its answer waits for. */
typedef struct command_result http_run_fn(struct http_api *a, struct session *s, struct http_call *x,
                                          const struct error *write_err);

/* Declares the keys that the call will use (declare.h). Returns how many. */
typedef size_t http_declare_fn(const struct http_api *a, const struct http_call *x);

struct route {
    enum http_method method;
    const char *path;         /* "/keys/{key}" */
    http_prepare_fn *prepare; /* NULL: there is nothing to decode */
    http_run_fn *run;         /* NULL: it is the command, and nothing around it */
    http_declare_fn *declare; /* NULL: the keys are those of the command */
    enum http_dialect dialect;
    bool open;          /* to everyone, without a password */
    bool stops_workers; /* as CMD_STOPS_WORKERS */
    uint32_t params;    /* 1 << enum http_param: those of its query */
    bool filters;       /* others are filters of columns */
    struct {
        uint32_t usual, most;
    } page;         /* what PARAM_LIMIT may be */
    const char *id; /* in the OpenAPI document, as all that follows */
    const char *tag;
    const char *summary;
    const char *body;      /* schema of the request's body; NULL: it has none */
    const char *answer;    /* schema of the answer of success; NULL: it is text */
    bool raw;              /* body, or answer, may be bytes as well */
    uint16_t statuses[12]; /* that it may have, 0 ends them */
};

struct http_param_info {
    const char *name;
    const char *schema; /* JSON */
    const char *summary;
};

/* Every route; ends with a NULL path. */
extern const struct route http_routes[];
extern const struct http_param_info http_params[HTTP_PARAMS];

/* Finds the call's route and decodes path and query, or refuses. */
void http_route(struct http_call *x);

/* ---- calls ---- */

/* The call's answer is this error, or (204) nothing at all. The message is formatted into the call's
   arena. */
void http_refuse(struct http_call *x, int status, const char *code, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* The call comes down to one of the "http" family on a key. */
void http_key_call(struct http_call *x, const struct command *cmd, struct slice key);

/* A line, with its end, among the headers of the answer. */
void http_add_header(struct http_call *x, struct slice line);

/* Asks for a password, among the headers of the answer. */
void http_add_challenge(struct http_call *x);

/* Whether a PUT is answered without a body: Prefer: return=minimal. */
bool http_wants_minimal(const struct http_call *x);

/* Refuses what a browser sends for a page that has no business here; adds the headers for one that has. */
void http_check_origin(const struct http_api *a, struct http_call *x);

/* The request's body as a JSON document of this kind; or refuses and returns false. */
bool http_json_body(struct http_call *x, enum json_kind kind, struct json *ret);

/* The size of a page, as the route and the query have it; or refuses. */
bool http_limit_param(struct http_call *x, int64_t *ret);

/* A parameter of the query as a number within bounds, `otherwise` when it is not there; or refuses. */
bool http_number_param(struct http_call *x, enum http_param p, int64_t min, int64_t max, int64_t otherwise,
                       int64_t *ret);

/* What the request may be read from, by its headers and its query, and its token; or refuses. */
void http_read_consistency(const struct http_api *a, struct http_call *x);

/* The database that the query names; or refuses. */
void http_read_db(const struct http_api *a, struct http_call *x);

/* ---- answers ---- */

struct http_op;

/* The sink of a call: a JSON value that a command of Redis says, or a body that our own handlers write. */
struct answer {
    struct json_reply json; /* first: handlers of Redis' commands see only this */
    struct reply_ops ops;
    struct http_head head;
    struct http_api *api;
    struct http_call *call;
    struct buf *out;
    size_t start; /* of the body in out */
    enum http_dialect dialect;
    size_t item;              /* where the current command's or operation's part of the answer begins */
    bool failed;              /* it is {"error": ... */
    int item_status;          /* ... which alone would have this status */
    int failure_status;       /* of a transaction that the database failed in the middle of; 0: it did not */
    const struct http_op *op; /* BATCH */
};

/* The answer to the request that a handler of the "http" family runs for. */
static inline struct answer *answer_of(const struct call *c)
{
    return c->session->request;
}

/* The answer, or what the current operation answers, is this error and nothing else. */
void answer_error(struct answer *a, int status, const char *code, const char *message);

struct http_api {
    struct executor *executor;
    struct outcomes *outcomes;
    struct answer answer;
    char date[HTTP_DATE_CHARS]; /* of date_s */
    size_t ndate;
    int64_t date_s;
};

/* Runs the call's command through the dispatcher, as any command. */
struct command_result http_run_command(struct http_api *a, struct session *s, struct http_call *x,
                                       const struct error *write_err);

/* The status of an answer that says that the database has failed so. */
int http_failure_status(enum status st);

/* Appends what an answer says whose commit has failed; returns its status. */
int http_failure_document(struct http_api *a, const struct error *err, enum http_dialect dialect,
                          struct buf *out);

/* A Redis command's reply as {"result": ...} or {"error": ...}, between these two. */
void upstash_item_begin(struct answer *a);
void upstash_item_end(struct answer *a);

/* The session has what the request came with. False: its token is no good, which is the answer. */
bool http_begin_reads(struct session *s, struct http_call *x, struct answer *a);

/* Adds the headers that tell where a read was from, and room for the token. */
void http_tell_reads(const struct session *s, struct http_call *x);

/* ---- values as JSON (json_in.c) ---- */

/* When a key expires. */
struct http_expiry {
    enum { EXPIRY_NONE, EXPIRY_IN, EXPIRY_AT } kind;
    int64_t ms;
};

/* What PUT makes of a key. */
struct http_value {
    enum row_type type;
    struct slice string;
    struct coll_item *items; /* of a collection */
    size_t nitems;
    struct http_expiry expiry;
};

/* Reads ttl, ttl_ms and expire_at from the query; or refuses. */
bool http_expiry_params(struct http_call *x, struct http_expiry *ret);

/* One member of a document: true when it is one of those three and sound, else it may have refused. */
bool http_expiry_member(struct http_call *x, struct slice name, const struct json *v,
                        struct http_expiry *ret);

/* The moment; false: it has come already. */
bool http_expiry_at(const struct http_expiry *e, int64_t now, int64_t *ret);

/* A document with value, type, encoding and expiry; or refuses. */
bool http_value_read(struct http_call *x, const struct json *document, struct http_value *ret);

/* "string", "hash", ... */
bool http_type_named(struct slice name, enum row_type *ret);

/* The same from its parts: value (NULL: it is missing), the name of a type or nothing. */
bool http_value_of(struct http_call *x, const struct json *value, struct slice type, bool encoded,
                   struct http_value *ret);

/* One string of a document: a JSON string or number; encoded: it is base64. Or refuses. */
bool http_text(struct http_call *x, const struct json *v, const char *what, bool encoded, struct slice *ret);

/* A score, or refuses. */
bool http_score(struct http_call *x, const struct json *v, double *ret);

/* Puts a value in the place of whatever is under the key. */
enum status http_value_put(struct call *c, struct slice key, const struct http_value *v,
                           int64_t expire_at) MUST_CHECK;

/* ---- documents on their way out (json_out.c) ---- */

struct http_writer {
    struct buf *out;
    bool encoded; /* every string is base64, which the document says */
    bool bytes;   /* a string is not UTF-8: it is written again, encoded */
};

/* Adds the members of an object. Called again when strings turned out not to be UTF-8. */
typedef enum status http_members_fn(struct call *c, struct http_writer *w, void *arg);

/* An object with these members, as the answer or (append) behind what is there. Encoded if the request asks
   for it, or if it has to be. */
enum status http_add_object(struct call *c, http_members_fn *fn, void *arg) MUST_CHECK;

/* "name": with a comma if something is before it. */
void http_add_name(struct http_writer *w, const char *name);
void http_add_text(struct http_writer *w, struct slice s);
void http_add_moment(struct http_writer *w, int64_t expire_at); /* a number, or null for never */

/* "value" of a live row, and of a collection "size" and, when there are more items than call->page shows,
   "cursor". */
enum status http_add_value(struct call *c, struct http_writer *w, struct slice key,
                           const struct row *row) MUST_CHECK;

/* {"key", "type", "value", "version", "expire_at"} of a live row whose version the answer's head has. */
enum status http_add_row(struct call *c, struct slice key, const struct row *row) MUST_CHECK;

/* ---- keys ---- */

/* The live row under argv[1] and the version that conditions compare with, 0 when there is none. */
enum status http_find_row(struct call *c, const struct row **ret, int64_t *ret_version) MUST_CHECK;

/* Whether If-Match, or both If-Match and If-None-Match, allow a change; if not, 412 is the answer. */
bool http_if_match(struct answer *a, int64_t version);
bool http_may_change(struct answer *a, int64_t version);

/* The same of an operation of a batch. what: "key" or "row". */
struct http_conditions {
    bool if_absent, if_present, has_version;
    int64_t if_version;
};
bool http_conditions_hold(struct answer *a, const struct http_conditions *c, int64_t version,
                          const char *what);

/* Whether those headers are lists of versions; or refuses. */
bool http_check_conditions(struct http_call *x);

/* The answer is a 404. */
void http_key_not_found(struct answer *a);

/* A value for a key or an item, from a body of JSON or of bytes; or refuses. */
bool http_body_value(const struct http_api *api, struct http_call *x, struct http_value *ret);

/* ---- what the routes call ---- */

http_prepare_fn http_key_get, http_key_put, http_key_delete;
http_prepare_fn http_ttl_get, http_ttl_put, http_ttl_delete;
http_prepare_fn http_field_get, http_field_put, http_field_delete;
http_prepare_fn http_member_get, http_member_put, http_member_delete;
http_prepare_fn http_item_get, http_item_put, http_item_delete, http_item_push;
http_prepare_fn http_keys_list, http_readyz;
http_prepare_fn http_batch_prepare, http_sql;
http_prepare_fn http_tables_list, http_table_get, http_table_put, http_table_patch, http_table_delete;
http_prepare_fn http_rows_list, http_rows_post, http_row_get, http_row_put, http_row_patch, http_row_delete;
http_prepare_fn upstash_command, upstash_path, upstash_pipeline, upstash_multi;

http_declare_fn http_declare_nothing, http_declare_batch, upstash_declare;

http_run_fn upstash_run, upstash_run_pipeline, upstash_run_multi;
struct command_result upstash_run_busy(struct http_api *api, struct session *s, struct http_call *x,
                                       const char *refusal);
http_run_fn http_run_batch, http_outcome;
http_run_fn http_healthz, http_version, http_metrics, http_openapi;

#endif
