// cloche-launch: the privileged steps of making a box, then the OCI runtime.
//
// All mounts are made in a private mount namespace that only the box keeps alive, so that
// a box that ends, or a launch that fails half-way, leaves no mount and no loop device.
#define _GNU_SOURCE
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

// The first of what the keeper inherits; whoever calls tells it which number is what.
enum { FIRST_FD = 3, MOST_INHERITED = 4 };

static const char *current_step = "read the arguments";
static int fail_at, kill_at;
static int steps;
static pid_t maker;

void begin(const char *step)
{
	current_step = step;
	if (++steps == kill_at)
		kill(maker, SIGKILL);
	if (steps != fail_at)
		return;
	errno = EIO;
	fail("this failure was asked for");
}

_Noreturn void fail(const char *detail)
{
	fprintf(stderr, "%s: %s: %s\n", current_step, detail, strerror(errno));
	exit(125);
}

int must(int result, const char *detail)
{
	if (result < 0)
		fail(detail);
	return result;
}

static uint32_t parse_number(const char *text)
{
	char *end;
	errno = 0;
	unsigned long value = strtoul(text, &end, 10);
	if (!errno && !*end && end != text && value <= UINT32_MAX)
		return (uint32_t)value;
	errno = EINVAL;
	fail(text);
}

static void add_bind(struct plan *plan, const char *flags, const char *source, const char *target)
{
	if (plan->bind_count == MAX_BINDS || target[0] != '/') {
		errno = EINVAL;
		fail(target);
	}
	plan->binds[plan->bind_count++] = (struct bind){
		.source = source,
		.target = target + 1,
		.writable = strchr(flags, 'w') != NULL,
		.owned = strchr(flags, 'o') != NULL,
		.fresh = strchr(flags, 'f') != NULL,
	};
}

static void add_ceiling(struct plan *plan, const char *number, const char *value)
{
	char *end;
	errno = 0;
	rlim_t most = strtoull(value, &end, 10);
	if (errno || *end || end == value || plan->ceiling_count == MAX_CEILINGS) {
		errno = EINVAL;
		fail(value);
	}
	plan->ceilings[plan->ceiling_count++] = (struct ceiling){(int)parse_number(number), most};
}

static void add_folder(const char **folders, int *count, int most, const char *folder)
{
	if (*count == most) {
		errno = EINVAL;
		fail(folder);
	}
	folders[(*count)++] = folder;
}

static bool is_complete(const struct plan *plan)
{
	if (plan->map_only)
		return plan->runtime && plan->runtime[0];
	bool has_place = plan->folder && plan->mounts && plan->lower && plan->runtime && plan->runtime[0];
	bool has_limits = plan->pids || !plan->pids_cgroup;
	if (plan->rootless)
		return has_place && has_limits && plan->disk_mb && plan->inodes && plan->end &&
		       !plan->uid_map == !plan->gid_map;
	return has_place && has_limits && plan->tree_cgroup && plan->first_id;
}

static void parse(struct plan *plan, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		const char *name = argv[i];
		int left = argc - i - 1;
		if (!strcmp(name, "--")) {
			plan->runtime = argv + i + 1;
			break;
		}
		if (!strcmp(name, "--bind") && left >= 3) {
			add_bind(plan, argv[i + 1], argv[i + 2], argv[i + 3]);
			i += 3;
			continue;
		}
		if (!strcmp(name, "--ceiling") && left >= 2) {
			add_ceiling(plan, argv[i + 1], argv[i + 2]);
			i += 2;
			continue;
		}
		if (!strcmp(name, "--map-only")) {
			plan->map_only = true;
			continue;
		}
		if (!strcmp(name, "--rootless")) {
			plan->rootless = true;
			continue;
		}
		if (left < 1) {
			errno = EINVAL;
			fail(name);
		}
		char *value = argv[++i];
		if (!strcmp(name, "--folder"))
			plan->folder = value;
		else if (!strcmp(name, "--mounts"))
			plan->mounts = value;
		else if (!strcmp(name, "--lower"))
			plan->lower = value;
		else if (!strcmp(name, "--pids-cgroup"))
			plan->pids_cgroup = value;
		else if (!strcmp(name, "--tree-cgroup"))
			plan->tree_cgroup = value;
		else if (!strcmp(name, "--hide"))
			add_folder(plan->hidden, &plan->hidden_count, MAX_HIDDEN, value);
		else if (!strcmp(name, "--read-only"))
			plan->read_only = value;
		else if (!strcmp(name, "--first-id"))
			plan->first_id = parse_number(value);
		else if (!strcmp(name, "--user"))
			plan->user = parse_number(value);
		else if (!strcmp(name, "--pids"))
			plan->pids = parse_number(value);
		else if (!strcmp(name, "--uid-map"))
			plan->uid_map = value;
		else if (!strcmp(name, "--gid-map"))
			plan->gid_map = value;
		else if (!strcmp(name, "--enter"))
			add_folder(plan->entered, &plan->entered_count, MAX_ENTERED, value);
		else if (!strcmp(name, "--end"))
			plan->end = value;
		else if (!strcmp(name, "--disk-mb"))
			plan->disk_mb = parse_number(value);
		else if (!strcmp(name, "--inodes"))
			plan->inodes = parse_number(value);
		else if (!strcmp(name, "--maker"))
			maker = (pid_t)parse_number(value);
		else if (!strcmp(name, "--fail-at"))
			fail_at = (int)parse_number(value);
		else if (!strcmp(name, "--kill-at"))
			kill_at = (int)parse_number(value);
		else {
			errno = EINVAL;
			fail(name);
		}
	}
	if (is_complete(plan))
		return;
	errno = EINVAL;
	fail("an option is missing");
}

// Who wrote down that it makes this box takes along what it started: whoever finds its note then
// can clear up without anything being made behind their back.
void follow(pid_t parent)
{
	begin("follow the process that makes the box");
	must(prctl(PR_SET_PDEATHSIG, SIGKILL), "prctl");
	if (getppid() != parent)
		raise(SIGKILL);
}

// The host listens before the box starts: a client may connect at once, and nothing in
// the box can see or replace the socket.
static int listen_for_clients(void)
{
	begin("listen for the keeper");
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "keeper.sock"};
	int fd = must(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
	must(fchmod(fd, 0600), "fchmod");
	must(bind(fd, (struct sockaddr *)&address, sizeof address), "keeper.sock");
	must(listen(fd, 256), "listen");
	return fd;
}

static void enter_private_mounts(void)
{
	begin("make a private mount namespace");
	must(unshare(CLONE_NEWNS), "unshare");
	must(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), "make / private");
}

// The kernel is to take boxes before the server. What sets it here makes it the least that any
// process in the box can go back to: below the keeper's own score, a program would let the
// keeper be killed in its place. Without the capability there is no such floor, and the keeper
// stays where it is: nothing in the box can go lower either.
static void set_oom_score(void)
{
	begin("set the out-of-memory score");
	if (prctl(PR_CAPBSET_READ, CAP_SYS_RESOURCE) != 1)
		return;
	int fd = must(open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC), "oom_score_adj");
	must((int)write(fd, "500", 3), "oom_score_adj");
	close(fd);
}

// Moves the keeper's descriptors to their numbers and closes every other one: what leaks
// into a runtime has been a way out of it (CVE-2024-21626).
static void hand_over(const int inherited[MOST_INHERITED])
{
	begin("hand over descriptors");
	int high[MOST_INHERITED], count = 0;
	for (int i = 0; i < MOST_INHERITED; i++)
		if (inherited[i] >= 0)
			high[count++] = must(fcntl(inherited[i], F_DUPFD, 100), "dup");
	for (int i = 0; i < count; i++)
		must(dup2(high[i], FIRST_FD + i), "dup2");
	must(close_range((unsigned)(FIRST_FD + count), ~0U, 0), "close_range");
}

// A runtime copies itself and starts anew, lest a box write to its program (CVE-2019-5736).
// On a mount that is read-only here it need not: that saves the time of an execve.
static void protect_runtime(const char *program)
{
	begin("protect the OCI runtime's program");
	int tree = must(open_tree(AT_FDCWD, program, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC), program);
	struct mount_attr wanted = {.attr_set = MOUNT_ATTR_RDONLY};
	must(mount_setattr(tree, "", AT_EMPTY_PATH, &wanted, sizeof wanted), program);
	must(move_mount(tree, "", AT_FDCWD, program, MOVE_MOUNT_F_EMPTY_PATH), program);
	close(tree);
	must(setenv("_LIBCONTAINER_CLONED_BINARY", "1", 1), "setenv");
}

// Writable: crun takes a hidden cgroup tree for one more v1 hierarchy, and makes its folders there.
static void hide_folders(const struct plan *plan)
{
	for (int i = 0; i < plan->hidden_count; i++) {
		begin("hide a folder from the runtime");
		must(mount("tmpfs", plan->hidden[i], "tmpfs", 0, "size=4m"), plan->hidden[i]);
	}
	if (!plan->read_only)
		return;
	struct mount_attr wanted = {.attr_set = MOUNT_ATTR_RDONLY};
	begin("make a folder read-only for the runtime");
	must(mount_setattr(AT_FDCWD, plan->read_only, AT_RECURSIVE, &wanted, sizeof wanted), plan->read_only);
}

// Here and not by the runtime: for another's process, in a namespace that is not root's own, that
// takes a capability of the host's which not every root has.
static void set_ceilings(const struct plan *plan)
{
	begin("limit each process");
	for (int i = 0; i < plan->ceiling_count; i++) {
		struct rlimit both = {plan->ceilings[i].most, plan->ceilings[i].most};
		must(setrlimit((unsigned)plan->ceilings[i].number, &both), "setrlimit");
	}
}

static _Noreturn void start(const struct plan *plan)
{
	begin("start the program");
	execv(plan->runtime[0], plan->runtime);
	fail(plan->runtime[0]);
}

// Gives the keeper's descriptors.
static void make_box(const struct plan *plan, int inherited[MOST_INHERITED])
{
	inherited[1] = open_runs(plan);
	enter_tree(plan);
	inherited[0] = listen_for_clients();
	inherited[2] = open_pids(plan);
	make_network();
	enter_private_mounts();
	int id_mapping = open_range_mapping(plan->first_id);
	place_user_namespace(plan, id_mapping);
	int disk = mount_disk(id_mapping);
	mount_rootfs(plan, disk, id_mapping);
}

static void make_rootless_box(const struct plan *plan, int inherited[MOST_INHERITED])
{
	if (plan->tree_cgroup) {
		inherited[1] = open_runs(plan);
		enter_tree(plan);
	}
	inherited[0] = listen_for_clients();
	enter_cgroups(plan);
	enter_user_namespace(plan);
	inherited[2] = open_pids(plan);
	make_network();
	enter_private_mounts();
	inherited[3] = open_end(plan);
	int disk = mount_memory_disk(plan);
	mount_rootfs(plan, disk, -1);
}

int main(int argc, char **argv)
{
	struct plan plan = {0};
	int inherited[MOST_INHERITED] = {-1, -1, -1, -1};
	parse(&plan, argc, argv);
	follow(maker ? maker : getppid());
	if (plan.map_only) {
		enter_user_namespace(&plan);
		start(&plan);
	}
	umask(022);
	begin("enter the sandbox's folder");
	must(chdir(plan.folder), plan.folder);

	if (plan.rootless)
		make_rootless_box(&plan, inherited);
	else
		make_box(&plan, inherited);
	hide_folders(&plan);
	if (!plan.rootless)
		set_oom_score();
	protect_runtime(plan.runtime[0]);
	hand_over(inherited);
	set_ceilings(&plan);
	start(&plan);
}
