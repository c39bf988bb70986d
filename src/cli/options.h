/* What the commands that talk to a running server are told: where it is, and what each of them takes beside.
 */
#ifndef LARDER_CLI_OPTIONS_H
#define LARDER_CLI_OPTIONS_H

#include <stdbool.h>

#include "base/buf.h"
#include "cli/link.h"

enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2 };

/* An option of one command: a flag, or with a value. */
struct cli_option {
    const char *name;  /* "--mode" */
    const char *value; /* what it takes, for the help: "table|csv|json"; NULL: it is a flag */
    const char *help;
    const char **text; /* where the value goes ... */
    bool *flag;        /* ... or that it was there */
};

struct cli {
    const char *command; /* "sql" */
    const char *usage;   /* what comes behind it */
    const char *about;   /* lines of the help */
    const struct cli_option *options;
    size_t noptions;
    struct link_options link;
};

/* Takes options off the arguments, wherever they stand, up to "--"; what is left is in argv[0 .. *argc).
   *ret_done: the help was asked for and printed, or something is wrong (it was said); the code to exit with
   is returned. */
int cli_options(struct cli *c, int *argc, char **argv, bool *ret_done);

/* Says on stderr what is wrong, and returns code. */
int cli_complain(const struct cli *c, const char *what, int code);

/* Connects, or complains. */
struct link *cli_connect(const struct cli *c);

#endif
