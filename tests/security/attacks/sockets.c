// Tries every address family with every type and a few protocols; prints those that the kernel gave a socket for.
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

int main(void)
{
	static const int protocols[] = {0, 1, 2, 6, 17, 33, 58, 132, 136, 255, 256, 262};
	for (int family = 0; family < 64; family++)
		for (int type = 1; type <= 10; type++)
			for (unsigned i = 0; i < sizeof protocols / sizeof *protocols; i++) {
				int fd = socket(family, type, protocols[i]);
				if (fd < 0)
					continue;
				printf("%d %d %d\n", family, type, protocols[i]);
				close(fd);
			}
	for (int protocol = 1; protocol < 32; protocol++) {
		int fd = socket(AF_NETLINK, SOCK_RAW, protocol);
		if (fd >= 0)
			printf("%d %d %d\n", AF_NETLINK, SOCK_RAW, protocol);
	}
}
