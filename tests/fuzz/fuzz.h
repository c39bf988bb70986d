/* What every fuzzer has: the function that libFuzzer, or replay.c, calls with an input, and how it ends when
   a promise does not hold. */
#ifndef LARDER_TESTS_FUZZ_FUZZ_H
#define LARDER_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK_OR_DIE(cond)                                                                                   \
    do {                                                                                                     \
        if (!(cond)) {                                                                                       \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond);                                       \
            abort();                                                                                         \
        }                                                                                                    \
    } while (0)

#endif
