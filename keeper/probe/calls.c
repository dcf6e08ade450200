// The system calls that a box must not make, with arguments that do no harm where one is let through.
//
// EPERM and ENOSYS are the filter's answers. The arguments are such that a kernel without the filter would give
// another one, to a process without privileges: it looks at the bad pointer, flag or descriptor first.
#define _GNU_SOURCE
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CALL_OPEN_TREE = 428, BAD_FLAGS = -1, BAD_FD = -1, NO_PROCESS = -1, NO_POINTER = 1, ATTACH = 16 };
enum { FAMILY_RXRPC = 33, FAMILY_ALG = 38, FAMILY_VSOCK = 40 };
enum { GET_KEYRING_ID = 0, THREAD_KEYRING = -1, USER_MODE_ONLY = 1, NO_RANDOM_ADDRESSES = 0x0040000 };

struct attempt {
	const char *name;
	long number;
	long args[6];
};

static const struct attempt attempts[] = {
	// Before the next one, after which the kernel itself would refuse it.
	{"clone user", SYS_clone, {CLONE_NEWUSER | SIGCHLD}},
	{"unshare user", SYS_unshare, {CLONE_NEWUSER}},
	{"clone3", SYS_clone3, {NO_POINTER, 64}},
	{"setns", SYS_setns, {BAD_FD, 0}},
	{"mount", SYS_mount, {NO_POINTER, NO_POINTER, NO_POINTER, 0, 0}},
	{"open_tree", CALL_OPEN_TREE, {AT_FDCWD, NO_POINTER, BAD_FLAGS}},
	{"ptrace", SYS_ptrace, {ATTACH, NO_PROCESS, 0, 0}},
	{"process_vm_readv", SYS_process_vm_readv, {1, 0, 0, 0, 0, BAD_FLAGS}},
	{"process_madvise", SYS_process_madvise, {BAD_FD, 0, 0, 0, BAD_FLAGS}},
	{"pidfd_getfd", SYS_pidfd_getfd, {BAD_FD, BAD_FD, 0}},
	{"keyctl", SYS_keyctl, {GET_KEYRING_ID, THREAD_KEYRING, 0}},
	{"add_key", SYS_add_key, {NO_POINTER, NO_POINTER, 0, 0, THREAD_KEYRING}},
	{"bpf", SYS_bpf, {0, NO_POINTER, 1 << 20}},
	{"perf_event_open", SYS_perf_event_open, {NO_POINTER, 0, -1, -1, BAD_FLAGS}},
	{"io_uring_setup", SYS_io_uring_setup, {4, NO_POINTER}},
	{"io_setup", SYS_io_setup, {0, NO_POINTER}},
	{"userfaultfd", SYS_userfaultfd, {USER_MODE_ONLY}},
	{"name_to_handle_at", SYS_name_to_handle_at, {AT_FDCWD, NO_POINTER, NO_POINTER, NO_POINTER, 0}},
	{"vmsplice", SYS_vmsplice, {BAD_FD, 0, 0, 0}},
	{"mbind", SYS_mbind, {0, 4096, BAD_FLAGS, 0, 0, BAD_FLAGS}},
	{"move_pages", SYS_move_pages, {0, 0, 0, 0, 0, BAD_FLAGS}},
	{"memfd_create", SYS_memfd_create, {NO_POINTER, 0}},
	{"personality", SYS_personality, {NO_RANDOM_ADDRESSES}},
	{"socket alg", SYS_socket, {FAMILY_ALG, SOCK_SEQPACKET, 0}},
	{"socket rxrpc", SYS_socket, {FAMILY_RXRPC, SOCK_DGRAM, 0}},
	{"socket vsock", SYS_socket, {FAMILY_VSOCK, SOCK_STREAM, 0}},
	{"socket netlink netfilter", SYS_socket, {AF_NETLINK, SOCK_RAW, 12}},
};

static void make_attempt(const struct attempt *a)
{
	long rc = syscall(a->number, a->args[0], a->args[1], a->args[2], a->args[3], a->args[4], a->args[5]);
	if (rc == 0 && a->number == SYS_clone)
		_exit(0);
	say(a->name, rc);
}

#ifdef __x86_64__
// getpid by the gate of 32-bit programs, and by that of x32.
static void use_other_gate(int is_x32)
{
	long rc = 20;
	if (is_x32)
		rc = syscall(0x40000000L | SYS_getpid);
	else
		__asm__ volatile("int $0x80" : "+a"(rc) : : "memory", "cc", "r8", "r9", "r10", "r11");
	_exit(rc > 0 ? 0 : 1);
}

static void try_gate(const char *name, int is_x32)
{
	int status;
	pid_t child = fork();
	if (child == 0)
		use_other_gate(is_x32);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	errno = ENOSYS;
	say(name, WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1);
}
#endif

void try_calls(void)
{
	for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++)
		make_attempt(&attempts[i]);
#ifdef __x86_64__
	try_gate("calls of 32 bits", 0);
	try_gate("calls of x32", 1);
#endif
}
