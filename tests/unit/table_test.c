/* The command table: every name is found in any case and nothing else is, numbers are dense, and each entry
   has what COMMAND, the documentation and dispatch need. */
#include "check.h"

#include <ctype.h>
#include <string.h>

#include "exec/command.h"

static void every_name_is_found(void)
{
    for (int i = 0; command_at(i); i++) {
        const struct command *c = command_at(i);
        char name[COMMAND_NAME_CHARS];
        size_t n = strlen(c->name);
        memcpy(name, c->name, n + 1);
        CHECK(command_find(slice_of(name, n)) == c);
        for (size_t j = 0; j < n; j += 2)
            name[j] = (char)toupper((unsigned char)name[j]);
        CHECK(command_find(slice_of(name, n)) == c);
        for (size_t j = 0; j < n; j++)
            name[j] = (char)toupper((unsigned char)name[j]);
        CHECK(command_find(slice_of(name, n)) == c);
    }
}

/* Any one byte changed to anything but its other case makes another name. */
static void nothing_else_is_found(void)
{
    for (int i = 0; command_at(i); i++) {
        const struct command *c = command_at(i);
        char name[COMMAND_NAME_CHARS];
        size_t n = strlen(c->name);
        memcpy(name, c->name, n + 1);
        for (size_t j = 0; j < n; j++) {
            for (int byte = 0; byte < 256; byte++) {
                name[j] = (char)byte;
                const struct command *found = command_find(slice_of(name, n));
                if (tolower(byte) == (unsigned char)c->name[j])
                    CHECK(found == c);
                else
                    CHECK(found != c);
            }
            name[j] = c->name[j];
        }
        CHECK(command_find(slice_of(name, n - 1)) != c);
        CHECK(command_find(slice_of(name, n + 1)) == NULL);
    }
    CHECK(command_find(SLICE("")) == NULL);
    CHECK(command_find(SLICE("a name that is longer than any command's")) == NULL);
}

/* What only the HTTP API runs: counted, but in no list. */
static bool is_internal(const struct command *c)
{
    return strcmp(c->group, "http") == 0;
}

static void numbers(void)
{
    for (int i = 0; i < command_count(); i++) {
        const struct command *parent, *c = command_by_index(i, &parent);
        char name[COMMAND_NAME_CHARS];
        CHECK(command_index(c) == i);
        CHECK(command_parent(c) == parent);
        command_full_name(c, name);
        CHECK(command_find_full(slice_str(name)) == (is_internal(c) ? NULL : c));
        if (parent)
            CHECK(command_find_sub(parent, slice_str(c->name)) == c);
    }
    CHECK(command_find_full(SLICE("client|")) == NULL);
    CHECK(command_find_full(SLICE("|id")) == NULL);
    CHECK(command_find_full(SLICE("get|x")) == NULL);
}

static void entries_are_whole(void)
{
    for (int i = 0; i < command_count(); i++) {
        const struct command *c = command_by_index(i, NULL);
        CHECK(c->fn || c->subs);
        CHECK(c->arity != 0);
        if (!is_internal(c)) {
            CHECK(c->summary && c->since && c->group && c->complexity);
            CHECK(c->categories & (CAT_FAST | CAT_SLOW));
            CHECK(((c->flags & CMD_FAST) != 0) == ((c->categories & CAT_FAST) != 0));
        }
        CHECK(!(c->flags & CMD_WRITE) || !(c->flags & CMD_READONLY));
        for (int k = 0; k < COMMAND_KEY_SPECS && c->keys[k].flags; k++) {
            CHECK(c->keys[k].step > 0);
            CHECK(!(c->keys[k].flags & KEY_VARIABLE) || c->key_flags);
        }
    }
}

static int keys_of(const char *const *words, int argc, int *index)
{
    struct slice argv[16];
    for (int i = 0; i < argc; i++)
        argv[i] = slice_str(words[i]);
    const struct command *c = command_find(argv[0]);
    return command_keys(c, argv, argc, index, NULL, 16);
}

static void keys(void)
{
    int index[16];
    const char *const mset[] = {"mset", "a", "1", "b", "2"};
    CHECK(keys_of(mset, 5, index) == 2 && index[0] == 1 && index[1] == 3);
    const char *const bitop[] = {"bitop", "and", "d", "a", "b"};
    CHECK(keys_of(bitop, 5, index) == 3 && index[0] == 2 && index[2] == 4);
    CHECK(keys_of(bitop, 3, index) == 1);
    const char *const get[] = {"get", "a"};
    CHECK(keys_of(get, 2, index) == 1 && index[0] == 1);
    const char *const ping[] = {"ping", "a"};
    CHECK(keys_of(ping, 2, index) == 0);
}

/* Specs that no command of this version has yet. */
static void other_specs(void)
{
    static const struct command counted = {
        .name = "counted",
        .keys = {{.flags = KEY_RO, .index = 1, .keynum = true, .first = 0, .keynum_first = 1, .step = 1}}};
    static const struct command worded = {
        .name = "worded",
        .keys = {{.flags = KEY_RO, .keyword = "STREAMS", .index = 1, .last = -1, .step = 1, .limit = 2}}};
    int index[8];
    struct slice two[] = {SLICE("counted"), SLICE("2"), SLICE("a"), SLICE("b"), SLICE("LIMIT")};
    CHECK(command_keys(&counted, two, 5, index, NULL, 8) == 2 && index[0] == 2 && index[1] == 3);
    two[1] = SLICE("9");
    CHECK(command_keys(&counted, two, 5, index, NULL, 8) == -1);
    two[1] = SLICE("x");
    CHECK(command_keys(&counted, two, 5, index, NULL, 8) == -1);
    struct slice word[] = {SLICE("worded"), SLICE("COUNT"), SLICE("5"), SLICE("streams"),
                           SLICE("a"),      SLICE("b"),     SLICE("0"), SLICE("0")};
    CHECK(command_keys(&worded, word, 8, index, NULL, 8) == 2 && index[0] == 4 && index[1] == 5);
    CHECK(command_keys(&worded, word, 3, index, NULL, 8) == 0);
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    RUN(every_name_is_found);
    RUN(nothing_else_is_found);
    RUN(numbers);
    RUN(entries_are_whole);
    RUN(keys);
    RUN(other_specs);
    return check_done();
}
