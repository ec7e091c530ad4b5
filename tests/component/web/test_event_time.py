"""The web UI in Chromium: how far event time has come, and that a job stopped with a savepoint."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from playwright.sync_api import expect

import rayelastic as rel
from rayelastic.testing import Gate, script
from rayelastic.web.page import Page as Served
from tests.component.web.in_browser import CHROMIUM, Open

pytestmark = [
    pytest.mark.edges,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: ./dev programs installs it"),
]
LATENESS = 600  # seconds


def test_watermarks_and_a_savepoint_are_shown(opened: Open, tmp_path: Path) -> None:
    now, gate = int(time.time()), Gate()
    topology = rel.Topology("timed")
    rows = [(now - 3600,), (now,), gate, (now + 1,)]
    timed = topology.source(script(rows, {"at": int}), name="rows").event_time("at", lateness=LATENESS, name="time")
    timed.window(seconds=60).aggregate(name="counts", n=rel.count()).sink(rel.count(), name="out")
    job = rel.start(topology)
    served = Served({"timed": job})
    try:
        assert gate.wait_reached(60)
        page = opened(served.url)
        lines = page.locator("#event-times tbody tr")
        expect(lines).to_have_count(1)
        line = lines.first
        expect(line.locator("td").first).to_have_text("time, counts, out")  # the source has no time
        expect(line).to_have_attribute("data-watermark", str(now - LATENESS - 1))
        expect(line.locator("td").nth(2)).to_contain_text("10 min")  # behind the clock
        expect(line.locator("td").nth(3)).to_have_text("0 s")  # behind the newest
        page.locator("g.box[data-name=counts]").click()
        written = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(now - LATENESS - 1))
        expect(page.locator("#detail-panel")).to_contain_text(written)
        job.stop(tmp_path / "saved")
        expect(page.locator("#history")).to_have_text(f"stopped with a savepoint in {tmp_path / 'saved'}")
        expect(page.locator("#events")).to_contain_text("the job stopped with a savepoint")
        expect(page.locator("#numbers")).not_to_contain_text("threads")
    finally:
        gate.open()
        served.close()
        job.close()
