"""Words of the latest changes to a wiki, as histograms on a WebSocket (Middleware'19 Fig. 2; M21).

Changes arrive over HTTP, one JSON object a line. Their words are counted in sliding windows of 60 seconds, one each
second. Each window's counts are sent to all connected clients. Without a URL, a server on this machine generates
changes.

    rayelastic run rayelastic.topologies.wiki_word_count --port 8765
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import rayelastic as rel
from rayelastic.topologies.change_stream import Change, changes, local_changes
from rayelastic.topologies.web_socket import Publisher

SECONDS, SLIDE = 60, 1  # of a window, Fig. 2
NOTHING = json.dumps({"start": None, "words": 0, "histogram": {}})
EDGES = ".,;:!?()[]{}'\"=|*#"  # that aren't part of a word


class Word(NamedTuple):
    """A word of a change."""

    time: int
    word: str


class Histogram(NamedTuple):
    """What was published of a window."""

    start: int
    words: int
    different: int


def words(t: Change) -> Iterator[Word]:
    """Every word of a change, in small letters, without punctuation around."""
    for word in t.text.lower().split():
        plain = word.strip(EDGES)
        if len(plain) > 0:
            yield Word(t.time, plain)


@rel.operator(outputs=Histogram)
class Publish:
    """Sends the counts of each window, and emits a histogram for each.

    Args:
        port: of the WebSocket.
        top: most words of a histogram, the most frequent ones.
    """

    def __init__(self, port: int, top: int) -> None:
        self.port = port
        self.top = top

    def initialize(self) -> None:
        """Open the port."""
        self.publisher = Publisher(self.port, NOTHING)
        self.start: int | None = None
        self.counts: list[tuple[int, str]] = []

    def invoke(self, t: Any) -> Iterator[Histogram]:
        """Take the count of a word; when the next window begins, sends the one before."""
        if self.start is not None and t.start != self.start:
            yield self._sent()
        self.start = t.start
        self.counts.append((-t.n, t.word))

    def shutdown(self) -> Iterator[Histogram]:
        """Send the last window, and close the port."""
        if self.start is not None:
            yield self._sent()
        self.publisher.close()

    def _sent(self) -> Histogram:
        assert self.start is not None
        words, different = -sum(count for count, _ in self.counts), len(self.counts)
        histogram = {word: -count for count, word in sorted(self.counts)[: self.top]}
        self.publisher.publish(json.dumps({"start": self.start, "words": words, "histogram": histogram}))
        self.counts.clear()
        return Histogram(self.start, words, different)


def build(
    url: str | None = None,
    port: int = 0,
    seconds: int = SECONDS,
    slide: int = SLIDE,
    lateness: int = 5,
    top: int = 20,
    count: int = 5000,
    seed: int = 0,
) -> rel.Topology:
    """Declare the topology.

    Args:
        url: of the stream; made up by a server on this machine if not given.
        port: of this machine, for the WebSocket; 0: a free one.
        seconds: of a window.
        slide: seconds from the start of one window to that of the next.
        lateness: seconds that changes may come out of order.
        top: most words of a histogram.
        count: changes to make up.
        seed: of what is made up.
    """
    topology = rel.Topology("wiki_word_count")
    read = functools.partial(changes, url) if url else functools.partial(local_changes, count, seed)
    timed = topology.source(rel.callable(read, Change), name="changes").event_time(
        "time", name="time", lateness=lateness
    )
    windows = timed.flat_map(words, name="words").key_by("word").window(seconds=seconds, slide=slide)
    counted = windows.aggregate(name="counts", n=rel.count())
    counted.apply(Publish(port, top), name="publish").sink(rel.list(), name="out")
    return topology


def report(result: rel.JobResult) -> str:
    """How much was published.

    Args:
        result: what the job left.
    """
    histograms = result["out"]
    most = max((histogram.words for histogram in histograms), default=0)
    return f"{len(histograms):,} histograms of {most:,} words at most, in {result.seconds:.2f} s"
