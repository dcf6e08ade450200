// Does not want to end: each way of it by name. Prints nothing but "here".
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void ignore_all(void)
{
	sigset_t all;
	for (int signal = 1; signal < 65; signal++)
		sigaction(signal, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
}

static void sleep_on(void)
{
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "";
	dprintf(1, "here\n");
	ignore_all();
	if (!strcmp(way, "stopped"))
		raise(SIGSTOP);
	if (!strcmp(way, "holding") && fork() > 0)
		return 0; // the child keeps stdout
	if (!strcmp(way, "daemon") && fork() == 0) {
		setsid();
		if (fork() > 0)
			_exit(0);
		setsid();
	}
	if (!strcmp(way, "chain"))
		for (;;) { // never the same process for long
			if (fork() > 0)
				_exit(0);
			setsid();
			usleep(500);
		}
	if (!strcmp(way, "spread"))
		for (;;)
			if (fork() == 0)
				setsid();
	sleep_on();
}
