/* Runs a fuzz target over a saved corpus without libFuzzer: each argument is a file or a folder of files. */
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "fuzz.h"

static int replay_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    struct stat info;
    if (!f || fstat(fileno(f), &info) != 0) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        if (f)
            fclose(f);
        return -1;
    }
    size_t size = (size_t)info.st_size;
    uint8_t *data = malloc(size ? size : 1);
    if (!data || fread(data, 1, size, f) != size) {
        fprintf(stderr, "%s: cannot be read\n", path);
        fclose(f);
        free(data);
        return -1;
    }
    fclose(f);
    LLVMFuzzerTestOneInput(data, size);
    free(data);
    return 1;
}

/* How many inputs were run, or -1. */
static int replay(const char *path)
{
    DIR *dir = opendir(path);
    if (!dir)
        return replay_file(path);
    int total = 0;
    for (struct dirent *e = readdir(dir); e && total >= 0; e = readdir(dir)) {
        char name[4096];
        if (e->d_name[0] == '.')
            continue;
        snprintf(name, sizeof name, "%s/%s", path, e->d_name);
        total = replay_file(name) < 0 ? -1 : total + 1;
    }
    closedir(dir);
    return total;
}

int main(int argc, char **argv)
{
    int total = 0;
    for (int i = 1; i < argc; i++) {
        int n = replay(argv[i]);
        if (n < 0)
            return 1;
        total += n;
    }
    printf("%d inputs\n", total);
    return total > 0 ? 0 : 1;
}
