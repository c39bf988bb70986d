/* The two parts of cjson: the table and its settings (lib_cjson.c), the encoder (lib_cjson_encode.c). */
#ifndef LARDER_SCRIPT_LIB_CJSON_INTERNAL_H
#define LARDER_SCRIPT_LIB_CJSON_INTERNAL_H

#include <stdbool.h>

struct lua_State;

enum json_invalid { JSON_INVALID_REFUSED, JSON_INVALID_WRITTEN, JSON_INVALID_NULL };

/* What a script may set, of one table of functions. */
struct json_settings {
    int sparse_convert; /* 1: an array with too many holes becomes an object; 0: an error */
    int sparse_ratio;   /* 0: as many holes as there are */
    int sparse_safe;    /* so many places may always have holes */
    int encode_depth;
    int encode_invalid; /* enum json_invalid */
    int keep_buffer;    /* told, and of no effect: there is no buffer to keep */
    int precision;      /* significant digits */
    int decode_depth;
    int decode_invalid; /* 1: NaN, infinity and hexadecimal are numbers */
    bool changed;
};

/* cjson.encode, a closure over a userdata of struct json_settings. */
int lib_cjson_encode(struct lua_State *L);

#endif
