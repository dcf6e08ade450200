#define _GNU_SOURCE
#include "worker.h"
#include "launch.h"
#include "monitor.h"
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    OUT_SIZE = 64 << 10,
    GRACE_MS = 10000, /* for WRITE, to store what a client sent before it went away */
    SOCKET_FD = 3,
    PROC_FD = 4,
};

struct worker {
    struct worker *next;
    pid_t pid;
    struct conn *conn; /* NULL: it is gone */
    int is_watcher, is_writer;
};

void work_send_raw(struct work *work, const void *data, size_t size)
{
    for (size_t sent = 0; sent < size;) {
        ssize_t n = send(work->socket, (const char *)data + sent, size - sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            _exit(0);
        sent += (size_t)n;
    }
}

void work_flush(struct work *work)
{
    work_send_raw(work, work->out, work->out_used);
    work->out_used = 0;
}

void work_send(struct work *work, const struct frame *frame)
{
    long size = frame_encode(frame, work->out + work->out_used, OUT_SIZE - work->out_used);
    if (size < 0 && work->out_used) {
        work_flush(work);
        size = frame_encode(frame, work->out, OUT_SIZE);
    }
    if (size >= 0) {
        work->out_used += (size_t)size;
        return;
    }
    static uint8_t large[HEADER_SIZE + MAX_PAYLOAD];
    size = frame_encode(frame, large, sizeof large);
    if (size > 0)
        work_send_raw(work, large, (size_t)size);
}

void work_send_ok(struct work *work, uint64_t value)
{
    work_send(work, &(struct frame){.type = OK, .value = value});
}

void work_send_end(struct work *work)
{
    work_send(work, &(struct frame){.type = END});
}

size_t work_receive(struct work *work, void *to, size_t size)
{
    if (work->rest_size) {
        size_t part = work->rest_size < size ? work->rest_size : size;
        memcpy(to, work->rest, part);
        work->rest += part;
        work->rest_size -= part;
        return part;
    }
    for (;;) {
        ssize_t n = recv(work->socket, to, size, 0);
        if (n >= 0)
            return (size_t)n;
        if (errno != EINTR)
            return 0;
    }
}

static job *const jobs[] = {
    [PROCESSES] = list_processes, [USAGE] = show_usage, [PORTS] = list_ports, [WATCH] = watch,
    [READ] = files_read, [WRITE] = files_write, [STAT] = files_stat, [LIST] = walk_list,
    [MAKE] = files_make, [MOVE] = files_move, [REMOVE] = walk_remove,
};

static int has_user(uint8_t type)
{
    return type != PROCESSES && type != USAGE && type != PORTS;
}

static void send_error(struct work *work, int code, const char *message)
{
    struct frame reply = {.type = ERROR, .code = (uint32_t)code};
    reply.message = (struct octets){(const uint8_t *)message, (uint32_t)strlen(message)};
    work_send(work, &reply);
}

/* Only the socket and /proc stay open. */
static int isolate(struct work *work, int *proc)
{
    int socket = fcntl(work->socket, F_DUPFD_CLOEXEC, 16);
    int source = fcntl(work->keeper->proc_fd, F_DUPFD_CLOEXEC, 16);
    if (socket < 0 || source < 0 || dup2(socket, SOCKET_FD) < 0 || dup2(source, PROC_FD) < 0)
        return -1;
    work->socket = SOCKET_FD;
    *proc = PROC_FD;
    close_from(PROC_FD + 1);
    return 0;
}

static _Noreturn void work_for(struct work *work, struct keeper *own)
{
    char message[128];
    static uint8_t out[OUT_SIZE];
    const struct frame *request = work->request;
    work->out = out;
    umask(0); /* modes are what the client says */
    setsid();
    fcntl(work->socket, F_SETFL, O_RDWR); /* blocking; the keeper does not use it meanwhile */
    int step = launch_guard(work->keeper, has_user(request->type), request->uid, request->gid);
    int code = errno;
    if (!step && isolate(work, &own->proc_fd) < 0) {
        step = -1;
        code = errno;
    }
    unblock_signals();
    if (step) {
        snprintf(message, sizeof message, "could not %s: %s", step_name(step), strerror(code));
        send_error(work, code, message);
    } else {
        int rc = jobs[request->type](work);
        if (rc < 0)
            send_error(work, -rc, strerror(-rc));
    }
    work_flush(work);
    _exit(0);
}

static void on_gone(struct conn *conn)
{
    struct worker *worker = conn->of;
    worker->conn = NULL;
    kill(worker->pid, SIGKILL);
}

static const struct operation worker_operation = {.gone = on_gone};

static void on_grace(struct timer *timer)
{
    conn_close(OWNER(struct conn, timer, timer));
}

/* A writer stores what has arrived; it sees the end for itself. */
static void on_writer_hangup(struct conn *conn)
{
    loop_remove(&conn->keeper->loop, &conn->source);
    conn->timer.due = on_grace;
    timer_set(&conn->keeper->loop, &conn->timer, now_ms() + GRACE_MS);
}

static const struct operation writer_operation = {.gone = on_gone, .hangup = on_writer_hangup};

void worker_start(struct conn *conn, struct frame *request)
{
    struct keeper *keeper = conn->keeper;
    int is_watcher = request->type == WATCH;
    if (is_watcher && keeper->watcher_count >= MAX_WATCHERS) {
        conn_fail(conn, EAGAIN, "64 folders are watched; end one first");
        return;
    }
    struct worker *worker = calloc(1, sizeof *worker);
    if (!worker) {
        conn_fail(conn, ENOMEM, "the keeper is out of memory");
        return;
    }
    struct work work = {.keeper = keeper, .request = request, .socket = conn->source.fd,
                        .rest = conn->rest, .rest_size = conn->rest_size};
    worker->pid = fork();
    if (worker->pid == 0)
        work_for(&work, keeper);
    if (worker->pid < 0) {
        int code = errno;
        free(worker);
        conn_fail(conn, code, "the keeper could not start a process");
        return;
    }
    worker->conn = conn;
    worker->is_watcher = is_watcher;
    worker->next = keeper->workers;
    keeper->workers = worker;
    *(is_watcher ? &keeper->watcher_count : &keeper->worker_count) += 1;
    conn->of = worker;
    conn->operation = request->type == WRITE ? &writer_operation : &worker_operation;
    conn_hand_over(conn); /* with what came behind the request */
}

static void resume_waiting(struct keeper *keeper)
{
    for (struct conn *conn = keeper->conns, *next; conn && keeper->worker_count < MAX_WORKERS; conn = next) {
        next = conn->next;
        if (conn->is_waiting) {
            conn->is_waiting = 0;
            conn_resume(conn);
            return; /* the list may have changed */
        }
    }
}

int worker_has_ended(struct keeper *keeper, pid_t pid)
{
    struct worker **at = &keeper->workers;
    while (*at && (*at)->pid != pid)
        at = &(*at)->next;
    struct worker *worker = *at;
    if (!worker)
        return 0;
    *at = worker->next;
    *(worker->is_watcher ? &keeper->watcher_count : &keeper->worker_count) -= 1;
    if (worker->conn) {
        worker->conn->operation = NULL;
        conn_close(worker->conn);
    }
    free(worker);
    resume_waiting(keeper);
    return 1;
}

int is_worker(const struct keeper *keeper, pid_t pid)
{
    for (const struct worker *worker = keeper->workers; worker; worker = worker->next)
        if (worker->pid == pid)
            return 1;
    return 0;
}
