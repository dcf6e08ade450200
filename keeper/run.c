#define _GNU_SOURCE
#include "run.h"
#include "launch.h"
#include "pty.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    START_MS = 2,
    DRAIN_MS = 100,       /* of silence, then leftover holders of the pipes are not waited for */
    DRAIN_MOST_MS = 1000, /* however much they go on to write */
    KEPT_DEFAULT = 1 << 20,
    DISK_FULL_OCTETS = 1 << 20, /* a write of so much fails with less than that left */
};

static const uint64_t MAX_LIMIT_MS = 1000ull * 86400 * 365 * 100;

struct run *run_find(struct keeper *keeper, uint32_t pid)
{
    struct run *run = keeper->runs;
    while (run && (uint32_t)run->pid != pid)
        run = run->next;
    return run;
}

static void free_run(struct run *run)
{
    struct keeper *keeper = run->keeper;
    if (run->next)
        run->next->previous = run->previous;
    if (run->previous)
        run->previous->next = run->next;
    else
        keeper->runs = run->next;
    keeper->run_count--;
    run->is_gone = 1;
    set_active(keeper, &run->is_active, 0);
    timer_stop(&run->limit);
    timer_stop(&run->drain);
    loop_close(&run->keeper->loop, &run->status);
    loop_close(&run->keeper->loop, &run->outputs[0].source);
    loop_close(&run->keeper->loop, &run->outputs[1].source);
    input_close(run);
    channel_close(run);
    output_close(&run->output);
    free(run->tag);
    free(run->argv);
    loop_discard(&keeper->loop, &run->status);
}

void run_settle(struct run *run)
{
    if (run->is_gone || !run->is_finished || tree_has_processes(run))
        return;
    tree_close(run);
    timer_stop(&run->limit);
    loop_close(&run->keeper->loop, &run->outputs[0].source);
    loop_close(&run->keeper->loop, &run->outputs[1].source);
    input_close(run);
    if (!run->is_kept && !run->followers && !run->channel.waiting)
        free_run(run);
}

static void forget_oldest(struct keeper *keeper)
{
    struct run *oldest = NULL;
    for (struct run *run = keeper->runs; run; run = run->next)
        if (run->is_finished && run->is_kept && (!oldest || run->ended_ms <= oldest->ended_ms))
            oldest = run;
    if (!oldest)
        return;
    oldest->is_kept = 0;
    keeper->ended_count--;
    run_settle(oldest);
}

static void on_drain(struct timer *timer)
{
    struct run *run = OWNER(struct run, drain, timer);
    if (run->has_ended)
        run_check_drained(run);
    else if (!run->is_started)
        loop_add(&run->keeper->loop, &run->status, EPOLLIN);
    else
        follow_update_interest(run);
}

static void on_limit(struct timer *timer)
{
    struct run *run = OWNER(struct run, limit, timer);
    run_kill(run, EXIT_TIME_LIMIT);
}

void run_kill(struct run *run, uint32_t flag)
{
    if (!run->has_ended)
        run->exit_flags |= flag;
    tree_kill(run);
}

void run_fail(struct run *run, int code, const char *step)
{
    char message[256];
    run->has_failed = 1;
    snprintf(message, sizeof message, "could not %s: %s; the command was not executed", step, strerror(code));
    loop_close(&run->keeper->loop, &run->status);
    for (struct conn *conn; (conn = run->followers);) {
        run->followers = conn->next_follower;
        input_forget(run, conn);
        conn->operation = NULL;
        conn_fail(conn, code, message);
    }
    run->owner = NULL;
    run->is_kept = 0;
    channel_fail(run, code, message);
}

void run_progress(struct run *run)
{
    if (run->is_started || run->has_failed || run->pid <= 0 || run->status.fd >= 0)
        return;
    run->is_started = 1;
    for (int i = 0; i < 2; i++)
        if (run->outputs[i].source.fd >= 0)
            loop_add(&run->keeper->loop, &run->outputs[i].source, EPOLLIN);
    follow_started(run);
}

/* The pipe's end means that execve has closed it; a record, that a step failed. */
static void on_status(struct source *source, uint32_t events)
{
    struct run *run = OWNER(struct run, status, source);
    struct failure failure;
    (void)events;
    ssize_t n = read(source->fd, &failure, sizeof failure);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n == sizeof failure) {
        run_fail(run, failure.code, step_name(failure.step));
        return;
    }
    loop_close(&run->keeper->loop, source);
    run_progress(run);
}

size_t waiting_octets(const struct pipe_end *end)
{
    int count = 0;
    if (end->source.fd < 0 || ioctl(end->source.fd, FIONREAD, &count) < 0 || count < 0)
        return 0;
    return (size_t)count;
}

void run_has_ended(struct run *run, int status, const struct rusage *usage, int left_running)
{
    struct frame *exit = &run->exit;
    if (run->status.fd >= 0)
        on_status(&run->status, 0);
    run->has_ended = 1;
    run->ended_ms = now_ms();
    run->keeper->live_count--;
    exit->type = EXIT;
    exit->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    exit->signal = WIFSIGNALED(status) ? (uint32_t)WTERMSIG(status) : 0;
    exit->wall_ns = now_ns() - run->started_ns;
    exit->user_us = (uint64_t)usage->ru_utime.tv_sec * 1000000u + (uint64_t)usage->ru_utime.tv_usec;
    exit->system_us = (uint64_t)usage->ru_stime.tv_sec * 1000000u + (uint64_t)usage->ru_stime.tv_usec;
    exit->peak_bytes = (uint64_t)usage->ru_maxrss * 1024;
    if (exit->signal && run->tree_signal == (int)exit->signal)
        run->exit_flags |= EXIT_KILLED;
    if (left_running)
        run->exit_flags |= EXIT_LEFT_RUNNING;
    run->due_octets = waiting_octets(&run->outputs[0]) + waiting_octets(&run->outputs[1]);
    if (run->has_failed) {
        run->is_finished = 1;
        run_settle(run);
        return;
    }
    follow_update_interest(run);
    timer_set(&run->keeper->loop, &run->drain, now_ms() + DRAIN_MS);
    run_check_drained(run);
}

static uint32_t disk_flags(void)
{
    struct statfs disk;
    uint32_t flags = 0;
    if (statfs("/", &disk) < 0)
        return 0;
    if (disk.f_blocks && (uint64_t)disk.f_bavail * (uint64_t)disk.f_bsize < DISK_FULL_OCTETS)
        flags |= EXIT_DISK_FULL;
    if (disk.f_files && disk.f_ffree == 0)
        flags |= EXIT_INODES_FULL;
    return flags;
}

static void finish(struct run *run)
{
    struct keeper *keeper = run->keeper;
    timer_stop(&run->drain);
    set_active(keeper, &run->is_active, 0);
    if (run->exit.exit_code != 0)
        run->exit_flags |= disk_flags();
    run->is_finished = 1;
    run->exit.flags = run->exit_flags;
    run->exit.dropped = run->output.dropped;
    run->exit.offset = run->output.total;
    channel_finish(run);
    if (!run->owner)
        run->is_kept = 1;
    if (run->is_kept && ++keeper->ended_count > MAX_ENDED)
        forget_oldest(keeper);
    follow_feed(run);
    run_settle(run);
}

void run_check_drained(struct run *run)
{
    if (!run->has_ended || run->is_finished)
        return;
    int is_held = run->owner && (run->owner->is_blocked || run->owner->splice_left);
    uint64_t now = now_ms();
    if (run->outputs[0].source.fd < 0 && run->outputs[1].source.fd < 0 && !is_held) {
        finish(run);
        return;
    }
    if (is_held) {
        timer_set(&run->keeper->loop, &run->drain, now + DRAIN_MS);
        return;
    }
    int is_endless = run->drained >= run->due_octets && now > run->ended_ms + DRAIN_MOST_MS;
    if (is_endless || !run->drain.at_ms)
        finish(run);
}

/* Each end of the two pipes, or of the terminal; -1 where there is none. */
struct ends {
    int output[2], error[2], input[2], channel[2], status[2];
};

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void close_ends(struct ends *ends)
{
    for (int i = 0; i < 2; i++) {
        close_fd(&ends->output[i]);
        close_fd(&ends->error[i]);
        close_fd(&ends->input[i]);
        close_fd(&ends->channel[i]);
        close_fd(&ends->status[i]);
    }
}

static int open_pipe(int pair[2], int ours)
{
    if (pipe2(pair, O_CLOEXEC) < 0)
        return -errno;
    fcntl(pair[ours], F_SETFL, O_NONBLOCK);
    /* It is the keeper's, and the user opens it again as /dev/stdout; who can't see its descriptors can't name it. */
    fchmod(pair[ours], 0666);
    return 0;
}

static int open_ends(struct keeper *keeper, const struct frame *request, struct ends *ends)
{
    int rc = open_pipe(ends->status, 0);
    if (rc == 0 && request->flags & RUN_PTY) {
        rc = pty_open(keeper, request->uid, request->gid, &ends->output[0], &ends->output[1]);
        if (rc < 0)
            return rc;
        pty_resize(ends->output[0], request->rows, request->cols);
        ends->input[1] = fcntl(ends->output[0], F_DUPFD_CLOEXEC, 3);
        return ends->input[1] < 0 ? -errno : 0;
    }
    if (rc == 0)
        rc = open_pipe(ends->output, 0);
    if (rc == 0)
        rc = open_pipe(ends->error, 0);
    if (rc == 0 && request->flags & RUN_STDIN)
        rc = open_pipe(ends->input, 1);
    if (rc == 0 && request->flags & RUN_CHANNEL)
        rc = open_pipe(ends->channel, 0);
    return rc;
}

static uint8_t *copy(const void *from, size_t size)
{
    uint8_t *to = malloc(size ? size : 1);
    if (to && size)
        memcpy(to, from, size);
    return to;
}

/* Remembers tag and arguments, for PROCESSES. */
static int describe(struct run *run, const struct frame *request)
{
    for (uint32_t i = 0; i < request->argv.count; i++)
        run->argv_size += strlen(request->argv.items[i]) + 1;
    run->argv = malloc(run->argv_size);
    run->tag = copy(request->tag.at, request->tag.size);
    if (!run->argv || !run->tag)
        return -ENOMEM;
    uint8_t *at = run->argv;
    for (uint32_t i = 0; i < request->argv.count; i++) {
        size_t size = strlen(request->argv.items[i]) + 1;
        memcpy(at, request->argv.items[i], size);
        at += size;
    }
    run->argv_count = request->argv.count;
    run->tag_size = request->tag.size;
    return 0;
}

static struct run *make_run(struct keeper *keeper, const struct frame *request)
{
    struct run *run = calloc(1, sizeof *run);
    struct timespec now;
    if (!run)
        return NULL;
    run->keeper = keeper;
    run->flags = request->flags;
    run->uid = request->uid;
    /* The owner of a channel gets all output, or it is nobody's. */
    run->output_limit = request->flags & RUN_CHANNEL ? 0 : request->output_limit;
    run->time_limit_ms = request->time_limit_ms < MAX_LIMIT_MS ? request->time_limit_ms : MAX_LIMIT_MS;
    run->limit.due = on_limit;
    run->drain.due = on_drain;
    run->status.fd = run->input.fd = run->tree.monitor.fd = run->channel.end.source.fd = -1;
    for (int i = 0; i < 2; i++)
        run->outputs[i] = (struct pipe_end){.source = {.fd = -1}, .run = run, .index = i};
    run->last_chunk = &run->chunks;
    clock_gettime(CLOCK_REALTIME, &now);
    run->started_clock_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    run->started_ns = now_ns();
    output_open(&run->output, run->output_limit ? run->output_limit : KEPT_DEFAULT);
    run->next = keeper->runs;
    if (run->next)
        run->next->previous = run;
    keeper->runs = run;
    keeper->run_count++;
    return run;
}

static int start_tree(struct run *run, const struct frame *request, const struct ends *ends)
{
    struct keeper *keeper = run->keeper;
    int has_terminal = (request->flags & RUN_PTY) != 0;
    return tree_start(run, &(struct launch){
                               .keeper = keeper,
                               .argv = request->argv.items,
                               .env = request->env.items,
                               .cwd = request->cwd,
                               .uid = request->uid,
                               .gid = request->gid,
                               .input = has_terminal          ? ends->output[1]
                                        : ends->input[0] >= 0 ? ends->input[0]
                                                              : keeper->null_fd,
                               .output = ends->output[1],
                               .error = has_terminal ? ends->output[1] : ends->error[1],
                               .channel = ends->channel[1],
                               .status = ends->status[1],
                               .has_terminal = has_terminal,
                           });
}

static void take(struct source *source, int *fd, void (*ready)(struct source *, uint32_t))
{
    *source = (struct source){.fd = *fd, .ready = ready};
    *fd = -1;
}

static void on_output(struct source *source, uint32_t events)
{
    (void)events;
    follow_output(OWNER(struct pipe_end, source, source));
}

static int set_up(struct run *run, const struct frame *request, struct ends *ends)
{
    int rc = describe(run, request);
    if (rc == 0)
        rc = open_ends(run->keeper, request, ends);
    if (rc == 0)
        rc = start_tree(run, request, ends);
    if (rc < 0)
        return rc;
    take(&run->status, &ends->status[0], on_status);
    take(&run->outputs[0].source, &ends->output[0], on_output);
    take(&run->outputs[1].source, &ends->error[0], on_output);
    input_open(run, ends->input[1]);
    ends->input[1] = -1;
    channel_open(run, ends->channel[0]);
    ends->channel[0] = -1;
    return 0;
}

/* Where somebody waits for the end, the start is worth no wake-up of its own: a short command is over by then. */
static void look_for_start(struct run *run)
{
    struct keeper *keeper = run->keeper;
    if (run->owner && !(run->flags & (RUN_PTY | RUN_CHANNEL)))
        timer_set(&keeper->loop, &run->drain, now_ms() + START_MS);
    else
        loop_add(&keeper->loop, &run->status, EPOLLIN);
}

void run_start(struct conn *conn, struct frame *request)
{
    struct keeper *keeper = conn->keeper;
    struct ends ends = {{-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}};
    if (request->argv.count == 0) {
        conn_fail(conn, EINVAL, "argv is empty; it needs the program's name at least");
        return;
    }
    if (request->flags & RUN_CHANNEL && request->flags & RUN_PTY) {
        conn_fail(conn, EINVAL, "a terminal and a channel do not go together");
        return;
    }
    if (keeper->run_count - keeper->ended_count >= MAX_RUNS) {
        conn_fail(conn, EAGAIN, "1024 runs are there; end one first");
        return;
    }
    struct run *run = make_run(keeper, request);
    if (!run) {
        conn_fail(conn, ENOMEM, "the keeper is out of memory");
        return;
    }
    int rc = set_up(run, request, &ends);
    close_ends(&ends);
    if (rc < 0) {
        char message[128];
        snprintf(message, sizeof message, "could not start a process: %s", strerror(-rc));
        tree_close(run);
        free_run(run);
        conn_fail(conn, -rc, message);
        return;
    }
    keeper->live_count++;
    if (request->flags & RUN_CHANNEL) {
        run->is_kept = 1;
        run->owner = conn;
        conn->is_owner = 1;
        set_active(keeper, &conn->is_counted, 1);
    } else if (request->flags & RUN_BACKGROUND) {
        run->is_kept = 1;
        output_keep_from_here(&run->output, run->output_limit == 0);
        keeper->last_active_ms = now_ms();
    } else {
        run->owner = conn;
        conn->is_owner = 1;
        set_active(keeper, &run->is_active, 1);
    }
    if (run->time_limit_ms)
        timer_set(&keeper->loop, &run->limit, now_ms() + run->time_limit_ms);
    look_for_start(run);
    conn->follows = 1;
    follow_begin(run, conn);
}

void run_attach(struct conn *conn, struct frame *request)
{
    struct run *run = run_find(conn->keeper, request->pid);
    if (!run || run->has_failed || (run->is_finished && !run->is_kept)) {
        conn_fail(conn, ESRCH, "there is no run with that number");
        return;
    }
    if (!(run->flags & RUN_CHANNEL) != !(request->flags & ATTACH_OWN)) {
        conn_fail(conn, EINVAL, "a run with a channel is attached to by owning it, and no other is");
        return;
    }
    if (run->flags & RUN_CHANNEL) {
        channel_own(run, conn);
        return;
    }
    conn->follows = (request->flags & ATTACH_FOLLOW) != 0;
    conn->offset = request->offset < run->output.total ? request->offset : run->output.total;
    follow_begin(run, conn);
}
