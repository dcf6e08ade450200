/* A child that is forked ahead of need: what can be done before the command is known is done while nobody waits. */
#ifndef READY_H
#define READY_H

#include "launch.h"

/* Makes one where there is none; failing, the next command is forked as ever. */
void ready_prepare(struct keeper *keeper);

/* Hands it the command; 0 where there is none, or the command is too long for it. */
int ready_use(struct run *run, const struct launch *launch);

/* It has ended before it was used: 1 where that number was its. */
int ready_has_ended(struct keeper *keeper, pid_t pid);

#endif
