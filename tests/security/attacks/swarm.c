// Many small processes, each as dear to the out-of-memory killer as it can make itself, take all memory together.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	(void)argc;
	int fd = open("/proc/self/oom_score_adj", O_WRONLY);
	for (int score = -1000; score < 1000; score += 50)
		if (dprintf(fd, "%d", score) > 0)
			break;
	size_t each = (size_t)atoi(argv[1]) << 10;
	for (int i = 0; i < atoi(argv[2]); i++)
		if (fork() == 0) {
			volatile char *at = malloc(each);
			for (size_t octet = 0;; octet = (octet + 4096) % each)
				at[octet] = 1;
		}
	pause();
}
