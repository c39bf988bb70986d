#include "journal/journal.h"

#include "journal/jstore.h"

enum status journal_replay(struct store *s, const char *url, struct error *err)
{
    struct jpast past;
    return jrecover(s, url, &past, err);
}

enum status journal_store_open(const struct store_options *o, const struct journal_options *j,
                               struct store **ret, struct error *err)
{
    struct store *reader = NULL, *writer = NULL;
    struct store_options half = *o;
    struct jpast past = {0};
    half.page_cache /= 2;
    half.journaled = true;
    half.replay = journal_replay;
    enum status st = store_open(&half, &writer, err);
    if (st == ST_OK)
        st = jrecover_or_keep(writer, o->url, &past, err);
    half.read_only = true;
    half.beside = writer;
    if (st == ST_OK)
        st = store_open(&half, &reader, err);
    if (st == ST_OK)
        return jstore_open(reader, writer, &past, o, j, ret, err);
    memtable_free(past.mem);
    store_close(writer);
    return st;
}
