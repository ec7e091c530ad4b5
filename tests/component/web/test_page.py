"""The page without a browser: who may look, what is served, what happens when jobs end, two viewers ask at once."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
import urllib.error
import urllib.request
from base64 import b64decode
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import rayelastic as rel
from rayelastic.cli import main
from rayelastic.errors import ConfigError, JobCancelledError
from rayelastic.job import Job, start
from rayelastic.web.frames import COLUMNS
from rayelastic.web.journal_story import story
from rayelastic.web.page import Page
from rayelastic.web.server import ASSETS
from tests.raising import raises

NAME = '<img src=x onerror=alert(1)>"&'


def topology(go_on: threading.Event, count: int = 100_000) -> rel.Topology:
    made = rel.Topology("numbers")
    stream = made.source(rel.sequence(count), name="numbers")
    keyed = stream.map(lambda t: (t.value % 7, t.value), name="key", schema={"key": int, "value": int}).key_by("key")
    keyed.aggregate(name="sums", total=rel.sum("value")).sink(rel.call(lambda t: go_on.wait()), name=NAME)
    return made


class Browser:
    """Asks a page as scripts do."""

    def __init__(self, url: str) -> None:
        self.root, self.token = url.split("?token=")

    def ask(self, path: str, body: Any = None, token: str | None = None, header: bool = True) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {self.token if token is None else token}"}
        if header:
            headers["X-Rayelastic"] = "test"
        data = None if body is None else json.dumps(body).encode()
        try:
            with urllib.request.urlopen(urllib.request.Request(self.root + path, data, headers), timeout=30) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            text = error.read().decode()
            return error.code, json.loads(text) if text.startswith("{") else text

    def frames(self, job: str) -> Iterator[dict[str, Any]]:
        request = urllib.request.Request(
            f"{self.root}api/jobs/{job}/stream", headers={"Authorization": f"Bearer {self.token}"}
        )
        with urllib.request.urlopen(request, timeout=30) as lines:
            said: dict[str, Any] = {}
            for line in lines:
                if line.startswith(b"event: over"):
                    return
                if line.startswith(b"data: "):
                    said = followed(said, json.loads(line[6:]))
                    yield said


def followed(said: dict[str, Any], message: dict[str, Any]) -> dict[str, Any]:
    """What is known behind a message: all of it anew, or what it changes. The table is there as a list of rows."""
    message = dict(message)
    table = message.pop("operators", None)
    rows, values = (b64decode(message.pop(name, "")) for name in ("rows", "values"))
    if "after" in message:
        assert message.pop("after") == said["number"]
        message = {**said, **message}
    width = 4 * len(COLUMNS)

    def row(data: bytes, at: int) -> tuple[float, ...]:
        return struct.unpack_from(f"<{len(COLUMNS)}f", data, at * width)

    if table is not None:
        data = b64decode(table)
        message["operators"] = [row(data, at) for at in range(len(data) // width)]
    if rows:
        message["operators"] = list(message["operators"])
        for at, (number,) in enumerate(struct.iter_unpack("<I", rows)):
            message["operators"][number] = row(values, at)
    return message


@pytest.fixture
def running() -> Iterator[tuple[Job, Browser, threading.Event]]:
    go_on = threading.Event()
    job = start(topology(go_on), rel.JobConfig(web_port=0))
    try:
        assert job.web_url is not None
        yield job, Browser(job.web_url), go_on
    finally:
        go_on.set()
        job.close()


@pytest.fixture
def flowing() -> Iterator[Browser]:
    """A job that nobody ends."""
    made = rel.Topology("numbers")
    made.source(rel.sequence(10_000_000_000), name="numbers").sink(rel.count(), name="out")
    job = start(made, rel.JobConfig(web_port=0))
    yield Browser(job.web_url or "")
    job.close()


def test_frames_tell_what_operators_did(running: tuple[Job, Browser, threading.Event]) -> None:
    _, browser, _ = running
    status, told = browser.ask("api/jobs/numbers/story")
    assert status == 200
    assert told["operators"] == ["numbers", "key", "sums", NAME]
    assert told["columns"] == list(COLUMNS)
    for frame in browser.frames("numbers"):
        if "operators" not in frame:
            continue
        rows = frame["operators"]
        assert len(rows) == 4
        if rows[0][COLUMNS.index("tuples_out")] > 0:
            assert frame["state"] == "running"
            assert {pe["pe"] for pe in frame["pes"]} == {"pe0"}
            break


def test_who_comes_late_or_again_knows_what_the_others_do(flowing: Browser) -> None:
    browser = flowing
    early, late, again = browser.frames("numbers"), browser.frames("numbers"), browser.frames("numbers")
    known: dict[int, list[dict[str, Any]]] = {}

    def take(frames: Iterator[dict[str, Any]], count: int) -> None:
        for _ in range(count):
            said = dict(next(frames))
            said.pop("new_events", None)  # what is news to one isn't to another
            known.setdefault(said["number"], []).append(said)

    take(early, 3)
    take(late, 1)
    take(again, 2)
    again = browser.frames("numbers")  # its connection was lost
    for frames in (early, late, again):
        take(frames, 3)
    shared = [said for said in known.values() if len(said) == 3]
    assert shared
    assert len({str(first["operators"]) for first, *_ in shared}) == len(shared), "there was something to tell"
    assert all(one == first for first, *others in shared for one in others)


def test_points_behind_a_time_are_given(flowing: Browser) -> None:
    browser = flowing
    frames = browser.frames("numbers")
    for _ in range(4):
        next(frames)
    every = browser.ask("api/jobs/numbers/series")[1]
    behind = browser.ask(f"api/jobs/numbers/series?behind={every['seconds'][0]}")[1]
    assert every["seconds"][1:] == behind["seconds"][: len(every["seconds"]) - 1]
    assert every["threads"][1:] == behind["threads"][: len(every["threads"]) - 1]


def test_nobody_looks_without_the_token(running: tuple[Job, Browser, threading.Event]) -> None:
    _, browser, _ = running
    for path in ("", "api/jobs", "api/jobs/numbers/story", "api/jobs/numbers/stream"):
        assert browser.ask(path, token="wrong")[0] == 401
    assert browser.ask("api/jobs/numbers/actions", {"action": "cancel"}, token="")[0] == 401
    assert browser.ask("api/jobs")[1] == [{"name": "numbers", "state": "running", "live": True}]


def test_the_page_runs_only_its_own_scripts(running: tuple[Job, Browser, threading.Event]) -> None:
    _, browser, _ = running
    request = urllib.request.Request(browser.root, headers={"Authorization": f"Bearer {browser.token}"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        policy, text = answer.headers["Content-Security-Policy"], answer.read().decode()
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert "<script>" not in text
    assert 'src="/' not in text  # relative, so that path prefixes work
    assert 'href="/' not in text


def test_names_go_out_as_data(running: tuple[Job, Browser, threading.Event]) -> None:
    _, browser, _ = running
    status, graph = browser.ask("api/jobs/numbers/graph?detail=operators")
    assert status == 200
    assert [box["title"] for box in graph["boxes"]] == ["numbers", "key", "sums", NAME]
    assert len(graph["lines"]) == 3


def test_what_isnt_there_is_said(running: tuple[Job, Browser, threading.Event]) -> None:
    _, browser, _ = running
    status, said = browser.ask("api/jobs/other/story")
    assert (status, "'other'" in said["error"], "numbers" in said["error"]) == (404, True, True)
    status, said = browser.ask("api/jobs/numbers/operator?name=other")
    assert (status, "'other'" in said["error"]) == (400, True)
    assert "operators" in browser.ask("api/jobs/numbers/graph?detail=wrong")[1]["error"]
    assert browser.ask("api/jobs/numbers/frame?at=soon")[0] == 400
    assert browser.ask("assets/..%2Fpage.py")[0] == 404


@pytest.mark.untraced
def test_actions_are_asked_twice_and_told(running: tuple[Job, Browser, threading.Event]) -> None:
    job, browser, go_on = running
    address = "api/jobs/numbers/actions"
    assert browser.ask(address, {"action": "cancel"}, header=False)[0] == 400
    assert browser.ask(address, {"action": "explode"})[0] == 400
    assert browser.ask(address, {"action": "rescale", "region": "r9", "replicas": 2})[0] == 400
    assert browser.ask(address, {"confirm": "guessed"})[0] == 409
    status, asked = browser.ask(address, {"action": "cancel"})
    assert status == 200
    assert job.status.state.value == "running"
    assert browser.ask(address, {"confirm": asked["confirm"]})[1]["done"]
    go_on.set()
    assert browser.ask(address, {"confirm": asked["confirm"]})[0] in (400, 409)
    told = browser.ask("api/jobs/numbers/events")[1]
    assert [(one["title"], one["seen"]) for one in told if one["kind"] == "action"] == [
        (asked["text"], {"asked by": "127.0.0.1"})
    ]
    with pytest.raises(JobCancelledError):
        job.wait()


def test_a_savepoint_stops_the_job_and_its_page(tmp_path: Path) -> None:
    made = rel.Topology("numbers")
    keyed = made.source(rel.sequence(10_000_000_000), name="numbers").key_by("value")
    keyed.window(count=1000).aggregate(name="sums", total=rel.sum("value")).sink(rel.count(), name="out")
    job = start(made)
    page = Page({job.name: job})
    try:
        browser, address = Browser(page.url), "api/jobs/numbers/actions"
        assert browser.ask(address, {"action": "savepoint", "folder": " "})[0] == 400
        asked = browser.ask(address, {"action": "savepoint", "folder": str(tmp_path / "saved")})[1]
        assert browser.ask(address, {"confirm": asked["confirm"]})[1]["done"]
        assert list((tmp_path / "saved").iterdir())
        assert list(browser.frames("numbers"))[-1]["state"] == job.status.state.value
    finally:
        page.close()
        job.close()


def test_a_page_that_its_own_action_ends_doesnt_wait_for_itself(tmp_path: Path) -> None:
    made = rel.Topology("numbers")
    made.source(rel.sequence(10_000_000_000), name="numbers").sink(rel.count(), name="out")
    job = start(made, rel.JobConfig(web_port=0))
    try:
        browser, address = Browser(job.web_url or ""), "api/jobs/numbers/actions"
        asked = browser.ask(address, {"action": "savepoint", "folder": str(tmp_path / "saved")})[1]
        started = time.monotonic()
        with suppress(OSError):  # the page ends with its job, before or behind its answer
            browser.ask(address, {"confirm": asked["confirm"]})
        job.wait(30)
        assert time.monotonic() - started < 8
    finally:
        job.close()


def test_of_two_who_rescale_at_once_the_second_is_refused() -> None:
    go_on = threading.Event()
    job = start(topology(go_on, 10_000_000_000), rel.JobConfig(regions="manual", web_port=0))
    try:
        browser = Browser(job.web_url or "")
        region = next(one["name"] for one in browser.ask("api/jobs/numbers/graph")[1]["regions"] if one["scalable"])
        address, wanted = "api/jobs/numbers/actions", {"action": "rescale", "region": region, "replicas": 2}
        first, second = browser.ask(address, wanted)[1], browser.ask(address, wanted)[1]
        go_on.set()
        assert browser.ask(address, {"confirm": first["confirm"]})[1]["done"]
        for frame in browser.frames("numbers"):
            if frame["epoch"] > 0:
                break
        status, said = browser.ask(address, {"confirm": second["confirm"]})
        assert (status, "plan has changed" in said["error"]) == (409, True)
        told = browser.ask("api/jobs/numbers/events")[1]
        assert any(one["kind"] == "replicas" and "1 → 2 replicas" in one["title"] for one in told)
    finally:
        go_on.set()
        job.close()


def test_a_job_that_fails_while_watched_tells_tuple_and_traceback() -> None:
    made = rel.Topology("fails")
    go_on = threading.Event()

    def inverse(t: Any) -> float:
        go_on.wait()
        return 1 / (t.value - 5)

    made.source(rel.sequence(10), name="numbers").map(
        inverse, name="inverse", lane="python", schema={"value": float}
    ).sink(rel.count(), name="out")
    job = start(made, rel.JobConfig(web_port=0))
    try:
        frames = Browser(job.web_url or "").frames("fails")
        next(frames)
        go_on.set()
        last = list(frames)[-1]
        assert last["state"] == "failed"
        assert last["failure"]["operator"] == "inverse"
        assert "5" in last["failure"]["tuple"]
        assert "ZeroDivisionError" in last["failure"]["traceback"]
    finally:
        job.close()


def test_a_journal_opens_without_its_job() -> None:
    path = Path(__file__).parents[1] / "policy" / "journals" / "two_cores.jsonl"
    history = story([path])
    page = Page(histories={"journal": history})
    try:
        browser = Browser(page.url)
        told = browser.ask("api/jobs/journal/story")[1]
        assert not told["live"]
        assert len(told["events"]) == len(path.read_text().splitlines()) - 1
        assert len(told["series"]["seconds"]) == len(told["events"])
        assert browser.ask("api/jobs/journal/actions", {"action": "drain"})[0] == 400
        graph = browser.ask("api/jobs/journal/graph?detail=operators")[1]
        assert [box["title"] for box in graph["boxes"]] == list(history.operators)
        assert any(one["kind"] == "queues" and one["reason"] for one in told["events"])
        half = told["series"]["seconds"][len(told["events"]) // 2]
        assert browser.ask(f"api/jobs/journal/frame?at={half}")[1]["seconds"] == half
    finally:
        page.close()


@pytest.mark.parametrize(
    "text", ["", "{}\n", '{"elasticity": "of version 9", "upstream": {}, "period": 1}\n', "\x00\xff"]
)
def test_a_journal_of_another_version_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "other.jsonl"
    path.write_text(text)
    with raises(ConfigError, "not-a-journal"):
        story([path])
    assert main(["web", "--journal", str(path), "--port", "0"]) == 2


def test_ports_are_checked() -> None:
    for port in (-1, 70_000, "80", True):
        with raises(ConfigError, "invalid-setting", "web_port"):
            rel.JobConfig(web_port=port)  # type: ignore[arg-type]
    page = Page()
    try:
        with raises(ConfigError, "port-in-use", str(page.port)):
            Page(port=page.port)
    finally:
        page.close()


@pytest.mark.parametrize("shown", ["page", "metrics"])
def test_a_port_in_use_is_told_before_anything_starts(shown: str) -> None:
    made: list[int] = []

    def make(n: int) -> int:
        made.append(n)
        return n

    topology = rel.Topology("in-use")
    topology.source(rel.generate(make, 10, schema={"n": int}), name="numbers").sink(rel.count(), name="out")
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        config = rel.JobConfig(web_port=port if shown == "page" else None)
        with raises(ConfigError, "port-in-use", str(port)):
            rel.run(topology, config, metrics_port=port if shown == "metrics" else None)
    assert not made


def test_what_is_vendored_is_small_and_licensed() -> None:
    assert sum(path.stat().st_size for path in ASSETS.iterdir()) < 400_000
    vendored = {path.name.partition("-")[0] for path in ASSETS.iterdir() if ".min." in path.name}
    licenses = Path(__file__).parents[3] / "licenses"
    assert vendored <= {path.stem for path in licenses.iterdir()}
