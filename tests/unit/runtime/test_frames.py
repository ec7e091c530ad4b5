"""A frame goes out whole, however much of it the first call takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from rayelastic.connectors.pushed.frames import FrameKind, send_frame


class Connection:
    """Takes so many bytes at first."""

    def __init__(self, taken: int) -> None:
        self.taken = taken
        self.parts: list[bytes] = []

    def sendmsg(self, parts: Sequence[Any]) -> int:
        self.parts.append(b"".join(map(bytes, parts))[: self.taken])
        return len(self.parts[0])

    def sendall(self, part: Any) -> None:
        self.parts.append(bytes(part))


def sent(taken: int, payload: bytes) -> list[bytes]:
    connection: Any = Connection(taken)
    send_frame(connection, next(iter(FrameKind)), 3, first_row=5, rows=2, payload=payload)
    parts: list[bytes] = connection.parts
    return parts


@pytest.mark.parametrize("payload", [b"", b"0123456789"])
def test_what_the_first_call_leaves_follows_once_and_nothing_empty(payload: bytes) -> None:
    (whole,) = sent(10_000, payload)
    assert whole.endswith(payload)
    for taken in range(1, len(whole)):
        first, *others = sent(taken, payload)
        assert (len(first), first + b"".join(others)) == (taken, whole)
        assert all(others)
