// Cgroups that the OCI runtime knows nothing of: a tree for killing runs and, on v1, a pids
// limit that leaves the keeper processes of its own (on v2 `engines/cgroups.py` sets it, later).
#define _GNU_SOURCE
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int make_folder(int parent, const char *name)
{
	if (mkdirat(parent, name, 0755) < 0 && errno != EEXIST)
		fail(name);
	return must(openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC), name);
}

void write_text(int folder, const char *name, const char *text)
{
	int fd = must(openat(folder, name, O_WRONLY | O_CLOEXEC), name);
	must((int)write(fd, text, strlen(text)), name);
	close(fd);
}

static void limit_pids(int folder, uint32_t pids)
{
	char text[16];
	snprintf(text, sizeof text, "%u", pids);
	write_text(folder, "pids.max", text);
}

// The keeper makes a folder in `runs` for each run: it must own that, and may move
// processes only where it owns the common ancestor's cgroup.procs.
int open_runs(const struct plan *plan)
{
	begin("make the cgroup of executions");
	int box = make_folder(AT_FDCWD, plan->tree_cgroup);
	int runs = make_folder(box, "runs");
	if (plan->rootless) {
		// The keeper may be another id. Nobody else comes here: above lies a folder of the caller's.
		must(fchmod(runs, 0777), "chmod runs");
		must(fchmodat(box, "cgroup.procs", 0666, 0), "chmod cgroup.procs");
		must(fchmodat(runs, "cgroup.procs", 0666, 0), "chmod cgroup.procs");
	} else {
		must(fchown(runs, plan->first_id, plan->first_id), "chown runs");
		must(fchownat(box, "cgroup.procs", plan->first_id, plan->first_id, 0), "chown cgroup.procs");
		must(fchownat(runs, "cgroup.procs", plan->first_id, plan->first_id, 0), "chown cgroup.procs");
	}
	close(box);
	return runs;
}

// Goes on in a child that is born in the box's cgroup, and ends as it ends: moving there
// instead waits for an RCU grace period (40 ms were seen).
void enter_tree(const struct plan *plan)
{
	if (!plan->pids_cgroup && !plan->rootless)
		return; // unified: the runtime goes there
	begin("enter the sandbox's cgroup");
	int box = must(open(plan->tree_cgroup, O_PATH | O_DIRECTORY | O_CLOEXEC), plan->tree_cgroup);
	struct clone_args args = {
		.flags = CLONE_INTO_CGROUP,
		.exit_signal = SIGCHLD,
		.cgroup = (uint64_t)box,
	};
	pid_t child = (pid_t)must((int)syscall(SYS_clone3, &args, sizeof args), "clone3");
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(box);
		return;
	}
	int status;
	must(waitpid(child, &status, 0), "wait");
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

int open_pids(const struct plan *plan)
{
	if (!plan->pids_cgroup)
		return -1;
	begin("make the cgroup of processes");
	int box = make_folder(AT_FDCWD, plan->pids_cgroup);
	int runs = make_folder(box, "runs");
	limit_pids(runs, plan->pids);
	int fd = must(openat(runs, "cgroup.procs", O_WRONLY | O_CLOEXEC), "cgroup.procs");
	close(runs);
	close(box);
	return fd;
}
