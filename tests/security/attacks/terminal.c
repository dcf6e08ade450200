// Types into its own terminal, or asks the console to: with every spelling of the request that the kernel takes for it.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static void attempt(const char *name, unsigned long request)
{
	char value[64] = "x";
	int discipline = 21; // N_GSM0710
	errno = 0;
	void *argument = (request & 0xffffffff) == TIOCSETD ? (void *)&discipline : (void *)value;
	long rc = syscall(SYS_ioctl, 0, request, argument);
	printf("%s: %s\n", name, rc < 0 ? strerrorname_np(errno) : "done");
}

int main(void)
{
	attempt("TIOCSTI", TIOCSTI);
	attempt("TIOCSTI, high bits", 0x100000000ul | TIOCSTI);
	attempt("TIOCLINUX", TIOCLINUX);
	attempt("TIOCLINUX, high bits", 0xffffffff00000000ul | TIOCLINUX);
	attempt("TIOCSETD", TIOCSETD);
	attempt("TIOCSETD, high bits", 0x100000000ul | TIOCSETD);
}
