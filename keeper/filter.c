/*
 * System calls that only the keeper may make, or whose arguments an OCI profile can't judge: that compares
 * all 64 bits of an argument, and the kernel looks at the low 32 where it takes an int.
 */
#define _GNU_SOURCE
#include "filter.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

enum { CLONE3 = 435 }; /* on all architectures; x32 sets a bit */

#define LOAD(offset) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (offset))
#define LOW(index) LOAD(offsetof(struct seccomp_data, args[index])) /* both machines are little-endian */
#define HIGH(index) LOAD(offsetof(struct seccomp_data, args[index]) + 4)
#define IF_EQUAL(value, then, otherwise) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), (then), (otherwise))
#define ANSWER(code) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (code))
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

int filter_install(void)
{
    struct sock_filter code[] = {
        LOAD(offsetof(struct seccomp_data, nr)),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xbfffffff),

        /* Its flags are in memory, where no filter sees them; with ENOSYS every C library falls back to clone. */
        IF_EQUAL(CLONE3, 0, 1),
        ANSWER(ENOSYS),

        /* Typing into a terminal, and the line disciplines, which are modules that the kernel would load. */
        IF_EQUAL(SYS_ioctl, 0, 6),
        LOW(1),
        IF_EQUAL(TIOCSTI, 2, 0),
        IF_EQUAL(TIOCLINUX, 1, 0),
        IF_EQUAL(TIOCSETD, 0, 1),
        ANSWER(EPERM),
        ALLOW,

        /*
         * A limit of 1 is the only one with which the kernel starts no crash handler of the host's: see
         * RLIMIT_CORE in core(5). It stays; as many programs set 0 and give up where they can't, they may think
         * that they have.
         */
        IF_EQUAL(SYS_setrlimit, 0, 4),
        LOW(0),
        IF_EQUAL(RLIMIT_CORE, 0, 1),
        ANSWER(0),
        ALLOW,

        /* Reading is free. Another process's may be the keeper's: with one of CPU time root could end it. */
        IF_EQUAL(SYS_prlimit64, 0, 10),
        LOW(2),
        IF_EQUAL(0, 0, 3),
        HIGH(2),
        IF_EQUAL(0, 0, 1),
        ALLOW,
        LOW(0),
        IF_EQUAL(0, 1, 0),
        ANSWER(EPERM),
        LOW(1),
        IF_EQUAL(RLIMIT_CORE, 1, 0),
        ALLOW,
        ANSWER(0),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}
