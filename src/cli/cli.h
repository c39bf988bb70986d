/* Commands of the program that talk to a running server. Each returns the code to exit with: 0 all is well, 1
   it failed, 2 the command line is wrong. */
#ifndef LARDER_CLI_CLI_H
#define LARDER_CLI_CLI_H

int cli_sql(int argc, char **argv);
int cli_load(int argc, char **argv);
int cli_dump(int argc, char **argv);

#endif
