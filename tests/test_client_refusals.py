"""What a keeper's ERROR means to the caller."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pytest

from cloche.client.refusals import refuse_any, refuse_file, refuse_port, refuse_process, refuse_run, words_of
from cloche.errors import ClocheError, FileError, InvalidRequest, NotFound, ProcessNotFound, ProtocolError, SandboxError
from cloche.link import frames

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize(
    ("refuse", "code", "expected"),
    [
        (refuse_any, errno.EPROTONOSUPPORT, ProtocolError),
        (refuse_any, errno.EAGAIN, SandboxError),
        (refuse_any, 4_000_000_000, SandboxError),
        (refuse_run("/x"), errno.ENOENT, InvalidRequest),
        (refuse_run("/x"), errno.EIO, SandboxError),
        (refuse_process(7), errno.ESRCH, ProcessNotFound),
        (refuse_process(7), errno.EINVAL, InvalidRequest),
        (refuse_file("/x"), errno.ENOSPC, FileError),
        (refuse_file("/x"), 0, SandboxError),
        (refuse_file("/x"), 4_000_000_000, SandboxError),
        (refuse_port(80), errno.ECONNREFUSED, NotFound),
    ],
)
def test_a_number_becomes_an_error(
    refuse: Callable[[frames.Error], ClocheError], code: int, expected: type[ClocheError]
) -> None:
    assert type(refuse(frames.Error(code, b"could not enter the working directory"))) is expected


def test_a_file_error_is_one_of_the_kernels() -> None:
    error = refuse_file("/x")(frames.Error(errno.ENOENT, b""))
    assert isinstance(error, FileError)
    assert (error.errno, error.filename, error.strerror) == (errno.ENOENT, "/x", "No such file or directory")


def test_the_keepers_words_are_harmless() -> None:
    words = words_of(frames.Error(1, b"\x1b[31mred\n\xff" + b"x" * 1000))
    assert words.isprintable()
    assert len(words) <= 500
