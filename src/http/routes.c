/* The table of routes, and what finds one in it. A path that is not in the table and begins with the name of
   a Redis command is that command, in the path style: GET /get/k. */
#include "http/http_internal.h"

#include <ctype.h>
#include <stdio.h>

#include "proto/uri.h"

#define UP_TO(most) "{\"type\":\"integer\",\"minimum\":1,\"maximum\":" HTTP_TEXT(most) "}"

const struct http_param_info http_params[HTTP_PARAMS] = {
    [PARAM_DB] = {"db", "{\"type\":\"integer\",\"minimum\":0,\"default\":0}",
                  "The database, as SELECT numbers them."},
    [PARAM_CONSISTENT] =
        {"consistent", "{\"type\":\"boolean\"}",
         "true: read from the primary; false: from any replica. Larder-Consistency says it more exactly."},
    [PARAM_ENCODING] = {"encoding", "{\"type\":\"string\",\"enum\":[\"base64\"]}",
                        "All strings of the answer in base64, whether they need it or not."},
    [PARAM_TTL] = {"ttl", UP_TO(HTTP_MAX_TTL), "Expires after so many seconds."},
    [PARAM_TTL_MS] = {"ttl_ms", UP_TO(HTTP_MAX_TTL_MS), "Expires after so many milliseconds."},
    [PARAM_EXPIRE_AT] = {"expire_at", UP_TO(HTTP_MAX_TTL_MS),
                         "Expires at this moment, milliseconds since the epoch."},
    [PARAM_PREFIX] = {"prefix", "{\"type\":\"string\"}", "Only keys that start so: a range of the index."},
    [PARAM_MATCH] = {"match", "{\"type\":\"string\"}", "Only keys that fit this pattern, as KEYS takes it."},
    [PARAM_TYPE] = {"type", "{\"type\":\"string\",\"enum\":[\"string\",\"hash\",\"list\",\"set\",\"zset\"]}",
                    "Only keys of this type."},
    [PARAM_FROM] = {"from", "{\"type\":\"string\"}", "Only keys from this one on."},
    [PARAM_TO] = {"to", "{\"type\":\"string\"}", "Only keys before this one."},
    [PARAM_REVERSE] = {"reverse", "{\"type\":\"boolean\",\"default\":false}", "The last key first."},
    [PARAM_VALUES] = {"values", "{\"type\":\"boolean\",\"default\":false}",
                      "With the value of each key; of a collection, the first `limit` items."},
    [PARAM_LIMIT] = {"limit", NULL, "The size of a page."}, /* the route has its bounds */
    [PARAM_CURSOR] = {"cursor", "{\"type\":\"string\"}", "Where the page begins: what the last page said."},
    [PARAM_AT] = {"at", "{\"type\":\"string\",\"enum\":[\"head\",\"tail\"],\"default\":\"tail\"}",
                  "Which end of the list."},
    [PARAM_SELECT] = {"select", "{\"type\":\"string\"}",
                      "The columns that are told, with commas between them."},
    [PARAM_ORDER] = {"order", "{\"type\":\"string\"}",
                     "In which order: column, column.asc or column.desc, with commas between them."},
    [PARAM_INDEX] = {"index", "{\"type\":\"string\"}", "The index that serves; else the best one does."},
    [PARAM_SCAN] = {"scan", "{\"type\":\"integer\",\"minimum\":1,\"maximum\":1000000,\"default\":10000}",
                    "How many rows may be looked at for a page."},
    [PARAM_INT64] = {"int64", "{\"type\":\"string\",\"enum\":[\"string\"]}",
                     "INTEGER and TIMESTAMP as strings, for clients whose numbers end at 2^53."},
    [PARAM_ATOMIC] = {"atomic", "{\"type\":\"boolean\",\"default\":true}",
                      "false: each row by itself; those that fail are told."},
    [PARAM_REPLACE] = {"replace", "{\"type\":\"boolean\",\"default\":false}",
                       "true: rows that are there are replaced; else they are duplicates."},
};

#define READS  (1u << PARAM_DB | 1u << PARAM_CONSISTENT)
#define WRITES (1u << PARAM_DB)
#define EXPIRY (1u << PARAM_TTL | 1u << PARAM_TTL_MS | 1u << PARAM_EXPIRE_AT)
#define PAGE   (1u << PARAM_LIMIT | 1u << PARAM_CURSOR)
#define CODED  (1u << PARAM_ENCODING)
#define LIST   (1u << PARAM_PREFIX | 1u << PARAM_MATCH | 1u << PARAM_TYPE)
#define RANGE  (1u << PARAM_FROM | 1u << PARAM_TO | 1u << PARAM_REVERSE | 1u << PARAM_VALUES)

#define SHOWN (1u << PARAM_SELECT | 1u << PARAM_INT64)

/* clang-format off */
const struct route http_routes[] = {
    {HTTP_GET, "/keys/{key}", .prepare = http_key_get, .params = READS | PAGE | CODED, .page = {1000, 10000},
     .id = "getKey", .tag = "keys", .summary = "The value of a key, as JSON or (by Accept) as the bytes of a string.",
     .answer = "Value", .raw = true, .statuses = {200, 304, 404, 406, 412}},
    {HTTP_PUT, "/keys/{key}", .prepare = http_key_put, .params = WRITES | EXPIRY | CODED,
     .id = "putKey", .tag = "keys", .summary = "Sets a key to a value: a JSON document, or the body's bytes.",
     .body = "NewValue", .answer = "Value", .raw = true, .statuses = {200, 201, 204, 412, 413, 415}},
    {HTTP_DELETE, "/keys/{key}", .prepare = http_key_delete, .params = WRITES,
     .id = "deleteKey", .tag = "keys", .summary = "Deletes a key, whatever its size.",
     .answer = "Deleted", .statuses = {200, 404, 412}},
    {HTTP_GET, "/keys", .prepare = http_keys_list, .params = READS | LIST | RANGE | PAGE | CODED, .page = {100, 1000},
     .id = "listKeys", .tag = "keys", .summary = "Keys in byte order, a page at a time, with their values if asked for.",
     .answer = "KeyPage", .statuses = {200}},

    {HTTP_GET, "/keys/{key}/ttl", .prepare = http_ttl_get, .params = READS | CODED,
     .id = "getTtl", .tag = "expiry", .summary = "When a key expires.",
     .answer = "Expiry", .statuses = {200, 404}},
    {HTTP_PUT, "/keys/{key}/ttl", .prepare = http_ttl_put, .params = WRITES | EXPIRY | CODED,
     .id = "putTtl", .tag = "expiry", .summary = "Makes a key expire.",
     .body = "NewExpiry", .answer = "Expiry", .statuses = {200, 204, 404, 412}},
    {HTTP_DELETE, "/keys/{key}/ttl", .prepare = http_ttl_delete, .params = WRITES | CODED,
     .id = "deleteTtl", .tag = "expiry", .summary = "Makes a key stay.",
     .answer = "Expiry", .statuses = {200, 404, 412}},

    {HTTP_GET, "/keys/{key}/fields/{field}", .prepare = http_field_get, .params = READS | CODED,
     .id = "getField", .tag = "items", .summary = "A field of a hash.",
     .answer = "Field", .raw = true, .statuses = {200, 404, 409, 412}},
    {HTTP_PUT, "/keys/{key}/fields/{field}", .prepare = http_field_put, .params = WRITES | EXPIRY | CODED,
     .id = "putField", .tag = "items", .summary = "Sets a field of a hash, which is created if there is none.",
     .body = "NewItem", .answer = "Field", .raw = true, .statuses = {200, 201, 204, 409, 412, 413, 415}},
    {HTTP_DELETE, "/keys/{key}/fields/{field}", .prepare = http_field_delete, .params = WRITES,
     .id = "deleteField", .tag = "items", .summary = "Removes a field from a hash.",
     .answer = "Deleted", .statuses = {200, 404, 409, 412}},
    {HTTP_GET, "/keys/{key}/members/{member}", .prepare = http_member_get, .params = READS | CODED,
     .id = "getMember", .tag = "items", .summary = "A member of a set or a sorted set.",
     .answer = "Member", .statuses = {200, 404, 409, 412}},
    {HTTP_PUT, "/keys/{key}/members/{member}", .prepare = http_member_put, .params = WRITES | CODED,
     .id = "putMember", .tag = "items", .summary = "Adds a member to a set, or (with a score) to a sorted set.",
     .body = "NewMember", .answer = "Member", .statuses = {200, 201, 204, 409, 412}},
    {HTTP_DELETE, "/keys/{key}/members/{member}", .prepare = http_member_delete, .params = WRITES,
     .id = "deleteMember", .tag = "items", .summary = "Removes a member.",
     .answer = "Deleted", .statuses = {200, 404, 409, 412}},
    {HTTP_POST, "/keys/{key}/items", .prepare = http_item_push, .params = WRITES | 1u << PARAM_AT,
     .id = "pushItem", .tag = "items", .summary = "Pushes an item to a list, which is created if there is none.",
     .body = "NewItem", .answer = "Pushed", .raw = true, .statuses = {201, 409, 412, 413, 415}},
    {HTTP_GET, "/keys/{key}/items/{index}", .prepare = http_item_get, .params = READS | CODED,
     .id = "getItem", .tag = "items", .summary = "An item of a list; -1 is the last.",
     .answer = "Item", .raw = true, .statuses = {200, 404, 409, 412}},
    {HTTP_PUT, "/keys/{key}/items/{index}", .prepare = http_item_put, .params = WRITES | CODED,
     .id = "putItem", .tag = "items", .summary = "Replaces an item of a list.",
     .body = "NewItem", .answer = "Item", .raw = true, .statuses = {200, 204, 404, 409, 412, 413, 415}},
    {HTTP_DELETE, "/keys/{key}/items/{index}", .prepare = http_item_delete, .params = WRITES,
     .id = "deleteItem", .tag = "items", .summary = "Removes an item from a list.",
     .answer = "Deleted", .statuses = {200, 404, 409, 412}},

    {HTTP_GET, "/tables", .prepare = http_tables_list, .params = READS,
     .id = "listTables", .tag = "tables", .summary = "The names of a database's tables.",
     .answer = "Tables", .statuses = {200}},
    {HTTP_GET, "/tables/{table}", .prepare = http_table_get, .params = READS,
     .id = "getTable", .tag = "tables", .summary = "What a table is: columns, key, indexes and their state.",
     .answer = "Table", .statuses = {200, 304, 404, 409, 412}},
    {HTTP_PUT, "/tables/{table}", .prepare = http_table_put, .params = WRITES,
     .id = "putTable", .tag = "tables", .summary = "Creates a table. One that is there already has to be the same.",
     .body = "NewTable", .answer = "Table", .statuses = {200, 201, 204, 409, 412}},
    {HTTP_PATCH, "/tables/{table}", .prepare = http_table_patch, .params = WRITES,
     .id = "patchTable", .tag = "tables", .summary = "Adds, drops or renames a column, adds or drops an index.",
     .body = "TableChange", .answer = "Table", .statuses = {200, 404, 409, 412, 422}},
    {HTTP_DELETE, "/tables/{table}", .prepare = http_table_delete, .params = WRITES,
     .id = "deleteTable", .tag = "tables", .summary = "Drops a table with its rows, whatever its size.",
     .answer = "Deleted", .statuses = {200, 404, 409, 412}},
    {HTTP_GET, "/tables/{table}/rows", .prepare = http_rows_list, .filters = true, .page = {100, 10000},
     .params = READS | SHOWN | PAGE | 1u << PARAM_ORDER | 1u << PARAM_INDEX | 1u << PARAM_SCAN,
     .id = "listRows", .tag = "rows", .summary = "Rows in order, a page at a time: age=gte.18 is a filter of a column.",
     .answer = "RowPage", .statuses = {200, 404, 409}},
    {HTTP_POST, "/tables/{table}/rows", .prepare = http_rows_post,
     .params = WRITES | SHOWN | EXPIRY | 1u << PARAM_ATOMIC | 1u << PARAM_REPLACE,
     .id = "postRows", .tag = "rows", .summary = "Inserts a row, or many in one step.",
     .body = "NewRows", .answer = "RowResults", .statuses = {200, 201, 404, 409, 413, 422}},
    {HTTP_GET, "/tables/{table}/rows/{key}", .prepare = http_row_get, .params = READS | SHOWN,
     .id = "getRow", .tag = "rows", .summary = "A row by its primary key: values with commas between them.",
     .answer = "Row", .statuses = {200, 304, 404, 409, 412}},
    {HTTP_PUT, "/tables/{table}/rows/{key}", .prepare = http_row_put, .params = WRITES | SHOWN | EXPIRY,
     .id = "putRow", .tag = "rows", .summary = "Puts a whole row: columns that are not given have their defaults.",
     .body = "NewRow", .answer = "Row", .statuses = {200, 201, 204, 404, 409, 412, 422}},
    {HTTP_PATCH, "/tables/{table}/rows/{key}", .prepare = http_row_patch, .params = WRITES | SHOWN | EXPIRY,
     .id = "patchRow", .tag = "rows", .summary = "Changes columns of a row.",
     .body = "NewRow", .answer = "Row", .statuses = {200, 404, 409, 412, 422}},
    {HTTP_DELETE, "/tables/{table}/rows/{key}", .prepare = http_row_delete, .params = WRITES,
     .id = "deleteRow", .tag = "rows", .summary = "Deletes a row.",
     .answer = "Deleted", .statuses = {200, 404, 409, 412}},

    {HTTP_POST, "/sql", .prepare = http_sql, .params = READS | 1u << PARAM_INT64,
     .id = "sql", .tag = "sql", .summary = "Runs statements of SQL over tables and keys.",
     .body = "Sql", .answer = "SqlResult", .statuses = {200, 404, 409, 413, 422, 504}},

    {HTTP_POST, "/batch", .prepare = http_batch_prepare, .run = http_run_batch, .declare = http_declare_batch,
     .params = READS,
     .id = "batch", .tag = "batches", .summary = "Runs operations in one step and one commit.",
     .body = "Batch", .answer = "BatchResults", .statuses = {200, 202, 409, 412, 413, 422}},
    {HTTP_GET, "/batch/{id}", .run = http_outcome, .stops_workers = true,
     .id = "getBatch", .tag = "batches", .summary = "What became of a batch that was not waited for.",
     .answer = "Outcome", .statuses = {200, 404}},

    {HTTP_POST, "/", .prepare = upstash_command, .run = upstash_run, .dialect = DIALECT_UPSTASH, .params = READS,
     .id = "command", .tag = "commands", .summary = "Runs one command.",
     .body = "Command", .answer = "Result", .statuses = {200}},
    {HTTP_POST, "/pipeline", .prepare = upstash_pipeline, .run = upstash_run_pipeline,
     .declare = upstash_declare, .dialect = DIALECT_UPSTASH, .params = READS,
     .id = "pipeline", .tag = "commands", .summary = "Runs commands one after the other.",
     .body = "Commands", .answer = "Results", .statuses = {200}},
    {HTTP_POST, "/multi-exec", .prepare = upstash_multi, .run = upstash_run_multi,
     .declare = upstash_declare, .dialect = DIALECT_UPSTASH, .params = READS,
     .id = "multiExec", .tag = "commands", .summary = "Runs commands in one step, as MULTI and EXEC do.",
     .body = "Commands", .answer = "Results", .statuses = {200}},

    {HTTP_GET, "/healthz", .run = http_healthz, .open = true,
     .id = "healthz", .tag = "service", .summary = "The process is alive. Never touches the database.",
     .answer = "Status", .statuses = {200}},
    {HTTP_GET, "/readyz", .prepare = http_readyz, .declare = http_declare_nothing, .open = true,
     .id = "readyz", .tag = "service", .summary = "The database takes a write.",
     .answer = "Status", .statuses = {200}},
    {HTTP_GET, "/metrics", .run = http_metrics, .stops_workers = true,
     .id = "metrics", .tag = "service", .summary = "Counters and histograms, as Prometheus takes them.",
     .statuses = {200}},
    {HTTP_GET, "/version", .run = http_version,
     .id = "version", .tag = "service", .summary = "Which server this is.",
     .answer = "Version", .statuses = {200}},
    {HTTP_GET, "/openapi.json", .run = http_openapi,
     .id = "openapi", .tag = "service", .summary = "This document.",
     .answer = "Document", .statuses = {200}},
    {0},
};

/* What POST /set/k and its like are run by. */
static const struct route path_style = {.prepare = upstash_path, .run = upstash_run, .dialect = DIALECT_UPSTASH};
/* clang-format on */

/* ---- matching ---- */

/* Does the path fit the pattern? Its parameters are left encoded. */
static bool fits(const char *pattern, struct slice path, struct slice params[2])
{
    int n = 0;
    while (*pattern) {
        struct slice segment;
        if (!uri_segment(&path, &segment))
            return false;
        pattern++;
        size_t len = strcspn(pattern, "/");
        if (pattern[0] == '{')
            params[n++] = segment;
        else if (len != segment.n || memcmp(pattern, segment.p, len) != 0)
            return false;
        pattern += len;
    }
    return path.n == 0;
}

static bool same_method(enum http_method route, enum http_method asked)
{
    return route == asked || (route == HTTP_GET && asked == HTTP_HEAD);
}

/* Of the path style. Others mean something to browsers and proxies that no command does. */
static bool runs_commands(enum http_method m)
{
    return m == HTTP_GET || m == HTTP_HEAD || m == HTTP_POST || m == HTTP_PUT;
}

/* "Allow: GET, HEAD, PUT": the methods of every route that fits the path, or of the path style. */
static void allow_methods(struct http_call *x, bool command)
{
    char text[128];
    struct slice params[2];
    size_t n =
        (size_t)snprintf(text, sizeof text, "Allow: OPTIONS%s", command ? ", GET, HEAD, POST, PUT" : "");
    for (const struct route *r = http_routes; r->path; r++) {
        if (fits(r->path, x->request.path, params))
            n += (size_t)snprintf(text + n, sizeof text - n, ", %s%s", http_method_str(r->method),
                                  r->method == HTTP_GET ? ", HEAD" : "");
    }
    n += (size_t)snprintf(text + n, sizeof text - n, "\r\n");
    http_add_header(x, slice_of(text, n));
}

/* Whether the path's first word is a command, and not of the table. */
static bool names_command(struct http_call *x)
{
    struct slice path = x->request.path, first, own, word;
    if (!uri_segment(&path, &first) || first.n == 0)
        return false;
    for (const struct route *r = http_routes; r->path; r++) {
        struct slice pattern = slice_str(r->path);
        if (uri_segment(&pattern, &own) && slice_eq(own, first))
            return false;
    }
    return uri_decode(first, false, x->arena, &word) && command_find(word);
}

#define ALIKE_CHARS 5 /* "/heal": what begins so may be meant to be /healthz */

/* The path without parameters that begins most as this one does, or NULL. */
static const char *nearest_path(struct slice path)
{
    const char *nearest = NULL;
    size_t most = ALIKE_CHARS - 1;
    for (const struct route *r = http_routes; r->path; r++) {
        size_t n = 0;
        while (n < path.n && r->path[n] && tolower((unsigned char)path.p[n]) == r->path[n])
            n++;
        if (n > most && !strchr(r->path, '{')) {
            most = n;
            nearest = r->path;
        }
    }
    return nearest;
}

static void refuse_path(struct http_call *x)
{
    const char *nearest = nearest_path(x->request.path);
    http_refuse(x, 404, "unknown_path",
                "There is nothing at this path, which begins with no Redis command either.%s%s%s A \"/\" "
                "within a key is written %%2F; /openapi.json lists what there is.",
                nearest ? " There is " : "", nearest ? nearest : "", nearest ? "." : "");
}

static const struct route *find(struct http_call *x, struct slice params[2])
{
    bool known = false;
    for (const struct route *r = http_routes; r->path; r++) {
        if (!fits(r->path, x->request.path, params))
            continue;
        if (same_method(r->method, x->request.method))
            return r;
        known = true;
    }
    bool command = !known && names_command(x);
    if (command && runs_commands(x->request.method))
        return &path_style;
    known |= command;
    if (known)
        allow_methods(x, command);
    if (known && x->request.method == HTTP_OPTIONS) {
        http_refuse(x, 204, "", "The Allow header says it.");
    } else if (known) {
        http_refuse(x, 405, "method_not_allowed", "%s is not for this path; the Allow header says what is.",
                    http_method_str(x->request.method));
    } else {
        refuse_path(x);
    }
    return NULL;
}

static int find_param(struct slice name)
{
    int i = 0;
    while (i < HTTP_PARAMS && !slice_eq(name, slice_str(http_params[i].name)))
        i++;
    return i;
}

/* A parameter that is none of the table's: a filter, where there are such. */
static bool keep_filter(struct http_call *x, struct slice name, struct slice value)
{
    if (!x->route->filters)
        return false;
    if (!x->filters)
        x->filters = arena_alloc(x->arena, (x->request.query.n + 1) * sizeof *x->filters);
    x->filters[x->nfilters++] = (struct http_filter){name, value};
    return true;
}

static bool read_query(struct http_call *x)
{
    struct slice query = x->request.query, name, value;
    bool bare;
    while (uri_param(&query, &name, &value, &bare)) {
        if (!uri_decode(name, true, x->arena, &name) || !uri_decode(value, true, x->arena, &value)) {
            http_refuse(x, 400, "bad_encoding",
                        "A %% in the query must be followed by two hexadecimal digits.");
            return false;
        }
        int i = find_param(name);
        if (i == HTTP_PARAMS && keep_filter(x, name, value))
            continue;
        if (i == HTTP_PARAMS || !(x->route->params & 1u << i)) {
            http_refuse(x, 400, "unknown_parameter", "There is no parameter \"%.*s\" here.",
                        name.n < 64 ? (int)name.n : 64, name.p);
            return false;
        }
        if (x->query[i].p) {
            http_refuse(x, 400, "bad_parameter", "%s is there twice.", http_params[i].name);
            return false;
        }
        x->query[i] = value.n ? value : SLICE("");
    }
    return true;
}

/* What a parameter may be that no route looks at closer. */
static void check_words(struct http_call *x)
{
    static const enum http_param yes_or_no[] = {PARAM_REVERSE, PARAM_VALUES, PARAM_ATOMIC, PARAM_REPLACE};
    struct slice encoding = x->query[PARAM_ENCODING], int64 = x->query[PARAM_INT64];
    for (size_t i = 0; i < sizeof yes_or_no / sizeof *yes_or_no; i++) {
        struct slice word = x->query[yes_or_no[i]];
        if (word.p && !slice_eq(word, SLICE("true")) && !slice_eq(word, SLICE("false")))
            http_refuse(x, 400, "bad_parameter", "%s must be true or false.", http_params[yes_or_no[i]].name);
    }
    if (encoding.p && !slice_eq(encoding, SLICE("base64")))
        http_refuse(x, 400, "bad_parameter", "encoding must be base64, or not be there.");
    if (int64.p && !slice_eq(int64, SLICE("string")))
        http_refuse(x, 400, "bad_parameter", "int64 must be string, or not be there.");
}

void http_route(struct http_call *x)
{
    struct slice params[2] = {{NULL, 0}, {NULL, 0}};
    x->route = find(x, params);
    if (!x->route || x->route == &path_style)
        return;
    memcpy(x->coded, params, sizeof params);
    for (int i = 0; i < 2 && params[i].p; i++) {
        if (!uri_decode(params[i], false, x->arena, &x->path[i])) {
            http_refuse(x, 400, "bad_encoding",
                        "A %% in the path must be followed by two hexadecimal digits.");
            return;
        }
    }
    if (x->request.query.n && read_query(x))
        check_words(x);
}
