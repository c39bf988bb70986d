/* Values of every type, read from JSON (json_out.c writes them):

     {"type": "string", "value": "text"}                       (type may be left out)
     {"type": "hash",   "value": {"field": "value"}}
     {"type": "list",   "value": ["a", "b"]}
     {"type": "set",    "value": ["a", "b"]}
     {"type": "zset",   "value": [{"member": "a", "score": 1.5}]}   (or, as input, {"a": 1.5})

   A document with "encoding": "base64" has all its strings so, names of fields included: that is how bytes
   travel that are not UTF-8. */
#include "http/http_internal.h"

#include <math.h>

#include "base/num.h"
#include "proto/base64.h"

/* ---- expiry ---- */

static const struct {
    enum http_param param;
    int64_t unit; /* milliseconds; 0: a moment */
} expiry_forms[] = {{PARAM_TTL, 1000}, {PARAM_TTL_MS, 1}, {PARAM_EXPIRE_AT, 0}};
#define EXPIRY_FORMS (sizeof expiry_forms / sizeof *expiry_forms)

static bool set_expiry(struct http_call *x, size_t form, int64_t n, struct http_expiry *ret)
{
    const char *name = http_params[expiry_forms[form].param].name;
    int64_t unit = expiry_forms[form].unit;
    int64_t most = HTTP_MAX_TTL_MS / (unit ? unit : 1);
    if (n < 1 || n > most) {
        http_refuse(x, 400, "bad_ttl", "%s must be a whole number from 1 to %lld.", name, (long long)most);
        return false;
    }
    if (ret->kind != EXPIRY_NONE) {
        http_refuse(x, 400, "bad_ttl", "Give one of ttl, ttl_ms and expire_at.");
        return false;
    }
    *ret = (struct http_expiry){unit ? EXPIRY_IN : EXPIRY_AT, unit ? n * unit : n};
    return true;
}

bool http_expiry_params(struct http_call *x, struct http_expiry *ret)
{
    *ret = (struct http_expiry){EXPIRY_NONE, 0};
    for (size_t i = 0; i < EXPIRY_FORMS; i++) {
        struct slice text = x->query[expiry_forms[i].param];
        int64_t n = 0;
        if (text.p && (!num_parse_i64(text, &n) || !set_expiry(x, i, n, ret))) {
            if (!x->refusal.status)
                set_expiry(x, i, 0, ret);
            return false;
        }
    }
    return true;
}

bool http_expiry_member(struct http_call *x, struct slice name, const struct json *v, struct http_expiry *ret)
{
    for (size_t i = 0; i < EXPIRY_FORMS; i++) {
        int64_t n;
        if (!slice_eq(name, slice_str(http_params[expiry_forms[i].param].name)))
            continue;
        if (v->kind != JSON_NULL)
            set_expiry(x, i, json_i64(v, &n) ? n : 0, ret);
        return true;
    }
    return false;
}

bool http_expiry_at(const struct http_expiry *e, int64_t now, int64_t *ret)
{
    *ret = e->kind == EXPIRY_NONE ? EXPIRE_NEVER : e->kind == EXPIRY_IN ? now + e->ms : e->ms;
    return e->kind == EXPIRY_NONE || *ret > now;
}

/* ---- reading ---- */

bool http_text(struct http_call *x, const struct json *v, const char *what, bool encoded, struct slice *ret)
{
    if (v->kind == JSON_NUMBER) {
        *ret = v->text;
        return true;
    }
    if (v->kind != JSON_STRING) {
        http_refuse(x, 400, "bad_value", "%s must be a string or a number, not %s.%s", what,
                    json_kind_name(v->kind),
                    v->kind == JSON_OBJECT || v->kind == JSON_ARRAY
                        ? " Store JSON as a string of its text, or say \"type\" for a collection."
                        : "");
        return false;
    }
    *ret = json_string(v, x->arena);
    if (encoded && !base64_decode(*ret, x->arena, ret)) {
        http_refuse(x, 400, "bad_value", "%s is not base64.", what);
        return false;
    }
    return true;
}

bool http_score(struct http_call *x, const struct json *v, double *ret)
{
    struct slice text = v->kind == JSON_STRING ? json_string(v, x->arena) : v->text;
    if ((v->kind == JSON_NUMBER || v->kind == JSON_STRING) && num_parse_double(text, ret) &&
        (v->kind == JSON_NUMBER || isinf(*ret)))
        return true;
    http_refuse(x, 400, "bad_value", "A score must be a number, \"inf\" or \"-inf\".");
    return false;
}

/* {"field": "value"}, or {"member": score}. */
static bool read_members(struct http_call *x, const struct json *v, bool encoded, struct http_value *ret)
{
    struct json_walk w;
    struct json value;
    struct slice name;
    json_begin(&w, v);
    while (json_next_member(&w, x->arena, &name, &value)) {
        struct coll_item *item = &ret->items[ret->nitems++];
        *item = (struct coll_item){.name = name};
        if (encoded && !base64_decode(name, x->arena, &item->name)) {
            http_refuse(x, 400, "bad_value", "A name is not base64.");
            return false;
        }
        if (ret->type == ROW_HASH ? !http_text(x, &value, "A field's value", encoded, &item->value)
                                  : !http_score(x, &value, &item->score))
            return false;
    }
    return true;
}

/* {"member": "a", "score": 1} */
static bool read_scored(struct http_call *x, const struct json *v, bool encoded, struct coll_item *ret)
{
    struct json_walk w;
    struct json value;
    struct slice name;
    bool has_member = false, has_score = false;
    if (v->kind == JSON_OBJECT) {
        json_begin(&w, v);
        while (json_next_member(&w, x->arena, &name, &value)) {
            if (slice_eq(name, SLICE("member"))) {
                has_member = true;
                if (!http_text(x, &value, "A member", encoded, &ret->name))
                    return false;
            } else if (slice_eq(name, SLICE("score"))) {
                has_score = true;
                if (!http_score(x, &value, &ret->score))
                    return false;
            } else {
                http_refuse(x, 400, "unknown_field", "There is no field \"%.*s\" here: member, score.",
                            name.n < 64 ? (int)name.n : 64, name.p);
                return false;
            }
        }
    }
    if (has_member && has_score)
        return true;
    http_refuse(x, 400, "bad_value", "A zset's value has items such as {\"member\": \"a\", \"score\": 1}.");
    return false;
}

static bool read_items(struct http_call *x, const struct json *v, bool encoded, struct http_value *ret)
{
    struct json_walk w;
    struct json value;
    json_begin(&w, v);
    while (json_next_item(&w, &value)) {
        struct coll_item *item = &ret->items[ret->nitems++];
        *item = (struct coll_item){.score = 0};
        bool ok = ret->type == ROW_ZSET ? read_scored(x, &value, encoded, item)
                                        : http_text(x, &value, "An item", encoded,
                                                    ret->type == ROW_LIST ? &item->value : &item->name);
        if (!ok)
            return false;
    }
    return true;
}

static bool read_collection(struct http_call *x, const struct json *v, bool encoded, struct http_value *ret)
{
    bool object = v->kind == JSON_OBJECT, array = v->kind == JSON_ARRAY;
    if (!(object && (ret->type == ROW_HASH || ret->type == ROW_ZSET)) && !(array && ret->type != ROW_HASH)) {
        http_refuse(x, 400, "bad_value", "The value of a %s must be %s, not %s.", row_type_name(ret->type),
                    ret->type == ROW_HASH ? "an object" : "an array", json_kind_name(v->kind));
        return false;
    }
    size_t n = json_count(v);
    if (n == 0) {
        http_refuse(x, 400, "bad_value", "There is no empty %s: DELETE the key instead.",
                    row_type_name(ret->type));
        return false;
    }
    ret->items = arena_alloc(x->arena, n * sizeof *ret->items);
    return object ? read_members(x, v, encoded, ret) : read_items(x, v, encoded, ret);
}

bool http_type_named(struct slice name, enum row_type *ret)
{
    for (enum row_type t = ROW_STRING; t <= ROW_ZSET; t++) {
        if (slice_eq(name, slice_str(row_type_name(t)))) {
            *ret = t;
            return true;
        }
    }
    return false;
}

/* The members of a document, before the value is looked at: its form depends on the others. */
struct outline {
    struct json value;
    bool has_value, encoded;
    struct slice type;
};

static bool is_word(struct http_call *x, const struct json *v, const char *word)
{
    return v->kind == JSON_STRING && slice_eq(json_string(v, x->arena), slice_str(word));
}

static bool read_outline(struct http_call *x, const struct json *document, struct outline *o,
                         struct http_expiry *expiry)
{
    struct json_walk w;
    struct json v;
    struct slice name;
    json_begin(&w, document);
    while (!x->refusal.status && json_next_member(&w, x->arena, &name, &v)) {
        if (slice_eq(name, SLICE("value"))) {
            o->value = v;
            o->has_value = true;
        } else if (slice_eq(name, SLICE("type"))) {
            o->type = v.kind == JSON_STRING ? json_string(&v, x->arena) : SLICE("?");
        } else if (slice_eq(name, SLICE("encoding"))) {
            o->encoded = is_word(x, &v, "base64");
            if (!o->encoded)
                http_refuse(x, 400, "bad_value", "encoding must be \"base64\", or not be there.");
        } else if (!http_expiry_member(x, name, &v, expiry)) {
            http_refuse(x, 400, "unknown_field",
                        "There is no field \"%.*s\" here: value, type, encoding, ttl, ttl_ms, expire_at.",
                        name.n < 64 ? (int)name.n : 64, name.p);
        }
    }
    return !x->refusal.status;
}

bool http_value_of(struct http_call *x, const struct json *value, struct slice type, bool encoded,
                   struct http_value *ret)
{
    if (!http_type_named(type.p ? type : SLICE("string"), &ret->type)) {
        http_refuse(x, 400, "bad_value", "type must be string, hash, list, set or zset.");
        return false;
    }
    if (!value) {
        http_refuse(x, 400, "missing_field", "A \"value\" is needed.");
        return false;
    }
    return ret->type == ROW_STRING ? http_text(x, value, "value", encoded, &ret->string)
                                   : read_collection(x, value, encoded, ret);
}

bool http_value_read(struct http_call *x, const struct json *document, struct http_value *ret)
{
    struct outline o = {.has_value = false};
    return read_outline(x, document, &o, &ret->expiry) &&
           http_value_of(x, o.has_value ? &o.value : NULL, o.type, o.encoded, ret);
}

/* ---- into rows ---- */

static enum status put_collection(struct call *c, struct slice key, const struct http_value *v,
                                  int64_t expire_at)
{
    struct coll *coll;
    enum status st = coll_replace(c->view, call_db(c), key, v->type, &coll);
    for (size_t i = 0; st == ST_OK && i < v->nitems; i++)
        st = v->type == ROW_LIST ? coll_push(coll, false, v->items[i].value)
                                 : coll_put(coll, &v->items[i], NULL);
    if (st == ST_OK)
        st = coll_save(coll);
    if (st == ST_OK && expire_at != EXPIRE_NEVER)
        st = view_expire(c->view, call_db(c), key, expire_at);
    return st;
}

enum status http_value_put(struct call *c, struct slice key, const struct http_value *v, int64_t expire_at)
{
    return v->type == ROW_STRING ? view_set_string(c->view, call_db(c), key, v->string, expire_at)
                                 : put_collection(c, key, v, expire_at);
}
