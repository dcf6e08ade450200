#define _GNU_SOURCE
#include "ready.h"
#include "monitor.h"
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    ORDER_SIZE = 32 << 10,
    ORDER_FD = 3,
    ENDS = 4, /* input, output, error, status */
};

/* Behind it come the folder, the arguments and the environment, each with its NUL. */
struct order {
    uint32_t uid, gid, argv_count, env_count;
    int has_terminal;
};

static char buffer[ORDER_SIZE];

static char *put_string(char *at, const char *text)
{
    size_t room = (size_t)(buffer + sizeof buffer - at), size = strlen(text) + 1;
    if (size > room)
        return NULL;
    memcpy(at, text, size);
    return at + size;
}

static char *put_list(char *at, char **items, uint32_t *count)
{
    for (*count = 0; at && items[*count]; ++*count)
        at = put_string(at, items[*count]);
    return at;
}

/* Returns its size, 0 where it does not fit. */
static size_t write_order(const struct launch *l)
{
    struct order order = {.uid = l->uid, .gid = l->gid, .has_terminal = l->has_terminal};
    char *at = put_string(buffer + sizeof order, l->cwd);
    at = put_list(at, l->argv, &order.argv_count);
    at = put_list(at, l->env, &order.env_count);
    memcpy(buffer, &order, sizeof order);
    return at ? (size_t)(at - buffer) : 0;
}

static int send_order(int fd, size_t size, const int ends[ENDS])
{
    union {
        char octets[CMSG_SPACE(ENDS * sizeof(int))];
        struct cmsghdr aligned;
    } control = {0};
    struct iovec part = {buffer, size};
    struct msghdr message = {
        .msg_iov = &part,
        .msg_iovlen = 1,
        .msg_control = control.octets,
        .msg_controllen = sizeof control.octets,
    };
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(ENDS * sizeof(int));
    memcpy(CMSG_DATA(header), ends, ENDS * sizeof(int));
    return sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)size ? 0 : -1;
}

static ssize_t receive_order(int ends[ENDS])
{
    union {
        char octets[CMSG_SPACE(ENDS * sizeof(int))];
        struct cmsghdr aligned;
    } control;
    struct iovec part = {buffer, sizeof buffer};
    struct msghdr message = {
        .msg_iov = &part,
        .msg_iovlen = 1,
        .msg_control = control.octets,
        .msg_controllen = sizeof control.octets,
    };
    ssize_t size;
    do
        size = recvmsg(ORDER_FD, &message, MSG_CMSG_CLOEXEC);
    while (size < 0 && errno == EINTR);
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (size <= 0 || !header || header->cmsg_len != CMSG_LEN(ENDS * sizeof(int)))
        return -1;
    memcpy(ends, CMSG_DATA(header), ENDS * sizeof(int));
    return size;
}

static char *take_list(char *at, char **items, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++, at += strlen(at) + 1)
        items[i] = at;
    items[count] = NULL;
    return at;
}

/* Closes all but what is needed: a client's connection held open here would never end for it. */
static int keep_few(struct options *options, int fd)
{
    int high = fcntl(fd, F_DUPFD_CLOEXEC, ORDER_FD + 1 + MAX_JOINS);
    for (int i = 0; i < options->joins; i++)
        options->join_fds[i] = fcntl(options->join_fds[i], F_DUPFD_CLOEXEC, ORDER_FD + 1 + MAX_JOINS);
    for (int i = 0; i < options->joins; i++) {
        if (dup3(options->join_fds[i], ORDER_FD + 1 + i, O_CLOEXEC) < 0)
            return -1;
        options->join_fds[i] = ORDER_FD + 1 + i;
    }
    if (dup3(high, ORDER_FD, O_CLOEXEC) < 0)
        return -1;
    close_from(ORDER_FD + 1 + options->joins);
    return 0;
}

static _Noreturn void wait_for_order(struct keeper *keeper, int fd)
{
    int ends[ENDS], step = launch_early(keeper), code = errno;
    struct order order;
    if (keep_few(&keeper->options, fd) < 0)
        _exit(1);
    if (receive_order(ends) < 0)
        _exit(1);
    memcpy(&order, buffer, sizeof order);
    struct launch l = {
        .keeper = keeper,
        .argv = keeper->pool,
        .cwd = buffer + sizeof order,
        .uid = order.uid,
        .gid = order.gid,
        .input = ends[0],
        .output = ends[1],
        .error = ends[2],
        .status = ends[3],
        .has_terminal = order.has_terminal,
    };
    l.env = l.argv + order.argv_count + 1;
    char *at = take_list(buffer + sizeof order + strlen(l.cwd) + 1, l.argv, order.argv_count);
    take_list(at, l.env, order.env_count);
    launch_late(&l, step, code);
}

void ready_prepare(struct keeper *keeper)
{
    struct ready *ready = &keeper->ready;
    int pair[2];
    if (keeper->options.runs_fd < 0 || ready->pid || keeper->is_ending)
        return;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return;
    pid_t pid = fork_into_cgroup(keeper, &ready->cgroup);
    if (pid == 0)
        wait_for_order(keeper, pair[1]);
    close(pair[1]);
    if (pid < 0) {
        close(pair[0]);
        return;
    }
    ready->pid = pid;
    ready->fd = pair[0];
}

int ready_use(struct run *run, const struct launch *l)
{
    struct ready *ready = &run->keeper->ready;
    const int ends[ENDS] = {l->input, l->output, l->error, l->status};
    size_t size = ready->pid ? write_order(l) : 0;
    if (!size || send_order(ready->fd, size, ends) < 0)
        return 0;
    close(ready->fd);
    run->pid = ready->pid;
    run->tree.cgroup = ready->cgroup;
    ready->pid = 0;
    return 1;
}

int ready_has_ended(struct keeper *keeper, pid_t pid)
{
    struct ready *ready = &keeper->ready;
    if (!ready->pid || ready->pid != pid)
        return 0;
    close(ready->fd);
    cgroup_close(keeper, &ready->cgroup);
    ready->pid = 0;
    return 1;
}
