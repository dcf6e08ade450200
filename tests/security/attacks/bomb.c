// Takes what it can get of one thing: processes, threads, files, descriptors, memory in various places, CPU time.
// Prints how much it got.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static void *sleep_on(void *unused)
{
	while (pause())
		;
	return unused;
}

static int bomb_forks(void)
{
	int made = 0;
	for (; made < 100000; made++) {
		pid_t pid = fork();
		if (pid == 0)
			sleep_on(NULL);
		if (pid < 0)
			break;
	}
	return made;
}

static int bomb_threads(void)
{
	int made = 0;
	pthread_attr_t small;
	pthread_t thread;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 16384);
	while (made < 100000 && pthread_create(&thread, &small, sleep_on, NULL) == 0)
		made++;
	return made;
}

static int bomb_descriptors(void)
{
	int made = 0;
	while (made < 1000000 && dup(0) >= 0)
		made++;
	return made;
}

static int bomb_inodes(void)
{
	int made = 0;
	char name[32];
	for (; made < 1000000; made++) {
		snprintf(name, sizeof name, "/tmp/inode-%d", made);
		int fd = open(name, O_CREAT | O_WRONLY, 0600);
		if (fd < 0)
			break;
		close(fd);
	}
	return made;
}

// In MiB.
static int bomb_disk(const char *name)
{
	static char block[1 << 20];
	long long octets = 0;
	memset(block, 1, sizeof block);
	int fd = open(name, O_CREAT | O_WRONLY, 0600);
	for (ssize_t n; (n = write(fd, block, sizeof block)) > 0;)
		octets += n;
	return (int)(octets >> 20);
}

static int bomb_holes(void)
{
	int fd = open("/tmp/hole", O_CREAT | O_RDWR, 0600), made = 0;
	if (ftruncate(fd, 1ll << 40) == 0)
		made++;
	if (fallocate(fd, 0, 0, 1ll << 40) == 0)
		made++;
	return made;
}

static int bomb_memory(void)
{
	for (int made = 1; made < 100000; made++) {
		char *at = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		if (at == MAP_FAILED)
			return made;
		memset(at, made, 1 << 20);
	}
	return 0;
}

// The memory is the kernel's: what is in flight between two sockets.
static int bomb_sockets(void)
{
	static char block[1 << 16];
	int made = 0, pair[2], size = 1 << 24;
	for (; made < 4000 && socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0; made++) {
		setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
		while (send(pair[0], block, sizeof block, MSG_DONTWAIT) > 0)
			;
	}
	return made;
}

int main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "";
	setvbuf(stdout, NULL, _IONBF, 0);
	int got = !strcmp(kind, "forks")		 ? bomb_forks()
		  : !strcmp(kind, "threads")	 ? bomb_threads()
		  : !strcmp(kind, "descriptors") ? bomb_descriptors()
		  : !strcmp(kind, "inodes")	 ? bomb_inodes()
		  : !strcmp(kind, "disk")	 ? bomb_disk("/tmp/disk")
		  : !strcmp(kind, "shm")		 ? bomb_disk("/dev/shm/disk")
		  : !strcmp(kind, "holes")	 ? bomb_holes()
		  : !strcmp(kind, "memory")	 ? bomb_memory()
		  : !strcmp(kind, "sockets")	 ? bomb_sockets()
					 : -1;
	int code = errno;
	printf("%d\n", got);
	return code == ENOSPC || code == EAGAIN ? 1 : 0;
}
