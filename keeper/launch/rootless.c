// A box of a user who is not root: in a user namespace of that user's, where the launcher is root
// and may mount, with a disk in memory, as loop devices are root's alone.
#define _GNU_SOURCE
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_WORDS = 32 };

// Of the box's layer; the same as `FOLDERS` in engines/disks.py.
static const struct {
	const char *name;
	uid_t owner;
	mode_t mode;
} folders[] = {
	{"work", 0, 0755},	  {"upper", 0, 0755},	       {"upper/.cloche", 0, 0755}, {"upper/dev", 0, 0755},
	{"upper/home", 0, 0755},  {"upper/home/user", 1000, 0755}, {"upper/proc", 0, 0755},    {"upper/tmp", 0, 01777},
};

// Done from outside, while the caller's identity still stands: v1 asks for the owner of what is moved.
void enter_cgroups(const struct plan *plan)
{
	for (int i = 0; i < plan->entered_count; i++) {
		begin("enter a cgroup");
		int folder = must(open(plan->entered[i], O_PATH | O_DIRECTORY | O_CLOEXEC), plan->entered[i]);
		write_text(folder, "cgroup.procs", "0");
		close(folder);
	}
}

// A setuid program of the system's writes the map: it knows which ids the caller was given.
static void run_mapper(const char *program, pid_t target, char *map)
{
	char pid[16], *words[MAX_WORDS] = {(char *)program, pid};
	int count = 2;
	snprintf(pid, sizeof pid, "%d", target);
	for (char *word = strtok(map, " "); word && count < MAX_WORDS - 1; word = strtok(NULL, " "))
		words[count++] = word;
	pid_t child = must(fork(), "fork");
	if (child == 0) {
		execvp(program, words);
		fail(program);
	}
	int status;
	must(waitpid(child, &status, 0), "wait");
	if (status) { // it has said why
		errno = EPERM;
		fail(program);
	}
}

static pid_t start_mapper(const struct plan *plan, int ready[2])
{
	pid_t target = getpid();
	must(pipe2(ready, O_CLOEXEC), "pipe");
	pid_t child = must(fork(), "fork");
	if (child)
		return child;
	char octet;
	close(ready[1]);
	if (read(ready[0], &octet, 1) != 1)
		_exit(1); // the namespace could not be made
	run_mapper("newuidmap", target, plan->uid_map);
	run_mapper("newgidmap", target, plan->gid_map);
	_exit(0);
}

static void map_by_others(const struct plan *plan)
{
	int ready[2], status;
	pid_t mapper = start_mapper(plan, ready);
	must(unshare(CLONE_NEWUSER), "unshare");
	must((int)write(ready[1], "", 1), "write");
	must(waitpid(mapper, &status, 0), "wait");
	if (status)
		_exit(125); // it has said why
	close(ready[0]);
	close(ready[1]);
}

static void map_self(void)
{
	char text[32];
	uid_t uid = getuid();
	gid_t gid = getgid();
	must(unshare(CLONE_NEWUSER), "unshare");
	write_text(AT_FDCWD, "/proc/self/setgroups", "deny");
	snprintf(text, sizeof text, "0 %u 1\n", uid);
	write_text(AT_FDCWD, "/proc/self/uid_map", text);
	snprintf(text, sizeof text, "0 %u 1\n", gid);
	write_text(AT_FDCWD, "/proc/self/gid_map", text);
}

// What is counted for a namespace's users counts for its maker as well: a box is to leave something
// for the caller's other programs.
static void limit_watches(void)
{
	begin("limit what counts for the caller");
	write_text(AT_FDCWD, "/proc/sys/user/max_inotify_instances", "32");
	write_text(AT_FDCWD, "/proc/sys/user/max_inotify_watches", "16384");
}

void enter_user_namespace(const struct plan *plan)
{
	begin("make a user namespace");
	if (plan->uid_map)
		map_by_others(plan);
	else
		map_self();
	begin("become root of the user namespace");
	pid_t parent = getppid();
	must(setresgid(0, 0, 0), "setresgid");
	must(setresuid(0, 0, 0), "setresuid");
	follow(parent); // a change of user ends that
	limit_watches();
}

int mount_memory_disk(const struct plan *plan)
{
	char size[32], inodes[32];
	begin("mount the disk");
	snprintf(size, sizeof size, "%um", plan->disk_mb);
	snprintf(inodes, sizeof inodes, "%u", plan->inodes);
	int context = must(fsopen("tmpfs", FSOPEN_CLOEXEC), "tmpfs");
	must(fsconfig(context, FSCONFIG_SET_STRING, "size", size, 0), size);
	must(fsconfig(context, FSCONFIG_SET_STRING, "nr_inodes", inodes, 0), inodes);
	must(fsconfig(context, FSCONFIG_SET_STRING, "mode", "755", 0), "mode");
	must(fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0), "tmpfs");
	int disk = must(fsmount(context, FSMOUNT_CLOEXEC, MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOATIME),
			"fsmount");
	close(context);
	for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
		must(mkdirat(disk, folders[i].name, 0755), folders[i].name);
		must(fchmodat(disk, folders[i].name, folders[i].mode, 0), folders[i].name);
		if (plan->uid_map) // else the box's user is the one who is root here
			must(fchownat(disk, folders[i].name, folders[i].owner, folders[i].owner, 0), folders[i].name);
	}
	close(must(openat(disk, "upper/.cloche/keeper", O_CREAT | O_WRONLY | O_CLOEXEC, 0644), "keeper"));
	return disk;
}

// As a mount of its own: nothing of the host lies above its root, whoever holds the descriptor.
int open_end(const struct plan *plan)
{
	begin("open the folder for the end");
	int tree = must(open_tree(AT_FDCWD, plan->end, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC), plan->end);
	struct mount_attr wanted = {.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC};
	must(mount_setattr(tree, "", AT_EMPTY_PATH, &wanted, sizeof wanted), plan->end);
	return tree;
}
