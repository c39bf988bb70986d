#include "store/position.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- GTIDs ---- */

static const struct position_gtid *find_domain(const struct position *p, uint32_t domain)
{
    for (uint32_t i = 0; i < p->ndomains; i++)
        if (p->gtids[i].domain == domain)
            return &p->gtids[i];
    return NULL;
}

static bool gtids_reached(const struct position *at, const struct position *need)
{
    for (uint32_t i = 0; i < need->ndomains; i++) {
        const struct position_gtid *there = find_domain(at, need->gtids[i].domain);
        if ((there ? there->seq : 0) < need->gtids[i].seq)
            return false;
    }
    return true;
}

void position_add_gtid(struct position *p, struct position_gtid g)
{
    uint32_t i = 0;
    while (i < p->ndomains && p->gtids[i].domain < g.domain)
        i++;
    if (i < p->ndomains && p->gtids[i].domain == g.domain) {
        if (g.seq > p->gtids[i].seq)
            p->gtids[i] = g;
        return;
    }
    if (p->ndomains == POSITION_DOMAINS)
        return;
    for (uint32_t k = p->ndomains++; k > i; k--)
        p->gtids[k] = p->gtids[k - 1];
    p->gtids[i] = g;
}

/* A number, and what comes behind it, which must be `end` unless the text ends there. */
static bool read_number(struct slice *text, char end, uint64_t max, uint64_t *ret)
{
    size_t i = 0;
    *ret = 0;
    for (; i < text->n && text->p[i] >= '0' && text->p[i] <= '9'; i++) {
        uint64_t digit = (uint64_t)(text->p[i] - '0');
        if (*ret > (max - digit) / 10)
            return false;
        *ret = *ret * 10 + digit;
    }
    bool good = i > 0 && (i < text->n ? text->p[i] == end : end == ',');
    *text = i < text->n ? slice_of(text->p + i + 1, text->n - i - 1) : slice_of(text->p + i, 0);
    return good;
}

bool position_read_gtids(struct slice text, struct position *p)
{
    p->ndomains = 0;
    while (text.n > 0) {
        uint64_t domain, server, seq;
        if (!read_number(&text, '-', UINT32_MAX, &domain) || !read_number(&text, '-', UINT32_MAX, &server) ||
            !read_number(&text, ',', UINT64_MAX, &seq))
            return false;
        if (p->ndomains == POSITION_DOMAINS && !find_domain(p, (uint32_t)domain))
            return false;
        position_add_gtid(p, (struct position_gtid){(uint32_t)domain, (uint32_t)server, seq});
    }
    return true;
}

/* ---- all kinds ---- */

bool position_reached(const struct position *at, const struct position *need)
{
    if (need->kind == POSITION_NONE)
        return true;
    if (at->kind != need->kind || at->database != need->database)
        return false;
    if (need->kind != POSITION_SEQUENCE && at->timeline != need->timeline)
        return false;
    return need->kind == POSITION_GTID ? gtids_reached(at, need) : at->number >= need->number;
}

void position_merge(struct position *to, const struct position *from)
{
    if (from->kind == POSITION_NONE)
        return;
    if (to->kind != from->kind || to->database != from->database) {
        *to = *from;
        return;
    }
    if (from->kind == POSITION_GTID) {
        bool later = !gtids_reached(to, from);
        for (uint32_t i = 0; i < from->ndomains; i++)
            position_add_gtid(to, from->gtids[i]);
        if (later || (gtids_reached(from, to) && from->timeline > to->timeline))
            to->timeline = from->timeline;
    } else if (from->number > to->number || (from->number == to->number && from->timeline > to->timeline)) {
        to->number = from->number;
        to->timeline = from->timeline;
    }
}

const char *position_text(const struct position *p, char out[POSITION_TEXT])
{
    size_t n = 0;
    switch (p->kind) {
    case POSITION_NONE:
        snprintf(out, POSITION_TEXT, "none");
        break;
    case POSITION_LSN:
        snprintf(out, POSITION_TEXT, "%" PRIX32 "/%" PRIX32, (uint32_t)(p->number >> 32),
                 (uint32_t)p->number);
        break;
    case POSITION_GTID:
        out[0] = '\0';
        for (uint32_t i = 0; i < p->ndomains && n < POSITION_TEXT; i++)
            n += (size_t)snprintf(out + n, POSITION_TEXT - n, "%s%" PRIu32 "-%" PRIu32 "-%" PRIu64,
                                  i ? "," : "", p->gtids[i].domain, p->gtids[i].server, p->gtids[i].seq);
        break;
    case POSITION_SEQUENCE:
        snprintf(out, POSITION_TEXT, "%" PRIu64, p->number);
        break;
    }
    return out;
}

uint64_t position_offset(const struct position *p)
{
    uint64_t sum = p->kind == POSITION_GTID ? 0 : p->number;
    for (uint32_t i = 0; p->kind == POSITION_GTID && i < p->ndomains; i++)
        sum += p->gtids[i].seq;
    return p->kind == POSITION_NONE ? 0 : sum;
}
