/* Listening sockets: bind lists, Unix sockets, and the end of descriptors. */
#include <errno.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "check.h"
#include "net/listener.h"

static struct error err;

static int dial(const char *path)
{
    struct sockaddr_un sun = {.sun_family = AF_UNIX};
    snprintf(sun.sun_path, sizeof sun.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(connect(fd, (struct sockaddr *)&sun, sizeof sun) == 0);
    return fd;
}

static void bind_lists(void)
{
    struct listener l;
    listener_init(&l);
    CHECK_OK(listener_open_tcp(&l, "127.0.0.1 -192.0.2.77", 0, 16, &err), &err);
    CHECK_EQ(l.n, 1);
    CHECK(l.port > 0);
    int port = l.port;
    struct listener other;
    listener_init(&other);
    CHECK_EQ(listener_open_tcp(&other, "127.0.0.1", port, 16, &err), ST_IO);
    CHECK(strstr(err.text, "127.0.0.1") != NULL);
    CHECK_EQ(listener_open_tcp(&other, "-192.0.2.77", port, 16, &err), ST_INVALID);
    CHECK_EQ(listener_open_tcp(&other, "", port, 16, &err), ST_INVALID);
    listener_close(&other);
    listener_close(&l);
}

static void unix_sockets(void)
{
    char folder[] = P_tmpdir "/larder-test-XXXXXX", path[64], file[64];
    REQUIRE(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/socket", folder);
    snprintf(file, sizeof file, "%s/file", folder);
    struct listener l, other;
    listener_init(&l);
    listener_init(&other);
    CHECK_OK(listener_open_unix(&l, path, 0700, 16, &err), &err);
    struct stat info;
    CHECK(stat(path, &info) == 0 && (info.st_mode & 0777) == 0700);
    /* one that is served is not taken away, nor is a file that is no socket */
    CHECK_EQ(listener_open_unix(&other, path, 0, 16, &err), ST_LOCKED);
    FILE *f = fopen(file, "w");
    REQUIRE(f != NULL);
    fclose(f);
    CHECK_EQ(listener_open_unix(&other, file, 0, 16, &err), ST_INVALID);
    /* a stale one is replaced */
    close(l.fds[0]);
    l.n = 0;
    CHECK_OK(listener_open_unix(&other, path, 0, 16, &err), &err);
    int client = dial(path);
    struct conn conn;
    CHECK_EQ(listener_accept(&other, 0, &conn), ACCEPT_OK);
    CHECK(conn.local && conn_is_loopback(&conn));
    char peer[CONN_ADDR_CHARS], self[CONN_ADDR_CHARS], prefetch[CONN_ADDR_CHARS];
    conn_addresses(&conn, other.path, peer, self);
    snprintf(prefetch, sizeof prefetch, "%s:0", path);
    CHECK_STR(peer, prefetch);
    CHECK_EQ(listener_accept(&other, 0, &(struct conn){0}), ACCEPT_NONE);
    conn_close(&conn);
    close(client);
    listener_close(&other);
    listener_close(&l);
    CHECK(access(path, F_OK) != 0);
    unlink(file);
    CHECK(rmdir(folder) == 0);
}

/* Without a descriptor left, waiting clients are turned away rather than left to wake the loop for ever. */
static void no_descriptors(void)
{
    char folder[] = P_tmpdir "/larder-test-XXXXXX", path[64];
    REQUIRE(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/socket", folder);
    struct listener l;
    listener_init(&l);
    REQUIRE_OK(listener_open_unix(&l, path, 0, 16, &err), &err);
    int a = dial(path), b = dial(path);
    struct rlimit before, none;
    REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
    none = before;
    none.rlim_cur = (rlim_t)b + 1; /* all below are taken */
    REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
    struct conn conn;
    CHECK_EQ(listener_accept(&l, 0, &conn), ACCEPT_REFUSED);
    CHECK_EQ(listener_accept(&l, 0, &conn), ACCEPT_REFUSED);
    CHECK_EQ(listener_accept(&l, 0, &conn), ACCEPT_NONE);
    CHECK(l.spare_fd >= 0);
    REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
    char byte;
    CHECK_EQ(recv(a, &byte, 1, 0), 0);
    CHECK_EQ(recv(b, &byte, 1, 0), 0);
    close(a);
    close(b);
    int c = dial(path);
    CHECK_EQ(listener_accept(&l, 0, &conn), ACCEPT_OK);
    conn_close(&conn);
    close(c);
    listener_close(&l);
    CHECK(rmdir(folder) == 0);
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    RUN(bind_lists);
    RUN(unix_sockets);
    RUN(no_descriptors);
    return check_done();
}
