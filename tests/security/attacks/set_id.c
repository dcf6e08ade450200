// Tries to make setuid and setgid files and devices below the folder that is named, by every call that sets a mode.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

static void look(const char *how)
{
	struct stat found;
	if (fstatat(AT_FDCWD, "f", &found, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(found.st_mode) && found.st_mode & 06000)
		printf("%s\n", how);
	unlink("f");
	close(open("f", O_CREAT | O_WRONLY, 0755));
}

int main(int argc, char **argv)
{
	umask(0);
	if (argc < 2 || chdir(argv[1]) < 0)
		return 1;
	for (mode_t bits = 02000; bits <= 06000; bits += 02000) {
		mode_t mode = bits | 0755;
		struct open_how how = {.flags = O_CREAT | O_WRONLY, .mode = mode};
		look("before");
		syscall(SYS_chmod, "f", mode), look("chmod");
		syscall(SYS_chmod, "f", mode | 0xffff0000u), look("chmod, high bits");
		int fd = open("f", O_RDWR);
		syscall(SYS_fchmod, fd, mode), look("fchmod");
		syscall(SYS_fchmodat, AT_FDCWD, "f", mode, 0), look("fchmodat");
		syscall(SYS_fchmodat2, AT_FDCWD, "f", mode, 0), look("fchmodat2");
		unlink("f"), syscall(SYS_creat, "f", mode), look("creat");
		unlink("f"), syscall(SYS_open, "f", O_CREAT | O_WRONLY, mode), look("open");
		unlink("f"), syscall(SYS_open, "f", 0xff00000000ul | O_CREAT | O_WRONLY, mode), look("open, high bits");
		unlink("f"), syscall(SYS_openat, AT_FDCWD, "f", O_CREAT | O_WRONLY, mode), look("openat");
		unlink("f"), syscall(SYS_openat2, AT_FDCWD, "f", &how, sizeof how), look("openat2");
		unlink("f"), syscall(SYS_mknod, "f", S_IFREG | mode, 0), look("mknod");
		unlink("f"), syscall(SYS_mknodat, AT_FDCWD, "f", S_IFREG | mode, 0), look("mknodat");
		int nameless = open(".", O_TMPFILE | O_RDWR, mode);
		char path[64];
		snprintf(path, sizeof path, "/proc/self/fd/%d", nameless);
		unlink("f"), linkat(AT_FDCWD, path, AT_FDCWD, "f", AT_SYMLINK_FOLLOW), look("O_TMPFILE");
		if (syscall(SYS_mknod, "d", S_IFBLK | 0666, makedev(7, 0)) == 0)
			printf("a device\n");
		// A folder's setgid bit is inherited by what is made in it, but only by folders as a bit.
		mkdir("d", mode), chdir("d"), unlink("f");
		close(open("f", O_CREAT | O_WRONLY, 0755)), look("in a folder of that mode");
		chdir("..");
	}
	unlink("f");
}
