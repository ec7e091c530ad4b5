"""The web UI in Chromium: graph, reasons, event log, looking back, actions; axe; names with markup; many boxes."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

import rayelastic as rel
from rayelastic.job import start
from rayelastic.plan.exec_plan import ExecPlan, Pipeline, RegionPlan
from rayelastic.plan.regions import Region, RegionKind
from rayelastic.testing import Gate, script
from rayelastic.web.history import History
from rayelastic.web.journal_story import story
from rayelastic.web.page import Page as Served
from tests.component.web.in_browser import CHROMIUM, NAME, WIDTHS, Open, running

JOURNAL = Path(__file__).parents[1] / "policy" / "journals" / "two_cores.jsonl"
LOSES = """{
  const Sent = EventSource;
  window.EventSource = class extends Sent {
    set onmessage(take) {
      let sent = 0;
      super.onmessage = (message) => { if (++sent % 3 !== 2 && !message.data.includes('"cancelled"')) take(message); };
    }
  };
}"""  # every third message of the stream, and the last one
SHOWN = """() => ({
  texts: ['state', 'clock', 'verdict', 'numbers', 'elements', 'checkpoints', 'checkpoints-text', 'found', 'events']
    .map((id) => document.getElementById(id).textContent),
  graph: document.getElementById('graph').innerHTML,
  marks: [...document.querySelectorAll('.mark')].map((one) => [one.title, one.style.left, one.style.top]),
  plots: [...document.querySelectorAll('.plot')]
    .map((one) => [one.textContent, one.querySelector('canvas').toDataURL()]),
})"""
OVERLAPPING = """() => {
  const boxes = [...document.querySelectorAll('g.box .body')].map((one) => one.getBoundingClientRect());
  let found = 0;
  boxes.forEach((a, i) => boxes.slice(i + 1).forEach((b) => {
    found += a.left < b.right - 0.5 && b.left < a.right - 0.5 && a.top < b.bottom - 0.5 && b.top < a.bottom - 0.5; }));
  return found;
}"""

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: ./dev programs installs it")


@pytest.fixture(scope="module")
def journal() -> Iterator[str]:
    served = Served(histories={"recorded": story([JOURNAL])})
    yield served.url
    served.close()


def test_a_marker_opens_why_a_queue_was_added(opened: Open, journal: str) -> None:
    page = opened(journal)
    marker = page.locator(".mark.queues").first
    marker.click()
    panel = page.locator("#detail-panel")
    expect(panel).to_contain_text("queue")
    expect(panel.locator(".reason")).to_have_text(
        next(one.reason for one in story([JOURNAL]).events if one.kind.value == "queues")
    )
    expect(panel).to_contain_text("What was seen")
    expect(panel).to_contain_text("before")
    panel.get_by_role("button", name="Show the graph of that time").click()
    expect(page.locator("#state")).to_contain_text("as of")
    page.locator("#live").click()
    expect(page.locator("#scrubbed")).to_have_text("now")


def test_markers_stand_at_their_time(opened: Open, journal: str) -> None:
    page = opened(journal)
    first, last = (story([JOURNAL]).series()["seconds"][at] for at in (0, -1))
    changed = next(one for one in story([JOURNAL]).events if one.kind.value == "queues")
    marker = page.locator(".mark.queues").first
    left, width = marker.evaluate("(one) => [parseFloat(one.style.left), one.parentElement.clientWidth]")
    assert abs(left / width - (changed.seconds - first) / (last - first)) < 0.01


def test_the_journal_is_searched(opened: Open, journal: str) -> None:
    page = opened(journal)
    rows = page.locator("#events tbody tr")
    changes = [one for one in story([JOURNAL]).events if one.kind.value != "pass"]
    expect(rows).to_have_count(len(changes))
    page.locator("#passes").check()
    expect(rows).to_have_count(len(story([JOURNAL]).events))
    expect(page.locator("#found")).to_have_attribute("data-found", str(len(story([JOURNAL]).events)))
    page.locator("#search").fill("no such word")
    expect(rows).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_readers_of_all_kinds_can_use_it(opened: Open, journal: str, width: int, scheme: str) -> None:
    page = opened(journal, width, scheme)
    page.locator("#events tbody button").first.click()
    found = Axe().run(page).response["violations"]
    assert [(one["id"], [node["html"][:120] for node in one["nodes"]]) for one in found] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_boxes_are_reached_by_keyboard(opened: Open, journal: str) -> None:
    page = opened(journal)
    box = page.locator("g.box").nth(1)
    box.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#panel-title")).to_have_text(str(box.get_attribute("data-name")))


def test_a_job_is_followed_rescaled_and_cancelled(opened: Open) -> None:
    job = start(running(), rel.JobConfig(regions="manual", web_port=0))
    try:
        page = opened(job.web_url or "")
        expect(page.locator("#state")).to_have_text("running")
        expect(page.locator(f'g.box[data-name="{NAME}"]')).to_be_visible()
        expect(page.locator("#numbers")).to_contain_text("tuples/s")
        page.locator("#replicas").fill("2")
        page.locator("#rescale button").click()
        expect(page.locator("#confirm-text")).to_contain_text("2 replicas, instead of 1?")
        assert job.plan().epoch == 0
        page.locator("#confirm-yes").click()
        expect(page.locator("#answer")).to_contain_text("Done", timeout=30_000)
        expect(page.locator(".mark.replicas").first).to_be_visible()
        expect(page.locator("#events")).to_contain_text("1 → 2 replicas")
        page.locator("#cancel button").click()
        page.locator("#confirm-no").click()
        expect(page.locator("#confirm")).to_be_hidden()
        page.locator("#cancel button").click()
        page.locator("#confirm-yes").click()
        expect(page.locator("#state")).to_have_text("cancelled", timeout=30_000)
    finally:
        job.close()


def test_who_comes_late_or_misses_messages_sees_what_the_others_see(opened: Open) -> None:
    job = start(running(idle=10), rel.JobConfig(regions="manual", checkpoint=rel.Checkpoint(every=0.5), web_port=0))
    try:
        url = job.web_url or ""
        first, loses = opened(url), opened(url, script=LOSES)
        for page in (first, loses):
            expect(page.locator("#numbers")).to_contain_text("tuples/s")
        job.rescale(job.plan().region_of("sums").region.name, 2)
        expect(first.locator("#events")).to_contain_text("1 → 2 replicas")
        expect(first.locator("#checkpoints tbody tr").nth(1)).to_be_visible()
        late = opened(url)
        expect(late.locator("#numbers")).to_contain_text("tuples/s")
        job.cancel(drain=False)
        pages = (first, loses, late)
        for page in pages:
            expect(page.locator("#state")).to_have_text("cancelled")
            expect(page.locator("#actions")).to_be_hidden()
        seen = [page.evaluate(SHOWN) for page in pages]
        for part in seen[0]:
            assert seen[1][part] == seen[0][part], part
            assert seen[2][part] == seen[0][part], part
        for page in pages:  # they would complain of a server that has left
            page.close()
    finally:
        job.close()


def test_checkpoints_savepoints_and_a_pause_are_shown(opened: Open, tmp_path: Path) -> None:
    settings = rel.JobConfig(regions="manual", checkpoint=rel.Checkpoint(every=0.5), web_port=0)
    job = start(running(), settings)
    try:
        page = opened(job.web_url or "")
        table = page.locator("#checkpoints tbody")
        expect(table.locator('tr[data-kind="checkpoint"][data-slowest="sums"]').first).to_be_visible()
        expect(page.locator("#checkpoints-text")).to_have_attribute("data-abandoned", "0")
        expect(page.locator(".mark.checkpoint, #events [data-kind=checkpoint]")).to_have_count(0)
        page.locator("#checkpoints-too").check()
        expect(page.locator(".mark.checkpoint").first).to_be_visible()
        expect(page.locator("#events [data-kind=checkpoint]").first).to_be_visible()
        page.locator("#folder").fill(str(tmp_path / "saved"))
        page.locator("#snapshot button").first.click()
        page.locator("#confirm-yes").click()
        expect(page.locator("#answer")).to_contain_text("Done")
        expect(table.locator('tr[data-kind="savepoint"]')).to_be_visible()
        expect(page.locator(".mark.savepoint").first).to_be_visible()
        assert list((tmp_path / "saved").iterdir())
        page.locator("#pause button").click()
        page.locator("#confirm-yes").click()
        expect(page.locator("#paused")).to_be_visible()
        assert job.status.paused
        page.locator("#resume button").click()
        page.locator("#confirm-yes").click()
        expect(page.locator("#paused")).to_be_hidden()
        assert not job.status.paused
    finally:
        job.close()


def test_keys_in_flight_are_shown_while_they_wait(opened: Open) -> None:
    gate = Gate()
    made = rel.Topology("moves")
    rows = [*((n % 97, n) for n in range(970)), gate, *((n % 97, n) for n in range(970))]
    keyed = made.source(script(rows, {"key": int, "n": int}), name="rows").key_by("key")
    has_entered, enters = os.pipe()  # an event that it sets would be something that it remembers
    go_on = threading.Event()

    def slow(t: Any, state: dict[str, int]) -> tuple[int, int]:
        os.write(enters, b".")
        go_on.wait()
        state["n"] = state.get("n", 0) + t.n
        return (t.key, state["n"])

    totals = keyed.map(slow, name="totals", state=dict, lane="python", schema={"key": int, "n": int})
    totals.sink(rel.count(), name="out")
    job = start(made, rel.JobConfig(regions="manual", threads=rel.Threads(model="dedicated"), web_port=0))
    change = threading.Thread(target=lambda: job.rescale(job.plan().region_of("totals").region.name, 2))
    try:
        page = opened(job.web_url or "")
        assert os.read(has_entered, 1)
        change.start()
        expect(page.locator("#moving")).to_have_attribute("data-to-move", re.compile("[1-9]"))
        expect(page.locator("#moving")).to_have_attribute("data-held", re.compile("[1-9]"))
        go_on.set()
        change.join(60)
        expect(page.locator("#moving")).to_be_hidden()
        expect(page.locator("#events")).to_contain_text("1 → 2 replicas")
        gate.open()
        job.wait(60)
    finally:
        go_on.set()
        gate.open()
        job.close()


def test_an_open_operator_follows_the_job_and_the_slider(opened: Open) -> None:
    job = start(running(), rel.JobConfig(web_port=0))
    try:
        page = opened(job.web_url or "")
        expect(page.locator('[data-number="throughput"]')).to_be_visible()
        page.locator('g.box[data-name="key"]').click()
        panel = page.locator("#detail-panel")
        expect(panel).to_have_attribute("data-operator", "key")
        info = job.describe()["key"]
        assert re.search(r"in_browser\.py:\d+$", info.location)
        for text in (info.location, info.lane, info.reason):
            expect(panel).to_contain_text(text)
        expect(panel.locator(".plot")).to_have_count(3)
        total = panel.locator("dt", has_text="tuples received").locator("+ dd")
        then = total.inner_text()
        expect(total).not_to_have_text(then)
        page.locator("#scrub").fill("500")
        expect(page.locator("#state")).to_contain_text("as of")
        back = total.inner_text()
        box, rate = page.locator('g.box[data-name="key"] text').nth(2), panel.locator("dt", has_text="receives")
        shown = str(box.text_content()).removesuffix(" out").partition(" in")[0]
        assert rate.locator("+ dd").inner_text().partition(", ")[0] == shown
        page.locator("#live").click()
        expect(total).not_to_have_text(back)
        page.locator("#panel-close").click()
        expect(panel).to_be_hidden()
    finally:
        job.close()


def test_the_verdict_names_a_bottleneck_a_job_that_keeps_up_and_nothing_at_the_end(opened: Open) -> None:
    go_on, slow = threading.Event(), threading.Event()

    def numbers() -> Iterator[tuple[int]]:
        for n in range(1_000_000_000):
            if slow.is_set():
                go_on.wait(0.01)  # input comes slowly
            yield (n,)

    made = rel.Topology("verdicts")
    stream = made.source(rel.callable(numbers, schema={"value": int}), name="numbers")
    waits = stream.map(lambda t: slow.wait(0.001) or t.value, name="waits", lane="python", schema={"value": int})
    waits.sink(rel.count(), name="out")
    job = start(made, rel.JobConfig(web_port=0, elasticity="off"))
    try:
        page = opened(job.web_url or "")
        verdict = page.locator("#verdict")
        expect(verdict).to_have_attribute("data-code", "bottleneck")
        expect(verdict).to_have_attribute("data-operator", "waits")
        slow.set()
        expect(verdict).to_have_attribute("data-code", "keeps_up")
        job.cancel(drain=False)
        expect(page.locator("#state")).to_have_attribute("data-state", "cancelled")
        expect(verdict).to_be_hidden()
        expect(page.locator('[data-number="emitted"]')).to_be_visible()
        expect(page.locator('[data-number="throughput"]')).to_have_count(0)
    finally:
        slow.set()
        go_on.set()
        job.close()
    expect(page.locator("#problem")).to_have_attribute("data-code", "gone")  # by the list of jobs: the stream is over


def test_a_web_ui_whose_process_has_ended_says_when_it_was_seen(opened: Open) -> None:
    job = start(running(), rel.JobConfig(web_port=0))
    try:
        page = opened(job.web_url or "")
        expect(page.locator('[data-number="throughput"]')).to_be_visible()
    finally:
        job.close()
    expect(page.locator("#problem")).to_have_attribute("data-code", "gone")
    expect(page.locator("#problem")).to_contain_text(re.compile(r"last seen at .*\d\d:\d\d"))
    expect(page.locator("#actions")).to_be_hidden()


def test_a_failure_shows_tuple_and_traceback(opened: Open) -> None:
    go_on = threading.Event()
    made = rel.Topology("fails")

    def inverse(t: Any) -> float:
        go_on.wait()
        return 1 / (t.value - 5)

    numbers = made.source(rel.sequence(10), name="numbers")
    numbers.map(inverse, name="inverse", lane="python", schema={"value": float}).sink(rel.count(), name="out")
    job = start(made, rel.JobConfig(web_port=0))
    try:
        page = opened(job.web_url or "")
        go_on.set()
        expect(page.locator("#failure")).to_contain_text("ZeroDivisionError", timeout=30_000)
        expect(page.locator("#failure")).to_have_attribute("data-operator", "inverse")
        assert "python_lane.py" not in page.locator("#failure").inner_text()
        expect(page.locator("#verdict")).to_be_hidden()
        expect(page.locator(".mark.failure").first).to_be_visible()
    finally:
        go_on.set()
        job.close()


def branches(count: int, length: int) -> ExecPlan:
    """A source, so many branches of so many operators, a sink."""
    edges = [("source", f"step0_{n}") for n in range(count)]
    edges += [(f"step{at}_{n}", f"step{at + 1}_{n}") for at in range(length - 1) for n in range(count)]
    edges += [(f"step{length - 1}_{n}", "out") for n in range(count)]
    names = tuple(dict.fromkeys(name for edge in edges for name in edge))
    region = Region("r0", RegionKind.PIPELINE, names)
    return ExecPlan("large", (RegionPlan(region, (Pipeline(names, ("pe0",)),)),), tuple(edges))


def test_387_operators_collapse_and_open(opened: Open) -> None:
    served = Served(histories={"large": History(branches(55, 7))})
    try:
        page = opened(served.url)
        expect(page.locator("g.box")).to_have_count(9)
        page.locator("g.box").filter(has_text="x 55").first.click()
        expect(page.locator("g.box")).to_have_count(8 + 55)
        assert page.evaluate(OVERLAPPING) == 0
        page.locator("#close-all").click()
        expect(page.locator("g.box")).to_have_count(9)
        page.locator("#zoom-in").click()
        page.locator("#detail").select_option("operators")
        expect(page.locator("#graph")).to_have_attribute("aria-busy", "true")
        expect(page.locator("g.box")).to_have_count(387)
        expect(page.locator("#graph")).to_have_attribute("aria-busy", "false")
        assert page.evaluate(OVERLAPPING) == 0
        assert page.locator("#graph").evaluate("(one) => one.scrollWidth <= one.clientWidth")
        expect(page.locator('g.box[data-name="source"]')).to_be_in_viewport()
        page.close()  # it would complain of a server that has left
    finally:
        served.close()


def test_10000_operators_are_shown_as_fits_and_one_by_one(opened: Open) -> None:
    served = Served(histories={"huge": History(branches(1250, 8))})
    try:
        page = opened(served.url)
        assert page.locator("g.box").count() <= 60
        assert page.evaluate(OVERLAPPING) == 0
        page.locator("#detail").select_option("operators")
        expect(page.locator("g.box")).to_have_count(10_002, timeout=60_000)
        page.close()  # it would complain of a server that has left
    finally:
        served.close()
