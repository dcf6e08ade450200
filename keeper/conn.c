#define _GNU_SOURCE
#include "conn.h"
#include "requests.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FIRST_OUT = 256 };

static void update_interest(struct conn *conn)
{
    uint32_t events = 0;
    if (!conn->is_paused && !conn->is_ended && !conn->is_closing)
        events |= EPOLLIN;
    if (conn->is_blocked)
        events |= EPOLLOUT;
    loop_change(&conn->keeper->loop, &conn->source, events);
}

static void unlink_conn(struct conn *conn)
{
    struct keeper *keeper = conn->keeper;
    timer_stop(&conn->timer);
    set_active(keeper, &conn->is_counted, 0);
    if (conn->previous)
        conn->previous->next = conn->next;
    else
        keeper->conns = conn->next;
    if (conn->next)
        conn->next->previous = conn->previous;
    for (struct conn **at = &keeper->dirty; *at; at = &(*at)->next_dirty)
        if (*at == conn) {
            *at = conn->next_dirty;
            break;
        }
    keeper->conn_count--;
    free(conn->in);
    free(conn->out);
    conn->in = conn->out = NULL;
    loop_discard(&keeper->loop, &conn->source);
}

void conn_close(struct conn *conn)
{
    const struct operation *operation = conn->operation;
    if (conn->source.fd < 0)
        return;
    conn->operation = NULL;
    if (operation && operation->gone)
        operation->gone(conn);
    loop_close(&conn->keeper->loop, &conn->source);
    unlink_conn(conn);
}

int conn_release(struct conn *conn)
{
    int fd = conn->source.fd;
    loop_remove(&conn->keeper->loop, &conn->source);
    conn->source.fd = -1;
    conn->operation = NULL;
    unlink_conn(conn);
    return fd;
}

static int reserve(uint8_t **buffer, size_t *size, size_t wanted)
{
    if (wanted <= *size)
        return 0;
    uint8_t *grown = realloc(*buffer, wanted);
    if (!grown)
        return -ENOMEM;
    *buffer = grown;
    *size = wanted;
    return 0;
}

void conn_queue(struct conn *conn, const void *data, size_t size)
{
    if (conn->source.fd < 0)
        return;
    size_t wanted = conn->out_used + size;
    if (wanted > conn->out_size && reserve(&conn->out, &conn->out_size, wanted < FIRST_OUT ? FIRST_OUT : wanted) < 0) {
        conn_close(conn);
        return;
    }
    memcpy(conn->out + conn->out_used, data, size);
    conn->out_used += size;
    if (conn->is_dirty)
        return;
    conn->is_dirty = 1;
    conn->next_dirty = conn->keeper->dirty;
    conn->keeper->dirty = conn;
}

void conn_send(struct conn *conn, const struct frame *frame)
{
    uint8_t buffer[512];
    long size = frame_encode(frame, buffer, sizeof buffer);
    if (size > 0)
        conn_queue(conn, buffer, (size_t)size);
}

int conn_flush(struct conn *conn)
{
    size_t sent = 0;
    while (sent < conn->out_used) {
        ssize_t n = send(conn->source.fd, conn->out + sent, conn->out_used - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM))
            break;
        if (n < 0) {
            conn_close(conn);
            return 0;
        }
        sent += (size_t)n;
    }
    if (sent)
        memmove(conn->out, conn->out + sent, conn->out_used - sent);
    conn->out_used -= sent;
    conn->is_blocked = conn->out_used > 0;
    if (conn->out_used == 0 && conn->out_size > SCRATCH_SIZE) {
        free(conn->out);
        conn->out = NULL;
        conn->out_size = 0;
    }
    update_interest(conn);
    return !conn->is_blocked;
}

int conns_flush(void *of)
{
    struct keeper *keeper = of;
    while (keeper->dirty) {
        struct conn *conn = keeper->dirty;
        keeper->dirty = conn->next_dirty;
        conn->is_dirty = 0;
        if (conn->is_blocked)
            continue;
        if (conn_flush(conn) && conn->is_closing)
            conn_close(conn);
    }
    return keeper->loop.dead != NULL;
}

void conn_finish(struct conn *conn)
{
    if (conn->source.fd < 0)
        return;
    conn->is_closing = 1;
    if (!conn->out_used) {
        conn_close(conn);
        return;
    }
    timer_set(&conn->keeper->loop, &conn->timer, now_ms() + REQUEST_MS);
    update_interest(conn);
}

void conn_fail(struct conn *conn, int code, const char *message)
{
    struct frame reply = {.type = ERROR, .code = (uint32_t)code};
    reply.message = (struct octets){(const uint8_t *)message, (uint32_t)strlen(message)};
    conn_send(conn, &reply);
    conn_finish(conn);
}

void conn_ok(struct conn *conn, uint64_t value)
{
    conn_send(conn, &(struct frame){.type = OK, .value = value});
    conn_finish(conn);
}

/* Handles the complete frames of `data`; returns how much of it is used up. */
static size_t handle_frames(struct conn *conn, uint8_t *data, size_t size)
{
    size_t used = 0;
    while (conn->source.fd >= 0 && !conn->is_paused && !conn->is_closing && size - used >= HEADER_SIZE) {
        uint32_t length = get_u32(data + used);
        uint8_t type = data[used + 4];
        if (length > MAX_PAYLOAD) {
            conn_fail(conn, EMSGSIZE, "a frame is longer than 1 MiB");
            return size;
        }
        if (size - used - HEADER_SIZE < length)
            break;
        uint8_t *payload = data + used + HEADER_SIZE;
        size_t next = used + HEADER_SIZE + length;
        conn->rest = data + next;
        conn->rest_size = size - next;
        if (!conn->operation) {
            if (request_must_wait(conn, type)) {
                timer_stop(&conn->timer);
                conn->is_waiting = conn->is_paused = 1;
                break;
            }
            timer_stop(&conn->timer);
            handle_request(conn, type, payload, length);
        } else if (conn->operation->frame) {
            conn->operation->frame(conn, type, payload, length);
        } else {
            conn_close(conn); /* nothing may follow such a request */
        }
        conn->rest_size = 0;
        if (conn->is_handed_over)
            return size;
        used = next;
    }
    return used;
}

/* Keeps in `in` what of `data` is not handled yet. */
static void keep_rest(struct conn *conn, const uint8_t *data, size_t size)
{
    if (conn->source.fd < 0)
        return;
    if (size && reserve(&conn->in, &conn->in_size, size) < 0) {
        conn_close(conn);
        return;
    }
    if (size)
        memmove(conn->in, data, size);
    conn->in_used = size;
    if (!size) {
        free(conn->in);
        conn->in = NULL;
        conn->in_size = 0;
    }
    update_interest(conn);
}

static void read_more(struct conn *conn)
{
    struct keeper *keeper = conn->keeper;
    uint8_t *to = keeper->scratch;
    size_t room = SCRATCH_SIZE;
    if (conn->in_used) {
        size_t wanted = conn->in_used >= HEADER_SIZE ? HEADER_SIZE + (size_t)get_u32(conn->in) : HEADER_SIZE;
        if (wanted < conn->in_used)
            wanted = conn->in_used + HEADER_SIZE;
        if (reserve(&conn->in, &conn->in_size, wanted) < 0) {
            conn_close(conn);
            return;
        }
        to = conn->in + conn->in_used;
        room = conn->in_size - conn->in_used;
    }
    ssize_t n = recv(conn->source.fd, to, room, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n < 0) {
        conn_close(conn);
        return;
    }
    if (n == 0) {
        conn->is_ended = 1;
        if (!conn->operation)
            conn_close(conn);
        else
            update_interest(conn);
        return;
    }
    uint8_t *data = conn->in_used ? conn->in : keeper->scratch;
    size_t size = conn->in_used + (size_t)n;
    size_t used = handle_frames(conn, data, size);
    keep_rest(conn, data + used, size - used);
}

void conn_pause(struct conn *conn)
{
    conn->is_paused = 1;
    update_interest(conn);
}

void conn_hand_over(struct conn *conn)
{
    conn->is_handed_over = 1;
    conn_pause(conn);
}

void conn_resume(struct conn *conn)
{
    if (!conn->is_paused || conn->source.fd < 0)
        return;
    conn->is_paused = 0;
    uint8_t *in = conn->in;
    size_t size = conn->in_used, used = 0;
    if (size)
        used = handle_frames(conn, in, size);
    keep_rest(conn, in + used, size - used);
}

static void on_ready(struct source *source, uint32_t events)
{
    struct conn *conn = OWNER(struct conn, source, source);
    if (events & EPOLLIN && !conn->is_paused)
        read_more(conn);
    if (source->fd < 0)
        return;
    if (events & (EPOLLHUP | EPOLLERR) && (conn->is_paused || conn->is_ended || !(events & EPOLLIN))) {
        if (conn->operation && conn->operation->hangup)
            conn->operation->hangup(conn);
        else
            conn_close(conn);
        return;
    }
    if (!(events & EPOLLOUT) || !conn->is_blocked)
        return;
    if (!conn_flush(conn))
        return;
    if (conn->is_closing)
        conn_close(conn);
    else if (conn->operation && conn->operation->writable)
        conn->operation->writable(conn);
}

static void on_timer(struct timer *timer)
{
    struct conn *conn = OWNER(struct conn, timer, timer);
    if (conn->is_closing) {
        conn_close(conn);
        return;
    }
    conn_fail(conn, ETIMEDOUT, "the request was not complete within 10 s");
}

static void refuse(int fd, int code, const char *message)
{
    uint8_t buffer[256];
    struct frame reply = {.type = ERROR, .code = (uint32_t)code};
    reply.message = (struct octets){(const uint8_t *)message, (uint32_t)strlen(message)};
    long size = frame_encode(&reply, buffer, sizeof buffer);
    if (size > 0)
        send(fd, buffer, (size_t)size, MSG_DONTWAIT | MSG_NOSIGNAL);
    close(fd);
}

/* With no descriptor left, the spare one is given up for a moment: else the client would wait for ever. */
static void turn_away(struct keeper *keeper)
{
    close(keeper->spare_fd);
    int fd = accept4(keeper->listener.fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0)
        refuse(fd, EMFILE, "the keeper has no descriptor left");
    keeper->spare_fd = dup(keeper->null_fd);
}

static void on_listener(struct source *source, uint32_t events)
{
    struct keeper *keeper = OWNER(struct keeper, listener, source);
    (void)events;
    int fd = accept4(source->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE)
            turn_away(keeper);
        return;
    }
    if (keeper->conn_count >= MAX_CONNECTIONS) {
        refuse(fd, EAGAIN, "256 connections are open; close one first");
        return;
    }
    struct conn *conn = calloc(1, sizeof *conn);
    if (!conn) {
        refuse(fd, ENOMEM, "the keeper is out of memory");
        return;
    }
    conn->keeper = keeper;
    conn->source = (struct source){.fd = fd, .ready = on_ready};
    conn->timer.due = on_timer;
    conn->next = keeper->conns;
    if (conn->next)
        conn->next->previous = conn;
    keeper->conns = conn;
    keeper->conn_count++;
    if (loop_add(&keeper->loop, &conn->source, EPOLLIN) < 0) {
        conn_close(conn);
        return;
    }
    timer_set(&keeper->loop, &conn->timer, now_ms() + REQUEST_MS);
    read_more(conn); /* the request is mostly there already */
}

int conns_open(struct keeper *keeper)
{
    keeper->listener.ready = on_listener;
    return loop_add(&keeper->loop, &keeper->listener, EPOLLIN);
}
