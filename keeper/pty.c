#define _GNU_SOURCE
#include "pty.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

static int open_terminal(int controller)
{
    int unlock = 0, number;
    char path[32];
    if (ioctl(controller, TIOCSPTLCK, &unlock) < 0)
        return -errno;
    int fd = ioctl(controller, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0)
        return fd;
    if (ioctl(controller, TIOCGPTN, &number) < 0)
        return -errno;
    snprintf(path, sizeof path, "/dev/pts/%d", number);
    fd = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static int open_pair(int *controller, int *terminal)
{
    *controller = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    if (*controller < 0)
        return -errno;
    *terminal = open_terminal(*controller);
    if (*terminal >= 0)
        return 0;
    close(*controller);
    return *terminal;
}

/* The kernel gives a terminal to whom opens it; the keeper has no CHOWN to do so later. */
int pty_open(const struct keeper *keeper, uint32_t uid, uint32_t gid, int *controller, int *terminal)
{
    if (keeper->options.is_host)
        return open_pair(controller, terminal);
    setfsgid(gid);
    setfsuid(uid);
    int rc = open_pair(controller, terminal);
    setfsuid(geteuid());
    setfsgid(getegid());
    return rc;
}

int pty_resize(int controller, uint16_t rows, uint16_t cols)
{
    struct winsize size = {.ws_row = rows, .ws_col = cols};
    return ioctl(controller, TIOCSWINSZ, &size) < 0 ? -errno : 0;
}

int pty_end_character(int controller)
{
    struct termios terminal;
    if (tcgetattr(controller, &terminal) < 0 || !(terminal.c_lflag & ICANON))
        return -1;
    return terminal.c_cc[VEOF];
}
