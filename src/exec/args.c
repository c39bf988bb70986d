/* What handlers share: arguments read with Redis' own error texts, rows fetched with the type check that
   nearly every command starts with, and the replies that containers (OBJECT, CLIENT, ...) have in common. */
#include "exec/args.h"

#include "base/num.h"
#include "exec/session.h"

const char ERR_SYNTAX[] = "ERR syntax error";
const char ERR_WRONGTYPE[] = "WRONGTYPE Operation against a key holding the wrong kind of value";
const char ERR_NOT_INT[] = "ERR value is not an integer or out of range";
const char ERR_NOT_FLOAT[] = "ERR value is not a valid float";
const char ERR_NO_KEY[] = "ERR no such key";
const char ERR_OUT_OF_RANGE[] = "ERR index out of range";

#define DRAWN_BYTES_MAX ((size_t)1 << 30) /* of a reply whose length is the client's choice alone */
#define DRAWN_ITEM_MIN  6                 /* "$0\r\n\r\n" */

#define SHOWN_NAME_MAX 128 /* bytes of a client's word that an error repeats */

bool arg_i64(struct call *c, int i, int64_t *ret, const char *err_text)
{
    if (num_parse_i64(c->argv[i], ret))
        return true;
    reply_error(c->reply, err_text ? err_text : ERR_NOT_INT);
    return false;
}

bool arg_range(struct call *c, int i, int64_t min, int64_t max, int64_t *ret, const char *err_text)
{
    if (!arg_i64(c, i, ret, err_text))
        return false;
    if (*ret >= min && *ret <= max)
        return true;
    if (err_text)
        reply_error(c->reply, err_text);
    else
        reply_errorf(c->reply, "ERR value is out of range, value must between %lld and %lld", (long long)min,
                     (long long)max);
    return false;
}

bool arg_double(struct call *c, int i, double *ret, const char *err_text)
{
    if (num_parse_double(c->argv[i], ret))
        return true;
    reply_error(c->reply, err_text ? err_text : ERR_NOT_FLOAT);
    return false;
}

enum status arg_any(struct call *c, int i, const struct row **ret)
{
    return view_get(c->view, call_db(c), c->argv[i], ret);
}

enum status arg_present(struct call *c, int i, const struct row **ret)
{
    enum status st = arg_any(c, i, ret);
    if (st == ST_OK && !*ret)
        reply_error(c->reply, ERR_NO_KEY);
    return st;
}

enum status arg_row(struct call *c, int i, enum row_type type, const struct row **ret, bool *ret_wrong)
{
    enum status st = arg_any(c, i, ret);
    *ret_wrong = false;
    if (st != ST_OK || !*ret || (*ret)->type == type)
        return st;
    reply_error(c->reply, ERR_WRONGTYPE);
    *ret = NULL;
    *ret_wrong = true;
    return ST_OK;
}

const char *row_type_name(enum row_type type)
{
    switch (type) {
    case ROW_STRING:
        return "string";
    case ROW_HASH:
        return "hash";
    case ROW_LIST:
        return "list";
    case ROW_SET:
        return "set";
    case ROW_ZSET:
        return "zset";
    case ROW_TABLE:
        return "table";
    case ROW_NONE:
    case ROW_DB:
    case ROW_INDEX:
        break;
    }
    return "none";
}

uint32_t call_db(const struct call *c)
{
    return c->session->state.db;
}

bool reply_drawn_fits(struct call *c, size_t start, int64_t left)
{
    size_t said = c->reply->ops->mark(c->reply) - start;
    if (said <= DRAWN_BYTES_MAX && (size_t)left <= (DRAWN_BYTES_MAX - said) / DRAWN_ITEM_MIN)
        return true;
    c->reply->ops->rewind(c->reply, start);
    reply_error(c->reply, "ERR value is out of range");
    return false;
}

void reply_wrong_arity(struct call *c)
{
    char name[64];
    command_full_name(c->cmd, name);
    reply_errorf(c->reply, "ERR wrong number of arguments for '%s' command", name);
}

/* The container's name in capitals. The client's own spelling was matched without regard to case, so that
   this is the name in the table, which a subcommand does not know; argv has it. */
static void container_name(const struct call *c, char out[SHOWN_NAME_MAX + 1])
{
    struct slice name = c->argv[0];
    size_t n = name.n < SHOWN_NAME_MAX ? name.n : SHOWN_NAME_MAX;
    for (size_t i = 0; i < n; i++)
        out[i] = name.p[i] >= 'a' && name.p[i] <= 'z' ? (char)(name.p[i] - 'a' + 'A') : name.p[i];
    out[n] = '\0';
}

void reply_unknown_sub(struct call *c)
{
    char container[SHOWN_NAME_MAX + 1];
    struct slice word = c->argv[1];
    size_t n = word.n < SHOWN_NAME_MAX ? word.n : SHOWN_NAME_MAX;
    container_name(c, container);
    reply_errorf(c->reply, "ERR unknown subcommand or wrong number of arguments for '%.*s'. Try %s HELP.",
                 (int)n, word.p, container);
}

void reply_help(struct call *c, const char *const *lines)
{
    static const char form[] = " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:";
    char head[SHOWN_NAME_MAX + sizeof form];
    container_name(c, head);
    memcpy(head + strlen(head), form, sizeof form);
    size_t n = 0;
    while (lines[n])
        n++;
    reply_array(c->reply, n + 3);
    reply_simple(c->reply, head);
    for (size_t i = 0; i < n; i++)
        reply_simple(c->reply, lines[i]);
    reply_simple(c->reply, "HELP");
    reply_simple(c->reply, "    Prints this help.");
}
