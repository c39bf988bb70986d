/* What a read may be served from: the modes that a server, a connection, a command or a request chooses. */
#ifndef LARDER_REPLICA_CONSISTENCY_H
#define LARDER_REPLICA_CONSISTENCY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "base/status.h"

enum read_mode {
    READ_STRONG,  /* the primary */
    READ_SESSION, /* whoever has what this client has written or seen */
    READ_BOUNDED, /* whoever is at most bound_ms behind */
    READ_EVENTUAL /* any replica in rotation */
};
#define READ_MODES 4

#define READ_BOUND_MAX_MS 86400000 /* a day */

struct consistency {
    enum read_mode mode;
    int64_t bound_ms; /* of READ_BOUNDED, 1 to READ_BOUND_MAX_MS; else 0 */
};

/* "strong", "session", "bounded", "eventual", in any case. */
bool read_mode_parse(struct slice word, enum read_mode *ret);
const char *read_mode_name(enum read_mode mode);

/* One text, as the option and the HTTP header have it: "session", "bounded=500". ST_INVALID with a message
   for the client. */
enum status consistency_parse(struct slice text, struct consistency *ret, struct error *err) MUST_CHECK;

/* A bound in milliseconds as a word of a command: ST_INVALID for 0, negative, too large, no number. */
enum status consistency_parse_bound(struct slice word, int64_t *ret, struct error *err) MUST_CHECK;

#define CONSISTENCY_TEXT 40
const char *consistency_text(struct consistency c, char out[CONSISTENCY_TEXT]);

#endif
