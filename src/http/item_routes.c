/* Single items of collections: the fields of hashes, the members of sets and sorted sets, the places of
   lists.

   A condition (If-Match) is on the key's version, which every change of an item gives anew; If-None-Match: *
   asks that the item itself is not there. */
#include "http/http_internal.h"

#include "base/num.h"
#include "command/families.h"

/* In the order of the table below. */
enum {
    FIELD_GET,
    FIELD_PUT,
    FIELD_DELETE,
    MEMBER_GET,
    MEMBER_PUT,
    MEMBER_DELETE,
    ITEM_GET,
    ITEM_PUT,
    ITEM_DELETE,
    PUSH
};

/* What a request says about an item. */
struct item_request {
    struct http_value value; /* FIELD, ITEM */
    bool scored;             /* MEMBER: of a sorted set, with ... */
    double score;
    int64_t index; /* ITEM; negative: from the end */
    bool head;     /* PUSH: in front */
};

/* ---- preparing ---- */

static struct item_request *new_request(struct http_call *x)
{
    struct item_request *r = arena_alloc(x->arena, sizeof *r);
    *r = (struct item_request){.scored = false};
    x->detail = r;
    return r;
}

static void call_item(struct http_call *x, int command)
{
    if (!x->refusal.status && http_check_conditions(x))
        http_key_call(x, &http_item_commands[command], x->path[0]);
}

void http_field_get(struct http_api *api, struct http_call *x)
{
    (void)api;
    call_item(x, FIELD_GET);
}

static bool read_single(const struct http_api *api, struct http_call *x, struct http_value *ret)
{
    if (!http_body_value(api, x, ret))
        return false;
    if (ret->type == ROW_STRING)
        return true;
    http_refuse(x, 400, "bad_value", "An item holds a string: no type is needed.");
    return false;
}

void http_field_put(struct http_api *api, struct http_call *x)
{
    if (read_single(api, x, &new_request(x)->value))
        call_item(x, FIELD_PUT);
}

void http_field_delete(struct http_api *api, struct http_call *x)
{
    (void)api;
    call_item(x, FIELD_DELETE);
}

void http_member_get(struct http_api *api, struct http_call *x)
{
    (void)api;
    call_item(x, MEMBER_GET);
}

void http_member_put(struct http_api *api, struct http_call *x)
{
    struct item_request *r = new_request(x);
    struct json body, v;
    struct json_walk w;
    struct slice name;
    (void)api;
    if (x->request.body.n && http_json_body(x, JSON_OBJECT, &body)) {
        json_begin(&w, &body);
        while (!x->refusal.status && json_next_member(&w, x->arena, &name, &v)) {
            r->scored = slice_eq(name, SLICE("score"));
            if (!r->scored)
                http_refuse(x, 400, "unknown_field", "There is no field \"%.*s\" here: score.",
                            name.n < 64 ? (int)name.n : 64, name.p);
            else
                http_score(x, &v, &r->score);
        }
    }
    call_item(x, MEMBER_PUT);
}

void http_member_delete(struct http_api *api, struct http_call *x)
{
    (void)api;
    call_item(x, MEMBER_DELETE);
}

static bool read_index(struct http_call *x, struct item_request *r)
{
    if (num_parse_i64(x->path[1], &r->index))
        return true;
    http_refuse(x, 400, "bad_index", "A place in a list is a whole number: 0 is the first, -1 the last.");
    return false;
}

void http_item_get(struct http_api *api, struct http_call *x)
{
    (void)api;
    if (read_index(x, new_request(x)))
        call_item(x, ITEM_GET);
}

static bool no_expiry(struct http_call *x, const struct http_value *v)
{
    if (v->expiry.kind != EXPIRY_NONE)
        http_refuse(x, 400, "bad_ttl", "A list's items do not expire by themselves: PUT the key's ttl.");
    return v->expiry.kind == EXPIRY_NONE;
}

void http_item_put(struct http_api *api, struct http_call *x)
{
    struct item_request *r = new_request(x);
    if (read_index(x, r) && read_single(api, x, &r->value) && no_expiry(x, &r->value))
        call_item(x, ITEM_PUT);
}

void http_item_delete(struct http_api *api, struct http_call *x)
{
    (void)api;
    if (read_index(x, new_request(x)))
        call_item(x, ITEM_DELETE);
}

void http_item_push(struct http_api *api, struct http_call *x)
{
    struct item_request *r = new_request(x);
    struct slice at = x->query[PARAM_AT];
    r->head = at.p && slice_eq(at, SLICE("head"));
    if (at.p && !r->head && !slice_eq(at, SLICE("tail")))
        http_refuse(x, 400, "bad_parameter", "at must be head or tail.");
    else if (read_single(api, x, &r->value) && no_expiry(x, &r->value))
        call_item(x, PUSH);
}

/* ---- what they share ---- */

/* The collection under the key, of which the conditions hold. *ret is NULL when there is none; then, if the
   request needs one, and when it has another type, that is the answer and *ret_ok is false. */
static enum status open_coll(struct call *c, enum row_type type, bool make, struct coll **ret, bool *ret_ok)
{
    struct answer *a = answer_of(c);
    const struct row *row;
    bool wrong = false;
    *ret_ok = false;
    *ret = NULL;
    enum status st = http_find_row(c, &row, &a->head.version);
    if (st != ST_OK)
        return st;
    if (!row && !make) {
        http_key_not_found(a);
        return ST_OK;
    }
    if (!http_if_match(a, a->head.version))
        return ST_OK;
    st = (make ? coll_make : coll_open)(c->view, call_db(c), c->argv[1], type, ret, &wrong);
    if (st == ST_OK && wrong)
        reply_error(c->reply, ERR_WRONGTYPE);
    *ret_ok = st == ST_OK && !wrong;
    return st;
}

static void item_not_found(struct answer *a, const char *code, const char *message)
{
    answer_error(a, 404, code, message);
}

/* If-None-Match: * and the item is there. */
static bool must_be_new(struct answer *a, bool found)
{
    if (!found || !a->call->request.headers[HTTP_IF_NONE_MATCH].p)
        return false;
    answer_error(a, 412, "precondition_failed", "The item is there already.");
    return true;
}

static enum status save(struct call *c, struct coll *coll)
{
    struct answer *a = answer_of(c);
    enum status st = coll_save(coll);
    return st == ST_OK ? view_version(c->view, call_db(c), c->argv[1], &a->head.version) : st;
}

static enum status answer_deleted(struct call *c, struct coll *coll)
{
    enum status st = save(c, coll);
    buf_add_slice(answer_of(c)->out, SLICE("{\"deleted\":true}"));
    return st;
}

/* ---- fields ---- */

static enum status add_field(struct call *c, struct http_writer *w, void *arg)
{
    const struct coll_item *item = arg;
    http_add_name(w, "field");
    http_add_text(w, answer_of(c)->call->path[1]);
    http_add_name(w, "value");
    http_add_text(w, item->value);
    http_add_name(w, "expire_at");
    http_add_moment(w, item->expire_at);
    return ST_OK;
}

static enum status answer_value(struct call *c, http_members_fn *fn, struct coll_item *item)
{
    struct answer *a = answer_of(c);
    a->head.by_accept = true;
    if (!http_prefers_raw(a->call->request.headers[HTTP_ACCEPT]))
        return http_add_object(c, fn, item);
    a->head.content_type = "application/octet-stream";
    buf_add_slice(a->out, item->value);
    return ST_OK;
}

static enum status field_get(struct call *c)
{
    struct answer *a = answer_of(c);
    struct coll *h;
    struct coll_item item;
    bool ok, found;
    enum status st = open_coll(c, ROW_HASH, false, &h, &ok);
    if (st != ST_OK || !ok || (st = coll_find(h, a->call->path[1], &found, &item)) != ST_OK)
        return st;
    if (found)
        return answer_value(c, add_field, &item);
    item_not_found(a, "field_not_found", "The hash has no such field.");
    return ST_OK;
}

static enum status field_put(struct call *c)
{
    struct answer *a = answer_of(c);
    const struct item_request *r = a->call->detail;
    struct coll *h;
    struct coll_item old, item = {.name = a->call->path[1], .value = r->value.string};
    bool ok, found;
    if (!http_expiry_at(&r->value.expiry, view_now(c->view), &item.expire_at)) {
        answer_error(a, 400, "bad_ttl", "expire_at has passed already.");
        return ST_OK;
    }
    enum status st = open_coll(c, ROW_HASH, true, &h, &ok);
    if (st != ST_OK || !ok || (st = coll_find(h, item.name, &found, &old)) != ST_OK || must_be_new(a, found))
        return st;
    if ((st = coll_put_known(h, &item, found ? &old : NULL)) != ST_OK || (st = save(c, h)) != ST_OK)
        return st;
    a->head.status = found ? 200 : 201;
    return http_add_object(c, add_field, &item);
}

/* Takes an item out by its name, of a collection of this type. */
static enum status remove_named(struct call *c, enum row_type type, const char *code, const char *message)
{
    struct answer *a = answer_of(c);
    struct coll *coll;
    bool ok, removed;
    enum status st = open_coll(c, type, false, &coll, &ok);
    if (st != ST_OK || !ok || (st = coll_remove(coll, a->call->path[1], &removed)) != ST_OK)
        return st;
    if (removed)
        return answer_deleted(c, coll);
    item_not_found(a, code, message);
    return ST_OK;
}

static enum status field_delete(struct call *c)
{
    return remove_named(c, ROW_HASH, "field_not_found", "The hash has no such field.");
}

/* ---- members ---- */

struct member {
    bool scored;
    double score;
    int64_t rank;
};

static enum status add_member(struct call *c, struct http_writer *w, void *arg)
{
    const struct member *m = arg;
    http_add_name(w, "member");
    http_add_text(w, answer_of(c)->call->path[1]);
    if (!m->scored)
        return ST_OK;
    http_add_name(w, "score");
    json_add_double(w->out, m->score);
    http_add_name(w, "rank");
    json_add_i64(w->out, m->rank);
    return ST_OK;
}

/* A set or a sorted set, whichever is under the key; of an absent one, what the request would make. */
static enum status member_type(struct call *c, bool scored, enum row_type *ret)
{
    const struct row *row;
    enum status st = arg_any(c, 1, &row);
    *ret = st == ST_OK && row && (row->type == ROW_SET || row->type == ROW_ZSET) ? (enum row_type)row->type
           : scored                                                              ? ROW_ZSET
                                                                                 : ROW_SET;
    return st;
}

static enum status answer_member(struct call *c, struct coll *coll, bool scored, double score)
{
    struct member m = {.scored = scored, .score = score};
    struct coll_bound b = {.score = score, .has_name = true, .name = answer_of(c)->call->path[1]};
    enum status st = scored ? coll_rank_of(coll, &b, false, &m.rank) : ST_OK;
    return st == ST_OK ? http_add_object(c, add_member, &m) : st;
}

static enum status member_get(struct call *c)
{
    struct answer *a = answer_of(c);
    enum row_type type;
    struct coll *coll;
    struct coll_item item;
    bool ok, found;
    enum status st = member_type(c, false, &type);
    if (st != ST_OK || (st = open_coll(c, type, false, &coll, &ok)) != ST_OK || !ok ||
        (st = coll_find(coll, a->call->path[1], &found, &item)) != ST_OK)
        return st;
    if (found)
        return answer_member(c, coll, type == ROW_ZSET, item.score);
    item_not_found(a, "member_not_found", "There is no such member.");
    return ST_OK;
}

static enum status member_put(struct call *c)
{
    struct answer *a = answer_of(c);
    const struct item_request *r = a->call->detail;
    enum row_type type;
    struct coll *coll;
    struct coll_item old, item = {.name = a->call->path[1], .score = r->score};
    bool ok, found;
    enum status st = member_type(c, r->scored, &type);
    if (st != ST_OK || (st = open_coll(c, type, true, &coll, &ok)) != ST_OK || !ok)
        return st;
    if ((type == ROW_ZSET) != r->scored) {
        answer_error(a, 400, "bad_value",
                     r->scored ? "The members of a set have no score."
                               : "A member of a sorted set needs a score: {\"score\": 1}.");
        return ST_OK;
    }
    if ((st = coll_find(coll, item.name, &found, &old)) != ST_OK || must_be_new(a, found))
        return st;
    if ((st = coll_put_known(coll, &item, found ? &old : NULL)) != ST_OK || (st = save(c, coll)) != ST_OK)
        return st;
    a->head.status = found ? 200 : 201;
    return answer_member(c, coll, r->scored, r->score);
}

static enum status member_delete(struct call *c)
{
    enum row_type type;
    enum status st = member_type(c, false, &type);
    return st == ST_OK ? remove_named(c, type, "member_not_found", "There is no such member.") : st;
}

/* ---- places of lists ---- */

struct place {
    int64_t index;
    struct slice value;
};

static enum status add_place(struct call *c, struct http_writer *w, void *arg)
{
    const struct place *p = arg;
    (void)c;
    http_add_name(w, "index");
    json_add_i64(w->out, p->index);
    http_add_name(w, "value");
    http_add_text(w, p->value);
    return ST_OK;
}

/* The list and the place that the request names; *ret_ok is false when that cannot be, which is the
   answer. */
static enum status find_place(struct call *c, struct coll **ret, int64_t *ret_index, bool *ret_ok)
{
    struct answer *a = answer_of(c);
    const struct item_request *r = a->call->detail;
    enum status st = open_coll(c, ROW_LIST, false, ret, ret_ok);
    if (st != ST_OK || !*ret_ok)
        return st;
    int64_t size = coll_size(*ret);
    *ret_index = r->index < 0 ? r->index + size : r->index;
    *ret_ok = *ret_index >= 0 && *ret_index < size;
    if (!*ret_ok)
        item_not_found(a, "index_not_found", "The list has no such place.");
    return ST_OK;
}

static enum status item_get(struct call *c)
{
    struct answer *a = answer_of(c);
    struct coll *list;
    struct place p;
    bool ok;
    enum status st = find_place(c, &list, &p.index, &ok);
    if (st != ST_OK || !ok || (st = coll_index(list, p.index, &p.value)) != ST_OK)
        return st;
    a->head.by_accept = true;
    if (!http_prefers_raw(a->call->request.headers[HTTP_ACCEPT]))
        return http_add_object(c, add_place, &p);
    a->head.content_type = "application/octet-stream";
    buf_add_slice(a->out, p.value);
    return ST_OK;
}

static enum status item_put(struct call *c)
{
    const struct item_request *r = answer_of(c)->call->detail;
    struct coll *list;
    struct place p = {.value = r->value.string};
    bool ok;
    enum status st = find_place(c, &list, &p.index, &ok);
    if (st != ST_OK || !ok || (st = coll_set(list, p.index, p.value)) != ST_OK ||
        (st = save(c, list)) != ST_OK)
        return st;
    return http_add_object(c, add_place, &p);
}

static enum status item_delete(struct call *c)
{
    struct coll *list;
    int64_t index;
    bool ok;
    enum status st = find_place(c, &list, &index, &ok);
    if (st != ST_OK || !ok || (st = coll_erase(list, index, 1)) != ST_OK)
        return st;
    return answer_deleted(c, list);
}

static enum status push(struct call *c)
{
    struct answer *a = answer_of(c);
    const struct item_request *r = a->call->detail;
    struct coll *list;
    bool ok;
    enum status st = open_coll(c, ROW_LIST, true, &list, &ok);
    if (st != ST_OK || !ok || (st = coll_push(list, r->head, r->value.string)) != ST_OK ||
        (st = save(c, list)) != ST_OK)
        return st;
    a->head.status = 201;
    buf_addf(a->out, "{\"index\":%lld,\"size\":%lld}", r->head ? 0LL : (long long)coll_size(list) - 1,
             (long long)coll_size(list));
    return ST_OK;
}

/* clang-format off */
#define READS(name_, fn_)                                                                                    \
    {                                                                                                        \
        .name = (name_), .fn = (fn_), .arity = 2, .flags = CMD_READONLY | CMD_FAST,                          \
        .keys = {{.flags = KEY_RO | KEY_ACCESS, .index = 1, .step = 1}}, .group = "http"                     \
    }
#define WRITES(name_, fn_)                                                                                   \
    {                                                                                                        \
        .name = (name_), .fn = (fn_), .arity = 2, .flags = CMD_WRITE | CMD_DENYOOM,                          \
        .keys = {{.flags = KEY_RW | KEY_UPDATE, .index = 1, .step = 1}}, .group = "http"                     \
    }

const struct command http_item_commands[] = {
    [FIELD_GET] = READS("http|field-get", field_get),
    [FIELD_PUT] = WRITES("http|field-put", field_put),
    [FIELD_DELETE] = WRITES("http|field-delete", field_delete),
    [MEMBER_GET] = READS("http|member-get", member_get),
    [MEMBER_PUT] = WRITES("http|member-put", member_put),
    [MEMBER_DELETE] = WRITES("http|member-delete", member_delete),
    [ITEM_GET] = READS("http|item-get", item_get),
    [ITEM_PUT] = WRITES("http|item-put", item_put),
    [ITEM_DELETE] = WRITES("http|item-delete", item_delete),
    [PUSH] = WRITES("http|item-push", push),
    {.name = NULL},
};
/* clang-format on */
