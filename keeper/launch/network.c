// A network namespace with nothing in it but loopback.
#define _GNU_SOURCE
#include "launch.h"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

// It belongs to the host's user namespace, so that no capability of the box reaches it.
void make_network(void)
{
	begin("make a network namespace");
	must(unshare(CLONE_NEWNET), "unshare");
	int fd = must(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), "socket");
	struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
	must(ioctl(fd, SIOCSIFFLAGS, &request), "set lo up");
	close(fd);

	// Services listen on port 80 as the ordinary user; there is nobody to protect it for.
	fd = must(open("/proc/sys/net/ipv4/ip_unprivileged_port_start", O_WRONLY | O_CLOEXEC), "open sysctl");
	must((int)write(fd, "0", 1), "write sysctl");
	close(fd);
}
