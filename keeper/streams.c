/* CONNECT: a stream to a port in the sandbox. */
#define _GNU_SOURCE
#include "streams.h"
#include "relay.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONNECT_MS = 10000 };

struct dial {
    struct source source;
    struct timer timer;
    struct conn *conn;
    uint16_t port;
    int is_ipv6;
};

static void dial_close(struct dial *dial)
{
    struct conn *conn = dial->conn;
    timer_stop(&dial->timer);
    loop_close(&conn->keeper->loop, &dial->source);
    conn->of = NULL;
    conn->operation = NULL;
    loop_discard(&conn->keeper->loop, &dial->source);
}

static void on_gone(struct conn *conn)
{
    dial_close(conn->of);
}

static const struct operation dial_operation = {.gone = on_gone};

static void dial_fail(struct dial *dial, int code)
{
    struct conn *conn = dial->conn;
    dial_close(dial);
    conn_fail(conn, code, code == ECONNREFUSED ? "nothing listens on that port" : strerror(code));
}

static int open_socket(const struct dial *dial)
{
    struct sockaddr_in ipv4 = {.sin_family = AF_INET, .sin_port = htons(dial->port)};
    struct sockaddr_in6 ipv6 = {.sin6_family = AF_INET6, .sin6_port = htons(dial->port), .sin6_addr = in6addr_loopback};
    const struct sockaddr *address = dial->is_ipv6 ? (struct sockaddr *)&ipv6 : (struct sockaddr *)&ipv4;
    ipv4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    if (connect(fd, address, dial->is_ipv6 ? sizeof ipv6 : sizeof ipv4) == 0 || errno == EINPROGRESS)
        return fd;
    int code = errno;
    close(fd);
    return -code;
}

/* Returns 0 while there is hope. */
static int dial_on(struct dial *dial)
{
    int fd = open_socket(dial);
    if (fd == -ECONNREFUSED && !dial->is_ipv6) {
        dial->is_ipv6 = 1;
        fd = open_socket(dial);
        if (fd == -EADDRNOTAVAIL || fd == -EAFNOSUPPORT)
            fd = -ECONNREFUSED; /* a sandbox without IPv6 */
    }
    if (fd < 0)
        return fd;
    dial->source.fd = fd;
    return loop_add(&dial->conn->keeper->loop, &dial->source, EPOLLOUT);
}

static void dial_done(struct dial *dial)
{
    struct conn *conn = dial->conn;
    struct keeper *keeper = conn->keeper;
    uint8_t ok[32];
    long size = frame_encode(&(struct frame){.type = OK}, ok, sizeof ok);
    int peer = dial->source.fd;
    loop_remove(&keeper->loop, &dial->source);
    dial->source.fd = -1;
    dial_close(dial);
    if (send(conn->source.fd, ok, (size_t)size, MSG_NOSIGNAL | MSG_DONTWAIT) != size) {
        close(peer);
        conn_close(conn);
        return;
    }
    size_t early_size = conn->in_used;
    uint8_t *early = conn->in;
    conn->in = NULL;
    relay_start(keeper, conn_release(conn), peer, early, early_size, 1);
    free(early);
}

static void on_connected(struct source *source, uint32_t events)
{
    struct dial *dial = OWNER(struct dial, source, source);
    int code = 0;
    socklen_t size = sizeof code;
    (void)events;
    getsockopt(source->fd, SOL_SOCKET, SO_ERROR, &code, &size);
    if (code == 0) {
        dial_done(dial);
        return;
    }
    loop_close(&dial->conn->keeper->loop, source);
    if (code == ECONNREFUSED && !dial->is_ipv6) {
        dial->is_ipv6 = 1;
        int rc = dial_on(dial);
        if (rc == 0)
            return;
        code = rc == -EADDRNOTAVAIL || rc == -EAFNOSUPPORT ? ECONNREFUSED : -rc;
    }
    dial_fail(dial, code);
}

static void on_timer(struct timer *timer)
{
    dial_fail(OWNER(struct dial, timer, timer), ETIMEDOUT);
}

void stream_connect(struct conn *conn, struct frame *request)
{
    struct dial *dial = calloc(1, sizeof *dial);
    if (!dial || request->port == 0) {
        free(dial);
        conn_fail(conn, dial ? EINVAL : ENOMEM, "the port is 0; expected 1 to 65535");
        return;
    }
    dial->source = (struct source){.fd = -1, .ready = on_connected};
    dial->timer.due = on_timer;
    dial->conn = conn;
    dial->port = request->port;
    conn->of = dial;
    conn->operation = &dial_operation;
    conn_pause(conn); /* what else it sends is for the port */
    timer_set(&conn->keeper->loop, &dial->timer, now_ms() + CONNECT_MS);
    int rc = dial_on(dial);
    if (rc < 0)
        dial_fail(dial, -rc);
}
