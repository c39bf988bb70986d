/* What a program that uses hiredis does: blocking calls, pipelines, binary values, a Unix socket, and the
   asynchronous interface on libevent. Usage: hiredis_client PORT [UNIX-SOCKET]. Exits 0 when all is well. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>
#include <hiredis/adapters/libevent.h>
#include <hiredis/async.h>
#include <hiredis/hiredis.h>

#define CHECK(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition);                          \
            exit(1);                                                                                         \
        }                                                                                                    \
    } while (0)

enum { PIPELINE = 1000, ASYNC_COMMANDS = 500 };

static void blocking(redisContext *c)
{
    redisReply *r = redisCommand(c, "PING");
    CHECK(r && r->type == REDIS_REPLY_STATUS && strcmp(r->str, "PONG") == 0);
    freeReplyObject(r);

    r = redisCommand(c, "SET %s %b", "hiredis:binary", "a\0b\r\n\xff", (size_t)6);
    CHECK(r && r->type == REDIS_REPLY_STATUS && strcmp(r->str, "OK") == 0);
    freeReplyObject(r);
    r = redisCommand(c, "GET hiredis:binary");
    CHECK(r && r->type == REDIS_REPLY_STRING && r->len == 6 && memcmp(r->str, "a\0b\r\n\xff", 6) == 0);
    freeReplyObject(r);

    r = redisCommand(c, "GET hiredis:missing");
    CHECK(r && r->type == REDIS_REPLY_NIL);
    freeReplyObject(r);
    r = redisCommand(c, "INCR hiredis:binary");
    CHECK(r && r->type == REDIS_REPLY_ERROR && strncmp(r->str, "ERR value is not an integer", 27) == 0);
    freeReplyObject(r);
    r = redisCommand(c, "MGET hiredis:binary hiredis:missing");
    CHECK(r && r->type == REDIS_REPLY_ARRAY && r->elements == 2);
    CHECK(r->element[0]->type == REDIS_REPLY_STRING && r->element[1]->type == REDIS_REPLY_NIL);
    freeReplyObject(r);
    r = redisCommand(c, "DEL hiredis:binary");
    CHECK(r && r->type == REDIS_REPLY_INTEGER && r->integer == 1);
    freeReplyObject(r);
}

static void pipelined(redisContext *c)
{
    for (int i = 0; i < PIPELINE; i++) {
        CHECK(redisAppendCommand(c, "SET hiredis:%d %d", i, i) == REDIS_OK);
        CHECK(redisAppendCommand(c, "INCRBY hiredis:%d 5", i) == REDIS_OK);
    }
    for (int i = 0; i < PIPELINE; i++) {
        redisReply *r = NULL;
        CHECK(redisGetReply(c, (void **)&r) == REDIS_OK && r->type == REDIS_REPLY_STATUS);
        freeReplyObject(r);
        CHECK(redisGetReply(c, (void **)&r) == REDIS_OK && r->type == REDIS_REPLY_INTEGER);
        CHECK(r->integer == i + 5);
        freeReplyObject(r);
    }
}

static void large(redisContext *c)
{
    size_t size = 8u << 20;
    char *value = malloc(size);
    CHECK(value);
    for (size_t i = 0; i < size; i++)
        value[i] = (char)(i * 2654435761u >> 13);
    redisReply *r = redisCommand(c, "SET hiredis:large %b", value, size);
    CHECK(r && r->type == REDIS_REPLY_STATUS);
    freeReplyObject(r);
    r = redisCommand(c, "GET hiredis:large");
    CHECK(r && r->type == REDIS_REPLY_STRING && (size_t)r->len == size && memcmp(r->str, value, size) == 0);
    freeReplyObject(r);
    r = redisCommand(c, "DEL hiredis:large");
    CHECK(r && r->type == REDIS_REPLY_INTEGER);
    freeReplyObject(r);
    free(value);
}

struct async_state {
    struct event_base *base;
    int replies;
    int connected, disconnected;
};

static void on_reply(redisAsyncContext *ac, void *reply, void *data)
{
    struct async_state *s = data;
    redisReply *r = reply;
    CHECK(r && r->type == REDIS_REPLY_INTEGER);
    CHECK(r->integer == ++s->replies);
    if (s->replies == ASYNC_COMMANDS)
        redisAsyncDisconnect(ac);
}

static void on_connect(const redisAsyncContext *ac, int status)
{
    struct async_state *s = ac->data;
    CHECK(status == REDIS_OK);
    s->connected = 1;
}

static void on_disconnect(const redisAsyncContext *ac, int status)
{
    struct async_state *s = ac->data;
    CHECK(status == REDIS_OK);
    s->disconnected = 1;
    event_base_loopbreak(s->base);
}

static void asynchronous(int port)
{
    struct async_state s = {.base = event_base_new()};
    CHECK(s.base);
    redisAsyncContext *ac = redisAsyncConnect("127.0.0.1", port);
    CHECK(ac && !ac->err);
    ac->data = &s;
    CHECK(redisLibeventAttach(ac, s.base) == REDIS_OK);
    CHECK(redisAsyncSetConnectCallback(ac, on_connect) == REDIS_OK);
    CHECK(redisAsyncSetDisconnectCallback(ac, on_disconnect) == REDIS_OK);
    for (int i = 0; i < ASYNC_COMMANDS; i++)
        CHECK(redisAsyncCommand(ac, on_reply, &s, "INCR hiredis:async") == REDIS_OK);
    event_base_dispatch(s.base);
    CHECK(s.connected && s.disconnected && s.replies == ASYNC_COMMANDS);
    event_base_free(s.base);
}

/* The server closes after QUIT; the same context connects again. */
static void reconnect(redisContext *c)
{
    redisReply *r = redisCommand(c, "QUIT");
    CHECK(r && r->type == REDIS_REPLY_STATUS);
    freeReplyObject(r);
    r = redisCommand(c, "PING");
    CHECK(!r && c->err);
    CHECK(redisReconnect(c) == REDIS_OK);
    r = redisCommand(c, "PING");
    CHECK(r && r->type == REDIS_REPLY_STATUS);
    freeReplyObject(r);
}

int main(int argc, char **argv)
{
    CHECK(argc >= 2);
    int port = atoi(argv[1]);
    struct timeval timeout = {.tv_sec = 60};
    redisContext *c = redisConnectWithTimeout("127.0.0.1", port, timeout);
    CHECK(c && !c->err);
    CHECK(redisSetTimeout(c, timeout) == REDIS_OK);
    blocking(c);
    pipelined(c);
    large(c);
    reconnect(c);
    redisFree(c);
    asynchronous(port);
    if (argc > 2) {
        c = redisConnectUnix(argv[2]);
        CHECK(c && !c->err);
        blocking(c);
        redisFree(c);
    }
    puts("ok");
    return 0;
}
