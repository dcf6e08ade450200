// Mappings of user ids for mounts. A user namespace serves as one; it needs a process to be
// born in, and none to live on.
#define _GNU_SOURCE
#include "launch.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void write_map(pid_t pid, const char *name, uint32_t inside, uint32_t outside, uint32_t count)
{
	char path[64], text[64];
	snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
	int length = snprintf(text, sizeof text, "%u %u %u\n", inside, outside, count);
	int fd = must(open(path, O_WRONLY | O_CLOEXEC), path);
	must((int)write(fd, text, (size_t)length), path);
	close(fd);
}

// What belongs to a namespace counts towards the limits of whoever made it, inotify instances for
// one: made by root, all boxes would share what root has, and one could take it from all others.
static void become_owner(uint32_t owner)
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct caps[2];
	must((int)syscall(SYS_capget, &header, caps), "capget");
	must((int)syscall(SYS_setresuid, -1, owner, -1), "setresuid");
	must((int)syscall(SYS_capset, &header, caps), "capset");
}

static int open_mapping(uint32_t uid, uint32_t gid, uint32_t outside, uint32_t count)
{
	begin("make a range of ids");
	int ready[2];
	must(pipe2(ready, O_CLOEXEC), "pipe");
	pid_t pid = must(fork(), "fork");
	if (pid == 0) {
		become_owner(outside);
		must(unshare(CLONE_NEWUSER), "unshare");
		must(prctl(PR_SET_PDEATHSIG, SIGKILL), "prctl");
		close(ready[1]);
		for (;;)
			pause();
	}
	close(ready[1]);
	char end;
	must((int)read(ready[0], &end, 1), "wait");
	close(ready[0]);
	write_map(pid, "uid_map", uid, outside, count);
	write_map(pid, "gid_map", gid, outside, count);
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/ns/user", pid);
	int fd = must(open(path, O_RDONLY | O_CLOEXEC), path);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return fd;
}

int open_range_mapping(uint32_t first_id)
{
	return open_mapping(0, 0, first_id, IDS);
}

int open_owner_mapping(uint32_t uid, uint32_t gid, uint32_t outside)
{
	return open_mapping(uid, gid, outside, 1);
}

// By this name the runtime finds the namespace that the box is to live in.
void place_user_namespace(const struct plan *plan, int mapping)
{
	char source[32], target[256];
	begin("name the user namespace");
	snprintf(source, sizeof source, "/proc/self/fd/%d", mapping);
	snprintf(target, sizeof target, "%s/userns", plan->mounts);
	must(mount(source, target, NULL, MS_BIND, NULL), target);
}
