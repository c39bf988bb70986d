/* JSON in and out, in the few shapes that requests and answers need.

   Reading: json_check looks at the whole document first, so that code which walks it afterwards meets no
   error in the middle. Values are slices of the document; a string is only copied (into an arena) when it has
   escapes. Strings are UTF-8 and may have NUL in them (\u0000); half a surrogate pair is no text and is
   refused.

   Writing: straight into a buffer. */
#ifndef LARDER_PROTO_JSON_H
#define LARDER_PROTO_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/slice.h"

#define JSON_DEPTH 64 /* arrays and objects within each other */

enum json_kind { JSON_NULL, JSON_FALSE, JSON_TRUE, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json {
    enum json_kind kind;
    struct slice text; /* as it stands in the document, without white space around it */
};

/* The document's one value. False: it is none, *ret_why says what is wrong at byte *ret_at. */
bool json_check(struct slice document, struct json *ret, const char **ret_why, size_t *ret_at);

/* Takes the value that a text begins with off its front, white space before it too. False: it begins with
   none. For a document that is read once, without a look at the whole of it first. */
bool json_take(struct slice *text, struct json *ret);

/* What a JSON_STRING says; a copy in arena when it has escapes. */
struct slice json_string(const struct json *v, struct arena *arena);

/* A JSON_NUMBER that is a whole one and fits, however it is written (1e3, 5.0). */
bool json_i64(const struct json *v, int64_t *ret);

/* Walks over the items of a JSON_ARRAY, or the members of a JSON_OBJECT. */
struct json_walk {
    struct slice rest;
};
void json_begin(struct json_walk *w, const struct json *v);
bool json_next_item(struct json_walk *w, struct json *ret);
bool json_next_member(struct json_walk *w, struct arena *arena, struct slice *ret_name, struct json *ret);
size_t json_count(const struct json *v); /* items or members */

const char *json_kind_name(enum json_kind kind); /* "a string", "an object" */

/* ---- writing ---- */

/* Adds a string in quotes. False: the bytes are not UTF-8, and nothing was added. */
bool json_add_string(struct buf *out, struct slice s);

/* The same, U+FFFD in the place of what is not UTF-8. */
void json_add_lossy(struct buf *out, struct slice s);

/* In quotes, base64. */
void json_add_base64(struct buf *out, struct slice s);

void json_add_i64(struct buf *out, int64_t v);

/* A double; infinities, which JSON does not have, are the strings "inf" and "-inf". */
void json_add_double(struct buf *out, double v);

/* How many bytes at p, of n, form one character of UTF-8; 0: none. */
size_t utf8_length(const char *p, size_t n);

#endif
