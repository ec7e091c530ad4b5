"""What tests of the page in Chromium share: where it is, how pages are opened, a job to look at."""

from __future__ import annotations

import shutil
from collections.abc import Callable

from playwright.sync_api import Page, expect

import rayelastic as rel

__all__ = ["CHROMIUM", "NAME", "WIDTHS", "Open", "running"]

CHROMIUM = shutil.which("chromium")
NAME = "<img src=x onerror=alert(1)>"
WIDTHS = (1280, 390)  # pixels
Open = Callable[..., Page]
expect.set_options(timeout=30_000)  # a busy machine may be slow


def running(idle: int = 0) -> rel.Topology:
    """Sums that nobody ends, and so many operators that get nothing."""
    made = rel.Topology("numbers")
    numbers = made.source(rel.sequence(10_000_000_000), name="numbers")
    keyed = numbers.map(lambda t: (t.value % 7, t.value), name="key", schema={"key": int, "value": int}).key_by("key")
    keyed.window(count=1000).aggregate(name="sums", total=rel.sum("value")).sink(rel.count(), name=NAME)
    if idle:
        none = numbers.filter(lambda t: t.value < 0, name="none")
        for step in range(idle):
            none = none.map(lambda t: t.value, name=f"idle{step}", schema={"value": int})
        none.sink(rel.count(), name="nothing")
    return made
