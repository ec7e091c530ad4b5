"""Pictures of the web UI: light and dark, wide and narrow; running, failed and ended jobs, and many operators.

./dev screenshots [FOLDER]
./dev screenshots --guide     docs/pictures/web_ui.png anew, of `rayelastic demo load_step`
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

import rayelastic as rel
from rayelastic.topologies import load_step, packet_analysis, vwap

WIDTHS = (1440, 390)  # pixels
HEIGHT = 900
PLAIN = rel.JobConfig(web_port=0)
SECONDS = 12.0  # that a job runs before it is looked at: enough for a change
GUIDE = Path("docs/pictures/web_ui.png")
SIZE = (1280, 1222)  # pixels, of the guide's picture


def main(arguments: list[str]) -> int:
    for_guide = arguments == ["--guide"]
    folder = Path(arguments[0] if arguments and not for_guide else "build/screenshots")
    chromium = shutil.which("chromium")
    if chromium is None:
        print("there is no Chromium here: ./dev programs installs it", file=sys.stderr)
        return 1
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as output, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        if for_guide:
            take_for_guide(browser)
            return 0
        safe = rel.JobConfig(web_port=0, checkpoint=rel.Checkpoint(every=2.0))
        take(browser, vwap.build(days=2_000, output=output), "vwap", folder, safe)
        take(browser, packet_analysis.build(operators=387, repeat=200), "packet_analysis", folder)
        take(browser, failing(), "failed", folder)
        take(browser, ending(), "ended", folder)
        browser.close()
    return 0


def failing() -> rel.Topology:
    """Make a job that fails at its sixth tuple."""
    made = rel.Topology("failed")
    numbers = made.source(rel.sequence(10), name="numbers")
    inverses = numbers.map(lambda t: 1 / (t.value - 5), name="inverse", lane="python", schema={"value": float})
    inverses.sink(rel.count(), name="out")
    return made


def ending() -> rel.Topology:
    """Make a job that ends by itself."""
    made = rel.Topology("ended")
    numbers = made.source(rel.sequence(20_000_000), name="numbers")
    numbers.map(lambda t: 2 * t.value, name="double", schema={"value": int}).sink(rel.count(), name="out")
    return made


def take_for_guide(browser: Browser) -> None:
    """Picture a job soon after a step of load, with the reason of its first change."""
    first = rel.Elasticity(remember=False)  # as on a machine that has never run it
    job = rel.start(load_step.build(after=60.0), rel.JobConfig(web_port=0, elasticity=first))
    try:
        job.pause(SECONDS)
        page = browser.new_page(viewport={"width": SIZE[0], "height": SIZE[1]}, color_scheme="light")
        page.goto(job.web_url or "")
        page.locator(":is(.mark.queues, .mark.threads):visible").first.click()
        page.locator("#detail-panel").wait_for()
        page.evaluate("scrollTo(0, 0)")
        page.screenshot(path=GUIDE)
        print(GUIDE)
    finally:
        job.close()


def take(browser: Browser, topology: rel.Topology, name: str, folder: Path, config: rel.JobConfig = PLAIN) -> None:
    job = rel.start(topology, config)
    try:
        job.pause(SECONDS)
        for scheme in ("light", "dark"):
            for width in WIDTHS:
                context = browser.new_context(
                    viewport={"width": width, "height": HEIGHT}, color_scheme="dark" if scheme == "dark" else "light"
                )
                page = context.new_page()
                page.goto(job.web_url or "")
                page.locator("#state[data-state]").wait_for()  # what has no lines hides their markers by then
                marks = page.locator(":is(.mark.queues, .mark.threads, .mark.failure):visible")
                (marks if marks.count() else page.locator("g.box").nth(1)).first.click()
                if page.locator("#detail-panel[data-operator]").count():
                    page.locator("#operator-plots .plot").first.wait_for()
                path = folder / f"{name}_{scheme}_{width}.png"
                page.screenshot(path=path, full_page=True)
                print(path)
                context.close()
    finally:
        job.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
