#include "cli/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int cli_complain(const struct cli *c, const char *what, int code)
{
    fprintf(stderr, "larder %s: %s\n", c->command, what);
    return code;
}

#define CONNECTION_OPTIONS 12

/* Where the server is. */
static void connection_options(struct link_options *l, struct cli_option out[CONNECTION_OPTIONS])
{
    const struct cli_option all[CONNECTION_OPTIONS] = {
        {"--host", "NAME", "where the server is (127.0.0.1)", &l->host, NULL},
        {"--port", "NUMBER", "its port (6379)", &l->port, NULL},
        {"--socket", "PATH", "its Unix socket, in the place of a port", &l->socket, NULL},
        {"--user", "NAME", "who you are (default)", &l->user, NULL},
        {"--password", "TEXT", "the password; better in the environment, as REDISCLI_AUTH", &l->password,
         NULL},
        {"--db", "NUMBER", "the database to select (0)", &l->db, NULL},
        {"--tls", NULL, "use TLS", NULL, &l->tls},
        {"--cacert", "FILE", "certificates to trust, in the place of the system's", &l->cacert, NULL},
        {"--cert", "FILE", "a certificate of the client's", &l->cert, NULL},
        {"--key", "FILE", "its key", &l->key, NULL},
        {"--insecure", NULL, "take any certificate", NULL, &l->insecure},
        {"--help", NULL, "print this", NULL, NULL},
    };
    memcpy(out, all, sizeof all);
}

static void print_options(const struct cli_option *o, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char left[64];
        snprintf(left, sizeof left, "%s%s%s", o[i].name, o[i].value ? " " : "", o[i].value ? o[i].value : "");
        printf("  %-30s %s\n", left, o[i].help);
    }
}

static void print_help(const struct cli *c, const struct cli_option *connection)
{
    printf("Usage: larder %s %s\n\n%s\n", c->command, c->usage, c->about);
    print_options(c->options, c->noptions);
    printf("\nThe server:\n");
    print_options(connection, CONNECTION_OPTIONS);
}

static const struct cli_option *find(const struct cli_option *o, size_t n, const char *arg)
{
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(o[i].name);
        if (strncmp(arg, o[i].name, len) == 0 && (arg[len] == '\0' || (arg[len] == '=' && o[i].value)))
            return &o[i];
    }
    return NULL;
}

/* The value of an option behind "=" or in the next argument; NULL: there is none. */
static const char *value_of(const struct cli_option *o, int argc, char **argv, int *at)
{
    size_t len = strlen(o->name);
    if (argv[*at][len] == '=')
        return argv[*at] + len + 1;
    return *at + 1 < argc ? argv[++*at] : NULL;
}

int cli_options(struct cli *c, int *argc, char **argv, bool *ret_done)
{
    const char *password = getenv("REDISCLI_AUTH");
    struct cli_option connection[CONNECTION_OPTIONS];
    c->link = (struct link_options){
        .host = "127.0.0.1", .port = "6379", .user = "default", .db = "0", .password = password};
    connection_options(&c->link, connection);
    int left = 0;
    *ret_done = true;
    for (int i = 0; i < *argc; i++) {
        if (strcmp(argv[i], "--") == 0) {
            while (++i < *argc)
                argv[left++] = argv[i];
            break;
        }
        if (strncmp(argv[i], "--", 2) != 0) {
            argv[left++] = argv[i];
            continue;
        }
        const struct cli_option *o = find(c->options, c->noptions, argv[i]);
        o = o ? o : find(connection, CONNECTION_OPTIONS, argv[i]);
        char text[300];
        snprintf(text, sizeof text, "%s: there is no such option; larder %s --help lists them", argv[i],
                 c->command);
        if (!o)
            return cli_complain(c, text, CLI_USAGE);
        if (o->flag)
            *o->flag = true;
        else if (!o->text)
            return print_help(c, connection), CLI_OK;
        else if (!(*o->text = value_of(o, *argc, argv, &i))) {
            snprintf(text, sizeof text, "%s takes a value: %s", o->name, o->value);
            return cli_complain(c, text, CLI_USAGE);
        }
    }
    *argc = left;
    *ret_done = false;
    return CLI_OK;
}

struct link *cli_connect(const struct cli *c)
{
    char why[256];
    struct link *l = link_open(&c->link, why);
    if (!l)
        cli_complain(c, why, CLI_FAILED);
    return l;
}
