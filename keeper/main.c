/* The keeper: PID 1 of a sandbox. See docs/protocol.md. */
#define _GNU_SOURCE
#include "conn.h"
#include "options.h"
#include "run.h"
#include "streams.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

enum { ENDING_MS = 10000 };

static struct keeper keeper;

static void die(const char *what)
{
    fprintf(stderr, "keeper: could not %s: %s\n", what, strerror(errno));
    exit(1);
}

void set_active(struct keeper *of, int *flag, int active)
{
    if (*flag == active)
        return;
    *flag = active;
    of->active += active ? 1 : -1;
    of->last_active_ms = now_ms();
}

/* Descriptors 0 to 2 are taken, so that no other can be mistaken for a standard one. */
static void open_null(void)
{
    int fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd < 2)
        fd = dup(fd);
    if (fd < 0)
        die("open /dev/null");
    keeper.null_fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    keeper.spare_fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (keeper.null_fd < 0 || keeper.spare_fd < 0)
        die("open /dev/null");
    if (fd > 2)
        close(fd);
}

static void close_on_exec(void)
{
    enum { CLOEXEC = 4 }; /* CLOSE_RANGE_CLOEXEC, which older headers don't have */
    if (syscall(SYS_close_range, 3, ~0u, CLOEXEC) == 0)
        return;
    for (int fd = 3; fd < 1024; fd++)
        fcntl(fd, F_SETFD, FD_CLOEXEC);
}

static void protect(void)
{
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        die("become undumpable");
    umask(022);
    if (chdir("/") < 0)
        die("enter /");
    keeper.proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (keeper.proc_fd < 0)
        die("open /proc");
}

/*
 * Woken, it lets whoever runs go on for a moment: a client that has connected sends its request, and a command
 * that closes its output ends. One wake-up serves for all of that where there were four. Not for the children.
 */
static void yield_to_others(void)
{
    sched_setscheduler(0, SCHED_BATCH | SCHED_RESET_ON_FORK, &(struct sched_param){0});
}

/* The children get the limit that was there; the keeper takes what it can have. */
static void raise_limits(void)
{
    getrlimit(RLIMIT_NOFILE, &keeper.files);
    struct rlimit most = {keeper.files.rlim_max, keeper.files.rlim_max};
    setrlimit(RLIMIT_NOFILE, &most);
}

static void read_capabilities(void)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {{0}, {0}};
    if (syscall(SYS_capget, &header, data) < 0)
        die("read the capabilities");
    keeper.permitted_caps = data[0].permitted | (uint64_t)data[1].permitted << 32;
    for (int cap = 0; cap < 64; cap++)
        if (prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1)
            keeper.bounding_caps |= 1ull << cap;
}

/* What no child may have can go at once, which leaves the children less to do. */
static void drop_bounding(void)
{
    uint64_t kept = keeper.options.root_caps & keeper.permitted_caps;
    if (!(keeper.permitted_caps & 1ull << CAP_SETPCAP))
        return;
    for (int cap = 0; cap < 64; cap++)
        if (keeper.bounding_caps & ~kept & 1ull << cap && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
            die("drop the bounding capabilities");
    keeper.bounding_caps &= kept;
}

void end_all(struct keeper *of)
{
    of->is_ending = 1;
    loop_close(&of->loop, &of->listener);
    for (struct run *run = of->runs; run; run = run->next)
        if (!run->is_finished || tree_has_processes(run))
            run_kill(run, EXIT_KILLED);
}

static void on_signal(struct source *source, uint32_t events)
{
    struct signalfd_siginfo info;
    (void)events;
    while (read(source->fd, &info, sizeof info) == sizeof info)
        if (info.ssi_signo == SIGTERM && keeper.options.is_host)
            end_all(&keeper);
    reap_children(&keeper);
}

/* Everything is blocked: PID 1 has nothing to say to signals, and a child unblocks them for itself. */
static void take_signals(void)
{
    sigset_t all, wanted;
    static const unsigned long normal[4]; /* SIG_DFL; glibc lets nobody set the two that it uses itself */
    for (int signal = 1; signal < NSIG; signal++)
        syscall(SYS_rt_sigaction, signal, normal, NULL, 8);
    sigfillset(&all);
    if (sigprocmask(SIG_SETMASK, &all, NULL) < 0)
        die("block the signals");
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGCHLD);
    sigaddset(&wanted, SIGTERM);
    keeper.signals.fd = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
    keeper.signals.ready = on_signal;
    if (keeper.signals.fd < 0 || loop_add(&keeper.loop, &keeper.signals, EPOLLIN) < 0)
        die("take signals");
    if (getpid() != 1 && prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
        die("become a subreaper");
}

static void bind_socket(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        die("bind the socket");
    }
    strcpy(address.sun_path, path);
    keeper.listener.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    umask(0177);
    if (keeper.listener.fd < 0 || bind(keeper.listener.fd, (struct sockaddr *)&address, sizeof address) < 0)
        die("bind the socket");
    umask(022);
    if (listen(keeper.listener.fd, SOMAXCONN) < 0)
        die("listen");
}

static void take_clients(void)
{
    if (keeper.options.bind_path)
        bind_socket(keeper.options.bind_path);
    else
        keeper.listener.fd = keeper.options.listen_fd;
    if (fcntl(keeper.listener.fd, F_SETFL, O_RDWR | O_NONBLOCK) < 0 || conns_open(&keeper) < 0)
        die("use the socket");
}

static int has_work_left(void)
{
    for (struct run *run = keeper.runs; run; run = run->next)
        if (!run->is_finished || tree_has_processes(run))
            return 1;
    return keeper.dirty != NULL;
}

static void serve(void)
{
    uint64_t end_ms = 0;
    for (;;) {
        loop_turn(&keeper.loop, conns_flush, &keeper);
        if (!keeper.is_ending)
            continue;
        if (!end_ms)
            end_ms = now_ms() + ENDING_MS;
        if (!has_work_left() || now_ms() > end_ms)
            exit(0);
    }
}

int main(int argc, char **argv)
{
    if (options_parse(&keeper.options, argc, argv) < 0)
        return 2;
    open_null();
    close_on_exec();
    protect();
    raise_limits();
    yield_to_others();
    read_capabilities();
    if (!keeper.options.is_host)
        drop_bounding();
    keeper.started_ms = keeper.last_active_ms = now_ms();
    if (loop_open(&keeper.loop) < 0)
        die("open the loop");
    take_signals();
    /* What was handed in must serve: monitors in its place would be weaker, and nobody would know. */
    if (trees_open(&keeper) < 0)
        die("use the cgroup of executions");
    if (keeper.options.egress_port && egress_open(&keeper) < 0)
        die("listen for outgoing connections");
    take_clients();
    life_begin(&keeper);
    serve(); /* from here on, nothing is fatal */
}
