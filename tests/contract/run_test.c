/* Positions of a store that one process has for itself, behind restarts of every kind. */
#include <signal.h>
#include <time.h>

#include "base/clock.h"
#include "fixture.h"
#include "store/deferred.h"
#include "store/replicated.h"

static const struct journal_options journal = {
    .max_bytes = 1 << 20, .lag_ms = 1000, .few_rows = 100, .lock_ms = 1000, .away_ms = 1000};

static struct store *open_with(enum durability d)
{
    struct store_options o = options();
    struct store *s = NULL;
    struct error err;
    o.url = alone_url();
    o.durability = d;
    CHECK_OK(journal_store_open(&o, &journal, &s, &err), &err);
    if (!s)
        exit(EXIT_FAILURE);
    return s;
}

static struct position write_key(struct store *s, const char *name)
{
    struct error err;
    struct position at = {0};
    struct key_row k = {
        .db = 0, .key = slice_str(name), .type = ROW_STRING, .version = 1, .value = SLICE("v")};
    struct changes c = {.keys = &k, .nkeys = 1};
    CHECK_OK(store_begin(s, STORE_WRITE, NULL, NULL, &err), &err);
    CHECK_OK(store_apply(s, &c, &err), &err);
    CHECK_OK(store_commit(s, &err), &err);
    s->replicated->seen(s, &at);
    return at;
}

static enum status count_row(void *arg, const struct key_row *k)
{
    (void)k;
    ++*(int *)arg;
    return ST_OK;
}

static bool has_key(struct store *s, const char *name)
{
    struct error err;
    int found = 0;
    struct key_ref ref = {0, slice_str(name)};
    CHECK_OK(store_begin(s, STORE_READ, NULL, NULL, &err), &err);
    CHECK_OK(store_get_keys(s, &ref, 1, count_row, &found, &err), &err);
    store_rollback(s);
    return found == 1;
}

static enum lineage judged(struct store *s, struct position p)
{
    struct error err;
    enum lineage ret = LINEAGE_FOREIGN;
    CHECK_OK(s->replicated->judge(s, &p, &ret, &err), &err);
    return ret;
}

static void numbers_go_on(void)
{
    struct store *s = open_with(DURABILITY_ALWAYS);
    struct position first = write_key(s, "a"), second = write_key(s, "b");
    CHECK_EQ(first.kind, POSITION_SEQUENCE);
    CHECK_EQ(second.number, first.number + 1);
    CHECK(position_reached(&second, &first));
    CHECK(!position_reached(&first, &second));
    store_close(s);

    s = open_with(DURABILITY_EVERYSEC);
    CHECK_EQ(judged(s, first), LINEAGE_SAME);
    CHECK_EQ(judged(s, second), LINEAGE_SAME);
    struct position third = write_key(s, "c");
    CHECK_EQ(third.number, second.number + 1);
    CHECK(third.timeline != second.timeline);
    struct position beyond = second;
    beyond.number++;
    CHECK_EQ(judged(s, beyond), LINEAGE_LOST); /* the run has never come there */
    beyond = second;
    beyond.timeline ^= 1;
    CHECK_EQ(judged(s, beyond), LINEAGE_LOST);
    beyond = second;
    beyond.database++;
    CHECK_EQ(judged(s, beyond), LINEAGE_FOREIGN);
    beyond = second;
    beyond.kind = POSITION_LSN;
    CHECK_EQ(judged(s, beyond), LINEAGE_FOREIGN);
    CHECK_EQ(judged(s, (struct position){0}), LINEAGE_SAME);
    store_close(s);
}

/* A server that is killed: what it has told is written into a pipe. Returns how many keys that were. */
static int killed(enum durability first, enum durability second, useconds_t after_us,
                  struct position told[64])
{
    int fds[2], n = 0;
    CHECK_EQ(pipe(fds), 0);
    pid_t child = fork();
    if (child == 0) {
        struct store *s = open_with(first);
        struct store_progress progress;
        struct error err;
        char name[24];
        for (int i = 0; i < 64; i++) {
            if (i == 8 && second != first)
                CHECK_OK(store_set_durability(s, second, &err), &err);
            snprintf(name, sizeof name, "key %d", i);
            struct position p = write_key(s, name);
            do /* a reply leaves when the store says so */
                CHECK_OK(store_progress(s, &progress, &err), &err);
            while (progress.durable < store_last_ticket(s));
            if (write(fds[1], &p, sizeof p) != sizeof p)
                _exit(EXIT_FAILURE);
            if (i == 40)
                usleep(after_us);
        }
        kill(getpid(), SIGKILL);
    }
    close(fds[1]);
    while (n < 64 && read(fds[0], &told[n], sizeof told[0]) == sizeof told[0])
        n++;
    close(fds[0]);
    CHECK_EQ(waitpid(child, NULL, 0), child);
    return n;
}

/* Each key whose position counts as kept is there, and no other. */
static int kept(int n, const struct position told[64])
{
    struct store *s = open_with(DURABILITY_ALWAYS);
    int lost = 0;
    char name[24];
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "key %d", i);
        bool there = has_key(s, name);
        CHECK_EQ(judged(s, told[i]), there ? LINEAGE_SAME : LINEAGE_LOST);
        lost += !there;
    }
    store_close(s);
    return lost;
}

static void what_a_crash_has_taken_is_told(void)
{
    struct position told[64];
    int lost = 0;
    for (useconds_t us = 0; us <= 160000; us += 40000) {
        new_place();
        int n = killed(DURABILITY_EVERYSEC, DURABILITY_EVERYSEC, us, told);
        CHECK_EQ(n, 64);
        lost += kept(n, told);
    }
    CHECK(lost > 0);
    new_place();
    CHECK_EQ(kept(killed(DURABILITY_ALWAYS, DURABILITY_ALWAYS, 0, told), told), 0);
    new_place(); /* changed while it runs, in both directions */
    (void)kept(killed(DURABILITY_ALWAYS, DURABILITY_OFF, 0, told), told);
    new_place();
    CHECK_EQ(kept(killed(DURABILITY_OFF, DURABILITY_ALWAYS, 0, told), told), 0);
}

/* Of a file that was copied before, and brought back. */
static void what_a_copy_does_not_have_is_lost(void)
{
    char command[512];
    if (server_url())
        return;
    struct store *s = open_with(DURABILITY_ALWAYS);
    struct position before = write_key(s, "a");
    store_close(s);
    snprintf(command, sizeof command, "cp %s %s.copy", place.path, place.path);
    CHECK_EQ(system(command), 0);
    s = open_with(DURABILITY_ALWAYS);
    struct position after = write_key(s, "b");
    store_close(s);
    snprintf(command, sizeof command, "mv %s.copy %s", place.path, place.path);
    CHECK_EQ(system(command), 0);
    s = open_with(DURABILITY_ALWAYS);
    for (int i = 0; i < 10; i++)
        write_key(s, "c");
    CHECK_EQ(judged(s, before), LINEAGE_SAME);
    CHECK_EQ(judged(s, after), LINEAGE_LOST);
    store_close(s);
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    IN_NEW_PLACE(numbers_go_on);
    IN_NEW_PLACE(what_a_crash_has_taken_is_told);
    IN_NEW_PLACE(what_a_copy_does_not_have_is_lost);
    return check_done();
}
