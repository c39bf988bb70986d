#include "table/timestamp.h"

#include <stddef.h>

#include "table/value.h"

#define DAY_MS 86400000

/* Days from 1970-01-01 to a date. Years are counted from March, so that the leap day is a year's last. */
static int64_t days_of(int64_t year, int64_t month, int64_t day)
{
    int64_t y = month <= 2 ? year + 399 : year + 400; /* never negative: a cycle of 400 years ahead */
    int64_t cycle = y / 400, in_cycle = y % 400;
    int64_t in_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    return cycle * 146097 + in_cycle * 365 + in_cycle / 4 - in_cycle / 100 + in_year - 719468 - 146097;
}

static void date_of(int64_t days, int64_t *ret_year, int64_t *ret_month, int64_t *ret_day)
{
    int64_t d = days + 719468 + 146097;
    int64_t cycle = d / 146097, in_cycle = d % 146097;
    int64_t y = (in_cycle - in_cycle / 1460 + in_cycle / 36524 - in_cycle / 146096) / 365;
    int64_t in_year = in_cycle - (365 * y + y / 4 - y / 100);
    int64_t m = (5 * in_year + 2) / 153;
    *ret_day = in_year - (153 * m + 2) / 5 + 1;
    *ret_month = m < 10 ? m + 3 : m - 9;
    *ret_year = y + cycle * 400 - 400 + (*ret_month <= 2);
}

static int64_t days_in(int64_t year, int64_t month)
{
    static const int8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return days[month - 1] + (month == 2 && leap);
}

/* Takes n digits off the front. */
static bool take_digits(struct slice *s, size_t n, int64_t *ret)
{
    int64_t v = 0;
    if (s->n < n)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (s->p[i] < '0' || s->p[i] > '9')
            return false;
        v = v * 10 + (s->p[i] - '0');
    }
    *s = slice_of(s->p + n, s->n - n);
    *ret = v;
    return true;
}

static bool take(struct slice *s, char c)
{
    if (!s->n || *s->p != c)
        return false;
    *s = slice_of(s->p + 1, s->n - 1);
    return true;
}

static bool take_date(struct slice *s, int64_t *ret_ms, const char **ret_why)
{
    int64_t year, month, day;
    if (!take_digits(s, 4, &year) || !take(s, '-') || !take_digits(s, 2, &month) || !take(s, '-') ||
        !take_digits(s, 2, &day))
        return false;
    *ret_why = "there is no such day";
    if (month < 1 || month > 12 || day < 1 || day > days_in(year, month))
        return false;
    *ret_ms = days_of(year, month, day) * DAY_MS;
    return true;
}

/* The digits behind the point. */
static bool take_fraction(struct slice *s, int64_t *ret_ms, const char **ret_why)
{
    int64_t ms = 0, digit;
    size_t n = 0;
    bool finer = false;
    for (; take_digits(s, 1, &digit); n++) {
        if (n < 3)
            ms = ms * 10 + digit;
        else
            finer = finer || digit;
    }
    *ret_why = finer ? "it is finer than a millisecond" : "digits are missing";
    if (n == 0 || finer)
        return false;
    for (; n < 3; n++)
        ms *= 10;
    *ret_ms += ms;
    return true;
}

static bool take_time(struct slice *s, int64_t *ret_ms, const char **ret_why)
{
    int64_t hour, minute, second = 0;
    *ret_why = "the time is HH:MM, HH:MM:SS or HH:MM:SS.mmm";
    if (!take_digits(s, 2, &hour) || !take(s, ':') || !take_digits(s, 2, &minute))
        return false;
    bool seconds = take(s, ':');
    if (seconds && !take_digits(s, 2, &second))
        return false;
    *ret_why = "there is no such time of day";
    if (hour > 23 || minute > 59 || second > 59)
        return false;
    *ret_ms += ((hour * 60 + minute) * 60 + second) * 1000;
    return !seconds || !take(s, '.') || take_fraction(s, ret_ms, ret_why);
}

/* Z, or how far the clocks of a place are ahead. */
static bool take_offset(struct slice *s, int64_t *ret_ms, const char **ret_why)
{
    int64_t hours, minutes = 0;
    if (take(s, 'Z') || take(s, 'z'))
        return true;
    bool ahead = take(s, '+');
    *ret_why = "behind the time comes Z or an offset as +01:00";
    if ((!ahead && !take(s, '-')) || !take_digits(s, 2, &hours))
        return false;
    bool colon = take(s, ':');
    if ((colon || s->n) && !take_digits(s, 2, &minutes))
        return false;
    *ret_why = "there is no such offset";
    if (hours > 15 || minutes > 59)
        return false;
    int64_t offset = (hours * 60 + minutes) * 60000;
    *ret_ms += ahead ? -offset : offset;
    return true;
}

bool timestamp_parse(struct slice text, int64_t *ret_ms, const char **ret_why)
{
    int64_t ms;
    *ret_why = "it is written as 2026-11-16T10:00:00.123Z, or in milliseconds";
    if (!take_date(&text, &ms, ret_why))
        return false;
    *ret_why = "nothing may follow";
    if (text.n) {
        if (!take(&text, 'T') && !take(&text, 't') && !take(&text, ' '))
            return false;
        if (!take_time(&text, &ms, ret_why) || (text.n && !take_offset(&text, &ms, ret_why)))
            return false;
        *ret_why = "nothing may follow";
        if (text.n)
            return false;
    }
    *ret_why = "it is out of range";
    if (ms < TIMESTAMP_MIN || ms > TIMESTAMP_MAX)
        return false;
    *ret_ms = ms;
    return true;
}

void timestamp_print(struct buf *out, int64_t ms)
{
    if (ms < TIMESTAMP_MIN || ms > TIMESTAMP_MAX) {
        buf_addf(out, "%lld", (long long)ms);
        return;
    }
    int64_t days = ms / DAY_MS - (ms % DAY_MS < 0);
    int in_day = (int)(ms - days * DAY_MS);
    int64_t year, month, day;
    date_of(days, &year, &month, &day);
    buf_addf(out, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", (int)year, (int)month, (int)day, in_day / 3600000,
             in_day / 60000 % 60, in_day / 1000 % 60, in_day % 1000);
}
