#define _GNU_SOURCE
#include "launch.h"
#include "filter.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NOT_EXECUTABLE = 126, NOT_FOUND = 127, CHANNEL_FD = 3 };

enum step {
    STEP_NONE, STEP_SESSION, STEP_DESCRIPTORS, STEP_TERMINAL, STEP_CGROUP, STEP_OOM_SCORE, STEP_LIMITS,
    STEP_GROUPS, STEP_GROUP, STEP_BOUNDING, STEP_AMBIENT, STEP_SECUREBITS, STEP_USER, STEP_CAPABILITIES,
    STEP_PRIVILEGES, STEP_FOLDER, STEP_FILTER, STEP_CHANNEL,
};

static const char *const step_names[] = {
    [STEP_NONE] = "nothing",
    [STEP_SESSION] = "start a session",
    [STEP_DESCRIPTORS] = "set up standard input and output",
    [STEP_TERMINAL] = "take the terminal",
    [STEP_CGROUP] = "join the cgroup",
    [STEP_OOM_SCORE] = "set the out-of-memory score",
    [STEP_LIMITS] = "restore the limit of open files",
    [STEP_GROUPS] = "drop the supplementary groups",
    [STEP_GROUP] = "become the group",
    [STEP_BOUNDING] = "drop the bounding capabilities",
    [STEP_AMBIENT] = "drop the ambient capabilities",
    [STEP_SECUREBITS] = "lock the capabilities",
    [STEP_USER] = "become the user",
    [STEP_CAPABILITIES] = "drop the capabilities",
    [STEP_PRIVILEGES] = "rule out new privileges",
    [STEP_FOLDER] = "enter the working directory",
    [STEP_CHANNEL] = "set up the channel",
    [STEP_FILTER] = "install the system call filter",
};

const char *step_name(int step)
{
    int count = (int)(sizeof step_names / sizeof *step_names);
    return step > 0 && step < count ? step_names[step] : "start a process";
}

void unblock_signals(void)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static int join_cgroups(const struct options *options)
{
    for (int i = 0; i < options->joins; i++)
        if (write(options->join_fds[i], "0", 1) != 1)
            return -1;
    return 0;
}

/*
 * The kernel is to take any of them before the keeper. Without a root in the user namespace, the files of a
 * process that is not dumpable are nobody's to write, and the larger one has to do.
 */
static int raise_oom_score(const struct keeper *keeper)
{
    int fd = openat(keeper->proc_fd, "self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == EACCES && keeper->options.uid_only >= 0 ? 0 : -1;
    ssize_t n = write(fd, "1000", 4);
    close(fd);
    return n == 4 ? 0 : -1;
}

/* Where there is one user only, the groups are those that the keeper was started with, and stay: nobody can drop them. */
static int drop_groups(const struct keeper *keeper)
{
    if (setgroups(0, NULL) == 0 || getgroups(0, NULL) == 0 || keeper->options.uid_only >= 0)
        return 0;
    return -1;
}

static int drop_bounding(uint64_t present, uint64_t kept)
{
    for (int cap = 0; cap < 64; cap++)
        if (present & ~kept & 1ull << cap && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
            return -1;
    return 0;
}

static int set_capabilities(uint64_t caps)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {
        {.effective = (uint32_t)caps, .permitted = (uint32_t)caps},
        {.effective = (uint32_t)(caps >> 32), .permitted = (uint32_t)(caps >> 32)},
    };
    return (int)syscall(SYS_capset, &header, data);
}

enum {
    LOCKS = SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
            SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED,
    NO_ROOT = SECBIT_NOROOT | SECBIT_NO_SETUID_FIXUP,
};

int become_user(const struct keeper *keeper, uint32_t uid, uint32_t gid)
{
    if (keeper->options.is_host)
        return 0;
    uint64_t kept = uid == 0 ? keeper->options.root_caps & keeper->permitted_caps : 0;
    if (drop_groups(keeper) < 0)
        return STEP_GROUPS;
    if (setresgid(gid, gid, gid) < 0)
        return STEP_GROUP;
    if (drop_bounding(keeper->bounding_caps, kept) < 0)
        return STEP_BOUNDING;
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 && errno != EINVAL)
        return STEP_AMBIENT;
    /* Without any capability the bits can't be set, and have nothing to protect. */
    if (keeper->permitted_caps && prctl(PR_SET_SECUREBITS, kept ? LOCKS : LOCKS | NO_ROOT, 0, 0, 0) < 0)
        return STEP_SECUREBITS;
    if (setresuid(uid, uid, uid) < 0)
        return STEP_USER;
    if (set_capabilities(kept) < 0)
        return STEP_CAPABILITIES;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return STEP_PRIVILEGES;
    return 0;
}

int launch_guard(const struct keeper *keeper, int has_user, uint32_t uid, uint32_t gid)
{
    if (join_cgroups(&keeper->options) < 0)
        return STEP_CGROUP;
    if (raise_oom_score(keeper) < 0)
        return STEP_OOM_SCORE;
    if (setrlimit(RLIMIT_NOFILE, &keeper->files) < 0)
        return STEP_LIMITS;
    int step = has_user ? become_user(keeper, uid, gid) : 0;
    if (step)
        return step;
    if (has_user && !keeper->options.is_host && filter_install() < 0)
        return STEP_FILTER;
    return 0;
}

static int set_up(const struct launch *l)
{
    const struct keeper *keeper = l->keeper;
    if (setsid() < 0)
        return STEP_SESSION;
    if (dup2(l->input, 0) < 0 || dup2(l->output, 1) < 0 || dup2(l->error, 2) < 0)
        return STEP_DESCRIPTORS;
    if (l->has_terminal && ioctl(0, TIOCSCTTY, 0) < 0)
        return STEP_TERMINAL;
    int step = launch_guard(keeper, 1, l->uid, l->gid);
    if (step)
        return step;
    if (chdir(*l->cwd ? l->cwd : "/") < 0)
        return STEP_FOLDER;
    /* Last: what the keeper had there was of use until here. */
    if (l->channel >= 0 && (l->status == CHANNEL_FD || l->channel == CHANNEL_FD || dup2(l->channel, CHANNEL_FD) < 0))
        return STEP_CHANNEL;
    unblock_signals();
    return 0;
}

static const char *get_path(char **env)
{
    for (; *env; env++)
        if (strncmp(*env, "PATH=", 5) == 0)
            return *env + 5;
    return "/usr/local/bin:/usr/bin:/bin";
}

/* Tries the folders of PATH; returns the errno that says most about why none worked. */
static int execute(const struct launch *l)
{
    const char *name = l->argv[0];
    size_t size = strlen(name);
    if (strchr(name, '/')) {
        execve(name, l->argv, l->env);
        return errno;
    }
    int code = ENOENT;
    char file[4096];
    for (const char *at = get_path(l->env); size;) {
        size_t part = strcspn(at, ":");
        if (part + 1 + size < sizeof file) {
            memcpy(file, at, part);
            file[part] = '/';
            memcpy(file + part + (part > 0), name, size + 1);
            execve(file, l->argv, l->env);
            if (errno != ENOENT && errno != ENOTDIR)
                code = errno;
            if (errno != ENOENT && errno != ENOTDIR && errno != EACCES)
                return code;
        }
        if (!at[part])
            break;
        at += part + 1;
    }
    return code;
}

static void report(const struct launch *l, int step, int code)
{
    struct failure failure = {step, code};
    while (write(l->status, &failure, sizeof failure) < 0 && errno == EINTR)
        ;
}

void launch(const struct launch *l)
{
    int step = set_up(l);
    if (step) {
        report(l, step, errno);
        _exit(NOT_FOUND);
    }
    int code = execute(l);
    const char *why = code == ENOENT ? "not found" : strerror(code);
    dprintf(2, "%.200s: %s\n", l->argv[0], why);
    _exit(code == ENOENT || code == ENOTDIR ? NOT_FOUND : NOT_EXECUTABLE);
}
