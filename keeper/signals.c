/* SIGNAL: to a process, or to all that a run has started. */
#define _GNU_SOURCE
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Numbers that the kernel would take for groups, for all, or for the keeper are not for clients. */
static int check_target(struct keeper *keeper, uint32_t pid)
{
    if (pid == 0 || pid > INT32_MAX)
        return -ESRCH;
    if (pid == (uint32_t)getpid())
        return -EPERM;
    for (struct run *run = keeper->runs; run; run = run->next)
        if (run->tree.monitor.fd >= 0 && run->tree.monitor_pid == (pid_t)pid)
            return -EPERM;
    return 0;
}

/* On a host there are processes that are none of the keeper's. */
static int is_descendant(const struct keeper *keeper, pid_t pid)
{
    char path[64], text[512];
    for (int depth = 0; depth < 1000 && pid > 1; depth++) {
        if (pid == getpid())
            return 1;
        snprintf(path, sizeof path, "%d/stat", pid);
        int fd = openat(keeper->proc_fd, path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
        if (fd >= 0)
            close(fd);
        if (n <= 0)
            return 0;
        text[n] = 0;
        char *behind = strrchr(text, ')');
        if (!behind || sscanf(behind + 1, " %*c %d", &pid) != 1)
            return 0;
    }
    return 0;
}

static int signal_process(struct keeper *keeper, uint32_t pid, int signal)
{
    const struct run *run = run_find(keeper, pid);
    int rc = check_target(keeper, pid);
    if (rc < 0)
        return rc;
    if (run && run->has_ended)
        return -ESRCH;
    if (keeper->options.is_host && !is_descendant(keeper, (pid_t)pid))
        return -EPERM;
    return kill((pid_t)pid, signal) < 0 ? -errno : 0;
}

static int signal_tree(struct run *run, int signal)
{
    if (!run || run->pid <= 0 || (run->has_ended && !tree_has_processes(run)))
        return -ESRCH;
    if (!run->has_ended)
        run->tree_signal = signal;
    if (signal == SIGKILL) {
        run_kill(run, EXIT_KILLED);
        return 0;
    }
    return kill(-run->pid, signal) < 0 ? -errno : 0;
}

void run_signal(struct conn *conn, struct frame *request)
{
    int rc = -EINVAL;
    if (request->signal < NSIG && request->scope == SCOPE_PROCESS)
        rc = signal_process(conn->keeper, request->pid, (int)request->signal);
    else if (request->signal < NSIG && request->scope == SCOPE_TREE)
        rc = signal_tree(run_find(conn->keeper, request->pid), (int)request->signal);
    if (rc < 0)
        conn_fail(conn, -rc, rc == -EINVAL ? "no such signal or scope" : strerror(-rc));
    else
        conn_ok(conn, 0);
}
