/* What a child does between fork and execve. */
#ifndef LAUNCH_H
#define LAUNCH_H

#include "keeper.h"

struct launch {
    const struct keeper *keeper;
    char **argv, **env;
    const char *cwd;
    uint32_t uid, gid;
    int input, output, error; /* descriptors */
    int channel;              /* -1: none; else it is to be 3 */
    int status;               /* write end of the pipe that tells of failures */
    int has_terminal;
};

/* What is written to `status` when a step failed; the pipe's end without it means: executed. */
struct failure {
    int step, code;
};

const char *step_name(int step);

/* Executes the command as the user; never returns. */
_Noreturn void launch(const struct launch *launch);

/* Gives up every privilege that the user is not to have. Returns 0, or the step that failed, with errno. */
int become_user(const struct keeper *keeper, uint32_t uid, uint32_t gid);

/* What protects the keeper from a child; a child with a user becomes that user too. As become_user. */
int launch_guard(const struct keeper *keeper, int has_user, uint32_t uid, uint32_t gid);

/* None is ignored or handled since the start; here what the keeper blocks is unblocked. */
void unblock_signals(void);

#endif
