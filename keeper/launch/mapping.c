// Mappings of user ids for mounts. A user namespace serves as one; it needs a process to be
// born in, and none to live on.
#define _GNU_SOURCE
#include "launch.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
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

static int open_mapping(uint32_t uid, uint32_t gid, uint32_t outside, uint32_t count)
{
	begin("make a range of ids");
	struct clone_args args = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
	pid_t pid = (pid_t)must((int)syscall(SYS_clone3, &args, sizeof args), "clone3");
	if (pid == 0)
		for (;;)
			pause();
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
