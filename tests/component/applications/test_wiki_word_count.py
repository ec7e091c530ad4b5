"""Wiki word count: changes from an HTTP server here, histograms at a WebSocket client here, against plain Python."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import aiohttp
import pytest

import rayelastic as rel
from rayelastic.errors import JobFailedError
from rayelastic.topologies import change_stream, wiki_word_count
from tests.raising import raises

SECONDS, SLIDE, TOP = 10, 2, 5


def reference(lines: list[str]) -> list[dict[str, Any]]:
    windows: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for line in lines:
        change = json.loads(line)
        words = [word.strip(wiki_word_count.EDGES) for word in change["comment"].lower().split()]
        last = change["timestamp"] // SLIDE * SLIDE
        for start in range(last - SECONDS + SLIDE, last + SLIDE, SLIDE):
            windows[start].update(word for word in words if word)
    return [
        {
            "start": start,
            "words": counts.total(),
            "histogram": dict(sorted(counts.items(), key=lambda one: (-one[1], one[0]))[:TOP]),
        }
        for start, counts in sorted(windows.items())
    ]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def viewed(port: int, connected: threading.Event) -> list[dict[str, Any]]:
    """Everything that is published, until the publisher closes."""
    async with aiohttp.ClientSession() as session, session.ws_connect(f"ws://127.0.0.1:{port}/") as socket:
        assert json.loads(await socket.receive_str()) == json.loads(wiki_word_count.NOTHING)
        connected.set()
        return [json.loads(message.data) async for message in socket]


@pytest.mark.parametrize("server_sent", [False, True])
def test_histograms_reach_a_viewer(server_sent: bool) -> None:
    lines = list(change_stream.made_up(400, seed=5))
    connected = threading.Event()

    def held() -> Iterator[str]:
        assert connected.wait(60)
        yield ""
        yield ": a comment, as servers send them to keep a connection"
        for line in lines:
            yield f"data: {line}" if server_sent else line

    port = free_port()
    with change_stream.ChangeServer(held()) as server:
        job = rel.start(wiki_word_count.build(server.url, port, SECONDS, SLIDE, top=TOP))
        found = asyncio.run(viewed(port, connected))
        published = job.wait()["out"]
    expected = reference(lines)
    assert len(expected) > 20
    assert found == expected
    assert [(one.start, one.words) for one in published] == [(one["start"], one["words"]) for one in expected]


def test_a_server_of_its_own_makes_changes_up() -> None:
    result = rel.run(wiki_word_count.build(seconds=SECONDS, slide=SLIDE, count=300, seed=2))
    expected = reference(list(change_stream.made_up(300, seed=2)))
    assert [(one.start, one.words) for one in result["out"]] == [(one["start"], one["words"]) for one in expected]
    assert f"{len(expected):,} histograms" in wiki_word_count.report(result)


@pytest.mark.parametrize("line", ['{"comment": "no time"}', '{"timestamp": 1, "comment": '])
def test_a_line_that_is_no_change_fails_the_job_with_its_name(line: str) -> None:
    with change_stream.ChangeServer(iter([line])) as server, raises(JobFailedError, "function-raised"):
        rel.run(wiki_word_count.build(server.url))
