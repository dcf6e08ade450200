// Makes every system call that a box must not make, and prints what came of each: name, then errno or "done".
// With a name as argument, only that one.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_memfd_secret
#define SYS_memfd_secret 447
#endif
#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

enum { CALL_OPEN_TREE = 428, CALL_MOVE_MOUNT, CALL_FSOPEN, CALL_FSCONFIG, CALL_FSMOUNT, CALL_FSPICK, CALL_MOUNT_SETATTR = 442 };

struct attempt {
	const char *name;
	long number;
	long args[6];
};

static char buffer[4096];
#define HERE ((long)(intptr_t) buffer)
#define TEXT(text) ((long)(intptr_t)(text))
#define HIGH (1L << 32)

static const struct attempt attempts[] = {
	{"unshare user", SYS_unshare, {CLONE_NEWUSER}},
	{"unshare mount", SYS_unshare, {CLONE_NEWNS}},
	{"unshare files", SYS_unshare, {CLONE_FILES}},
	{"clone user", SYS_clone, {CLONE_NEWUSER | 17}},
	{"clone user, high bits", SYS_clone, {HIGH | CLONE_NEWUSER | 17}},
	{"clone mount", SYS_clone, {CLONE_NEWNS | 17}},
	{"clone pid", SYS_clone, {CLONE_NEWPID | 17}},
	{"clone net", SYS_clone, {CLONE_NEWNET | 17}},
	{"clone ipc", SYS_clone, {CLONE_NEWIPC | 17}},
	{"clone uts", SYS_clone, {CLONE_NEWUTS | 17}},
	{"clone cgroup", SYS_clone, {CLONE_NEWCGROUP | 17}},
	{"clone time", SYS_clone, {0x80 | 17}},
	{"setns", SYS_setns, {0, CLONE_NEWUSER}},
	{"mount", SYS_mount, {TEXT("none"), TEXT("/tmp"), TEXT("tmpfs"), 0, 0}},
	{"mount, bind", SYS_mount, {TEXT("/usr"), TEXT("/tmp"), 0, 4096, 0}},
	{"mount, remount", SYS_mount, {0, TEXT("/usr"), 0, 32 | 4096, 0}},
	{"umount2", SYS_umount2, {TEXT("/proc/kcore"), 2}},
	{"pivot_root", SYS_pivot_root, {TEXT("/"), TEXT("/")}},
	{"chroot", SYS_chroot, {TEXT("/tmp")}},
	{"open_tree", CALL_OPEN_TREE, {AT_FDCWD, TEXT("/usr"), 1}},
	{"move_mount", CALL_MOVE_MOUNT, {0, TEXT(""), AT_FDCWD, TEXT("/tmp"), 4}},
	{"fsopen", CALL_FSOPEN, {TEXT("tmpfs"), 0}},
	{"fsconfig", CALL_FSCONFIG, {0, 6, 0, 0, 0}},
	{"fsmount", CALL_FSMOUNT, {0, 0, 0}},
	{"fspick", CALL_FSPICK, {AT_FDCWD, TEXT("/"), 0}},
	{"mount_setattr", CALL_MOUNT_SETATTR, {AT_FDCWD, TEXT("/"), 0, HERE, 32}},
	{"ptrace", SYS_ptrace, {0, 0, 0, 0}},
	{"process_vm_readv", SYS_process_vm_readv, {1, HERE, 1, HERE, 1, 0}},
	{"process_vm_writev", SYS_process_vm_writev, {1, HERE, 1, HERE, 1, 0}},
	{"process_madvise", SYS_process_madvise, {0, HERE, 1, 4, 0}},
	{"kcmp", SYS_kcmp, {1, 1, 0, 0, 0}},
	{"pidfd_getfd", SYS_pidfd_getfd, {0, 0, 0}},
	{"keyctl", SYS_keyctl, {0, -3, 0}},
	{"add_key", SYS_add_key, {TEXT("user"), TEXT("a"), TEXT("b"), 1, -3}},
	{"request_key", SYS_request_key, {TEXT("user"), TEXT("a"), 0, -3}},
	{"bpf", SYS_bpf, {0, HERE, 64}},
	{"perf_event_open", SYS_perf_event_open, {HERE, 0, -1, -1, 0}},
	{"io_uring_setup", SYS_io_uring_setup, {4, HERE}},
	{"io_uring_enter", SYS_io_uring_enter, {0, 0, 0, 0, 0}},
	{"io_uring_register", SYS_io_uring_register, {0, 0, 0, 0}},
	{"userfaultfd", SYS_userfaultfd, {1}},
	{"memfd_create", SYS_memfd_create, {TEXT("a"), 0}},
	{"memfd_secret", SYS_memfd_secret, {0}},
	{"name_to_handle_at", SYS_name_to_handle_at, {AT_FDCWD, TEXT("/"), HERE, HERE, 0}},
	{"open_by_handle_at", SYS_open_by_handle_at, {0, HERE, 0}},
	{"kexec_load", SYS_kexec_load, {0, 0, 0, 0}},
	{"kexec_file_load", SYS_kexec_file_load, {0, 0, 0, 0, 0}},
	{"init_module", SYS_init_module, {HERE, 16, TEXT("")}},
	{"finit_module", SYS_finit_module, {0, TEXT(""), 0}},
	{"delete_module", SYS_delete_module, {TEXT("loop"), 0}},
	{"reboot", SYS_reboot, {0xfee1dead, 672274793, 0, 0}},
	{"swapon", SYS_swapon, {TEXT("/dev/zero"), 0}},
	{"swapoff", SYS_swapoff, {TEXT("/dev/zero")}},
	{"acct", SYS_acct, {0}},
	{"quotactl", SYS_quotactl, {0, TEXT("/dev/vda"), 0, 0}},
	{"syslog", SYS_syslog, {3, HERE, 100}},
	{"sethostname", SYS_sethostname, {TEXT("a"), 1}},
	{"setdomainname", SYS_setdomainname, {TEXT("a"), 1}},
	{"settimeofday", SYS_settimeofday, {HERE, 0}},
	{"clock_settime", SYS_clock_settime, {0, HERE}},
	{"adjtimex", SYS_adjtimex, {HERE}},
	{"clock_adjtime", SYS_clock_adjtime, {0, HERE}},
	{"fanotify_init", SYS_fanotify_init, {0, 0}},
	{"fanotify_mark", SYS_fanotify_mark, {0, 1, 1, AT_FDCWD, TEXT("/")}},
	{"vhangup", SYS_vhangup, {0}},
	{"mbind", SYS_mbind, {HERE, 4096, 0, 0, 0, 0}},
	{"set_mempolicy", SYS_set_mempolicy, {0, 0, 0}},
	{"migrate_pages", SYS_migrate_pages, {0, 0, 0, 0}},
	{"move_pages", SYS_move_pages, {0, 0, 0, 0, 0, 0}},
	{"vmsplice", SYS_vmsplice, {1, HERE, 0, 0}},
	{"remap_file_pages", SYS_remap_file_pages, {HERE, 4096, 0, 0, 0}},
	{"personality, no randomised addresses", SYS_personality, {0x0040000}},
	{"personality, read implies exec", SYS_personality, {0x0400000}},
	{"sync of the whole machine", SYS_sync, {0}},
	{"sync of a file system of the host", SYS_syncfs, {0}},
	{"io_setup, of which all share one pool", SYS_io_setup, {128, HERE}},
#ifdef __x86_64__
	{"iopl", SYS_iopl, {3}},
	{"ioperm", SYS_ioperm, {0, 1, 1}},
	{"modify_ldt", SYS_modify_ldt, {0, HERE, 16}},
	{"uselib", SYS_uselib, {TEXT("/bin/sh")}},
	{"ustat", SYS_ustat, {0, HERE}},
	{"sysfs", SYS_sysfs, {3}},
#endif
};

static void attempt(const struct attempt *a)
{
	errno = 0;
	long rc = syscall(a->number, a->args[0], a->args[1], a->args[2], a->args[3], a->args[4], a->args[5]);
	if (rc == 0 && a->number == SYS_clone)
		_exit(0);
	printf("%s: %s\n", a->name, rc < 0 ? strerrorname_np(errno) : "done");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++)
		if (argc < 2 || !strcmp(argv[1], attempts[i].name))
			attempt(&attempts[i]);
	// Its flags are in memory; anything but ENOSYS would let a program make a namespace.
	if (argc < 2) {
		long rc = syscall(SYS_clone3, HERE, 64);
		if (rc == 0)
			_exit(0);
		printf("clone3: %s\n", rc < 0 ? strerrorname_np(errno) : "done");
	}
}
