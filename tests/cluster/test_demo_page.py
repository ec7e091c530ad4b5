"""The page of a demo as a new user finds it: here, where no other test runs, as elasticity takes no CPUs of others."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from playwright.sync_api import expect, sync_playwright

from tests.component.web.in_browser import CHROMIUM

pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: ./dev programs installs it"),
]


@pytest.mark.timeout(300)
def test_three_clicks_from_a_demo_to_why_it_added_a_queue(tmp_path: Path) -> None:
    """The address that `rayelastic demo vwap --web` prints, a marker, and there is the reason."""
    command = [sys.executable, "-m", "rayelastic.cli", "demo", "vwap", "--web", "--days", "20000", "--threads", "2"]
    with (
        sync_playwright() as playwright,
        subprocess.Popen(
            command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1
        ) as demo,
    ):
        assert demo.stdout is not None
        printed = next(line for line in demo.stdout if "web UI of job" in line)
        threading.Thread(target=demo.stdout.read, daemon=True).start()
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        complaints: list[str] = []
        try:
            page = browser.new_page()
            page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
            page.on("pageerror", lambda error: complaints.append(str(error)))
            page.goto(printed.split()[-1])  # the first click
            marker = page.locator(".mark.queues, .mark.threads").first
            expect(marker).to_be_visible(timeout=90_000)
            marker.click()  # the second
            panel = page.locator("#detail-panel")
            expect(panel.locator(".reason")).not_to_be_empty()
            expect(panel).to_contain_text("What was seen")
            expect(panel).to_contain_text("Result")
            panel.get_by_role("button", name="Show the graph of that time").click()  # the third
            expect(page.locator("#state")).to_contain_text("as of")
            page.close()  # it would complain of a server that has left
            assert complaints == []
        finally:
            browser.close()
            demo.send_signal(signal.SIGINT)
            demo.wait(30)
