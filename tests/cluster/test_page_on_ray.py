"""The page of a job on Ray, in Chromium: found by name, rescaled from the page, and a loss while somebody looks."""

from __future__ import annotations

import json
import os
import shutil
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect, sync_playwright

import rayelastic as rel
from rayelastic.cli import main
from rayelastic.errors import JobNotFoundError
from rayelastic.pages import cluster_page
from rayelastic.topologies import vwap
from rayelastic.topologies.word_count import Line, Word, words
from tests.raising import raises

CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: ./dev programs installs it"),
]
PATIENCE = 120_000  # milliseconds
PAUSE = 0.005  # seconds between two lines: the browser needs the CPU, too


def lines(enough: Path) -> Iterator[Line]:
    nobody = threading.Event()
    while not enough.exists():
        nobody.wait(PAUSE)
        yield Line("to be or not to be")


def days(enough: Path) -> Iterator[vwap.Event]:
    """Trades and quotes, one day after the other."""
    day, events = 0, vwap.synthetic(2000).to_pylist()
    while not enough.exists():
        for event in events:
            yield vwap.Event(**{**event, "at": event["at"] + day * vwap.DAY})
        day += 1


def json_of(capsys: pytest.CaptureFixture[str], *command: str) -> Any:
    capsys.readouterr()
    assert main([*command, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_job_on_ray_is_rescaled_from_the_page_and_its_loss_is_told(
    ray_cluster: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    enough = tmp_path / "enough"
    topology = rel.Topology("words-on-page")
    split = topology.source(rel.callable(lambda: lines(enough), Line), name="lines").flat_map(
        words, name="words", schema=Word
    )
    split.key_by("word").aggregate(name="counts", n=rel.count()).sink(rel.list(), name="out")
    job = rel.submit(topology, rel.JobConfig(regions="manual", checkpoint=False), address=ray_cluster)
    page = cluster_page(job.name, ray_cluster, 0)
    try:
        assert [(one["name"], one["state"]) for one in json_of(capsys, "jobs")] == [(job.name, "running")]
        told = json_of(capsys, "inspect", job.name)
        assert told["status"]["state"] == "running"
        assert {one["name"] for one in told["metrics"]["pes"][0]["operators"]} == {"lines", "words", "counts", "out"}
        assert json_of(capsys, "top", job.name, "--once")["status"]["name"] == job.name
        with raises(JobNotFoundError, "unknown-job"):
            cluster_page("nobody", ray_cluster, 0)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            shown = browser.new_page()
            complaints: list[str] = []
            shown.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
            shown.on("pageerror", lambda error: complaints.append(str(error)))
            shown.goto(page.url)
            expect(shown.locator("#jobs")).to_have_value(job.name)
            expect(shown.locator("#state")).to_have_text("running", timeout=PATIENCE)
            expect(shown.locator('g.box[data-name="counts"]')).to_be_visible()
            shown.locator("#replicas").fill("2")
            shown.locator("#rescale button").click()
            shown.locator("#confirm-yes").click()
            expect(shown.locator("#answer")).to_contain_text("Done", timeout=PATIENCE)
            expect(shown.locator("#events")).to_contain_text("1 → 2 replicas", timeout=PATIENCE)
            expect(shown.locator("#elements")).to_contain_text("pe1", timeout=PATIENCE)
            os.kill(next(one.pid for one in job.status.pes if one.pe == "pe1"), signal.SIGKILL)
            expect(shown.locator("#state")).to_have_text("failed", timeout=PATIENCE)
            expect(shown.locator("#failure")).to_contain_text("pe1")
            shown.locator(".mark.failure").first.click()
            expect(shown.locator("#detail-panel .reason")).to_contain_text("pe1")
            assert complaints == []
            browser.close()
    finally:
        enough.touch()
        page.close()
        job.close()


@pytest.mark.nightly  # test_events names a recovery, and test_recovery has one on Ray
def test_a_loss_leads_back_to_a_checkpoint_while_somebody_looks(ray_cluster: str, tmp_path: Path) -> None:
    enough = tmp_path / "enough"
    topology = rel.Topology("vwap-goes-on")
    vwap.bargains(topology.source(rel.callable(lambda: days(enough), vwap.Event), name="events")).sink(
        rel.count(), name="out"
    )
    settings = rel.JobConfig(regions="manual", checkpoint=rel.Checkpoint(every=1.0))
    job = rel.submit(topology, settings, address=ray_cluster)
    page = cluster_page(job.name, ray_cluster, 0)
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            shown = browser.new_page()
            shown.goto(page.url)
            expect(shown.locator("#checkpoints tbody")).to_contain_text(", after", timeout=PATIENCE)
            shown.locator("#checkpoints-too").check()
            expect(shown.locator(".mark.checkpoint").first).to_be_visible(timeout=PATIENCE)
            expect(shown.locator('g.box[data-name="bargains"]')).to_be_visible()
            job.rescale(job.plan().region_of("pre_vwap").region.name, 2)
            expect(shown.locator("#events")).to_contain_text("1 → 2 replicas", timeout=PATIENCE)
            os.kill(next(one.pid for one in job.status.pes), signal.SIGKILL)
            expect(shown.locator("#events")).to_contain_text("recovered from checkpoint", timeout=PATIENCE)
            expect(shown.locator("#checkpoints-text")).to_contain_text("1 recovery", timeout=PATIENCE)
            expect(shown.locator("#state")).to_have_text("running", timeout=PATIENCE)
            found = Axe().run(shown).response["violations"]
            assert [one["id"] for one in found if one["impact"] in ("serious", "critical")] == []
            browser.close()
    finally:
        enough.touch()
        page.close()
        job.close()
