/* Which libraries scripts find beside Lua's own. */
#include "script/interp.h"
#include "script/libs.h"

const struct interp_module interp_modules[] = {
    {"bit", lib_bit_open},
    {"cjson", lib_cjson_open},
    {"cmsgpack", lib_msgpack_open},
    {"struct", lib_struct_open},
    {NULL, NULL},
};
