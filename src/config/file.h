/* Lines of a config file, for reading (source.c) and rewriting (rewrite.c). Private to config/. */
#ifndef LARDER_CONFIG_FILE_H
#define LARDER_CONFIG_FILE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/slice.h"
#include "base/status.h"

struct config;
struct option;

enum status config_file_read(const char *path, struct buf *out, struct error *err) MUST_CHECK;

/* Takes the first line off rest; its end is not part of it. */
struct slice config_file_next(struct slice *rest);

/* The words of a line: the option's name and its values. None for an empty line or a comment. */
enum status config_file_line(struct slice line, struct arena *arena, struct slice **ret_words, int *ret_n,
                             const char *origin, struct error *err) MUST_CHECK;

/* Sets what the text of a file says; path is for messages. */
enum status config_parse(struct config *c, const char *path, struct slice text, struct error *err) MUST_CHECK;

/* "name value" with quotes where they are needed, and the end of the line. */
void config_put_line(const struct config *c, const struct option *o, struct buf *out);

#endif
