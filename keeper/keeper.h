/* What the keeper is: its options, its loop, its connections and its runs. */
#ifndef KEEPER_H
#define KEEPER_H

#include "frames.h"
#include "loop.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

enum {
    MAX_CONNECTIONS = 256,
    MAX_RUNS = 1024,
    MAX_ENDED = 64,
    MAX_WORKERS = 64,
    MAX_WATCHERS = 64,
    MAX_JOINS = 16,
    REQUEST_MS = 10000,
    SCRATCH_SIZE = 64 << 10,
};

struct options {
    const char *bind_path;
    int listen_fd, runs_fd, end_fd, egress_port; /* -1, -1, -1, 0: not given */
    int join_fds[MAX_JOINS], joins;
    uint64_t root_caps;
    uint64_t idle_ms, life_ms; /* 0: no limit */
    long long uid_only; /* -1: any */
    int is_host;
};

struct conn;
struct run;
struct worker;

struct cgroup {
    int number, dir, events, was_killed;
};

enum { SPARE_CGROUPS = 4 };

struct keeper {
    struct options options;
    struct loop loop;
    struct source listener, signals;
    int proc_fd, null_fd, spare_fd;
    struct rlimit files; /* as it was at the start, for the children */
    uint64_t permitted_caps, bounding_caps;
    uint64_t started_ms, last_active_ms;
    int active; /* requests under way and foreground runs */
    int is_ending;
    struct timer idle, life;

    struct conn *conns, *dirty;
    int conn_count;
    struct run *runs; /* newest first */
    int run_count, live_count, ended_count;
    struct worker *workers;
    int worker_count, watcher_count;
    struct cgroup spare[SPARE_CGROUPS];
    int spare_count, last_cgroup;
    struct egress *egress;

    struct frame request;
    char *pool[ITEM_POOL];
    uint8_t scratch[SCRATCH_SIZE + HEADER_SIZE];
};

#define OWNER(type, member, pointer) ((type *)(void *)((char *)(pointer) - offsetof(type, member)))

/* main.c */
void set_active(struct keeper *keeper, int *flag, int active);
void end_all(struct keeper *keeper);

/* life.c */
void life_begin(struct keeper *keeper);

/* reap.c */
void reap_children(struct keeper *keeper);

#endif
