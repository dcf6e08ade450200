#define _GNU_SOURCE
#include "keeper.h"
#include "run.h"
#include "worker.h"

#include <sys/wait.h>

static struct run *run_of_child(struct keeper *keeper, pid_t pid)
{
    for (struct run *run = keeper->runs; run; run = run->next)
        if (run->pid == pid && !run->has_ended && run->tree.cgroup.number)
            return run;
    return NULL;
}

/* The last process of a tree is always an orphan by then, and so the keeper's child. */
static void settle_leftovers(struct keeper *keeper)
{
    for (struct run *run = keeper->runs, *next; run; run = next) {
        next = run->next;
        if (run->is_finished && run->tree.cgroup.number)
            run_settle(run);
    }
}

void reap_children(struct keeper *keeper)
{
    int status, had_orphans = 0;
    struct rusage usage;
    for (pid_t pid; (pid = wait4(-1, &status, WNOHANG | __WALL, &usage)) > 0;) {
        struct run *run = run_of_child(keeper, pid);
        if (run)
            run_has_ended(run, status, &usage, tree_has_processes(run));
        else if (!worker_has_ended(keeper, pid))
            had_orphans = 1;
    }
    if (had_orphans)
        settle_leftovers(keeper);
}
