/* The redo log and the loss of power: a client appends, syncs and applies; files, names and syncs behave as
   badly as power_disk.h has it; behind each call of the log's to the disk the power may go, and what a start
   would then find is read. Each record names the one before it, so that what is found proves itself:

     - the log is read to its end, and never called damaged;
     - its records are a piece of history that begins where the tables end: nothing is missing in between, and
       nothing that failed comes back behind what replaced it;
     - whatever a synced append has acknowledged is in it, or in the tables.

   Each run has several lives: a program that ends, or a disk that loses power, then a start. What the checks
   are worth is shown by logs that lack a sync, or read without looking at who belongs to whom: they must be
   caught. */
#include "power_disk.h"

#include "base/crc32c.h"
#include "base/mem.h"

#define PATH "/x/d"

/* ---- records whose belonging is not looked at ---- */

/* The log's own functions of record.c, behind ours: the linker takes these. */
#define redo_frame_decode decode_frame
#define redo_frame_verify verify_frame
bool decode_frame(const unsigned char p[REDO_RECORD_BYTES], struct redo_frame *ret);
bool verify_frame(const unsigned char p[REDO_RECORD_BYTES], const struct redo_frame *f, struct slice payload);
#include "../../src/redo/record.c"
#undef redo_frame_decode
#undef redo_frame_verify

static bool ignore_chain, ignore_number, ignore_from;

/* The head of the segment that is being read: the last that was opened. */
static struct redo_head read_head;

bool redo_frame_decode(const unsigned char p[REDO_RECORD_BYTES], struct redo_frame *ret)
{
    if (!decode_frame(p, ret))
        return false;
    if (ignore_number) {
        ret->number = read_head.number;
        ret->epoch = read_head.epoch;
    }
    if (ignore_chain)
        ret->before = ret->crc = read_head.crc;
    return true;
}

bool redo_frame_verify(const unsigned char p[REDO_RECORD_BYTES], const struct redo_frame *f,
                       struct slice payload)
{
    (void)f;
    struct redo_frame own;
    return decode_frame(p, &own) && verify_frame(p, &own, payload);
}

/* The last seq of the records at the begin of a segment; 0: none. */
static int64_t last_of(uint64_t number)
{
    char name[REDO_NAME_BYTES];
    redo_segment_name(PATH, number, name);
    struct sim_name *n = sim_find(name, false);
    if (!n || n->now < 0)
        return 0;
    const struct sim_file *f = &sim.disk->files[n->now];
    int64_t last = 0;
    struct redo_frame r;
    for (uint64_t at = REDO_BLOCK; at < f->size && decode_frame(f->now + at, &r) && r.number == number &&
                                   at + REDO_RECORD_BYTES + r.length <= f->size;
         at += redo_round_up((uint64_t)REDO_RECORD_BYTES + r.length)) {
        if (!verify_frame(f->now + at, &r, slice_of(f->now + at + REDO_RECORD_BYTES, r.length)))
            break;
        last = r.seq;
    }
    return last;
}

/* A head that voids nothing of the segment before it. */
static void raise_from(struct redo_head *h, unsigned char block[REDO_BLOCK])
{
    int64_t last = last_of(h->number - 1);
    if (last >= h->from)
        h->from = last + 1;
    redo_head_encode(h, block);
}

static int open_and_note(const char *path, enum redo_open_mode mode)
{
    int fd = sim_open(path, mode);
    struct error err;
    unsigned char block[REDO_BLOCK];
    if (fd >= 0 && mode == REDO_OPEN_READ &&
        redo_head_decode(sim.disk->files[fd].now, REDO_BLOCK, path, &read_head, &err) == ST_OK && ignore_from)
        raise_from(&read_head, block);
    return fd;
}

static ssize_t read_and_raise(int fd, void *p, size_t n, uint64_t at)
{
    ssize_t got = sim_read(fd, p, n, at);
    struct redo_head h;
    struct error err;
    if (ignore_from && at == 0 && got == (ssize_t)REDO_BLOCK &&
        redo_head_decode(p, REDO_BLOCK, "", &h, &err) == ST_OK)
        raise_from(&h, p);
    return got;
}

/* ---- the client ---- */

struct version {
    int64_t seq;
    uint32_t nth; /* of all attempts */
};

struct content {
    struct version self, before;
};

static struct {
    struct redo *log;
    struct redo_id meta; /* what larder_meta has */
    struct version last, durable, tables;
    struct content since[64]; /* behind durable, what was appended without a sync */
    int n_since;
    uint32_t attempts;
    unsigned char ids;
    bool broken; /* what was found is not what must be there */
    long probes, lives;
    char why[400];
} w;

static bool same(struct version a, struct version b)
{
    return a.seq == b.seq && a.nth == b.nth;
}

struct found {
    struct version at; /* the last that was read */
    bool durable;      /* what is durable was seen */
    bool wrong;
};

static enum status check_record(void *arg, const struct redo_record *rec)
{
    struct found *f = arg;
    struct content c;
    if (rec->payload.n < sizeof c) {
        f->wrong = true;
        return ST_OK;
    }
    memcpy(&c, rec->payload.p, sizeof c);
    f->wrong = f->wrong || c.self.seq != rec->seq || !same(c.before, f->at);
    for (size_t i = sizeof c; i < rec->payload.n && !f->wrong; i++)
        f->wrong = rec->payload.p[i] != (char)(c.self.nth + i);
    f->at = c.self;
    f->durable = f->durable || same(f->at, w.durable);
    return ST_OK;
}

static void complain(const char *what, const struct error *err, struct version at)
{
    if (!w.broken)
        snprintf(w.why, sizeof w.why, "%s: %s; tables %lld, durable %lld (%u), found %lld (%u), last %lld",
                 what, err ? err->text : "", (long long)w.tables.seq, (long long)w.durable.seq, w.durable.nth,
                 (long long)at.seq, at.nth, (long long)w.last.seq);
    w.broken = true;
}

/* Reads the disk in use as a start does. */
static struct version check_disk(void)
{
    struct found f = {.at = w.tables, .durable = w.durable.seq <= w.tables.seq};
    struct redo_found there;
    struct error err = {0};
    w.probes++;
    enum status st = redo_find(PATH, &w.meta, &there, &err);
    if (st == ST_OK)
        st = redo_each(PATH, &w.meta, w.tables.seq, check_record, &f, &err);
    if (st != ST_OK)
        complain("a log that lost power is not damaged", &err, f.at);
    else if (f.wrong)
        complain("a record does not follow the one before it", NULL, f.at);
    else if (!f.durable)
        complain("an acknowledged record is missing", NULL, f.at);
    else if (there.tables > w.tables.seq || (there.last > w.tables.seq && there.last != f.at.seq))
        complain("redo_find tells something else", NULL, f.at);
    return f.at;
}

static int one_in; /* so many calls the power goes */

static struct sim_disk sim_probe;

static void probe(void)
{
    if (w.broken || sim_roll(one_in) != 0)
        return;
    sim_lose_power(&sim_real, &sim_probe);
    sim.disk = &sim_probe;
    (void)check_disk();
    sim.disk = &sim_real;
}

/* ---- what it does ---- */

static enum status append(const struct content *c, bool sync)
{
    static unsigned char bytes[40000];
    size_t n = sizeof *c + (size_t)(sim_roll(8)   ? sim_roll(300)
                                    : sim_roll(8) ? sim_roll(9000)
                                                  : sim_roll(30000));
    memcpy(bytes, c, sizeof *c);
    for (size_t i = sizeof *c; i < n; i++)
        bytes[i] = (unsigned char)(c->self.nth + i);
    struct error err;
    return redo_append(w.log, REDO_GROUP, c->self.seq, slice_of(bytes, n), sync, &err);
}

static void became_durable(void)
{
    w.durable = w.last;
    w.n_since = 0;
}

/* What was appended and is not durable is void: it is brought into the tables, or appended again. */
static bool make_good(void)
{
    struct error err;
    if (w.n_since && sim_roll(2)) {
        w.tables = w.durable = w.last;
        w.n_since = 0;
        return redo_applied(w.log, w.tables.seq, &err) == ST_OK;
    }
    for (int i = 0; i < w.n_since; i++)
        if (append(&w.since[i], false) != ST_OK)
            return false;
    return true;
}

static void do_append(void)
{
    bool sync = w.n_since == 60 || sim_roll(3) > 0;
    struct content c = {.self = {w.last.seq + 1 + sim_roll(sim_roll(4) ? 3 : 40), ++w.attempts},
                        .before = w.last};
    enum status st = append(&c, sync);
    if (st == ST_OK) {
        w.last = c.self;
        w.since[w.n_since++] = c;
        if (sync)
            became_durable();
    } else if (st == ST_UNKNOWN || st == ST_LOST || w.n_since) {
        (void)make_good();
    }
}

static void do_sync(void)
{
    struct error err;
    if (redo_sync(w.log, &err) == ST_OK)
        became_durable();
    else
        (void)make_good();
}

static void do_apply(void)
{
    struct error err;
    if (w.n_since)
        do_sync();
    if (w.n_since || w.durable.seq <= w.tables.seq)
        return;
    w.tables = w.durable;
    (void)!redo_applied(w.log, w.tables.seq, &err);
}

static void do_prepare(void)
{
    struct error err;
    bool more = true;
    while (more && redo_prepare(w.log, &more, &err) == ST_OK)
        ;
}

/* A start: what is there counts, and a new epoch begins behind it. */
static bool begin_life(void)
{
    struct error err;
    w.last = check_disk();
    w.n_since = 0;
    /* What was read is not acknowledged anew before the log is open. */
    struct redo_options o = {.path = PATH,
                             .old = w.meta,
                             .from = w.last.seq + 1,
                             .tables = w.tables.seq,
                             .segment_bytes = REDO_BLOCK * (uint64_t)(2 + sim_roll(5)),
                             .keep_bytes = REDO_BLOCK * (uint64_t)sim_roll(20)};
    o.id.bytes[0] = ++w.ids;
    enum status st = redo_open(&o, &w.log, &err);
    if (st != ST_OK)
        return false;
    if (sim_roll(8) == 0 && sim.dies_at) /* larder_meta does not get to know */
        return false;
    w.meta = o.id;
    w.durable = w.last;
    return true;
}

static void live(int steps)
{
    w.lives++;
    sim.calls = 0;
    sim.dies_at = sim_roll(4) ? 1 + sim_roll(120) : 0;
    if (begin_life())
        for (int i = 0; i < steps && !w.broken && !(sim.dies_at && sim.calls >= sim.dies_at); i++) {
            int what = sim_roll(10);
            if (what < 6)
                do_append();
            else if (what < 7)
                do_sync();
            else if (what < 8)
                do_apply();
            else
                do_prepare();
        }
    /* The program ends with its memory; files that it had open are closed, nothing else is done. */
    struct error err;
    sim.calls = sim.dies_at = 1;
    if (w.log)
        (void)!redo_close(w.log, false, &err);
    w.log = NULL;
    sim.dies_at = 0;
    if (sim_roll(3) == 0)
        return; /* the machine goes on */
    sim_lose_power(&sim_real, &sim_probe);
    sim_real = sim_probe;
}

static const struct sim_failures no_failures;
static bool draw_failures; /* each run has rates of its own */

static int draw_rate(void)
{
    static const int rates[] = {0, 0, 3, 6, 12, 25};
    return rates[sim_roll(6)];
}

static bool run(uint64_t seed, int lives)
{
    memset(&w, 0, offsetof(__typeof__(w), probes));
    rand_seed(&sim.dice, seed);
    memset(&sim_real.names, 0, sizeof sim_real.names);
    sim_real.n = 0;
    for (int i = 0; i < FILES; i++)
        sim_real.files[i].opened = 0;
    sim.disk = &sim_real;
    if (draw_failures)
        sim.fails = (struct sim_failures){draw_rate(), draw_rate(), draw_rate(),
                                          draw_rate(), draw_rate(), draw_rate()};
    for (int i = 0; i < lives && !w.broken; i++)
        live(4 + sim_roll(30));
    return !w.broken;
}

/* ---- tests ---- */

/* In `make crash-long` there are more of them. */
static void run_all(int runs)
{
    static char context[500];
    const char *times = getenv("LARDER_REDO_TIMES");
    runs *= times ? atoi(times) : 1;
    w.probes = w.lives = 0;
    for (int seed = 1; seed <= runs; seed++)
        if (!run((uint64_t)seed, 4)) {
            snprintf(context, sizeof context, "seed %d: %s", seed, w.why);
            check.context = context;
            FAIL("what power loss leaves");
            return;
        }
    printf("%ld states after a loss of power, %ld starts\n", w.probes, w.lives);
}

static void keeps_what_it_acknowledged(void)
{
    one_in = 2;
    run_all(500);
}

static void keeps_it_when_calls_fail(void)
{
    sim.fails = (struct sim_failures){.sync = 9, .write = 15};
    run_all(500);
    sim.fails = no_failures;
}

static void keeps_it_when_a_folder_is_not_synced(void)
{
    sim.fails.folder = 5;
    run_all(500);
    sim.fails = no_failures;
}

/* A spare segment that stays, and may have a segment's name again. */
static void keeps_it_when_names_stay(void)
{
    sim.fails = (struct sim_failures){.folder = 5, .unlink = 3};
    run_all(600);
    sim.fails = no_failures;
}

static void keeps_it_whatever_fails(void)
{
    draw_failures = true;
    run_all(1000);
    draw_failures = false;
    sim.fails = no_failures;
}

static void is_told_apart_by_the_chain_alone(void)
{
    ignore_number = true;
    run_all(200);
    ignore_number = false;
    ignore_chain = true;
    run_all(200);
    ignore_chain = false;
}

static void expect_caught(const char *what)
{
    for (int seed = 1; seed <= 3000; seed++)
        if (!run((uint64_t)seed, 4)) {
            printf("without %s: caught at seed %d (%s)\n", what, seed, w.why);
            return;
        }
    check.context = what;
    FAIL("a log that lacks it must be caught");
    check.context = NULL;
}

static void catches_a_log_without(void)
{
    static const char *const names[] = {"", "the sync of records", "the sync of heads",
                                        "the sync of the folder", "the end of an epoch when a sync fails"};
    for (int left_out = NO_RECORD_SYNC; left_out <= SYNC_FORGIVEN; left_out++) {
        sim.left_out = (enum sim_left_out)left_out;
        sim.fails.sync = left_out == SYNC_FORGIVEN ? 9 : 0;
        expect_caught(names[left_out]);
    }
    sim.left_out = ALL_SYNCED;
    sim.fails.sync = 9;
    ignore_chain = ignore_number = true;
    expect_caught("the chain of records and their number");
    ignore_number = false;
    ignore_from = true;
    expect_caught("a look at what an epoch voids");
    ignore_chain = ignore_from = false;
    sim.fails = no_failures;
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    static struct redo_files files;
    files = sim_files;
    files.open = open_and_note;
    files.read = read_and_raise;
    redo_files = &files;
    sim.behind = probe;
    one_in = 2;
    RUN(keeps_what_it_acknowledged);
    RUN(keeps_it_when_calls_fail);
    RUN(keeps_it_when_a_folder_is_not_synced);
    RUN(keeps_it_when_names_stay);
    RUN(keeps_it_whatever_fails);
    RUN(is_told_apart_by_the_chain_alone);
    RUN(catches_a_log_without);
    return check_done();
}
