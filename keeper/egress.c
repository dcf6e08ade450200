/* EGRESS: outgoing connections of the sandbox, redirected here and handed to whoever waits for them. */
#define _GNU_SOURCE
#include "relay.h"
#include "streams.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    ORIGINAL_DESTINATION = 80, /* SO_ORIGINAL_DST and IP6T_SO_ORIGINAL_DST */
    MAX_CALLERS = 64,
    CALLER_MS = 5000,
};

/* A connection that nobody has asked for yet. */
struct caller {
    int fd;
    struct frame peer;
    uint8_t address[16];
    struct timer timer;
    struct egress *egress;
    struct caller *next;
};

struct egress {
    struct keeper *keeper;
    struct source listeners[2];
    struct conn *waiting, **last_waiting; /* linked by next_follower */
    struct caller *callers, **last_caller;
    int caller_count;
};

/* The far end learns at once that it did not work. */
static void reset(int fd)
{
    struct linger now = {1, 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close(fd);
}

static void unlink_caller(struct egress *egress, struct caller *caller)
{
    struct caller **at = &egress->callers;
    while (*at != caller)
        at = &(*at)->next;
    *at = caller->next;
    if (egress->last_caller == &caller->next)
        egress->last_caller = at;
    egress->caller_count--;
    timer_stop(&caller->timer);
}

static void on_caller_timer(struct timer *timer)
{
    struct caller *caller = OWNER(struct caller, timer, timer);
    unlink_caller(caller->egress, caller);
    reset(caller->fd);
    free(caller);
}

static void unlink_waiting(struct egress *egress, struct conn *conn)
{
    struct conn **at = &egress->waiting;
    while (*at != conn)
        at = &(*at)->next_follower;
    *at = conn->next_follower;
    if (egress->last_waiting == &conn->next_follower)
        egress->last_waiting = at;
}

static void on_gone(struct conn *conn)
{
    unlink_waiting(conn->keeper->egress, conn);
}

static const struct operation waiting_operation = {.gone = on_gone};

static int hand_over(struct keeper *keeper, struct conn *conn, const struct frame *peer, int fd)
{
    uint8_t buffer[64];
    long size = frame_encode(peer, buffer, sizeof buffer);
    if (size < 0 || send(conn->source.fd, buffer, (size_t)size, MSG_NOSIGNAL | MSG_DONTWAIT) != size) {
        conn_close(conn);
        return -1;
    }
    unlink_waiting(keeper->egress, conn);
    /* What it has sent already is behind the request, or has been put aside since. */
    const uint8_t *early = conn->rest_size ? conn->rest : conn->in;
    size_t size_early = conn->rest_size ? conn->rest_size : conn->in_used;
    uint8_t *in = conn->in;
    conn->in = NULL;
    relay_start(keeper, conn_release(conn), fd, early, size_early, 0);
    free(in);
    return 0;
}

/* Without a redirect the connection was meant for where it arrived. */
static void find_destination(int fd, struct frame *peer, uint8_t *address)
{
    struct sockaddr_storage name;
    socklen_t size = sizeof name;
    memset(&name, 0, sizeof name);
    if (getsockopt(fd, IPPROTO_IP, ORIGINAL_DESTINATION, &name, &size) < 0) {
        size = sizeof name;
        if (getsockopt(fd, IPPROTO_IPV6, ORIGINAL_DESTINATION, &name, &size) < 0) {
            size = sizeof name;
            getsockname(fd, (struct sockaddr *)&name, &size);
        }
    }
    if (name.ss_family == AF_INET6) {
        const struct sockaddr_in6 *ipv6 = (const struct sockaddr_in6 *)(const void *)&name;
        memcpy(address, &ipv6->sin6_addr, 16);
        peer->address = (struct octets){address, 16};
        peer->port = ntohs(ipv6->sin6_port);
        return;
    }
    const struct sockaddr_in *ipv4 = (const struct sockaddr_in *)(const void *)&name;
    memcpy(address, &ipv4->sin_addr, 4);
    peer->address = (struct octets){address, 4};
    peer->port = ntohs(ipv4->sin_port);
}

static void add_caller(struct egress *egress, int fd, const struct frame *peer, const uint8_t *address)
{
    struct caller *caller = egress->caller_count < MAX_CALLERS ? calloc(1, sizeof *caller) : NULL;
    if (!caller) {
        reset(fd);
        return;
    }
    caller->fd = fd;
    caller->peer = *peer;
    memcpy(caller->address, address, sizeof caller->address);
    caller->peer.address.at = caller->address;
    caller->egress = egress;
    caller->timer.due = on_caller_timer;
    *egress->last_caller = caller;
    egress->last_caller = &caller->next;
    egress->caller_count++;
    timer_set(&egress->keeper->loop, &caller->timer, now_ms() + CALLER_MS);
}

static void take_caller(struct keeper *keeper, struct source *listener)
{
    struct egress *egress = keeper->egress;
    struct frame peer = {.type = PEER};
    uint8_t address[16] = {0};
    int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
        close(keeper->spare_fd);
        fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0)
            reset(fd);
        keeper->spare_fd = dup(keeper->null_fd);
        return;
    }
    if (fd < 0)
        return;
    find_destination(fd, &peer, address);
    while (egress->waiting)
        if (hand_over(keeper, egress->waiting, &peer, fd) == 0)
            return;
    add_caller(egress, fd, &peer, address);
}

static struct keeper *keeper_of(struct source *source, int index)
{
    return OWNER(struct egress, listeners, source - index)->keeper;
}

static void on_ipv4(struct source *source, uint32_t events)
{
    (void)events;
    take_caller(keeper_of(source, 0), source);
}

static void on_ipv6(struct source *source, uint32_t events)
{
    (void)events;
    take_caller(keeper_of(source, 1), source);
}

static int listen_on(struct egress *egress, int index, const struct sockaddr *address, socklen_t size)
{
    int on = 1;
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (address->sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    if (bind(fd, address, size) < 0 || listen(fd, 128) < 0) {
        int code = errno;
        close(fd);
        errno = code;
        return -code;
    }
    egress->listeners[index] = (struct source){.fd = fd, .ready = index ? on_ipv6 : on_ipv4};
    return loop_add(&egress->keeper->loop, &egress->listeners[index], EPOLLIN);
}

int egress_open(struct keeper *keeper)
{
    struct egress *egress = calloc(1, sizeof *egress);
    uint16_t port = htons((uint16_t)keeper->options.egress_port);
    struct sockaddr_in ipv4 = {.sin_family = AF_INET, .sin_port = port};
    struct sockaddr_in6 ipv6 = {.sin6_family = AF_INET6, .sin6_port = port, .sin6_addr = in6addr_loopback};
    if (!egress)
        return -ENOMEM;
    ipv4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    egress->keeper = keeper;
    egress->last_waiting = &egress->waiting;
    egress->last_caller = &egress->callers;
    keeper->egress = egress;
    int rc = listen_on(egress, 0, (struct sockaddr *)&ipv4, sizeof ipv4);
    if (rc < 0)
        return rc;
    rc = listen_on(egress, 1, (struct sockaddr *)&ipv6, sizeof ipv6);
    return rc == -EAFNOSUPPORT || rc == -EADDRNOTAVAIL ? 0 : rc; /* a sandbox without IPv6 */
}

void stream_egress(struct conn *conn, struct frame *request)
{
    struct keeper *keeper = conn->keeper;
    struct egress *egress = keeper->egress;
    (void)request;
    if (!egress) {
        conn_fail(conn, EOPNOTSUPP, "this keeper was started without --egress-port");
        return;
    }
    conn->operation = &waiting_operation;
    conn->next_follower = NULL;
    *egress->last_waiting = conn;
    egress->last_waiting = &conn->next_follower;
    conn_pause(conn);
    struct caller *caller = egress->callers;
    if (caller && hand_over(keeper, conn, &caller->peer, caller->fd) == 0) {
        unlink_caller(egress, caller);
        free(caller);
    }
}
