#include "net/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/mem.h"

void listener_init(struct listener *l)
{
    *l = (struct listener){.spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC)};
}

void listener_close(struct listener *l)
{
    for (size_t i = 0; i < l->n; i++)
        close(l->fds[i]);
    l->n = 0;
    if (l->path)
        unlink(l->path);
    mem_free(l->path);
    l->path = NULL;
    if (l->spare_fd >= 0)
        close(l->spare_fd);
    l->spare_fd = -1;
}

static enum status add_fd(struct listener *l, int fd, bool local, struct error *err)
{
    if (l->n == LISTENER_MAX) {
        close(fd);
        return error_set(err, ST_INVALID, "too many addresses to listen on (at most %d)", LISTENER_MAX - 1);
    }
    l->fds[l->n] = fd;
    l->local[l->n++] = local;
    return ST_OK;
}

static int bound_port(int fd)
{
    struct sockaddr_storage ss;
    socklen_t len = sizeof ss;
    memset(&ss, 0, sizeof ss);
    if (getsockname(fd, (struct sockaddr *)&ss, &len) != 0)
        return 0;
    if (ss.ss_family == AF_INET6)
        return ntohs(((struct sockaddr_in6 *)&ss)->sin6_port);
    return ntohs(((struct sockaddr_in *)&ss)->sin_port);
}

/* A listening socket on one resolved address, or -1 with errno. */
static int open_socket(const struct addrinfo *ai, int backlog)
{
    int fd = socket(ai->ai_family, ai->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, ai->ai_protocol);
    if (fd < 0)
        return -1;
    int one = 1;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0 &&
        (ai->ai_family != AF_INET6 || setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one) == 0) &&
        bind(fd, ai->ai_addr, ai->ai_addrlen) == 0 && listen(fd, backlog) == 0)
        return fd;
    int saved = errno;
    close(fd);
    errno = saved;
    return -1;
}

static bool may_be_missing(int error)
{
    return error == EADDRNOTAVAIL || error == EAFNOSUPPORT || error == EPROTONOSUPPORT ||
           error == ESOCKTNOSUPPORT || error == EPFNOSUPPORT || error == ENOPROTOOPT;
}

static enum status open_address(struct listener *l, const char *address, int port, int backlog,
                                struct error *err)
{
    bool optional = address[0] == '-';
    const char *host = address + optional;
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    if (strcmp(host, "*") == 0) {
        hints.ai_family = AF_INET;
        host = NULL;
    } else if (strcmp(host, "::*") == 0) {
        hints.ai_family = AF_INET6;
        host = NULL;
    }
    char service[16];
    snprintf(service, sizeof service, "%d", port);
    struct addrinfo *found = NULL;
    int gai = getaddrinfo(host, service, &hints, &found);
    if (gai != 0) {
        if (optional)
            return ST_OK;
        return error_set(err, ST_INVALID, "cannot listen on %s: %s", address, gai_strerror(gai));
    }
    int fd = open_socket(found, backlog);
    freeaddrinfo(found);
    if (fd >= 0)
        return add_fd(l, fd, false, err);
    if (optional && may_be_missing(errno))
        return ST_OK;
    enum status code = errno == EACCES ? ST_DENIED : ST_IO;
    return error_set(err, code, "cannot listen on %s port %d: %s", address, port, strerror(errno));
}

enum status listener_open_tcp(struct listener *l, const char *bind_list, int port, int backlog,
                              struct error *err)
{
    char *list = mem_strdup(bind_list);
    char *rest = NULL;
    size_t before = l->n;
    enum status st = ST_OK;
    for (char *word = strtok_r(list, " \t", &rest); word && st == ST_OK;
         word = strtok_r(NULL, " \t", &rest)) {
        size_t n = l->n;
        st = open_address(l, word, port, backlog, err);
        if (st == ST_OK && port == 0 && l->n > n)
            port = bound_port(l->fds[n]);
    }
    mem_free(list);
    if (st == ST_OK && l->n == before)
        st = error_set(err, ST_INVALID, "none of the addresses in bind can be listened on: %s", bind_list);
    if (st == ST_OK)
        l->port = port;
    return st;
}

/* Only a socket on which no process answers is stale; anything else at that path is not ours to remove. */
static enum status remove_stale(const struct sockaddr_un *sun, struct error *err)
{
    struct stat info;
    if (lstat(sun->sun_path, &info) != 0)
        return ST_OK;
    if (!S_ISSOCK(info.st_mode))
        return error_set(err, ST_INVALID, "cannot listen on %s: it exists and is not a socket",
                         sun->sun_path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return error_set(err, ST_IO, "cannot open a Unix socket: %s", strerror(errno));
    bool answered = connect(fd, (const struct sockaddr *)sun, sizeof *sun) == 0 || errno == EAGAIN;
    close(fd);
    if (answered)
        return error_set(err, ST_LOCKED, "cannot listen on %s: another server does", sun->sun_path);
    if (unlink(sun->sun_path) != 0)
        return error_set(err, ST_DENIED, "cannot replace %s: %s", sun->sun_path, strerror(errno));
    return ST_OK;
}

enum status listener_open_unix(struct listener *l, const char *path, unsigned mode, int backlog,
                               struct error *err)
{
    struct sockaddr_un sun = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof sun.sun_path)
        return error_set(err, ST_INVALID, "the path of the Unix socket is too long: %s", path);
    memcpy(sun.sun_path, path, strlen(path) + 1);
    enum status st = remove_stale(&sun, err);
    if (st != ST_OK)
        return st;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return error_set(err, ST_IO, "cannot open a Unix socket: %s", strerror(errno));
    if (bind(fd, (struct sockaddr *)&sun, sizeof sun) != 0 || (mode && chmod(path, (mode_t)mode) != 0) ||
        listen(fd, backlog) != 0) {
        st = error_set(err, errno == EACCES ? ST_DENIED : ST_IO, "cannot listen on %s: %s", path,
                       strerror(errno));
        close(fd);
        return st;
    }
    st = add_fd(l, fd, true, err);
    if (st == ST_OK)
        l->path = mem_strdup(path);
    return st;
}

/* Without a descriptor a waiting client can be neither served nor refused, and its socket stays readable for
   ever. The spare one makes room to take it and hang up. */
static enum accept_result refuse_one(struct listener *l, int fd)
{
    if (l->spare_fd < 0)
        return ACCEPT_STARVED;
    close(l->spare_fd);
    int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
    int error = errno;
    if (client >= 0)
        close(client);
    l->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (client >= 0)
        return ACCEPT_REFUSED;
    return error == EAGAIN || error == EWOULDBLOCK ? ACCEPT_NONE : ACCEPT_STARVED;
}

enum accept_result listener_accept(struct listener *l, size_t i, struct conn *ret_conn)
{
    int fd = accept4(l->fds[i], NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
        *ret_conn = (struct conn){.fd = fd, .local = l->local[i]};
        return ACCEPT_OK;
    }
    switch (errno) {
    case EMFILE:
    case ENFILE:
        return refuse_one(l, l->fds[i]);
    case ENOBUFS:
    case ENOMEM:
        return ACCEPT_STARVED;
    default:
        return ACCEPT_NONE;
    }
}
