"""Threads for unit tests, which may start none: they run where they are started."""

from __future__ import annotations

import threading

import pytest


class Here(threading.Thread):
    """A thread that runs where it is started."""

    def start(self) -> None:
        self.run()

    def join(self, timeout: float | None = None) -> None:
        pass


@pytest.fixture
def threads_run_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "Thread", Here)
