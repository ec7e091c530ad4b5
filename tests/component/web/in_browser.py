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


def running(count: int = 10_000_000_000) -> rel.Topology:
    made = rel.Topology("numbers")
    numbers = made.source("numbers", rel.sequence(count))
    keyed = numbers.map("key", lambda t: (t.value % 7, t.value), schema={"key": int, "value": int}).key_by("key")
    keyed.window(count=1000).aggregate("sums", total=rel.sum("value")).sink(NAME, rel.count())
    return made
