#include "script/library.h"

#include <ctype.h>
#include <strings.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/vec.h"
#include "base/words.h"
#include "exec/executor.h"
#include "script/load.h"
#include "script/rows.h"
#include "script/scripts.h"

static const char bad_name[] = "ERR " LIBRARY_BAD_NAME;

/* ---- one library ---- */

bool library_name_is_valid(struct slice name)
{
    for (size_t i = 0; i < name.n; i++)
        if (!isalnum((unsigned char)name.p[i]) && name.p[i] != '_')
            return false;
    return name.n > 0;
}

static struct slice copy(struct slice s)
{
    return slice_of(mem_strndup(s), s.n);
}

static struct library *library_new(struct slice name, struct slice code)
{
    struct library *lib = mem_zalloc(sizeof *lib);
    lib->name = copy(name);
    lib->code = copy(code);
    return lib;
}

static void free_copy(struct slice s)
{
    union {
        const char *borrowed;
        char *own;
    } p = {s.p};
    mem_free(p.own);
}

/* Its functions are in no map. */
static void library_free(struct libraries *ls, struct library *lib)
{
    for (size_t i = 0; i < lib->nfunctions; i++) {
        struct function *f = lib->functions[i];
        interp_forget(ls->in, f->ref);
        mem_free(f->name);
        free_copy(f->description);
        mem_free(f);
    }
    mem_free(lib->functions);
    mem_free(lib->broken);
    free_copy(lib->name);
    free_copy(lib->code);
    mem_free(lib);
}

static const struct function *find_in(const struct library *lib, const char *name)
{
    for (size_t i = 0; i < lib->nfunctions; i++)
        if (strcasecmp(lib->functions[i]->name, name) == 0)
            return lib->functions[i];
    return NULL;
}

bool library_add(struct library *lib, struct slice name, uint32_t flags, int ref,
                 const struct slice *description)
{
    char *own = mem_strndup(name);
    if (find_in(lib, own)) {
        mem_free(own);
        return false;
    }
    struct function *f = mem_zalloc(sizeof *f);
    *f = (struct function){.library = lib, .name = own, .flags = flags, .ref = ref};
    if (description) {
        f->described = true;
        f->description = copy(*description);
    }
    VEC_PUSH(lib->functions, lib->nfunctions, lib->functions_cap) = f;
    return true;
}

const struct function *library_clash(const struct library *one, const struct library *other)
{
    for (size_t i = 0; i < one->nfunctions; i++)
        if (find_in(other, one->functions[i]->name))
            return one->functions[i];
    return NULL;
}

/* ---- the first line ---- */

static bool starts_with_name(struct slice word)
{
    return word.n >= 5 && strncasecmp(word.p, "name=", 5) == 0;
}

/* The words of the line, in Redis' order of checks. */
static bool take_words(const struct slice *words, int n, struct library_head *ret, struct buf *err)
{
    bool named = false;
    ret->engine = slice_of(words[0].p + 2, words[0].n - 2);
    for (int i = 1; i < n; i++) {
        if (!starts_with_name(words[i])) {
            buf_addf(err, "ERR Invalid metadata value given: %.*s", (int)words[i].n, words[i].p);
            return false;
        }
        if (named) {
            buf_addf(err, "ERR Invalid metadata value, name argument was given multiple times");
            return false;
        }
        named = true;
        ret->name = slice_of(words[i].p + 5, words[i].n - 5);
    }
    if (!named)
        buf_addf(err, "ERR Library name was not given");
    else if (!library_name_is_valid(ret->name))
        buf_addf(err, "%s", bad_name);
    else if (!slice_is(ret->engine, "lua"))
        buf_addf(err, "ERR Engine '%.*s' not found", (int)ret->engine.n, ret->engine.p);
    return err->len == 0;
}

bool library_parse(struct slice text, struct arena *arena, struct library_head *ret, struct buf *err)
{
    struct slice *words;
    int n;
    *ret = (struct library_head){0};
    if (text.n < 2 || memcmp(text.p, "#!", 2) != 0) {
        buf_addf(err, "ERR Missing library metadata");
        return false;
    }
    const char *end = memchr(text.p, '\n', text.n), *nul = memchr(text.p, '\0', text.n);
    if (!end || (nul && nul < end) ||
        !words_split(slice_of(text.p, (size_t)(end - text.p)), arena, &words, &n) || n == 0 ||
        words[0].n < 2) {
        buf_addf(err, "ERR Invalid library metadata");
        return false;
    }
    ret->code = slice_of(end, (size_t)(text.p + text.n - end));
    return take_words(words, n, ret, err);
}

/* ---- the set ---- */

static uint32_t hash_of(struct slice function)
{
    char lower[64];
    uint64_t hash = 0;
    for (size_t i = 0; i < function.n; i += sizeof lower) {
        size_t n = function.n - i < sizeof lower ? function.n - i : sizeof lower;
        for (size_t k = 0; k < n; k++)
            lower[k] = (char)tolower((unsigned char)function.p[i + k]);
        hash = hash_bytes(slice_of(lower, n), hash);
    }
    return (uint32_t)hash;
}

struct function *libraries_find(const struct libraries *ls, struct slice function)
{
    uint32_t hash = hash_of(function);
    for (struct map_link *l = map_first(&ls->functions, hash); l; l = l->next) {
        struct function *f = (struct function *)l;
        if (l->hash == hash && slice_is(function, f->name))
            return f;
    }
    return NULL;
}

struct library *libraries_named(const struct libraries *ls, struct slice library)
{
    for (size_t i = 0; i < ls->n; i++)
        if (ls->all[i]->current && slice_eq(ls->all[i]->name, library))
            return ls->all[i];
    return NULL;
}

const struct function *libraries_clash(const struct libraries *ls, const struct library *one)
{
    for (size_t i = 0; i < one->nfunctions; i++) {
        const struct function *other = libraries_find(ls, slice_str(one->functions[i]->name));
        if (other && !other->library->leaving)
            return one->functions[i];
    }
    return NULL;
}

/* Its functions may be called, or not any more. */
static void set_current(struct libraries *ls, struct library *lib, bool current)
{
    if (lib->current == current)
        return;
    lib->current = current;
    for (size_t i = 0; i < lib->nfunctions; i++) {
        struct function *f = lib->functions[i];
        f->link.hash = hash_of(slice_str(f->name));
        if (current)
            map_add(&ls->functions, &f->link);
        else
            map_remove(&ls->functions, &f->link);
    }
}

static void add(struct libraries *ls, struct library *lib)
{
    size_t at = ls->n;
    VEC_PUSH(ls->all, ls->n, ls->cap) = lib;
    for (; at && slice_cmp(ls->all[at - 1]->name, lib->name) > 0; at--)
        ls->all[at] = ls->all[at - 1];
    ls->all[at] = lib;
}

/* Frees those that are not to be kept. */
static void sift(struct libraries *ls, bool (*keep)(const struct library *lib))
{
    size_t kept = 0;
    for (size_t i = 0; i < ls->n; i++) {
        if (keep(ls->all[i])) {
            ls->all[kept++] = ls->all[i];
        } else {
            set_current(ls, ls->all[i], false);
            library_free(ls, ls->all[i]);
        }
    }
    ls->n = kept;
}

static bool keep_none(const struct library *lib)
{
    (void)lib;
    return false;
}

static bool keep_seen(const struct library *lib)
{
    return lib->seen;
}

static bool keep_current(const struct library *lib)
{
    return lib->current;
}

struct libraries *libraries_of(struct executor *s)
{
    struct scripts *scripts = scripts_of(s);
    if (!scripts->libraries) {
        struct interp *in = scripts_interp(scripts, INTERP_FUNCTIONS);
        if (!in)
            return NULL;
        scripts->libraries = mem_zalloc(sizeof *scripts->libraries);
        scripts->libraries->in = in;
    }
    scripts->libraries->in->memory_max = s->config->script_memory;
    return scripts->libraries;
}

void libraries_free(struct libraries *ls)
{
    if (!ls)
        return;
    sift(ls, keep_none);
    map_release(&ls->functions);
    mem_free(ls->all);
    mem_free(ls);
}

/* ---- loading ---- */

/* NULL: *err has the error reply. */
static struct library *compile(struct libraries *ls, struct slice text, const struct library_head *head,
                               bool again, struct buf *err)
{
    struct library *lib = library_new(head->name, text);
    if (load_library(ls->in, lib, head->code, again, err) && lib->nfunctions > 0)
        return lib;
    if (!err->len)
        buf_addf(err, "ERR No functions registered");
    library_free(ls, lib);
    return NULL;
}

struct library *libraries_load(struct libraries *ls, struct slice text, const struct library_head *head,
                               struct buf *err)
{
    struct library *lib = compile(ls, text, head, false, err);
    if (lib)
        add(ls, lib);
    return lib;
}

void libraries_forget_loaded(struct libraries *ls)
{
    sift(ls, keep_current);
}

static struct library *find_compiled(const struct libraries *ls, struct slice name, struct slice code)
{
    for (size_t i = 0; i < ls->n; i++)
        if (!ls->all[i]->broken && slice_eq(ls->all[i]->name, name) && slice_eq(ls->all[i]->code, code))
            return ls->all[i];
    return NULL;
}

static struct library *compile_row(struct libraries *ls, struct slice name, struct slice code)
{
    struct arena arena = {0};
    struct buf err = {0};
    struct library_head head;
    struct library *lib = NULL;
    if (library_parse(code, &arena, &head, &err))
        lib = compile(ls, code, &head, true, &err);
    if (!lib) {
        lib = library_new(name, code);
        lib->broken = mem_strndup(buf_slice(&err));
        ls->nbroken++;
    }
    buf_release(&err);
    arena_release(&arena);
    add(ls, lib);
    return lib;
}

static enum status see_row(void *arg, struct slice name, struct slice code)
{
    struct libraries *ls = arg;
    struct library *lib = find_compiled(ls, name, code);
    if (!lib)
        lib = compile_row(ls, name, code);
    lib->seen = true;
    return ST_OK;
}

/* What may be called becomes what was seen; true: it is not what it was. */
static bool settle(struct libraries *ls)
{
    bool changed = false;
    for (size_t i = 0; i < ls->n; i++)
        changed |= ls->all[i]->seen != ls->all[i]->current;
    sift(ls, keep_seen);
    for (size_t i = 0; i < ls->n; i++)
        set_current(ls, ls->all[i], true);
    return changed;
}

/* The set is as a view sees it by this stamp, and as the others that are kept see it by theirs. */
static void keep_stamp(struct libraries *ls, const struct hidden_stamp *now)
{
    size_t i = 0;
    while (i < ls->nstamps && ls->stamps[i].view != now->view)
        i++;
    if (i == LIBRARY_STAMPS)
        i = 0;
    ls->stamps[i] = *now;
    if (i == ls->nstamps)
        ls->nstamps++;
}

enum status libraries_sync(struct libraries *ls, struct view *v)
{
    struct hidden_stamp now;
    enum status st = rows_stamp(v, &now);
    if (st != ST_OK)
        return st;
    for (size_t i = 0; i < ls->nstamps; i++)
        if (stamps_equal(&ls->stamps[i], &now))
            return ST_OK;
    ls->nbroken = 0;
    for (size_t i = 0; i < ls->n; i++)
        ls->all[i]->seen = false;
    st = rows_each_library(v, see_row, ls);
    if (st != ST_OK)
        return st;
    if (settle(ls) || ls->nbroken)
        ls->nstamps = 0;
    if (!ls->nbroken)
        keep_stamp(ls, &now);
    return ST_OK;
}
