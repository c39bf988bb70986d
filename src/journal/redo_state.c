#include "journal/redo_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ID_TEXT (2 * sizeof(struct redo_id) + 1)

/* ---- larder_meta ---- */

static void print_id(const struct redo_id *id, char *out)
{
    for (size_t i = 0; i < sizeof id->bytes; i++)
        snprintf(out + 2 * i, 3, "%02x", id->bytes[i]);
}

static bool read_id(const char *text, struct redo_id *ret)
{
    if (strlen(text) != ID_TEXT - 1)
        return false;
    for (size_t i = 0; i < sizeof ret->bytes; i++) {
        char digits[3] = {text[2 * i], text[2 * i + 1], '\0'}, *end;
        ret->bytes[i] = (unsigned char)strtoul(digits, &end, 16);
        if (*end)
            return false;
    }
    return true;
}

enum status redo_state_read(struct store *s, struct redo_state *ret, struct error *err)
{
    char id[64] = "", open[8] = "", cookie[24] = "";
    struct journal_state journal;
    *ret = (struct redo_state){0};
    enum status st = store_get_word(s, "redo_id", id, sizeof id, err);
    if (st == ST_OK)
        st = store_get_word(s, "redo_open", open, sizeof open, err);
    if (st == ST_OK)
        st = store_get_word(s, "redo_inode", ret->inode, sizeof ret->inode, err);
    if (st == ST_OK)
        st = store_get_word(s, "redo_cookie", cookie, sizeof cookie, err);
    if (st == ST_OK)
        st = store_journal_state(s, &journal, err);
    if (st == ST_OK)
        st = store_get_file(s, &ret->file, err);
    if (st != ST_OK)
        return st;
    ret->known = read_id(id, &ret->id);
    ret->open = strcmp(open, "1") == 0;
    ret->cookie = strtoll(cookie, NULL, 10);
    ret->applied = journal.applied;
    return ST_OK;
}

static enum status write_words(struct store *s, const char *id, const char *open, const char *inode,
                               const char *cookie, struct error *err)
{
    enum status st = store_set_word(s, "redo_id", id, err);
    if (st == ST_OK)
        st = store_set_word(s, "redo_open", open, err);
    if (st == ST_OK)
        st = store_set_word(s, "redo_inode", inode, err);
    return st == ST_OK ? store_set_word(s, "redo_cookie", cookie, err) : st;
}

enum status redo_state_open(struct store *s, const struct redo_id *id, struct error *err)
{
    struct store_file file;
    char text[ID_TEXT], cookie[24];
    enum status st = store_new_cookie(s, err);
    if (st == ST_OK)
        st = store_get_file(s, &file, err);
    if (st != ST_OK)
        return st;
    print_id(id, text);
    snprintf(cookie, sizeof cookie, "%" PRId64, file.cookie);
    return write_words(s, text, "1", file.identity, cookie, err);
}

enum status redo_state_follow(struct store *s, struct error *err)
{
    struct store_file file;
    char was[24] = "", is[24];
    enum status st = store_get_file(s, &file, err);
    if (st == ST_OK)
        st = store_get_word(s, "redo_cookie", was, sizeof was, err);
    if (st != ST_OK)
        return st;
    snprintf(is, sizeof is, "%" PRId64, file.cookie);
    return strcmp(was, is) == 0 ? ST_OK : store_set_word(s, "redo_cookie", is, err);
}

enum status redo_state_close(struct store *s, struct error *err)
{
    return store_set_word(s, "redo_open", "0", err);
}

enum status redo_state_forget(struct store *s, struct error *err)
{
    return write_words(s, "", "0", "", "", err);
}

/* ---- whether they belong together ---- */

static bool same_file(const struct redo_state *s)
{
    return s->inode[0] == '\0' || strcmp(s->inode, s->file.identity) == 0;
}

/* SQLite's own copies have another cookie: one that was written over the file by cp is the same file. */
static bool same_content(const struct redo_state *s)
{
    return same_file(s) && s->cookie == s->file.cookie;
}

enum status redo_refuse(struct error *err, enum status code, const char *why, const char *command,
                        const char *url)
{
    char text[2 * sizeof err->text], store[sizeof err->text];
    int n = snprintf(text, sizeof text, "%s. Keep a copy of all files; then: %s", why, command);
    snprintf(store, sizeof store, " --store %s", url);
    bool fits = (size_t)n + strlen(store) < sizeof err->text; /* what to do counts most */
    return error_set(err, code, "%s%s", text, fits ? store : "");
}

static enum status refuse(struct error *err, const char *url, const char *why)
{
    return redo_refuse(err, ST_CORRUPT, why,
                       "apply the log (larder check --apply-log) or give it up (--discard-log)", url);
}

static enum status judge_missing(const struct redo_state *s, const char *url, enum redo_verdict *ret,
                                 struct error *err)
{
    if (s->open && same_content(s))
        return redo_refuse(err, ST_MISSING,
                           "the log of the database (files -redo.N) is missing, and may hold writes that the"
                           " tables lack",
                           "bring it back, or go on without (larder check --discard-log)", url);
    *ret = s->open ? REDO_COPY : REDO_NONE;
    return ST_OK;
}

enum status redo_judge(const struct redo_state *s, const struct redo_found *found, const char *url,
                       enum redo_verdict *ret, struct error *err)
{
    if (!found->any)
        return judge_missing(s, url, ret, err);
    bool ours = s->known && found->ours;
    bool holds = found->last > (ours ? s->applied : found->tables);
    *ret = ours ? REDO_OURS : REDO_NONE;
    if (ours && s->applied < found->tables) {
        char why[120];
        snprintf(why, sizeof why,
                 "the database is older than its log: it ends at %" PRId64 ", the log begins behind %" PRId64,
                 s->applied, found->tables);
        return refuse(err, url, why);
    }
    if (!holds) /* what larder_meta names, and is not there, may hold something */
        return ours ? ST_OK : judge_missing(s, url, ret, err);
    if (!ours)
        return refuse(err, url, "the log beside the database is of another one");
    if (!same_file(s))
        return refuse(err, url, "the database is another file than the one that the log belongs to");
    if (s->cookie != s->file.cookie)
        return refuse(err, url,
                      "the database was changed since the log was written, as by a restored backup");
    return ST_OK;
}
