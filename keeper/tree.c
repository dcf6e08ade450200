#define _GNU_SOURCE
#include "tree.h"
#include "launch.h"
#include "monitor.h"
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int cgroup_open(struct keeper *keeper, struct cgroup *cgroup)
{
    char name[32];
    int runs = keeper->options.runs_fd;
    if (keeper->spare_count) {
        *cgroup = keeper->spare[--keeper->spare_count];
        return 0;
    }
    do
        snprintf(name, sizeof name, "%d", ++keeper->last_cgroup);
    while (mkdirat(runs, name, 0755) < 0 && errno == EEXIST);
    int dir = openat(runs, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return -errno;
    int events = openat(dir, "cgroup.events", O_RDONLY | O_CLOEXEC);
    if (events < 0) {
        int code = errno;
        close(dir);
        unlinkat(runs, name, AT_REMOVEDIR);
        return -code;
    }
    *cgroup = (struct cgroup){keeper->last_cgroup, dir, events, 0};
    return 0;
}

/*
 * An empty one serves again: that is cheaper than to make the next. Not one that was killed: the kernel
 * takes a process that clone3 puts there for one that was forked during the kill, and kills it too.
 */
static void cgroup_close(struct keeper *keeper, struct cgroup *cgroup)
{
    char name[32];
    if (!cgroup->was_killed && keeper->spare_count < SPARE_CGROUPS) {
        keeper->spare[keeper->spare_count++] = *cgroup;
    } else {
        close(cgroup->dir);
        close(cgroup->events);
        snprintf(name, sizeof name, "%d", cgroup->number);
        unlinkat(keeper->options.runs_fd, name, AT_REMOVEDIR);
    }
    cgroup->number = 0;
}

static int cgroup_is_populated(const struct cgroup *cgroup)
{
    char text[128];
    ssize_t n = pread(cgroup->events, text, sizeof text - 1, 0);
    if (n < 0)
        return 1;
    text[n] = 0;
    return strstr(text, "populated 0") == NULL;
}

int trees_open(struct keeper *keeper)
{
    struct cgroup first;
    if (keeper->options.runs_fd < 0)
        return 0;
    int rc = cgroup_open(keeper, &first);
    if (rc == 0 && faccessat(first.dir, "cgroup.kill", W_OK, 0) < 0)
        rc = -errno; /* before Linux 5.14 */
    if (rc == 0)
        cgroup_close(keeper, &first);
    errno = -rc;
    return rc;
}

/*
 * Not vfork: the memory that a child shares with the keeper would let the out-of-memory killer take both,
 * and the user, who may stop the child before its execve, would stop the keeper with it.
 */
static int start_in_cgroup(struct run *run, const struct launch *l)
{
    struct keeper *keeper = run->keeper;
    int rc = cgroup_open(keeper, &run->tree.cgroup);
    if (rc < 0)
        return rc;
    struct clone_args args = {
        .flags = CLONE_INTO_CGROUP,
        .exit_signal = SIGCHLD,
        .cgroup = (uint64_t)run->tree.cgroup.dir,
    };
    long pid = syscall(SYS_clone3, &args, sizeof args);
    if (pid == 0)
        launch(l);
    if (pid < 0) {
        rc = -errno;
        cgroup_close(keeper, &run->tree.cgroup);
        return rc;
    }
    run->pid = (pid_t)pid;
    return 0;
}

static void lose_monitor(struct run *run)
{
    loop_close(&run->keeper->loop, &run->tree.monitor);
    if (run->has_ended) {
        run_settle(run);
        return;
    }
    /* It was killed: what it watched over is the keeper's now, and is ended. */
    if (run->pid > 0)
        kill(-run->pid, SIGKILL);
    else
        run_fail(run, EAGAIN, "start a process");
    run_has_ended(run, SIGKILL, &(struct rusage){0}, 0);
}

static void on_monitor(struct source *source, uint32_t events)
{
    struct run *run = OWNER(struct run, tree.monitor, source);
    struct monitor_news news;
    (void)events;
    ssize_t n = recv(source->fd, &news, sizeof news, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n != sizeof news) {
        lose_monitor(run);
        return;
    }
    if (!news.has_ended) {
        run->pid = news.pid;
        if (news.status < 0) {
            run_fail(run, -news.status, "start a process");
            run_has_ended(run, 0, &news.usage, 0);
        }
        run_progress(run);
        return;
    }
    run_has_ended(run, news.status, &news.usage, news.left_running);
}

static int start_with_monitor(struct run *run, const struct launch *l)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    pid_t pid = fork();
    if (pid == 0)
        monitor(l, pair[1]);
    int code = errno;
    close(pair[1]);
    if (pid < 0) {
        close(pair[0]);
        return -code;
    }
    run->tree.monitor_pid = pid;
    run->tree.monitor = (struct source){.fd = pair[0], .ready = on_monitor};
    return loop_add(&run->keeper->loop, &run->tree.monitor, EPOLLIN);
}

int tree_start(struct run *run, const struct launch *l)
{
    run->tree.monitor.fd = -1;
    if (run->keeper->options.runs_fd >= 0)
        return start_in_cgroup(run, l);
    return start_with_monitor(run, l);
}

void tree_kill(struct run *run)
{
    if (run->tree.cgroup.number) {
        int fd = openat(run->tree.cgroup.dir, "cgroup.kill", O_WRONLY | O_CLOEXEC);
        if (fd < 0)
            return;
        run->tree.cgroup.was_killed = 1;
        if (write(fd, "1", 1) != 1)
            kill(-run->pid, SIGKILL);
        close(fd);
    } else if (run->tree.monitor.fd >= 0) {
        send(run->tree.monitor.fd, "k", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
}

int tree_has_processes(const struct run *run)
{
    if (run->tree.cgroup.number)
        return cgroup_is_populated(&run->tree.cgroup);
    return run->tree.monitor.fd >= 0;
}

void tree_close(struct run *run)
{
    if (run->tree.cgroup.number)
        cgroup_close(run->keeper, &run->tree.cgroup);
    loop_close(&run->keeper->loop, &run->tree.monitor);
}
