/* All that a run has started: held together by a cgroup, else by a monitor. */
#ifndef TREE_H
#define TREE_H

#include "keeper.h"

#include <sys/resource.h>

struct launch;
struct run;

struct tree {
    struct cgroup cgroup; /* number 0: none */
    struct source monitor; /* -1: none (any more) */
    pid_t monitor_pid;
};

int trees_open(struct keeper *keeper);

/* Starts the command in a tree of its own; returns 0 or a negative errno. */
int tree_start(struct run *run, const struct launch *launch);

/* Sends SIGKILL to everything in it. */
void tree_kill(struct run *run);

int tree_has_processes(const struct run *run);

/* Gives back what held it together. */
void tree_close(struct run *run);

#endif
