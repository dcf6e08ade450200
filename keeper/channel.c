#define _GNU_SOURCE
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    PIPE_OCTETS = 1 << 20,
    MOST_LAST = 1 << 16, /* octets of one who is gone that are looked through */
    AGAIN_MS = 100,      /* until it is looked whether what is waited for is still there */
};

static void listen_to(struct run *run)
{
    const struct conn *owner = run->owner;
    int is_held = owner && (owner->is_blocked || owner->splice_left);
    int is_early = owner && (run->channel.before[0] || run->channel.before[1]);
    loop_listen(&run->keeper->loop, &run->channel.end.source, is_held || is_early ? 0 : EPOLLIN);
}

/* What a frame has announced is on its way, and counted. */
static size_t output_waiting(const struct run *run, int index)
{
    const struct conn *owner = run->owner;
    size_t size = waiting_octets(&run->outputs[index]);
    size_t moving = owner && owner->splice_index == index ? owner->splice_left : 0;
    return size > moving ? size - moving : 0;
}

/*
 * What was printed before something is said is in its pipe by then: so much of each is handed on first.
 * More may be printed at any time, by threads or children; that is not waited for.
 */
static void announce(struct run *run)
{
    struct channel *channel = &run->channel;
    channel->announced = waiting_octets(&channel->end);
    for (int i = 0; i < 2; i++)
        channel->before[i] = channel->announced ? output_waiting(run, i) : 0;
}

/* Returns 0 at the end of the pipe. */
static int hand_on(struct run *run)
{
    struct channel *channel = &run->channel;
    struct conn *owner = run->owner;
    uint8_t *scratch = run->keeper->scratch;
    size_t room = channel->announced && channel->announced < SCRATCH_SIZE ? channel->announced : SCRATCH_SIZE;
    ssize_t n = read(channel->end.source.fd, scratch + HEADER_SIZE, room);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 1;
    if (n <= 0)
        return 0;
    channel->announced -= (size_t)n < channel->announced ? (size_t)n : channel->announced;
    if (n == SCRATCH_SIZE && !channel->end.is_bulk) {
        channel->end.is_bulk = 1;
        fcntl(channel->end.source.fd, F_SETPIPE_SZ, PIPE_OCTETS); /* may be refused: then it stays as it is */
    }
    if (!owner)
        return 1; /* an answer that nobody waits for any more */
    put_header(scratch, DATA, (uint32_t)n);
    conn_queue(owner, scratch, HEADER_SIZE + (size_t)n);
    if (n > SCRATCH_SIZE / 4)
        conn_flush(owner);
    return 1;
}

/* Code may have read its own output away. */
static void lower(struct run *run)
{
    for (int i = 0; i < 2; i++) {
        size_t size = run->channel.before[i] ? output_waiting(run, i) : 0;
        if (run->channel.before[i] > size)
            run->channel.before[i] = size;
    }
}

void channel_feed(struct run *run)
{
    struct channel *channel = &run->channel;
    const struct conn *owner = run->owner;
    if (channel->end.source.fd < 0)
        return;
    lower(run);
    if (!run->has_ended && (channel->before[0] || channel->before[1]))
        timer_set(&run->keeper->loop, &run->drain, now_ms() + AGAIN_MS);
    int is_held = owner && (owner->is_blocked || owner->splice_left || channel->before[0] || channel->before[1]);
    if (!is_held && channel->announced && !hand_on(run)) {
        loop_close(&run->keeper->loop, &channel->end.source);
        return;
    }
    listen_to(run);
}

static void on_channel(struct source *source, uint32_t events)
{
    struct run *run = OWNER(struct pipe_end, source, source)->run;
    (void)events;
    if (!run->channel.announced)
        announce(run);
    if (!run->channel.announced && !hand_on(run))
        loop_close(&run->keeper->loop, source);
    else
        channel_feed(run);
}

void channel_open(struct run *run, int fd)
{
    run->channel.end = (struct pipe_end){.source = {.fd = fd, .ready = on_channel}, .run = run};
    if (fd >= 0)
        loop_add(&run->keeper->loop, &run->channel.end.source, EPOLLIN);
}

void channel_close(struct run *run)
{
    loop_close(&run->keeper->loop, &run->channel.end.source);
}

void channel_note(struct run *run, int index, size_t size)
{
    size_t *before = &run->channel.before[index];
    if (!*before)
        return;
    *before -= size < *before ? size : *before;
    if (!*before)
        channel_feed(run);
}

static void leave_queue(struct conn *conn)
{
    struct conn **at = &conn->run->channel.waiting;
    while (*at && *at != conn)
        at = &(*at)->next_follower;
    if (*at)
        *at = conn->next_follower;
    conn->next_follower = NULL;
}

static const struct operation waiting_operation = {.gone = leave_queue};

static void become_owner(struct run *run, struct conn *conn)
{
    conn->is_owner = 1;
    conn->offset = run->output.total;
    run->owner = conn;
    run->channel.is_at_rest = 0;
    follow_begin(run, conn);
    follow_update_interest(run);
}

void channel_own(struct run *run, struct conn *conn)
{
    conn->run = run;
    conn->follows = 1;
    if (!run->owner) {
        become_owner(run, conn);
        return;
    }
    struct conn **at = &run->channel.waiting;
    while (*at)
        at = &(*at)->next_follower;
    *at = conn;
    conn->next_follower = NULL;
    conn->operation = &waiting_operation;
}

static struct conn *take_next(struct run *run)
{
    struct conn *next = run->channel.waiting;
    if (next)
        leave_queue(next);
    return next;
}

/* Its last word may not have been read yet, where it was found to be gone by writing to it. */
static int has_said_end(const struct conn *conn)
{
    uint8_t last[HEADER_SIZE], end[HEADER_SIZE], octet;
    size_t size = conn->in_used < sizeof last ? 0 : sizeof last;
    put_header(end, END, 0);
    if (size)
        memcpy(last, conn->in + conn->in_used - size, size);
    for (int most = MOST_LAST; most && recv(conn->source.fd, &octet, 1, MSG_DONTWAIT) == 1; most--) {
        memmove(last, last + 1, sizeof last - 1);
        last[sizeof last - 1] = octet;
        size = size < sizeof last ? size + 1 : size;
    }
    return size == sizeof last && memcmp(last, end, sizeof end) == 0;
}

void channel_pass_on(struct run *run, const struct conn *last)
{
    if (!run->channel.is_at_rest && !has_said_end(last) && !run->has_ended && run->pid > 0)
        kill(-run->pid, SIGINT);
    struct conn *next = take_next(run);
    if (next)
        become_owner(run, next);
    else
        channel_feed(run);
}

void channel_fail(struct run *run, int code, const char *message)
{
    for (struct conn *conn; (conn = take_next(run));) {
        conn->operation = NULL;
        conn_fail(conn, code, message);
    }
}

void channel_finish(struct run *run)
{
    struct channel *channel = &run->channel;
    channel->before[0] = channel->before[1] = 0;
    channel->announced = waiting_octets(&channel->end);
    /* Others may hold the pipe and write to it for ever: what waits is enough. */
    for (size_t last = 0; channel->announced && channel->announced != last;) {
        last = channel->announced;
        if (!hand_on(run))
            break;
    }
    channel_close(run);
    for (struct conn *conn; (conn = take_next(run));) {
        conn->offset = run->output.total;
        follow_begin(run, conn);
    }
}
