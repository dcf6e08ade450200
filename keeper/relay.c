#define _GNU_SOURCE
#include "relay.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { AT_ONCE = 64 << 10 };

/* One way: from a socket into a pipe, and on into the other socket. */
struct way {
    int pipe[2];
    size_t held; /* octets in the pipe */
    int has_ended, is_done;
};

struct side {
    struct source source;
    struct relay *relay;
};

struct relay {
    struct source anchor; /* for the discard */
    struct keeper *keeper;
    struct side sides[2]; /* client, peer */
    struct way ways[2];   /* ways[i]: from sides[i] to the other */
    int is_counted;
};

static void relay_close(struct relay *relay)
{
    for (int i = 0; i < 2; i++) {
        loop_close(&relay->keeper->loop, &relay->sides[i].source);
        for (int end = 0; end < 2; end++)
            if (relay->ways[i].pipe[end] >= 0)
                close(relay->ways[i].pipe[end]);
    }
    set_active(relay->keeper, &relay->is_counted, 0);
    loop_discard(&relay->keeper->loop, &relay->anchor);
}

static int is_would_block(void)
{
    return errno == EAGAIN || errno == EINTR;
}

/* Moves what can be moved; -1 where a side has failed. */
static int move(struct way *way, int from, int to)
{
    const unsigned flags = SPLICE_F_NONBLOCK | SPLICE_F_MOVE;
    if (!way->has_ended && !way->held) {
        ssize_t n = splice(from, NULL, way->pipe[1], NULL, AT_ONCE, flags);
        if (n < 0 && !is_would_block())
            return -1;
        way->has_ended = n == 0;
        way->held += n > 0 ? (size_t)n : 0;
    }
    while (way->held) {
        ssize_t n = splice(way->pipe[0], NULL, to, NULL, way->held, flags);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return 0;
        if (n <= 0)
            return -1;
        way->held -= (size_t)n;
    }
    if (way->has_ended && !way->is_done) {
        way->is_done = 1;
        shutdown(to, SHUT_WR);
    }
    return 0;
}

/* A side with nothing to wait for is taken out: a hang-up would be told again and again. */
static void listen_to(struct relay *relay, int index)
{
    struct source *source = &relay->sides[index].source;
    const struct way *in = &relay->ways[index], *out = &relay->ways[!index];
    uint32_t events = (!in->has_ended && !in->held ? EPOLLIN : 0) | (out->held ? EPOLLOUT : 0);
    loop_listen(&relay->keeper->loop, source, events);
}

static void work(struct relay *relay)
{
    for (int i = 0; i < 2; i++)
        if (move(&relay->ways[i], relay->sides[i].source.fd, relay->sides[!i].source.fd) < 0) {
            relay_close(relay);
            return;
        }
    if (relay->ways[0].is_done && relay->ways[1].is_done) {
        relay_close(relay);
        return;
    }
    listen_to(relay, 0);
    listen_to(relay, 1);
}

static void on_side(struct source *source, uint32_t events)
{
    const struct side *side = OWNER(struct side, source, source);
    if (events & EPOLLERR) {
        relay_close(side->relay);
        return;
    }
    work(side->relay);
}

static int open_way(struct way *way)
{
    return pipe2(way->pipe, O_CLOEXEC | O_NONBLOCK);
}

void relay_start(struct keeper *keeper, int client, int peer, const uint8_t *early, size_t size, int is_counted)
{
    struct relay *relay = calloc(1, sizeof *relay);
    if (!relay) {
        close(client);
        close(peer);
        return;
    }
    relay->keeper = keeper;
    for (int i = 0; i < 2; i++) {
        relay->ways[i].pipe[0] = relay->ways[i].pipe[1] = -1;
        relay->sides[i] = (struct side){{.fd = i ? peer : client, .ready = on_side}, relay};
    }
    set_active(keeper, &relay->is_counted, is_counted);
    if (open_way(&relay->ways[0]) < 0 || open_way(&relay->ways[1]) < 0) {
        relay_close(relay);
        return;
    }
    if (size && write(relay->ways[0].pipe[1], early, size) != (ssize_t)size) {
        relay_close(relay);
        return;
    }
    relay->ways[0].held = size;
    work(relay);
}
