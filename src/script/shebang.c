#include "script/shebang.h"

#include <string.h>

#include "base/words.h"
#include "script/run.h"

static const char FLAGS[] = "flags=";

/* "no-writes,rollback" */
static bool parse_flags(struct slice list, uint32_t *flags, struct buf *err)
{
    while (list.p) {
        const char *comma = memchr(list.p, ',', list.n);
        struct slice name = comma ? slice_of(list.p, (size_t)(comma - list.p)) : list;
        uint32_t flag = script_flag_of(name);
        if (!flag) {
            buf_addf(err, "ERR Unexpected flag in script shebang: %.*s", (int)name.n, name.p);
            return false;
        }
        *flags |= flag;
        list = comma ? slice_of(comma + 1, list.n - name.n - 1) : (struct slice){0};
    }
    return true;
}

static bool parse_option(struct slice word, uint32_t *flags, struct buf *err)
{
    size_t n = sizeof FLAGS - 1;
    if (word.n < n || memcmp(word.p, FLAGS, n) != 0) {
        buf_addf(err, "ERR Unknown lua shebang option: %.*s", (int)word.n, word.p);
        return false;
    }
    return word.n == n || parse_flags(slice_of(word.p + n, word.n - n), flags, err);
}

static bool parse_words(struct slice line, struct arena *arena, uint32_t *flags, struct buf *err)
{
    struct slice *words;
    int n;
    if (!words_split(line, arena, &words, &n)) {
        buf_addf(err, "ERR Invalid engine in script shebang");
        return false;
    }
    if (!slice_eq(words[0], SLICE("#!lua"))) {
        buf_addf(err, "ERR Unexpected engine in script shebang: %.*s", (int)words[0].n, words[0].p);
        return false;
    }
    for (int i = 1; i < n; i++)
        if (!parse_option(words[i], flags, err))
            return false;
    return true;
}

bool shebang_parse(struct slice body, struct slice *ret_text, uint32_t *ret_flags, struct buf *err)
{
    *ret_text = body;
    *ret_flags = SCRIPT_OLD;
    if (body.n < 2 || memcmp(body.p, "#!", 2) != 0)
        return true;
    const char *end = memchr(body.p, '\n', body.n);
    if (!end) {
        buf_addf(err, "ERR Invalid script shebang");
        return false;
    }
    struct slice line = slice_of(body.p, (size_t)(end - body.p));
    struct arena arena = {0};
    *ret_flags = 0;
    *ret_text = slice_of(end, body.n - line.n);
    bool ok = parse_words(line, &arena, ret_flags, err);
    arena_release(&arena);
    return ok;
}
