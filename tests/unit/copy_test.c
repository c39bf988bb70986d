/* COPY of every type, through the command's own handler: the copy has the items and the expiry, and a life of
   its own. */
#include "world.h"

#include "base/buf.h"
#include "engine/coll.h"
#include "exec/command.h"
#include "exec/session.h"
#include "proto/resp_reply.h"

struct copier {
    struct world w;
    struct session session;
    struct buf out;
    struct resp_reply reply;
};

static bool start(struct copier *k)
{
    resp_reply_init(&k->reply, &k->out, 2);
    return world_start(&k->w);
}

static void end(struct copier *k)
{
    buf_release(&k->out);
    world_end(&k->w);
}

static void begin(struct copier *k)
{
    CHECK(world_begin(&k->w));
    world_enter(&k->w);
}

static void commit(struct copier *k)
{
    (void)engine_leave(k->w.engine, true);
    CHECK_OK(engine_commit(k->w.engine, NULL, &k->w.err), &k->w.err);
}

/* COPY from to REPLACE DB db */
static void copy(struct copier *k, const char *from, const char *to, const char *db)
{
    struct slice argv[] = {SLICE("copy"),    slice_str(from), slice_str(to),
                           SLICE("replace"), SLICE("db"),     slice_str(db)};
    struct call c = {
        .session = &k->session,
        .cmd = command_find(argv[0]),
        .argv = argv,
        .argc = 6,
        .reply = &k->reply.base,
        .view = k->w.view,
        .arena = &k->w.arena,
        .err = engine_error(k->w.engine),
    };
    k->out.len = 0;
    REQUIRE_OK(c.cmd->fn(&c), c.err);
    CHECK_SLICE(buf_slice(&k->out), SLICE(":1\r\n"));
}

/* Item i of a collection: its name, value and score tell its number. */
static enum status put(struct copier *k, struct coll *c, enum row_type type, int i)
{
    char text[32];
    snprintf(text, sizeof text, "item:%d", i);
    struct slice word = arena_copy(view_arena(k->w.view), slice_str(text));
    if (type == ROW_LIST)
        return coll_push(c, false, word);
    struct coll_item item = {.name = word, .score = i * 0.5};
    if (type == ROW_HASH)
        item.value = word;
    return coll_put(c, &item, NULL);
}

static void fill(struct copier *k, enum row_type type, int items)
{
    struct coll *c;
    begin(k);
    REQUIRE_OK(coll_replace(k->w.view, 0, SLICE("from"), type, &c), engine_error(k->w.engine));
    for (int i = 0; i < items; i++)
        CHECK_OK(put(k, c, type, i), engine_error(k->w.engine));
    CHECK_OK(coll_save(c), engine_error(k->w.engine));
    CHECK_OK(view_expire(k->w.view, 0, SLICE("from"), k->w.now + 1000), engine_error(k->w.engine));
    commit(k);
}

struct walk {
    enum row_type type;
    int64_t n, sum;
};

static enum status count_item(void *arg, const struct coll_item *item)
{
    struct walk *w = arg;
    struct slice word = w->type == ROW_LIST ? item->value : item->name;
    char text[32] = "";
    snprintf(text, sizeof text, "%.*s", (int)word.n, word.p);
    int64_t i = strtoll(text + strlen("item:"), NULL, 10);
    CHECK(w->type != ROW_LIST || i == w->n);
    CHECK(w->type != ROW_ZSET || item->score == (double)i * 0.5);
    CHECK(w->type != ROW_HASH || slice_eq(item->value, item->name));
    w->n++;
    w->sum += i;
    return ST_OK;
}

static void expect(struct copier *k, uint32_t db, const char *key, enum row_type type, int64_t items)
{
    struct coll *c;
    struct walk w = {.type = type};
    const struct row *row;
    bool wrong;
    REQUIRE_OK(view_get(k->w.view, db, slice_str(key), &row), engine_error(k->w.engine));
    REQUIRE(row && row->type == type);
    CHECK_EQ(row->expire_at, k->w.now + 1000);
    REQUIRE_OK(coll_open(k->w.view, db, slice_str(key), type, &c, &wrong), engine_error(k->w.engine));
    CHECK_EQ(coll_size(c), items);
    if (type == ROW_LIST)
        CHECK_OK(coll_range(c, 0, items - 1, false, count_item, &w), engine_error(k->w.engine));
    else
        CHECK_OK(coll_each(c, count_item, &w), engine_error(k->w.engine));
    CHECK_EQ(w.n, items);
    CHECK_EQ(w.sum, items * (items - 1) / 2);
}

static void copy_type(enum row_type type, int items)
{
    struct copier k = {0};
    struct coll *c;
    bool wrong;
    REQUIRE(start(&k));
    fill(&k, type, items);
    begin(&k);
    copy(&k, "from", "to", "0");
    copy(&k, "to", "from", "1");
    commit(&k);
    REQUIRE(world_reopen(&k.w));
    begin(&k);
    expect(&k, 0, "from", type, items);
    expect(&k, 0, "to", type, items);
    expect(&k, 1, "from", type, items);
    REQUIRE_OK(coll_open(k.w.view, 0, SLICE("to"), type, &c, &wrong), engine_error(k.w.engine));
    CHECK_OK(put(&k, c, type, items), engine_error(k.w.engine));
    CHECK_OK(coll_save(c), engine_error(k.w.engine));
    expect(&k, 0, "to", type, items + 1);
    expect(&k, 0, "from", type, items);
    copy(&k, "to", "from", "0");
    expect(&k, 0, "from", type, items + 1);
    CHECK_OK(view_del(k.w.view, 0, SLICE("to"), NULL), engine_error(k.w.engine));
    commit(&k);
    world_sweep(&k.w);
    begin(&k);
    expect(&k, 0, "from", type, items + 1);
    expect(&k, 1, "from", type, items);
    commit(&k);
    end(&k);
}

static void every_type_small_and_large(void)
{
    static const int sizes[] = {1, 100, 6000}; /* the last one does not stay in memory */
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (enum row_type type = ROW_HASH; type <= ROW_ZSET; type++)
            copy_type(type, sizes[i]);
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    RUN(every_type_small_and_large);
    return check_done();
}
