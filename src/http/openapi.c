/* /openapi.json: the table of routes, as OpenAPI describes interfaces. The schemas are written here; paths,
   methods, parameters and answers come from the table. */
#include "http/http_internal.h"

#define STRING  "{\"type\":\"string\"}"
#define INTEGER "{\"type\":\"integer\",\"format\":\"int64\"}"
#define MOMENT                                                                                               \
    "{\"type\":\"integer\",\"format\":\"int64\",\"nullable\":true,"                                          \
    "\"description\":\"Milliseconds since the epoch; null: never.\"}"
#define CODING                                                                                               \
    "{\"type\":\"string\",\"enum\":[\"base64\"],"                                                            \
    "\"description\":\"There when all strings of the object, names included, are base64.\"}"
#define TYPES_OF(more)                                                                                       \
    "{\"type\":\"string\",\"enum\":[\"string\",\"hash\",\"list\",\"set\",\"zset\"" more "]}"
#define TYPE  TYPES_OF("")
#define TYPES TYPES_OF(",\"table\"") /* that a key may have, and no document gives it */
#define SCORE "{\"oneOf\":[{\"type\":\"number\"},{\"type\":\"string\",\"enum\":[\"inf\",\"-inf\"]}]}"
#define FROM_1(most, more)                                                                                   \
    "{\"type\":\"integer\",\"format\":\"int64\",\"minimum\":1,\"maximum\":" HTTP_TEXT(most) more "}"
#define TTLS                                                                                                 \
    "\"ttl\":" FROM_1(HTTP_MAX_TTL, ",\"description\":\"Seconds.\"") ",\"ttl_ms\":" FROM_1(                  \
        HTTP_MAX_TTL_MS, "") ",\"expire_at\":" FROM_1(HTTP_MAX_TTL_MS, "")
#define OBJECT(required, properties)                                                                         \
    "{\"type\":\"object\",\"required\":[" required "],\"properties\":{" properties "}}"
#define CLOSED(properties)                                                                                   \
    "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{" properties "}}"
#define ARRAY(of) "{\"type\":\"array\",\"items\":" of "}"
#define PARTS     ARRAY(OBJECT("\"column\",\"desc\"", "\"column\":" STRING ",\"desc\":{\"type\":\"boolean\"}"))
#define TABLE_COLUMNS                                                                                        \
    ARRAY(OBJECT("\"name\",\"type\",\"not_null\",\"default\"",                                               \
                 "\"name\":" STRING ",\"type\":" STRING                                                      \
                 ",\"not_null\":{\"type\":\"boolean\"},\"default\":{}"))
#define TABLE_INDEXES                                                                                        \
    ARRAY(OBJECT("\"name\",\"unique\",\"columns\",\"state\"",                                                \
                 "\"name\":" STRING ",\"unique\":{\"type\":\"boolean\"},\"columns\":" PARTS                  \
                 ",\"state\":{\"type\":\"string\",\"enum\":[\"ready\",\"building\",\"failed\"]},"            \
                 "\"error\":" STRING))
#define STRINGS   ARRAY(STRING)
#define REF(name) "{\"$ref\":\"#/components/schemas/" name "\"}"
#define VALUE                                                                                                \
    "{\"oneOf\":[" STRING ",{\"type\":\"number\"},{\"type\":\"object\"},{\"type\":\"array\",\"items\":{}}]," \
    "\"description\":\"A string; of a hash an object, of a list or set an array of strings, of a zset an "   \
    "array of {member, score}; of a table its schema.\"}"

static const struct {
    const char *name, *schema;
} schemas[] = {
    {"Error", OBJECT("\"error\",\"message\"",
                     "\"error\":" STRING ",\"message\":" STRING ",\"version\":" INTEGER
                     ",\"operation\":" INTEGER ",\"row\":" INTEGER ",\"index\":" STRING ",\"key\":" STRING)},
    {"CommandError", OBJECT("\"error\"", "\"error\":" STRING)},
    {"Value",
     OBJECT("\"key\",\"type\",\"value\",\"version\",\"expire_at\"",
            "\"key\":" STRING ",\"type\":" TYPES ",\"value\":" VALUE ",\"version\":" INTEGER
            ",\"expire_at\":" MOMENT ",\"size\":" INTEGER ",\"cursor\":" STRING ",\"encoding\":" CODING)},
    {"NewValue",
     "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"value\"],\"properties\":{"
     "\"value\":" VALUE ",\"type\":" TYPE ",\"encoding\":" CODING "," TTLS "}}"},
    {"Deleted", OBJECT("\"deleted\"", "\"deleted\":{\"type\":\"boolean\"}")},
    {"KeyPage", OBJECT("\"keys\",\"cursor\"",
                       "\"keys\":" ARRAY(OBJECT(
                           "\"key\",\"type\",\"size\",\"ttl\",\"expire_at\",\"version\"",
                           "\"key\":" STRING ",\"type\":" TYPES ",\"value\":" VALUE ",\"size\":" INTEGER
                           ",\"cursor\":" STRING
                           ",\"ttl\":{\"type\":\"integer\",\"nullable\":true},\"expire_at\":" MOMENT
                           ",\"version\":" INTEGER
                           ",\"encoding\":" CODING)) ",\"cursor\":{\"type\":\"string\",\"nullable\":true}")},
    {"Expiry",
     OBJECT("\"key\",\"ttl\",\"ttl_ms\",\"expire_at\"",
            "\"key\":" STRING ",\"ttl\":{\"type\":\"integer\",\"nullable\":true},\"ttl_ms\":{\"type\":"
            "\"integer\",\"nullable\":true},\"expire_at\":" MOMENT ",\"encoding\":" CODING)},
    {"NewExpiry", CLOSED(TTLS)},
    {"NewItem",
     "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"value\"],\"properties\":{"
     "\"value\":{\"oneOf\":[" STRING ",{\"type\":\"number\"}]},\"encoding\":" CODING "," TTLS "}}"},
    {"Field", OBJECT("\"field\",\"value\",\"expire_at\"", "\"field\":" STRING ",\"value\":" STRING
                                                          ",\"expire_at\":" MOMENT ",\"encoding\":" CODING)},
    {"NewMember", CLOSED("\"score\":" SCORE)},
    {"Member", OBJECT("\"member\"",
                      "\"member\":" STRING ",\"score\":" SCORE ",\"rank\":" INTEGER ",\"encoding\":" CODING)},
    {"Item",
     OBJECT("\"index\",\"value\"", "\"index\":" INTEGER ",\"value\":" STRING ",\"encoding\":" CODING)},
    {"Pushed", OBJECT("\"index\",\"size\"", "\"index\":" INTEGER ",\"size\":" INTEGER)},
    {"Operation",
     OBJECT(
         "\"op\"",
         "\"op\":{\"type\":\"string\",\"description\":\"put, delete, expire, persist, row_put, row_update, "
         "row_delete, or a "
         "Redis command whose "
         "first argument is a key.\"},\"key\":{\"oneOf\":[" STRING
         ",{\"type\":\"number\"},{\"type\":\"boolean\"},{\"type\":\"array\",\"items\":{}}],\"description\":"
         "\"A key; of "
         "row_update and row_delete the row's: a value, or an array of them.\"},\"table\":" STRING
         ",\"row\":{\"type\":\"object\"},\"incr\":{\"type\":\"object\"},\"value\":" VALUE ",\"type\":" TYPE
         ",\"args\":{\"type\":\"array\",\"items\":{\"oneOf\":[" STRING
         ",{\"type\":\"number\"}]}},\"encoding\":" CODING "," TTLS ",\"if_version\":" INTEGER
         ",\"if_absent\":{\"type\":\"boolean\"},\"if_present\":{\"type\":\"boolean\"}")},
    {"Batch",
     OBJECT("\"operations\"", "\"operations\":{\"type\":\"array\",\"minItems\":1,"
                              "\"maxItems\":" HTTP_TEXT(HTTP_MAX_OPERATIONS) ",\"items\":" REF(
                                  "Operation") "},\"atomic\":{\"type\":\"boolean\",\"default\":true},"
                                               "\"async\":{\"type\":\"boolean\",\"default\":false},"
                                               "\"timeout_ms\":" FROM_1(HTTP_MAX_TIMEOUT_MS, ""))},
    {"BatchResults", "{\"type\":\"object\",\"properties\":{\"results\":" ARRAY(
                         "{\"type\":\"object\"}") ",\"id\":" STRING "}}"},
    {"Outcome",
     OBJECT("\"id\",\"status\"",
            "\"id\":" STRING ",\"status\":{\"type\":\"string\",\"enum\":[\"pending\",\"done\",\"failed\"]},"
            "\"code\":" INTEGER ",\"answer\":{\"type\":\"object\"}")},
    {"Command", "{\"type\":\"array\",\"minItems\":1,\"items\":{\"oneOf\":[" STRING
                ",{\"type\":\"number\"},{\"type\":\"boolean\"}]},\"example\":[\"SET\",\"key\",\"value\"]}"},
    {"Commands", ARRAY(REF("Command"))},
    {"Result", OBJECT("\"result\"", "\"result\":{\"description\":\"What the command replies: a string, an "
                                    "integer, an array of such, or null.\"}")},
    {"Results", ARRAY("{\"oneOf\":[" REF("Result") "," REF("CommandError") "]}")},
    {"Tables", OBJECT("\"tables\"", "\"tables\":" ARRAY(STRING))},
    {"NewTable",
     "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"schema\"],\"properties\":{"
     "\"schema\":{\"type\":\"string\",\"description\":\"As TABLE.CREATE takes it.\"},\"prefix\":{"
     "\"type\":\"string\",\"description\":\"Of the hashes that are its rows.\"}}}"},
    {"TableChange",
     "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"alter\"],\"properties\":{"
     "\"alter\":{\"type\":\"string\",\"description\":\"As TABLE.ALTER takes it.\"}}}"},
    {"Table",
     OBJECT("\"table\",\"columns\",\"key\",\"indexes\",\"checks\",\"version\",\"expire_at\"",
            "\"table\":" STRING ",\"columns\":" TABLE_COLUMNS ",\"key\":" PARTS ",\"indexes\":" TABLE_INDEXES
            ",\"checks\":" STRINGS ",\"prefix\":" STRING ",\"version\":" INTEGER ",\"expire_at\":" MOMENT)},
    {"NewRow", "{\"type\":\"object\",\"description\":\"Columns and their values.\"}"},
    {"NewRows", "{\"oneOf\":[" REF("NewRow") ",{\"type\":\"array\",\"maxItems\":" HTTP_TEXT(
                    HTTP_MAX_OPERATIONS) ",\"items\":" REF("NewRow") "}]}"},
    {"Row", OBJECT("\"row\",\"version\",\"expire_at\"",
                   "\"row\":{\"type\":\"object\"},\"version\":" INTEGER ",\"expire_at\":" MOMENT)},
    {"RowResults", "{\"type\":\"object\",\"description\":\"Of one row, what GET says of it; of an array, "
                   "what became of each.\","
                   "\"properties\":{\"row\":{\"type\":\"object\"},\"version\":" INTEGER
                   ",\"expire_at\":" MOMENT ",\"results\":" ARRAY("{\"type\":\"object\"}") "}}"},
    {"RowPage",
     OBJECT("\"rows\",\"cursor\",\"scanned\"",
            "\"rows\":" ARRAY("{\"type\":\"object\"}") ",\"cursor\":{\"type\":\"string\",\"nullable\":"
                                                       "true},\"scanned\":" INTEGER)},
    {"Sql", "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"sql\"],\"properties\":{"
            "\"sql\":" STRING ",\"args\":{\"type\":\"array\",\"items\":{},\"description\":\"Of ?, ?1 or "
            ":name: null, numbers, strings, "
            "true, false, {base64: text}.\"}}}"},
    {"SqlResult", OBJECT("\"columns\",\"rows\",\"changes\"", "\"columns\":" ARRAY(STRING) ",\"rows\":" ARRAY(
                                                                 ARRAY("{}")) ",\"changes\":" INTEGER)},
    {"Status",
     OBJECT("\"status\"", "\"status\":" STRING ",\"replicas\":" INTEGER ",\"in_rotation\":" INTEGER)},
    {"Version", OBJECT("\"name\",\"version\",\"redis_version\"",
                       "\"name\":" STRING ",\"version\":" STRING ",\"redis_version\":" STRING)},
    {"Document", "{\"type\":\"object\"}"},
};

/* ---- pieces ---- */

static void add(struct buf *out, const char *text)
{
    buf_add_slice(out, slice_str(text));
}

static void add_string(struct buf *out, const char *text)
{
    json_add_lossy(out, slice_str(text));
}

static void add_content(struct buf *out, const char *schema, bool raw, bool text)
{
    add(out, "\"content\":{");
    if (text)
        add(out, "\"text/plain\":{\"schema\":" STRING "}");
    else
        buf_addf(out, "\"application/json\":{\"schema\":{\"$ref\":\"#/components/schemas/%s\"}}", schema);
    if (raw)
        add(out, ",\"application/octet-stream\":{\"schema\":{\"type\":\"string\",\"format\":\"binary\"}}");
    add(out, "}");
}

/* ---- parameters ---- */

static void next_param(struct buf *out)
{
    if (out->p[out->len - 1] != '[')
        add(out, ",");
}

static void add_path_params(struct buf *out, const char *path)
{
    for (const char *p = strchr(path, '{'); p; p = strchr(p + 1, '{')) {
        int n = (int)strcspn(p + 1, "}");
        bool index = n == 5 && memcmp(p + 1, "index", 5) == 0;
        next_param(out);
        buf_addf(out, "{\"name\":\"%.*s\",\"in\":\"path\",\"required\":true,\"schema\":%s}", n, p + 1,
                 index ? INTEGER : STRING);
    }
}

static void add_query_params(struct buf *out, const struct route *r)
{
    for (int i = 0; i < HTTP_PARAMS; i++) {
        if (!(r->params & 1u << i))
            continue;
        next_param(out);
        buf_addf(out, "{\"name\":\"%s\",\"in\":\"query\",\"schema\":", http_params[i].name);
        if (i == PARAM_LIMIT)
            buf_addf(out, "{\"type\":\"integer\",\"minimum\":1,\"maximum\":%u,\"default\":%u}", r->page.most,
                     r->page.usual);
        else
            add(out, http_params[i].schema);
        add(out, ",\"description\":");
        add_string(out, http_params[i].summary);
        add(out, "}");
    }
    if (r->filters) {
        next_param(out);
        add(out,
            "{\"name\":\"filters\",\"in\":\"query\",\"style\":\"form\",\"explode\":true,\"schema\":{\"type\":"
            "\"object\",\"additionalProperties\":{\"type\":\"string\"}},\"description\":\"COLUMN=OPERATOR."
            "VALUE, "
            "with eq, neq, gt, gte, lt, lte, like, in and is: age=gte.18.\"}");
    }
}

static bool may_answer(const struct route *r, int status)
{
    for (const uint16_t *s = r->statuses; *s; s++)
        if (*s == status)
            return true;
    return false;
}

static void add_conditions(struct buf *out, const struct route *r)
{
    if (may_answer(r, 412)) {
        next_param(out);
        add(out, "{\"name\":\"If-Match\",\"in\":\"header\",\"schema\":" STRING
                 ",\"description\":\"Only if the key has this version (in quotes).\"}");
    }
    if (may_answer(r, 304) || (may_answer(r, 412) && r->method == HTTP_PUT)) {
        next_param(out);
        add(out, "{\"name\":\"If-None-Match\",\"in\":\"header\",\"schema\":" STRING
                 ",\"description\":\"Only if it has another version; *: only if there is none.\"}");
    }
}

static void add_preference(struct buf *out, const struct route *r)
{
    if (!may_answer(r, 204))
        return;
    next_param(out);
    add(out,
        "{\"name\":\"Prefer\",\"in\":\"header\",\"schema\":" STRING
        ",\"description\":\"return=minimal: the answer has no body, and is 204 unless something is new.\"}");
}

/* Whether it comes to the database: then it may have a mode and a token. */
static bool has_token(const struct route *r)
{
    return r->prepare && !r->open;
}

static void add_consistency(struct buf *out, const struct route *r)
{
    if (r->params & 1u << PARAM_CONSISTENT) {
        next_param(out);
        add(out,
            "{\"name\":\"Larder-Consistency\",\"in\":\"header\",\"schema\":{\"type\":\"string\",\"pattern\":"
            "\"^(strong|session|bounded=[1-9][0-9]*|eventual)$\"},\"description\":\"What a read may be "
            "served "
            "from: the primary; whoever has what the token says; whoever is at most so many milliseconds "
            "behind; any replica.\"}");
    }
    if (has_token(r)) {
        next_param(out);
        add(out, "{\"name\":\"Larder-Token\",\"in\":\"header\",\"schema\":" STRING
                 ",\"description\":\"What the client has written or seen: the last answer's. Empty: the "
                 "answer is to "
                 "have one. Upstash-Sync-Token is the same.\"}");
    }
}

/* ---- answers ---- */

/* Of an answer of success. */
static void add_headers(struct buf *out)
{
    add(out,
        ",\"headers\":{\"Larder-Token\":{\"schema\":" STRING
        ",\"description\":\"What the request came with, wrote and saw; when one was asked for.\"},"
        "\"Larder-Token-State\":{\"schema\":" STRING
        ",\"description\":\"Of an Upstash-Sync-Token that does not count: foreign (another database's) or "
        "lost (a failover has lost what it stood for).\"},"
        "\"Larder-Read\":{\"schema\":" STRING
        ",\"description\":\"Where a read was served from: primary; replica; lag=12 (at most so many "
        "milliseconds behind); memory; age=3.\"}}");
}

static void add_response(struct buf *out, const struct route *r, int status)
{
    if (out->p[out->len - 1] != '{')
        add(out, ",");
    buf_addf(out, "\"%d\":{\"description\":\"%s\"", status, http_reason(status));
    if (status < 300 && has_token(r))
        add_headers(out);
    if (status != 304 && status != 204) {
        add(out, ",");
        if (status < 300)
            add_content(out, r->answer, r->raw && r->method == HTTP_GET, !r->answer);
        else
            add_content(out, r->dialect == DIALECT_UPSTASH ? "CommandError" : "Error", false, false);
    }
    add(out, "}");
}

static void add_responses(struct buf *out, const struct route *r)
{
    add(out, "\"responses\":{");
    for (const uint16_t *s = r->statuses; *s; s++)
        add_response(out, r, *s);
    add_response(out, r, 400); /* a parameter that there is not, if nothing else */
    if (!r->open)
        add_response(out, r, 401);
    add_response(out, r, 403);
    if (has_token(r) && !may_answer(r, 409)) /* a token of another database */
        add_response(out, r, 409);
    if (r->prepare)
        add_response(out, r, 503);
    add(out, "}");
}

static const char *method_name(enum http_method m)
{
    switch (m) {
    case HTTP_GET:
        return "get";
    case HTTP_PUT:
        return "put";
    case HTTP_POST:
        return "post";
    case HTTP_PATCH:
        return "patch";
    default:
        return "delete";
    }
}

static void add_operation(struct buf *out, const struct route *r)
{
    buf_addf(out, "\"%s\":{\"operationId\":\"%s\",\"tags\":[\"%s\"],\"summary\":", method_name(r->method),
             r->id, r->tag);
    add_string(out, r->summary);
    add(out, ",\"parameters\":[");
    add_path_params(out, r->path);
    add_query_params(out, r);
    add_conditions(out, r);
    add_preference(out, r);
    add_consistency(out, r);
    add(out, "],");
    if (r->body) {
        add(out, "\"requestBody\":{");
        add_content(out, r->body, r->raw, false);
        add(out, "},");
    }
    if (r->open)
        add(out, "\"security\":[],");
    add_responses(out, r);
    add(out, "}");
}

/* ---- the document ---- */

static bool is_first(const struct route *r)
{
    for (const struct route *before = http_routes; before < r; before++)
        if (strcmp(before->path, r->path) == 0)
            return false;
    return true;
}

static void add_path(struct buf *out, const struct route *first)
{
    if (out->p[out->len - 1] != '{')
        add(out, ",");
    buf_addf(out, "\"%s\":{", first->path);
    for (const struct route *r = first; r->path; r++) {
        if (strcmp(r->path, first->path) != 0)
            continue;
        if (r != first)
            add(out, ",");
        add_operation(out, r);
    }
    add(out, "}");
}

struct command_result http_openapi(struct http_api *a, struct session *s, struct http_call *x,
                                   const struct error *write_err)
{
    struct buf *out = a->answer.out;
    (void)s, (void)x, (void)write_err;
    add(out,
        "{\"openapi\":\"3.0.3\",\"info\":{\"title\":\"Larder\",\"version\":\"" LARDER_VERSION
        "\",\"description\":\"Keys and values over HTTP. Every other path is a Redis command: "
        "GET /get/key, POST /set/key with the value as the body.\",\"license\":{\"name\":\"MIT\",\"url\":"
        "\"https://spdx.org/licenses/MIT.html\"}},\"servers\":[{\"url\":\"/\"}],"
        "\"security\":[{\"bearer\":[]},{\"basic\":[]},{}],\"paths\":{");
    for (const struct route *r = http_routes; r->path; r++)
        if (is_first(r))
            add_path(out, r);
    add(out, "},\"components\":{\"securitySchemes\":{\"bearer\":{\"type\":\"http\",\"scheme\":\"bearer\"},"
             "\"basic\":{\"type\":\"http\",\"scheme\":\"basic\"}},\"schemas\":{");
    for (size_t i = 0; i < sizeof schemas / sizeof *schemas; i++)
        buf_addf(out, "%s\"%s\":%s", i ? "," : "", schemas[i].name, schemas[i].schema);
    add(out, "}}}");
    return (struct command_result){0};
}
