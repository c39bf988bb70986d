#include "script/rows.h"

#include "base/num.h"
#include "engine/coll.h"

#define SHA_CHARS 40

static enum status get(struct view *v, enum hidden_row r, struct slice name, struct arena *arena,
                       bool *ret_found, struct slice *ret)
{
    struct slice value;
    enum status st = view_hidden_field(v, r, name, ret_found, &value);
    if (st == ST_OK && *ret_found)
        *ret = arena_copy(arena, value);
    return st;
}

static enum status put(struct view *v, enum hidden_row r, struct slice name, struct slice value)
{
    struct coll *c = NULL;
    struct coll_item item = {.name = arena_copy(view_arena(v), name),
                             .value = arena_copy(view_arena(v), value)};
    enum status st = view_hold(v, r);
    if (st == ST_OK)
        st = view_hidden_hash(v, r, true, &c);
    if (st == ST_OK)
        st = coll_put(c, &item, NULL);
    return st == ST_OK ? coll_save(c) : st;
}

/* ---- libraries ---- */

enum status rows_stamp(struct view *v, struct hidden_stamp *ret)
{
    return view_stamp(v, HIDDEN_LIBRARIES, ret);
}

struct walk {
    rows_library_fn *fn;
    void *arg;
};

static enum status pass_library(void *arg, const struct coll_item *item)
{
    struct walk *w = arg;
    return w->fn(w->arg, item->name, item->value);
}

enum status rows_each_library(struct view *v, rows_library_fn *fn, void *arg)
{
    struct coll *c;
    struct walk w = {fn, arg};
    enum status st = view_hidden_hash(v, HIDDEN_LIBRARIES, false, &c);
    return st == ST_OK && c ? coll_each(c, pass_library, &w) : st;
}

enum status rows_get_library(struct view *v, struct slice name, struct arena *arena, bool *ret_found,
                             struct slice *ret_code)
{
    return get(v, HIDDEN_LIBRARIES, name, arena, ret_found, ret_code);
}

enum status rows_put_library(struct view *v, struct slice name, struct slice code)
{
    return put(v, HIDDEN_LIBRARIES, name, code);
}

enum status rows_delete_library(struct view *v, struct slice name, bool *ret_existed)
{
    struct coll *c = NULL;
    *ret_existed = false;
    enum status st = view_hold(v, HIDDEN_LIBRARIES);
    if (st == ST_OK)
        st = view_hidden_hash(v, HIDDEN_LIBRARIES, false, &c);
    if (st != ST_OK || !c)
        return st;
    st = coll_remove(c, name, ret_existed);
    return st == ST_OK ? coll_save(c) : st;
}

static enum status remove_row(struct view *v, enum hidden_row r)
{
    enum status st = view_hold(v, r);
    return st == ST_OK ? view_del(v, view_hidden_db(v), hidden_name(r), NULL) : st;
}

enum status rows_flush_libraries(struct view *v)
{
    return remove_row(v, HIDDEN_LIBRARIES);
}

/* ---- scripts ---- */

enum status rows_flushes(struct view *v, int64_t *ret)
{
    struct hidden_stamp s;
    enum status st = view_stamp(v, HIDDEN_FLUSHES, &s);
    if (st == ST_OK)
        *ret = s.version;
    return st;
}

/* The name of a script's field; false: no script has such a sha. */
static bool name_of(struct slice sha, char out[SHA_CHARS], struct slice *ret)
{
    if (sha.n != SHA_CHARS)
        return false;
    for (size_t i = 0; i < SHA_CHARS; i++)
        out[i] = (char)(sha.p[i] >= 'A' && sha.p[i] <= 'Z' ? sha.p[i] + 'a' - 'A' : sha.p[i]);
    *ret = slice_of(out, SHA_CHARS);
    return true;
}

enum status rows_get_script(struct view *v, struct slice sha, struct arena *arena, bool *ret_found,
                            struct slice *ret_body)
{
    char lower[SHA_CHARS];
    struct slice name;
    *ret_found = false;
    return name_of(sha, lower, &name) ? get(v, HIDDEN_SCRIPTS, name, arena, ret_found, ret_body) : ST_OK;
}

enum status rows_has_script(struct view *v, struct slice sha, bool *ret)
{
    char lower[SHA_CHARS];
    struct slice name, value;
    *ret = false;
    return name_of(sha, lower, &name) ? view_hidden_field(v, HIDDEN_SCRIPTS, name, ret, &value) : ST_OK;
}

enum status rows_put_script(struct view *v, struct slice sha, struct slice body)
{
    bool known;
    enum status st = rows_has_script(v, sha, &known);
    return st != ST_OK || known ? st : put(v, HIDDEN_SCRIPTS, sha, body);
}

/* Also where no row is: what processes know from EVAL goes by the count. */
enum status rows_flush_scripts(struct view *v)
{
    const struct row *r;
    int64_t n = 0;
    char text[NUM_I64_CHARS];
    enum status st = remove_row(v, HIDDEN_SCRIPTS);
    if (st == ST_OK)
        st = view_hold(v, HIDDEN_FLUSHES);
    if (st == ST_OK)
        st = view_get(v, view_hidden_db(v), hidden_name(HIDDEN_FLUSHES), &r);
    if (st != ST_OK)
        return st;
    if (r && r->type == ROW_STRING && !num_parse_i64(row_value(r), &n))
        n = 0;
    struct slice value = arena_copy(view_arena(v), slice_of(text, num_format_i64(text, n + 1)));
    return view_set_string(v, view_hidden_db(v), hidden_name(HIDDEN_FLUSHES), value, EXPIRE_NEVER);
}
