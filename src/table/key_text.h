/* A row by its primary key, as people know it: (Mary, Jane). For errors and findings: on one line, valid
   UTF-8, a BLOB in hexadecimal digits, long ones cut. A name that is none is told as far as it goes. */
#ifndef LARDER_TABLE_KEY_TEXT_H
#define LARDER_TABLE_KEY_TEXT_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/slice.h"
#include "table/schema.h"

void key_text_add(const struct schema *s, struct slice name, struct arena *arena, struct buf *out);

#endif
