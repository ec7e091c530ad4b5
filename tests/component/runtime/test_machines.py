"""Machines that don't answer: who is probed, what counts as an answer."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from rayelastic.on_ray import machines
from rayelastic.on_ray.machines import SILENT, Machines


@pytest.fixture
def deaf() -> Iterator[tuple[str, int]]:
    """An address from which nothing comes back: nobody accepts what is in the queue of connections, which is full."""
    with contextlib.ExitStack() as open_sockets:
        listening = open_sockets.enter_context(socket.socket())
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        for _ in range(4):
            waiting = open_sockets.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listening.getsockname())
        yield listening.getsockname()


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_machine_answers_if_it_accepts_a_connection_or_refuses_it(
    deaf: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machines, "PROBE_TIMEOUT", 0.2)
    listening, clock = socket.create_server(("127.0.0.1", 0)), Clock()
    where: dict[str, Any] = {"a": ("a", listening.getsockname()), "b": ("b", deaf), "unknown": ("", ("", 0))}
    probed = Machines(where.__getitem__, clock)
    with listening:
        assert [probed.answers(actor) for actor in where] == [True, False, True]
        assert (probed.silent, probed.is_silent("b"), probed.is_silent("a")) == ({"b"}, True, False)
        where["b"] = ("b", listening.getsockname())
        assert probed.answers("b")
        assert not probed.silent
    assert probed.answers("a"), "a machine that refuses is there"
    where["b"] = ("b", deaf)
    assert not probed.answers("b")
    clock.now = SILENT + 1
    assert not probed.silent, "Ray has noticed, or it is back"
