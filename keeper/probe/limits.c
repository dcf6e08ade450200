// Tries of the limits: takes what can be had of one thing, up to an end of its own.
#define _GNU_SOURCE
#include "probe.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MIB = 1 << 20, NAME_MAX_LENGTH = 4096 };

int take_memory(int most_mib)
{
	int made = 0;
	for (; made < most_mib; made++) {
		char *at = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (at == MAP_FAILED)
			break;
		memset(at, made + 1, MIB);
	}
	return made;
}

// In files of a megabyte each: no limit of a single file's size is to come before the disk's.
int take_disk(int most_mib, const char *folder)
{
	static char block[MIB];
	char name[NAME_MAX_LENGTH];
	memset(block, 1, sizeof block);
	for (int made = 0; made < most_mib; made++) {
		snprintf(name, sizeof name, "%s/block-%d", folder, made);
		int fd = open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
		if (fd < 0)
			return made;
		ssize_t written = write(fd, block, sizeof block);
		close(fd);
		if (written != (ssize_t)sizeof block)
			return made;
	}
	return most_mib;
}

int take_files(int most, const char *folder)
{
	char name[NAME_MAX_LENGTH];
	for (int made = 0; made < most; made++) {
		snprintf(name, sizeof name, "%s/file-%d", folder, made);
		if (mknod(name, S_IFREG | 0600, 0) < 0)
			return made;
	}
	return most;
}

int take_processes(int most)
{
	pid_t parent = getpid();
	for (int made = 0; made < most; made++) {
		pid_t child = fork();
		if (child < 0)
			return made;
		if (child > 0)
			continue;
		// They end with the one that counts them, however that ends.
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() == parent)
			pause();
		_exit(0);
	}
	return most;
}
