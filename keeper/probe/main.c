// Tries the promises of the box that it runs in: `probe TRY [WORD …]`. Static, so that no image needs to have anything.
#define _GNU_SOURCE
#include "probe.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

// Where the box fails to end it: what does not want to end does so by itself.
enum { LONGEST_SECONDS = 20, ENOUGH = 4096 };

void say(const char *name, long rc)
{
	printf("%s: %s\n", name, rc < 0 ? strerrorname_np(errno) : "done");
	fflush(stdout);
}

static int show_file(const char *path)
{
	char text[ENOUGH];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 1;
	for (ssize_t n; (n = read(fd, text, sizeof text)) > 0;)
		if (write(STDOUT_FILENO, text, (size_t)n) < 0)
			break;
	close(fd);
	return 0;
}

// `full` where there is anything to be read: octets of a file, or names in a folder.
static const char *look_into(const char *path)
{
	char octet;
	struct stat found;
	if (stat(path, &found) < 0)
		return strerrorname_np(errno);
	if (S_ISDIR(found.st_mode)) {
		DIR *folder = opendir(path);
		int names = 0;
		while (folder && readdir(folder))
			names++;
		if (folder)
			closedir(folder);
		return names > 2 ? "full" : "empty";
	}
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, &octet, 1);
	const char *answer = got > 0 ? "full" : got == 0 ? "empty" : strerrorname_np(errno);
	if (fd >= 0)
		close(fd);
	return answer;
}

static void say_link(const char *path)
{
	char target[ENOUGH];
	ssize_t n = readlink(path, target, sizeof target - 1);
	if (n < 0) {
		say(path, -1);
		return;
	}
	target[n] = '\0';
	printf("%s: %s\n", path, target);
}

static void say_open(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC, 0600);
	say(path, fd);
	if (fd >= 0)
		close(fd);
}

static void say_connect(const char *name, int family, int kind, const void *address, socklen_t length)
{
	int fd = socket(family, kind | SOCK_CLOEXEC, 0);
	say(name, fd < 0 ? -1 : connect(fd, address, length));
	if (fd >= 0)
		close(fd);
}

// A port and an abstract socket that something on this machine listens on, and addresses that are nobody's: to connect
// a datagram socket sends nothing, and tells whether there is a way.
static void reach_out(const char *port, const char *name)
{
	struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
	struct sockaddr_in away = {.sin_family = AF_INET, .sin_port = htons(53)};
	struct sockaddr_in6 away6 = {.sin6_family = AF_INET6, .sin6_port = htons(53)};
	struct sockaddr_un local = {.sun_family = AF_UNIX};
	inet_pton(AF_INET, "127.0.0.1", &here.sin_addr);
	inet_pton(AF_INET, "192.0.2.1", &away.sin_addr);
	inet_pton(AF_INET6, "2001:db8::1", &away6.sin6_addr);
	size_t length = strnlen(name, sizeof local.sun_path - 1);
	memcpy(local.sun_path + 1, name, length);
	say_connect("a port of this machine", AF_INET, SOCK_STREAM, &here, sizeof here);
	say_connect("an abstract socket of this machine", AF_UNIX, SOCK_STREAM, &local,
		    (socklen_t)(sizeof local.sun_family + 1 + length));
	say_connect("an address outside", AF_INET, SOCK_DGRAM, &away, sizeof away);
	say_connect("an IPv6 address outside", AF_INET6, SOCK_DGRAM, &away6, sizeof away6);
}

static void become_root(void)
{
	say("setuid 0", setuid(0));
	say("setgid 0", setgid(0));
	say("chown to root", chown("/tmp", 0, 0));
}

// Twice detached from who started it, deaf to all signals, and with the output still open.
static void stay(void)
{
	sigset_t all;
	if (fork() == 0) {
		setsid();
		if (fork() > 0)
			_exit(0);
	}
	sigfillset(&all);
	sigdelset(&all, SIGALRM);
	sigprocmask(SIG_SETMASK, &all, NULL);
	alarm(LONGEST_SECONDS);
	for (;;)
		pause();
}

static void spin(double seconds)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	double end = (double)now.tv_sec + (double)now.tv_nsec / 1e9 + seconds;
	fork();
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((double)now.tv_sec + (double)now.tv_nsec / 1e9 < end);
}

static void flood(long octets)
{
	char block[ENOUGH];
	memset(block, 'x', sizeof block);
	for (; octets > 0; octets -= ENOUGH)
		if (write(STDOUT_FILENO, block, sizeof block) < 0)
			return;
}

// A limit counts as hit only in an execution that fails.
static int tell(int made, int most)
{
	printf("%d\n", made);
	fflush(stdout);
	return made < most;
}

int main(int argc, char **argv)
{
	const char *try = argc > 1 ? argv[1] : "", *word = argc > 2 ? argv[2] : "", *last = argc > 3 ? argv[3] : "";
	int most = atoi(word);
	if (!strcmp(try, "show"))
		return show_file(word);
	if (!strcmp(try, "memory"))
		return tell(take_memory(most), most);
	if (!strcmp(try, "disk"))
		return tell(take_disk(most, last), most);
	if (!strcmp(try, "files"))
		return tell(take_files(most, last), most);
	if (!strcmp(try, "processes"))
		return tell(take_processes(most), most);
	if (!strcmp(try, "calls"))
		try_calls();
	else if (!strcmp(try, "root"))
		become_root();
	else if (!strcmp(try, "reach"))
		reach_out(word, last);
	else if (!strcmp(try, "stay"))
		stay();
	else if (!strcmp(try, "spin"))
		spin(atof(word));
	else if (!strcmp(try, "flood"))
		flood(atol(word));
	else
		for (int i = 2; i < argc; i++)
			if (!strcmp(try, "look"))
				printf("%s: %s\n", argv[i], look_into(argv[i]));
			else if (!strcmp(try, "link"))
				say_link(argv[i]);
			else if (!strcmp(try, "write"))
				say_open(argv[i], O_WRONLY);
			else if (!strcmp(try, "make"))
				say_open(argv[i], O_WRONLY | O_CREAT | O_EXCL);
			else
				return 2;
	return 0;
}
