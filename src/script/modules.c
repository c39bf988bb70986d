/* Which libraries scripts find beside Lua's own. */
#include "script/interp.h"

const struct interp_module interp_modules[] = {
    {NULL, NULL},
};
