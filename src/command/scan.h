/* What SCAN, HSCAN, SSCAN and ZSCAN share: the cursor, the options, the page that is sent. */
#ifndef LARDER_COMMAND_SCAN_H
#define LARDER_COMMAND_SCAN_H

#include "exec/command.h"

struct page_word;

struct scan_page {
    struct arena *arena;
    int64_t cursor;       /* as given; then where the next page begins */
    struct slice pattern; /* MATCH; p is NULL: everything */
    bool typed;           /* TYPE: only keys of `type`, which is ROW_NONE when there is no such type */
    enum row_type type;
    uint32_t count;
    /* The words of the page. The reply has the cursor in front of them, and it is only known behind them. */
    struct page_word *first, **end;
    size_t n;
};

/* The cursor at argv[i]; or replies the error and returns false. */
bool scan_cursor(struct call *c, int i, struct scan_page *s);

/* The options from argv[i] on; TYPE only where keys are scanned. */
bool scan_options(struct call *c, int i, bool keys, struct scan_page *s);

/* Does MATCH want this name? */
bool scan_wants(const struct scan_page *s, struct slice name);

/* Adds a copy of a word to the page. */
void scan_add(struct scan_page *s, struct slice word);

void scan_reply(struct call *c, const struct scan_page *s);

#endif
