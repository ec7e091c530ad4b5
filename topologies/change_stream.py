"""A stream of changes like that of Wikipedia: a client that reads it, and a local server with made-up changes.

It is one JSON object per line over HTTP; the client also reads server-sent events (`data: {...}`). Knows no topology.
"""

from __future__ import annotations

import json
import random
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple, Self

START = 1_760_000_000  # seconds since 1970
ENGLISH = "the of and in to a is was river city album player station school war species art film king north"
CONNECT_TIMEOUT = 30.0  # seconds until a stream has to answer, and between two of its lines
SERVER_SENT = "data:"


class Change(NamedTuple):
    """A changed page."""

    time: int  # seconds since 1970
    title: str
    text: str


def made_up(count: int, seed: int = 0) -> Iterator[str]:
    """Change as lines of JSON: some a second, a few with times out of order, words of several scripts."""
    chance = random.Random(seed)
    words = [*ENGLISH.split(), "naïve", "日本", "Straße", "co-op", "2024"]
    weights = [1.0 / rank for rank in range(1, len(words) + 1)]
    clock = START
    for number in range(count):
        clock += chance.random() < 0.2
        text = " ".join(chance.choices(words, weights, k=chance.randrange(3, 30)))
        mark = chance.choice((".", ",", "!", ""))
        time = clock - chance.choice((0, 0, 0, 1, 2))
        yield json.dumps({"timestamp": time, "title": f"Page {number % 500}", "comment": text.capitalize() + mark})


def changes(url: str) -> Iterator[Change]:
    """Yield the changes of a stream, until it ends.

    Args:
        url: The stream's URL.

    Raises:
        OSError: It can't be reached, or is silent for too long.
        ValueError: a line that is no JSON object with `timestamp` and `comment`.
    """
    request = urllib.request.Request(url, headers={"Accept": "application/json", "User-Agent": "rayelastic"})
    with urllib.request.urlopen(request, timeout=CONNECT_TIMEOUT) as response:
        for raw in response:
            line = raw.decode().strip()
            line = line[len(SERVER_SENT) :].strip() if line.startswith(SERVER_SENT) else line
            if line.startswith("{"):
                change = json.loads(line)
                yield Change(int(change["timestamp"]), str(change.get("title", "")), str(change.get("comment") or ""))


def local_changes(count: int, seed: int) -> Iterator[Change]:
    """Yield the changes of a server of our own, that lives as long as they are read."""
    with ChangeServer(made_up(count, seed)) as server:
        yield from changes(server.url)


class ChangeServer:
    """Serves lines over HTTP on this machine, to one client after the other; a context manager.

    Args:
        lines: what it serves; it waits where they do.
    """

    def __init__(self, lines: Iterator[str]) -> None:
        class Request(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "application/x-ndjson")
                self.end_headers()
                try:
                    for line in lines:
                        self.wfile.write(line.encode() + b"\n")
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True  # whoever read has seen enough

            def log_message(self, format: str, *arguments: object) -> None:
                del format, arguments  # nothing on the terminal: the job shows itself there

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Request)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, name="change-server", daemon=True)

    @property
    def url(self) -> str:
        """Where it is read from."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
