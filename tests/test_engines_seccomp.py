"""The filter, as data: what it allows, refuses by name and leaves unknown."""

from __future__ import annotations

from typing import Any

import pytest

from cloche.engines import seccomp

NEVER = """
add_key bpf chroot delete_module finit_module fsmount fsopen init_module io_uring_enter io_uring_register io_uring_setup
kcmp kexec_load keyctl memfd_create memfd_secret mount mount_setattr move_mount name_to_handle_at open_by_handle_at
open_tree perf_event_open pidfd_getfd pivot_root process_madvise process_vm_readv process_vm_writev ptrace
remap_file_pages request_key setns swapon syslog umount2 unshare uselib userfaultfd vmsplice
""".split()


def allowed(profile: dict[str, Any], name: str) -> list[list[dict[str, Any]]]:
    """The arguments with which it is allowed; an empty list of them means any."""
    return [
        rule.get("args", [])
        for rule in profile["syscalls"]
        if name in rule["names"] and rule["action"] == "SCMP_ACT_ALLOW"
    ]


@pytest.mark.parametrize("name", NEVER)
def test_what_no_box_needs_is_never_allowed(name: str) -> None:
    assert allowed(seccomp.make_profile("x86_64"), name) == []


def test_no_call_is_both_allowed_and_refused() -> None:
    assert not set(seccomp.ALLOWED) & set(seccomp.REFUSED)
    assert len(set(seccomp.ALLOWED)) == len(seccomp.ALLOWED)


def test_an_unknown_call_answers_enosys_and_nothing_kills() -> None:
    profile = seccomp.make_profile("x86_64")
    assert (profile["defaultAction"], profile["defaultErrnoRet"]) == ("SCMP_ACT_ERRNO", 38)
    assert {rule["action"] for rule in profile["syscalls"]} == {"SCMP_ACT_ALLOW", "SCMP_ACT_ERRNO"}


def test_clone_is_allowed_without_any_new_namespace_only() -> None:
    [[argument]] = allowed(seccomp.make_profile("x86_64"), "clone")
    for flag in (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000, 0x80):
        assert argument["value"] & flag
    assert (argument["op"], argument["valueTwo"]) == ("SCMP_CMP_MASKED_EQ", 0)


def test_sockets_are_unix_internet_and_routing_queries_only() -> None:
    families = {rule[0]["value"] for rule in allowed(seccomp.make_profile("x86_64"), "socket")}
    assert families == {1, 2, 10, 16}


@pytest.mark.parametrize("name", [*seccomp.MODES, *seccomp.OPENS])
def test_beside_a_writable_folder_of_the_host_a_mode_with_set_id_bits_is_not_allowed(name: str) -> None:
    rules = allowed(seccomp.make_profile("x86_64", allow_set_id=False), name)
    assert rules
    assert all(rule[0]["op"] == "SCMP_CMP_MASKED_EQ" and rule[0]["valueTwo"] == 0 for rule in rules)


def test_beside_a_writable_folder_of_the_host_a_mode_behind_a_pointer_is_not_allowed() -> None:
    assert allowed(seccomp.make_profile("x86_64", allow_set_id=False), "openat2") == []


def test_only_the_machine_s_own_abi_is_open() -> None:
    assert seccomp.make_profile("aarch64")["architectures"] == ["SCMP_ARCH_AARCH64"]
