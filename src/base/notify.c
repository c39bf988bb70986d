#include "base/notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* A path, or with an "@" in front a name of Linux' abstract namespace, which begins with a NUL. */
static bool address_of(const char *name, struct sockaddr_un *to, socklen_t *ret_size)
{
    size_t n = strlen(name);
    bool abstract = name[0] == '@';
    if ((name[0] != '/' && !abstract) || n < 2 || n + !abstract > sizeof to->sun_path)
        return false;
    *to = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(to->sun_path, name, n);
    if (abstract)
        to->sun_path[0] = '\0';
    *ret_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + !abstract);
    return true;
}

bool notify_manager(const char *state)
{
    const char *name = getenv("NOTIFY_SOCKET");
    struct sockaddr_un to;
    socklen_t size;
    if (!name || !address_of(name, &to, &size))
        return false;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    size_t n = strlen(state);
    bool sent = sendto(fd, state, n, MSG_NOSIGNAL, (const struct sockaddr *)&to, size) == (ssize_t)n;
    close(fd);
    return sent;
}
