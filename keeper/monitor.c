#define _GNU_SOURCE
#include "monitor.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LINK = 3, PROC = 4, CHILDREN = 5, KILL_PAUSE_MS = 2, MAX_SEEN = 1 << 15 };

struct seen {
    pid_t pid, parent;
    int is_mine;
};

void close_from(int first)
{
    if (syscall(SYS_close_range, first, ~0u, 0) == 0)
        return;
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    for (int fd = first; fd < (int)limit.rlim_cur; fd++)
        close(fd);
}

static void tell(const struct monitor_news *news)
{
    while (send(LINK, news, sizeof *news, MSG_NOSIGNAL) < 0 && errno == EINTR)
        ;
}

/* Only what it needs stays open: it must hold no end of a client's connection or of a run's pipe. */
static int keep_descriptors(int proc)
{
    if (dup2(proc, PROC) < 0)
        return -1;
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    int fd = signalfd(-1, &child, SFD_NONBLOCK);
    if (fd < 0 || dup2(fd, CHILDREN) < 0)
        return -1;
    close_from(CHILDREN + 1);
    return 0;
}

static int read_seen(const char *name, struct seen *seen)
{
    char path[64], text[512], state;
    if (*name < '1' || *name > '9')
        return 0;
    snprintf(path, sizeof path, "%.20s/stat", name);
    int fd = openat(PROC, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0)
        return 0;
    text[n] = 0;
    char *behind = strrchr(text, ')'); /* the name before it may hold anything */
    *seen = (struct seen){.pid = atoi(name)};
    return behind && sscanf(behind + 1, " %c %d", &state, &seen->parent) == 2 && state != 'Z';
}

static size_t look_around(struct seen *all)
{
    size_t count = 0;
    int fd = openat(PROC, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir)
        return 0;
    for (struct dirent *entry; count < MAX_SEEN && (entry = readdir(dir));)
        if (read_seen(entry->d_name, &all[count]))
            count++;
    closedir(dir);
    return count;
}

static void mark_mine(struct seen *all, size_t count)
{
    pid_t self = getpid();
    for (int changed = 1; changed;) {
        changed = 0;
        for (size_t i = 0; i < count; i++) {
            int is_mine = all[i].parent == self;
            for (size_t j = 0; !is_mine && j < count; j++)
                is_mine = all[j].is_mine && all[j].pid == all[i].parent;
            changed |= is_mine && !all[i].is_mine;
            all[i].is_mine |= is_mine;
        }
    }
}

static void signal_mine(const struct seen *all, size_t count, int signal)
{
    for (size_t i = 0; i < count; i++)
        if (all[i].is_mine)
            kill(all[i].pid, signal);
}

/* Stopped first, so that those at the end of the list don't fork while the others die. */
static void kill_descendants(void)
{
    static struct seen all[MAX_SEEN];
    size_t count = look_around(all);
    mark_mine(all, count);
    signal_mine(all, count, SIGSTOP);
    signal_mine(all, count, SIGKILL);
}

static void tell_end(struct monitor_news *news, int status, const struct rusage *usage)
{
    siginfo_t info;
    news->has_ended = 1;
    news->status = status;
    news->usage = *usage;
    news->left_running = waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
    tell(news);
}

/* Returns 0 once there is nobody left to wait for. */
static int reap_all(struct monitor_news *news)
{
    int status;
    struct rusage usage;
    pid_t pid;
    while ((pid = wait4(-1, &status, WNOHANG | __WALL, &usage)) > 0)
        if (pid == news->pid && !news->has_ended)
            tell_end(news, status, &usage);
    return pid == 0;
}

static void watch_over(struct monitor_news *news)
{
    struct pollfd polls[] = {{.fd = LINK, .events = POLLIN}, {.fd = CHILDREN, .events = POLLIN}};
    struct signalfd_siginfo info;
    char order;
    int is_killing = 0;
    while (reap_all(news)) {
        if (is_killing)
            kill_descendants();
        poll(polls, 2, is_killing ? KILL_PAUSE_MS : -1);
        if (polls[1].revents)
            (void)!read(CHILDREN, &info, sizeof info);
        if (polls[0].revents && !is_killing) {
            is_killing = 1;
            if (recv(LINK, &order, 1, MSG_DONTWAIT) > 0)
                continue;
        }
        if (is_killing)
            polls[0].fd = -1; /* neither a second order nor the keeper's end changes anything */
    }
}

void monitor(const struct launch *l, int link)
{
    struct monitor_news news = {0};
    int proc = l->keeper->proc_fd;
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    pid_t pid = fork();
    if (pid == 0)
        launch(l);
    news.pid = pid;
    news.status = pid < 0 ? -errno : 0;
    /* `proc` may be one of the numbers that are about to be taken */
    proc = fcntl(proc, F_DUPFD_CLOEXEC, CHILDREN + 1);
    if (dup2(link, LINK) < 0)
        _exit(1);
    tell(&news);
    if (pid < 0 || keep_descriptors(proc) < 0)
        _exit(1);
    watch_over(&news);
    _exit(0);
}
