// The box's own file system, on a loop device, so that size and number of files end where
// the limit says.
#define _GNU_SOURCE
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <unistd.h>

static int attach_loop(int file, char device[32])
{
	begin("attach a loop device");
	struct loop_config config = {.fd = (uint32_t)file, .info.lo_flags = LO_FLAGS_AUTOCLEAR};
	int control = must(open("/dev/loop-control", O_RDWR | O_CLOEXEC), "/dev/loop-control");
	for (int tries = 0; tries < 1000; tries++) {
		int number = must(ioctl(control, LOOP_CTL_GET_FREE), "find a free loop device");
		snprintf(device, 32, "/dev/loop%d", number);
		int fd = must(open(device, O_RDWR | O_CLOEXEC), device);
		if (ioctl(fd, LOOP_CONFIGURE, &config) == 0) {
			close(control);
			return fd;
		}
		if (errno != EBUSY) // another box was faster
			fail(device);
		close(fd);
	}
	fail(device);
}

int mount_disk(int id_mapping)
{
	char device[32];
	begin("open the disk");
	int file = must(open("disk.img", O_RDWR | O_CLOEXEC), "disk.img");
	int loop = attach_loop(file, device);
	begin("mount the disk");
	int context = must(fsopen("ext4", FSOPEN_CLOEXEC), "ext4");
	must(fsconfig(context, FSCONFIG_SET_STRING, "source", device, 0), device);
	// What a box syncs need not outlive a crash of the machine: a flush costs 10 ms.
	must(fsconfig(context, FSCONFIG_SET_FLAG, "nobarrier", NULL, 0), "nobarrier");
	// The template's inode tables are holes, which read as zeros.
	must(fsconfig(context, FSCONFIG_SET_FLAG, "noinit_itable", NULL, 0), "noinit_itable");
	must(fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0), device);
	int disk = must(fsmount(context, FSMOUNT_CLOEXEC, MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOATIME),
			"fsmount");
	struct mount_attr mapping = {.attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t)id_mapping};
	must(mount_setattr(disk, "", AT_EMPTY_PATH, &mapping, sizeof mapping), "map its ids");
	close(context);
	close(loop);
	close(file);
	return disk;
}
