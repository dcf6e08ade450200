"""Which system calls a box may make: an allowlist, as data.

What is not in it answers ENOSYS, so that newer C libraries fall back to older calls; what is
refused by name answers EPERM. Left out on purpose of what container engines usually allow:
new namespaces, keys, io_uring, userfaultfd, memory of other processes, ptrace, the mount
calls, NUMA placement, memfd, io_setup (all users of the machine share one pool), syncfs (the
image may lie on the host's own disk), and clone3, whose flags a filter cannot see. The keeper
alone may call clone3; it takes that from every process that it starts, and with it the two
ioctls that type into a terminal (an OCI profile cannot compare the low half of an argument only).
"""

from __future__ import annotations

from typing import Any

ENOSYS = 38
EPERM = 1

# Linux clone(2) flags that make a namespace.
NEW_NAMESPACES = 0x7E020080

ALLOWED = """
accept accept4 access alarm arch_prctl bind brk capget capset chdir chmod chown clock_getres clock_gettime
clock_nanosleep clone3 close close_range connect copy_file_range creat dup dup2 dup3 epoll_create epoll_create1
epoll_ctl epoll_pwait epoll_pwait2 epoll_wait eventfd eventfd2 execve execveat exit exit_group faccessat faccessat2
fadvise64 fallocate fchdir fchmod fchmodat fchmodat2 fchown fchownat fcntl fdatasync fgetxattr flistxattr flock fork
fremovexattr fsetxattr fstat fstatfs fsync ftruncate futex futex_requeue futex_wait futex_waitv futex_wake futimesat
get_mempolicy get_robust_list getcpu getcwd getdents getdents64 getegid geteuid getgid getgroups getitimer getpeername
getpgid getpgrp getpid getppid getpriority getrandom getresgid getresuid getrlimit getrusage getsid getsockname
getsockopt gettid gettimeofday getuid getxattr inotify_add_watch inotify_init inotify_init1 inotify_rm_watch
ioctl ioprio_get ioprio_set kill landlock_add_rule
landlock_create_ruleset landlock_restrict_self lchown lgetxattr link linkat listen listxattr llistxattr lremovexattr
lseek lsetxattr lstat madvise membarrier mincore mkdir mkdirat mknod mknodat mlock mlock2 mlockall mmap mprotect
mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedsend mq_unlink mremap msgctl msgget msgrcv msgsnd msync munlock
munlockall munmap nanosleep newfstatat open openat openat2 pause pidfd_open pidfd_send_signal pipe pipe2 pkey_alloc
pkey_free pkey_mprotect poll ppoll prctl pread64 preadv preadv2 prlimit64 process_mrelease pselect6 pwrite64 pwritev
pwritev2 read readahead readlink readlinkat readv recvfrom recvmmsg recvmsg removexattr rename renameat renameat2
restart_syscall rmdir rseq rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend
rt_sigtimedwait rt_tgsigqueueinfo sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getattr
sched_getparam sched_getscheduler sched_rr_get_interval sched_setaffinity sched_setattr sched_setparam
sched_setscheduler sched_yield seccomp select semctl semget semop semtimedop sendfile sendmmsg sendmsg sendto
set_robust_list set_tid_address setfsgid setfsuid setgid setgroups setitimer setpgid setpriority setregid setresgid
setresuid setreuid setrlimit setsid setsockopt setuid setxattr shmat shmctl shmdt shmget shutdown sigaltstack signalfd
signalfd4 splice stat statfs statx symlink symlinkat sync_file_range sysinfo tee tgkill time timer_create
timer_delete timer_getoverrun timer_gettime timer_settime timerfd_create timerfd_gettime timerfd_settime times tkill
truncate umask uname unlink unlinkat utime utimensat utimes vfork wait4 waitid write writev
""".split()

REFUSED = """
acct add_key adjtimex bpf chroot clock_adjtime clock_settime delete_module fanotify_init fanotify_mark finit_module
init_module ioperm iopl kcmp kexec_file_load kexec_load keyctl lookup_dcookie mbind migrate_pages modify_ldt mount
move_pages name_to_handle_at open_by_handle_at perf_event_open pidfd_getfd pivot_root process_madvise process_vm_readv
process_vm_writev ptrace quotactl reboot request_key set_mempolicy setdomainname sethostname setns settimeofday swapoff
swapon sync syncfs sysfs syslog umount2 unshare userfaultfd uselib ustat vhangup vmsplice
""".split()

# socket(domain, _, protocol)
UNIX, INET, INET6, NETLINK = 1, 2, 10, 16
INTERNET_PROTOCOLS = (0, 1, 6, 17, 58)
# personality(2): to ask, plain Linux, and the two that debuggers and old programs set.
PERSONALITIES = (0xFFFFFFFF, 0x0, 0x0008, 0x20000, 0x20008)
ARCHITECTURES = {"x86_64": "SCMP_ARCH_X86_64", "aarch64": "SCMP_ARCH_AARCH64"}


# Where a mode is among the arguments of the calls that set one.
MODES = {"chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2, "mknod": 1, "mknodat": 2, "creat": 1}
OPENS = {"open": (1, 2), "openat": (2, 3)}
# Its flags and mode are behind a pointer.
OPAQUE = {"openat2"}
SET_ID_BITS = (0o4000, 0o2000)
SET_IDS = 0o6000
CREATE = 0o100
MAKES_A_FILE = CREATE | 0o20000000  # O_TMPFILE
MASKED = "SCMP_CMP_MASKED_EQ"


def make_profile(machine: str, *, allow_set_id: bool = True) -> dict[str, Any]:
    """The `seccomp` object of an OCI config.json; other ABIs of the machine are closed.

    Without `allow_set_id` no file can be made setuid or setgid: where a folder of the host is
    writable, such a file would be a way to become its owner on the host.
    """
    restricted = () if allow_set_id else (*MODES, *OPENS, *OPAQUE)
    return {
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": ENOSYS,
        "architectures": [ARCHITECTURES[machine]],
        "syscalls": [
            {"names": [name for name in ALLOWED if name not in restricted], "action": "SCMP_ACT_ALLOW"},
            *(() if allow_set_id else _without_set_id()),
            {"names": REFUSED, "action": "SCMP_ACT_ERRNO", "errnoRet": EPERM},
            _allow("clone", _argument(0, NEW_NAMESPACES, MASKED, 0)),
            *(_allow("personality", _argument(0, value)) for value in PERSONALITIES),
            _allow("socket", _argument(0, UNIX)),
            *(
                _allow("socket", _argument(0, family), _argument(2, protocol))
                for family in (INET, INET6)
                for protocol in INTERNET_PROTOCOLS
            ),
            _allow("socket", _argument(0, NETLINK), _argument(2, 0)),
            _allow("socketpair", _argument(0, UNIX)),
        ],
    }


def _without_set_id() -> list[dict[str, Any]]:
    rules: list[dict[str, Any]] = []
    for name, mode in MODES.items():
        rules.append(_allow(name, _argument(mode, SET_IDS, MASKED, 0)))
        rules += [_refuse(name, _argument(mode, bit, MASKED, bit)) for bit in SET_ID_BITS]
    for name, (flags, mode) in OPENS.items():
        rules.append(_allow(name, _argument(flags, MAKES_A_FILE, MASKED, 0)))
        rules.append(_allow(name, _argument(mode, SET_IDS, MASKED, 0)))
        rules += [
            _refuse(name, _argument(mode, bit, MASKED, bit), _argument(flags, CREATE, MASKED, CREATE))
            for bit in SET_ID_BITS
        ]
    return rules


def _refuse(name: str, *arguments: dict[str, Any]) -> dict[str, Any]:
    return {"names": [name], "action": "SCMP_ACT_ERRNO", "errnoRet": EPERM, "args": list(arguments)}


def _allow(name: str, *arguments: dict[str, Any]) -> dict[str, Any]:
    return {"names": [name], "action": "SCMP_ACT_ALLOW", "args": list(arguments)}


def _argument(index: int, value: int, op: str = "SCMP_CMP_EQ", second: int = 0) -> dict[str, Any]:
    return {"index": index, "value": value, "valueTwo": second, "op": op}
