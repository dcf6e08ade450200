/* The small process that holds a run's tree together where no cgroup does. */
#ifndef MONITOR_H
#define MONITOR_H

#include "launch.h"

#include <sys/resource.h>

/* What it tells the keeper: the start first, then the end of the command. */
struct monitor_news {
    int has_ended, status, left_running; /* status: of the start 0 or a negative errno, of the end wait's */
    pid_t pid;
    struct rusage usage;
};

/* Starts the command and reaps all that descends from it; an octet on `link`, or its end, kills all. */
_Noreturn void monitor(const struct launch *launch, int link);

/* Closes every descriptor from `first` on. */
void close_from(int first);

#endif
