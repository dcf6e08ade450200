/* PROCESSES, PORTS and USAGE, in a worker: reading /proc of a hostile process may block. */
#define _GNU_SOURCE
#include "run.h"
#include "worker.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

static char *pool[MAX_ITEMS + 1];

static ssize_t read_file(const struct keeper *keeper, pid_t pid, const char *name, char *to, size_t room)
{
    char path[64];
    if (pid)
        snprintf(path, sizeof path, "%d/%s", pid, name);
    else
        snprintf(path, sizeof path, "%s", name);
    int fd = openat(keeper->proc_fd, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t n, used = 0;
    while ((size_t)used < room - 1 && (n = read(fd, to + used, room - 1 - (size_t)used)) > 0)
        used += n;
    close(fd);
    to[used] = 0;
    return used;
}

/* Time since the start of the system that a process's start is counted in, as one since the epoch. */
static uint64_t clock_of_start(unsigned long long ticks)
{
    struct timespec now, since;
    clock_gettime(CLOCK_REALTIME, &now);
    clock_gettime(CLOCK_BOOTTIME, &since);
    uint64_t boot = ((uint64_t)now.tv_sec - (uint64_t)since.tv_sec) * 1000000000u + (uint64_t)now.tv_nsec - (uint64_t)since.tv_nsec;
    return boot + ticks * (1000000000u / (unsigned long)sysconf(_SC_CLK_TCK));
}

/* Fills in what /proc has about it; 0 where it is gone. */
static int look_at(const struct keeper *keeper, pid_t pid, struct frame *process)
{
    char text[1024], folder[32], state;
    unsigned long user, system;
    unsigned long long start;
    long pages;
    struct stat stat;
    if (read_file(keeper, pid, "stat", text, sizeof text) <= 0)
        return 0;
    char *behind = strrchr(text, ')'); /* the name before it may hold anything */
    if (!behind || sscanf(behind + 1, " %c %u %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %*d %*d %*d %*d %*d %*d %llu %*u %ld",
                          &state, &process->parent, &user, &system, &start, &pages) != 6)
        return 0;
    process->state = (uint8_t)state;
    process->cpu_us = (user + system) * (1000000u / (unsigned long)sysconf(_SC_CLK_TCK));
    process->memory_bytes = (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
    if (!process->started_ns)
        process->started_ns = clock_of_start(start);
    snprintf(folder, sizeof folder, "%d", pid);
    if (fstatat(keeper->proc_fd, folder, &stat, 0) == 0)
        process->uid = stat.st_uid;
    return 1;
}

/* Strings that stand one behind the other become a list. */
static void split(char *at, size_t size, struct list *list)
{
    list->items = pool;
    list->count = 0;
    for (char *end = at + size; at < end && list->count < MAX_ITEMS; at += strlen(at) + 1)
        pool[list->count++] = at;
    pool[list->count] = NULL;
}

static void send_run(struct work *work, const struct run *run)
{
    struct frame process = {
        .type = PROCESS,
        .pid = (uint32_t)run->pid,
        .uid = run->uid,
        .flags = PROCESS_RUN,
        .state = 'X',
        .started_ns = run->started_clock_ns,
        .offset = run->output.total,
        .tag = {run->tag, run->tag_size},
    };
    if (run->flags & RUN_BACKGROUND)
        process.flags |= PROCESS_BACKGROUND;
    if (run->exit_flags & EXIT_KILLED)
        process.flags |= PROCESS_KILLED;
    if (run->flags & RUN_PTY)
        process.flags |= PROCESS_TERMINAL;
    if (run->flags & (RUN_STDIN | RUN_PTY))
        process.flags |= PROCESS_STDIN;
    split((char *)run->argv, run->argv_size, &process.argv);
    if (run->has_ended) {
        process.flags |= PROCESS_ENDED;
        process.exit_code = run->exit.exit_code;
        process.signal = run->exit.signal;
        process.cpu_us = run->exit.user_us + run->exit.system_us;
    } else {
        look_at(work->keeper, run->pid, &process);
        process.uid = run->uid;
    }
    work_send(work, &process);
}

static int is_run(const struct keeper *keeper, pid_t pid)
{
    for (const struct run *run = keeper->runs; run; run = run->next)
        if ((run->pid == pid && !run->has_ended) || (run->tree.monitor.fd >= 0 && run->tree.monitor_pid == pid))
            return 1;
    return 0;
}

/* Neither a run nor a part of the keeper. */
static int is_other(const struct keeper *keeper, pid_t pid)
{
    return pid > 0 && pid != getpid() && pid != getppid() && !is_worker(keeper, pid) && !is_run(keeper, pid);
}

static void send_other(struct work *work, pid_t pid)
{
    static char line[256 << 10];
    struct frame process = {.type = PROCESS, .pid = (uint32_t)pid};
    if (!look_at(work->keeper, pid, &process))
        return;
    ssize_t n = read_file(work->keeper, pid, "cmdline", line, sizeof line);
    split(line, n > 0 ? (size_t)n : 0, &process.argv);
    work_send(work, &process);
}

static DIR *open_proc(const struct keeper *keeper)
{
    int fd = openat(keeper->proc_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? NULL : fdopendir(fd);
}

int list_processes(struct work *work)
{
    for (const struct run *run = work->keeper->runs; run; run = run->next)
        if (run->pid > 0 && !run->has_failed && (!run->is_finished || run->is_kept))
            send_run(work, run);
    DIR *dir = open_proc(work->keeper);
    if (!dir)
        return -errno;
    for (struct dirent *entry; (entry = readdir(dir));)
        if (is_other(work->keeper, atoi(entry->d_name)))
            send_other(work, atoi(entry->d_name));
    closedir(dir);
    work_send_end(work);
    return 0;
}

/* One line of /proc/net/tcp or tcp6; the address stands there as words of the machine's order. */
static int parse_port(const char *line, struct frame *port, uint8_t *address)
{
    char local[33];
    unsigned number, state, uid;
    if (sscanf(line, " %*d: %32[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*x:%*x %*x:%*x %*x %u", local, &number, &state, &uid) != 4)
        return 0;
    size_t words = strlen(local) / 8;
    for (size_t i = 0; i < words; i++) {
        unsigned word;
        if (sscanf(local + 8 * i, "%8x", &word) != 1)
            return 0;
        memcpy(address + 4 * i, &word, 4);
    }
    port->address = (struct octets){address, (uint32_t)(4 * words)};
    port->port = (uint16_t)number;
    port->uid = uid;
    return state == 10; /* TCP_LISTEN */
}

static int send_ports(struct work *work, const char *name)
{
    char line[512];
    int fd = openat(work->keeper->proc_fd, name, O_RDONLY | O_CLOEXEC);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
    if (!file)
        return errno == ENOENT ? 0 : -errno; /* a kernel without IPv6 */
    while (fgets(line, sizeof line, file)) {
        uint8_t address[16];
        struct frame port = {.type = PORT};
        if (parse_port(line, &port, address) && port.port != work->keeper->options.egress_port)
            work_send(work, &port);
    }
    fclose(file);
    return 0;
}

int list_ports(struct work *work)
{
    int rc = send_ports(work, "self/net/tcp");
    if (rc == 0)
        rc = send_ports(work, "self/net/tcp6");
    if (rc == 0)
        work_send_end(work);
    return rc;
}

static uint32_t count_processes(const struct keeper *keeper)
{
    uint32_t count = 0;
    DIR *dir = open_proc(keeper);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        pid_t pid = atoi(entry->d_name);
        int is_command = 0;
        for (const struct run *run = keeper->runs; run; run = run->next)
            is_command |= run->pid == pid && !run->has_ended;
        count += is_command || is_other(keeper, pid);
    }
    if (dir)
        closedir(dir);
    return count;
}

int show_usage(struct work *work)
{
    const struct keeper *keeper = work->keeper;
    struct statfs disk;
    if (statfs("/", &disk) < 0)
        return -errno;
    uint64_t now = now_ms(), block = (uint64_t)disk.f_bsize;
    work_send(work, &(struct frame){
                        .type = USAGE_IS,
                        .disk_bytes = ((uint64_t)disk.f_blocks - (uint64_t)disk.f_bfree) * block,
                        .disk_free = (uint64_t)disk.f_bavail * block,
                        .inodes = (uint64_t)disk.f_files - (uint64_t)disk.f_ffree,
                        .inodes_free = (uint64_t)disk.f_ffree,
                        .uptime_ms = now - keeper->started_ms,
                        .idle_ms = keeper->active ? 0 : now - keeper->last_active_ms,
                        .processes = count_processes(keeper),
                        .runs = (uint32_t)keeper->live_count,
                    });
    return 0;
}
