/* Finds over an engine, against rows that are filtered and sorted here: every order, both ways, with bounds
   and filters, in pages of any size, without a journal and with one, before and after the commit, while rows
   come and go between two pages. */
#include "base/rand.h"
#include "check.h"
#include "table/text/ddl.h"
#include "table/find_internal.h"
#include "unit/world.h"

#define ROWS 200

struct model {
    struct value values[4];
    bool there;
    int64_t expire_at;
};

static struct {
    struct world w;
    struct rand rand;
    struct catalog *catalog;
    struct rows rows;
    struct model model[ROWS];
    struct arena arena; /* of the model */
} t;

static const char *const schemas[] = {
    "a INTEGER, b TEXT, c INTEGER, d TEXT, PRIMARY KEY (a, b), INDEX x (c, b), UNIQUE INDEX y (c, a, b), "
    "INDEX z (d "
    "DESC)",
    "a INTEGER, b TEXT, c INTEGER, d TEXT, PRIMARY KEY (a DESC, b), INDEX x (c DESC, d), INDEX y (b, d "
    "DESC), INDEX "
    "z (d)",
};

static void begin_call(void)
{
    struct fault fault = {0};
    world_enter(&t.w);
    t.rows = (struct rows){.catalog = t.catalog, .view = t.w.view, .arena = &t.w.arena};
    CHECK_OK(table_open(t.catalog, t.w.view, 0, SLICE("t"), &t.rows.table, &fault), &t.w.err);
    CHECK_EQ(fault.kind, FAULT_NONE);
}

static void next_call(void)
{
    (void)engine_leave(t.w.engine, true);
    begin_call();
}

static void begin(void)
{
    CHECK(world_begin(&t.w));
    begin_call();
}

static void commit(void)
{
    (void)engine_leave(t.w.engine, true);
    CHECK_OK(engine_commit(t.w.engine, NULL, &t.w.err), &t.w.err);
    CHECK_OK(engine_progress(t.w.engine, &t.w.err), &t.w.err);
}

static struct value number(int64_t i)
{
    return (struct value){.kind = VALUE_INT, .i = i};
}

static struct value word(uint64_t n)
{
    static const char *const words[] = {"", "a", "aa", "ab", "b", "Ba", "c\x01", "\xc3\xa9"};
    return (struct value){.kind = VALUE_TEXT, .s = slice_str(words[n % 8])};
}

/* Row i of the model: its key never changes, what else it has is drawn. */
static void draw_row(size_t i)
{
    struct model *m = &t.model[i];
    m->values[0] = number((int64_t)(i / 8) - 5);
    m->values[1] = word(i);
    m->values[2] = rand_below(&t.rand, 6) ? number((int64_t)rand_below(&t.rand, 9)) : (struct value){0};
    m->values[3] = rand_below(&t.rand, 6) ? word(rand_below(&t.rand, 8)) : (struct value){0};
}

static void put_row(size_t i)
{
    struct model *m = &t.model[i];
    static bool all[] = {true, true, true, true};
    struct value values[4];
    enum row_outcome outcome;
    struct fault fault = {0};
    draw_row(i);
    memcpy(values, m->values, sizeof values);
    m->expire_at = rand_below(&t.rand, 10) ? 0 : t.w.now + 1000;
    m->there = true;
    struct row_write write = {.values = values, .given = all, .expire_at = m->expire_at};
    CHECK_OK(rows_put(&t.rows, &write, &outcome, NULL, &fault), &t.w.err);
    CHECK_STR(fault.text, "");
}

static void delete_row(size_t i)
{
    struct buf name = {0};
    struct fault fault = {0};
    enum row_outcome outcome;
    CHECK(rowcode_name(&t.rows.table->schema, t.model[i].values, &name, &fault));
    CHECK_OK(rows_delete(&t.rows, buf_slice(&name), ROW_ALWAYS, 0, &outcome), &t.w.err);
    t.model[i].there = false;
    buf_release(&name);
}

/* ---- finds ---- */

struct drawn {
    struct find find;
    struct value eq[4], values[2];
    struct filter filters[2];
};

static void draw_find(struct drawn *d)
{
    const struct schema *s = &t.rows.table->schema;
    struct rand *r = &t.rand;
    *d = (struct drawn){0};
    struct find *f = &d->find;
    uint64_t which = rand_below(r, s->nindexes + 1);
    f->index = which ? &s->indexes[which - 1] : NULL;
    struct find_order o = find_order_of(s, f->index);
    const struct model *like = &t.model[rand_below(r, ROWS)];
    f->eq = d->eq;
    f->neq = rand_below(r, 3) ? 0 : rand_below(r, o.nparts + 1);
    for (size_t i = 0; i < f->neq; i++)
        d->eq[i] = like->values[o.parts[i].column];
    if (f->neq < o.nparts) {
        uint16_t column = o.parts[f->neq].column;
        const struct value *low = &t.model[rand_below(r, ROWS)].values[column];
        const struct value *high = &t.model[rand_below(r, ROWS)].values[column];
        f->low = (struct bound){low->kind && rand_below(r, 3) == 0, rand_below(r, 2), *low};
        f->high = (struct bound){high->kind && rand_below(r, 3) == 0, rand_below(r, 2), *high};
    }
    f->filters = d->filters;
    f->nfilters = rand_below(r, 3);
    for (size_t i = 0; i < f->nfilters; i++) {
        d->filters[i] = (struct filter){.column = (uint16_t)rand_below(r, 4),
                                        .op = (enum filter_op)rand_below(r, FILTER_NOT_NULL + 1),
                                        .values = &d->values[i],
                                        .nvalues = 1};
        d->values[i] = t.model[rand_below(r, ROWS)].values[d->filters[i].column];
        if (d->filters[i].op == FILTER_LIKE)
            d->values[i] = (struct value){.kind = VALUE_TEXT, .s = SLICE("%A%")};
    }
    f->reverse = rand_below(r, 2);
    f->limit = 1 + (uint32_t)rand_below(r, rand_below(r, 2) ? 5 : 300);
    f->scan = 1 + (uint32_t)rand_below(r, rand_below(r, 4) ? 1000 : 20);
}

static bool in_range(const struct find *f, const struct value *values)
{
    struct find_order o = find_order_of(&t.rows.table->schema, f->index);
    for (size_t i = 0; i < f->neq; i++) {
        if (value_compare(&values[o.parts[i].column], &f->eq[i]) != 0)
            return false;
    }
    if (f->neq == o.nparts || (!f->low.on && !f->high.on))
        return true;
    const struct value *v = &values[o.parts[f->neq].column];
    return v->kind != VALUE_NULL && (!f->low.on || value_compare(v, &f->low.value) >= f->low.exclusive) &&
           (!f->high.on || value_compare(v, &f->high.value) <= -f->high.exclusive);
}

static bool expected(const struct find *f, const struct model *m)
{
    return m->there && (m->expire_at == 0 || m->expire_at > t.w.now) && in_range(f, m->values) &&
           find_filters_meet(f, m->values, NULL);
}

static int compare_parts(struct find_order o, const struct value *x, const struct value *y)
{
    for (size_t i = 0; i < o.nparts; i++) {
        int c = value_compare(&x[o.parts[i].column], &y[o.parts[i].column]);
        if (c)
            return o.parts[i].desc ? -c : c;
    }
    return 0;
}

static int compare_rows(const struct find *f, const struct value *x, const struct value *y)
{
    const struct schema *s = &t.rows.table->schema;
    int c = compare_parts(find_order_of(s, f->index), x, y);
    c = c ? c : compare_parts(find_order_of(s, NULL), x, y);
    return f->reverse ? -c : c;
}

/* ---- pages ---- */

struct seen {
    const struct find *find;
    size_t n;
    size_t rows[4 * ROWS];
    struct value last[4];
};

static size_t model_of(const struct value *values)
{
    for (size_t i = 0; i < ROWS; i++) {
        if (value_compare(&values[0], &t.model[i].values[0]) == 0 &&
            value_compare(&values[1], &t.model[i].values[1]) == 0)
            return i;
    }
    FAIL("a row that was never put");
    return 0;
}

static enum status see(void *arg, const struct table_row *row, struct slice name)
{
    struct seen *x = arg;
    size_t i = model_of(row->values);
    (void)name;
    const struct schema *s = &t.rows.table->schema;
    for (uint16_t k = 0; k < 4; k++) {
        if (!x->find->keys_only || find_holds(s, x->find->index, k))
            CHECK_EQ(value_compare(&row->values[k], &t.model[i].values[k]), 0);
    }
    if (x->n)
        CHECK(compare_rows(x->find, x->last, t.model[i].values) < 0);
    memcpy(x->last, t.model[i].values, sizeof x->last);
    if (x->n < 4 * ROWS)
        x->rows[x->n++] = i;
    return ST_OK;
}

/* From page to page by its token, as a client does. */
static void next_by_token(const struct find *f, struct find_place *place)
{
    struct buf token = {0};
    struct fault fault = {0};
    if (!place->ended) {
        find_token(t.rows.table, f, place, &token);
        CHECK(find_resume(t.rows.table, f, buf_slice(&token), &t.w.arena, place, &fault));
    }
    buf_release(&token);
}

static void check_pages(struct drawn *d)
{
    struct find *f = &d->find;
    struct seen x = {.find = f};
    struct find_place place = {0};
    struct find_result work;
    size_t wanted = 0, pages = 0;
    f->keys_only = rand_below(&t.rand, 4) == 0;
    for (size_t i = 0; i < ROWS; i++)
        wanted += expected(f, &t.model[i]);
    do {
        size_t before = x.n;
        CHECK_OK(find_page(&t.rows, f, &place, see, &x, &work), &t.w.err);
        CHECK_EQ(work.returned, x.n - before);
        CHECK(work.returned <= f->limit && work.scanned <= f->scan);
        if (!place.ended && work.scanned < f->scan) /* then it is the limit, and there is more */
            CHECK(work.returned == f->limit && x.n < wanted);
        next_by_token(f, &place);
    } while (!place.ended && ++pages < 10000);
    CHECK_EQ(x.n, wanted);
    for (size_t i = 0; i < x.n; i++)
        CHECK(expected(f, &t.model[x.rows[i]]));
    uint64_t count;
    place = (struct find_place){0};
    f->scan = UINT32_MAX;
    CHECK_OK(find_count(&t.rows, f, &place, &count, &work), &t.w.err);
    CHECK_EQ(count, wanted);
    CHECK(place.ended);
}

/* Between two pages rows come, go and change: one that stays as it is comes once. */
static void check_churn(void)
{
    struct drawn d;
    draw_find(&d);
    struct find *f = &d.find;
    f->limit = 1 + (uint32_t)rand_below(&t.rand, 9);
    f->scan = 1000;
    struct seen x = {.find = f};
    struct find_place place = {0};
    struct find_result work;
    bool stays[ROWS];
    for (size_t i = 0; i < ROWS; i++)
        stays[i] = expected(f, &t.model[i]);
    do {
        x.find = f;
        size_t from = x.n;
        struct seen page = {.find = f};
        CHECK_OK(find_page(&t.rows, f, &place, see, &page, &work), &t.w.err);
        for (size_t i = 0; i < page.n && x.n < 4 * ROWS; i++)
            x.rows[x.n++] = page.rows[i];
        (void)from;
        next_by_token(f, &place);
        for (int k = 0; k < 3; k++) {
            size_t i = rand_below(&t.rand, ROWS);
            stays[i] = false;
            if (t.model[i].there && rand_below(&t.rand, 2))
                delete_row(i);
            else
                put_row(i);
        }
    } while (!place.ended && x.n < 4 * ROWS);
    for (size_t i = 0; i < ROWS; i++) {
        size_t times = 0;
        for (size_t k = 0; k < x.n; k++)
            times += x.rows[k] == i;
        if (stays[i])
            CHECK_EQ(times, 1);
    }
}

static void run_all(bool journal, const char *schema)
{
    struct schema s;
    struct fault fault = {0};
    memset(&t, 0, sizeof t);
    t.w.journal = journal;
    rand_seed(&t.rand, 14);
    REQUIRE(world_start(&t.w));
    t.catalog = catalog_new();
    REQUIRE(world_begin(&t.w));
    world_enter(&t.w);
    CHECK(ddl_table(slice_str(schema), NULL, &t.arena, &s, &fault));
    CHECK_STR(fault.text, "");
    CHECK_OK(table_create(t.w.view, 0, SLICE("t"), &s, &fault), &t.w.err);
    CHECK_STR(fault.text, "");
    next_call();
    for (size_t i = 0; i < ROWS; i++) {
        draw_row(i);
        if (rand_below(&t.rand, 5))
            put_row(i);
    }
    for (int round = 0; round < 300; round++) {
        struct drawn d;
        next_call();
        draw_find(&d);
        check_pages(&d);
        if (round % 10 == 0) {
            commit();
            if (round == 150)
                world_clock(&t.w, t.w.now + 2000); /* some rows expire */
            begin();
            put_row(rand_below(&t.rand, ROWS));
        }
        if (round % 5 == 0)
            check_churn();
    }
    commit();
    catalog_free(t.catalog);
    arena_release(&t.arena);
    world_end(&t.w);
}

static void finds_in_tables(void)
{
    for (size_t i = 0; i < 2; i++)
        run_all(false, schemas[i]);
}

static void finds_in_memory(void)
{
    for (size_t i = 0; i < 2; i++)
        run_all(true, schemas[i]);
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    RUN(finds_in_tables);
    RUN(finds_in_memory);
    return check_done();
}
