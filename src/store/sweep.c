#include "store/sweep.h"

#include "base/mem.h"

void sweep_begin(struct sweep_tally *t, const struct sweep_budget *b, struct sweep_result *ret)
{
    *t = (struct sweep_tally){.budget = b, .result = ret, .left = b->max_rows};
    t->counted = mem_zalloc((b->ndbs + 1) * sizeof *t->counted);
}

enum status sweep_end(struct sweep_tally *t, const struct sweep_budget *b, enum status st)
{
    if (st != ST_OK)
        *t->result = (struct sweep_result){0};
    for (size_t i = 0; st == ST_OK && i < b->ndbs; i++) {
        b->dbs[i].keys -= t->counted[i];
        b->dbs[i].expires -= t->counted[i];
    }
    mem_free(t->counted);
    return st;
}

void sweep_spend(struct sweep_tally *t, uint64_t rows)
{
    t->left = rows < t->left ? t->left - (uint32_t)rows : 0;
}

/* The place in budget->dbs of a database in use, or -1. */
static long db_in_use(const struct sweep_budget *b, int64_t number)
{
    for (size_t i = 0; i < b->ndbs; i++)
        if (b->dbs[i].number == number)
            return (long)i;
    return -1;
}

enum status sweep_take(struct sweep_tally *t, const struct key_row *k)
{
    long db = db_in_use(t->budget, k->db);
    if (db < 0 || k->expire_at < 0) {
        t->result->deleted++;
    } else {
        t->result->expired++;
        t->counted[db]++;
    }
    bool known = db >= 0 || k->db == STORE_HIDDEN_DB;
    return known && t->budget->fn ? t->budget->fn(t->budget->arg, k) : ST_OK;
}

enum status sweep_check_flushed(const struct sweep_tally *t, int64_t number, struct error *err)
{
    if (db_in_use(t->budget, number) < 0 && number != STORE_HIDDEN_DB)
        return ST_OK;
    return error_set(err, ST_CORRUPT, "database number %lld is in use and in larder_trash",
                     (long long)number);
}
