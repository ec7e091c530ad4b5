"""Asks a service for each of 200 tuples, 32 requests at a time, and takes the answers in the order of the tuples.

After the asynchronous I/O of Apache Flink's guide and Bytewax's poll_and_split. A local server takes 50 ms for each
answer, so one request after the other would take 10 s. `python examples/ported/http_enrichment.py`
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import rayelastic as rel

ANSWER_TIME = 0.05  # seconds


class Item(NamedTuple):
    """What is asked about."""

    number: int


class Known(NamedTuple):
    """What is known of it."""

    number: int
    answer: str


def build(port: int, capacity: int = 32) -> rel.Topology:
    """Return the topology; the service listens at a port of this machine."""

    async def ask(t: Item) -> Known:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"GET /{t.number} HTTP/1.0\r\n\r\n".encode())
        _, _, body = (await reader.read()).partition(b"\r\n\r\n")
        writer.close()
        return Known(t.number, body.decode())

    topology = rel.Topology("http_enrichment")
    items = topology.source(rel.rows([Item(number) for number in range(200)], schema=Item), name="items")
    items.map(ask, name="ask", concurrent=rel.concurrent(capacity=capacity, timeout=5)).sink(rel.list(), name="out")
    return topology


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Return the service: takes its time."""
    path = (await reader.readuntil(b"\r\n\r\n")).split()[1].decode()
    await asyncio.sleep(ANSWER_TIME)
    writer.write(f"HTTP/1.0 200 OK\r\n\r\nall about {path[1:]}".encode())
    await writer.drain()
    writer.close()


async def beside_service(work: Callable[[int], Any]) -> Any:
    """Run a function of the service's port in a thread beside the service, and return its result."""
    async with await asyncio.start_server(answer, "127.0.0.1", 0) as service:
        return await asyncio.to_thread(work, service.sockets[0].getsockname()[1])


if __name__ == "__main__":
    started = time.monotonic()
    known = asyncio.run(beside_service(lambda port: rel.run(build(port))["out"]))
    print(f"{len(known)} answers in {time.monotonic() - started:.2f} s, the last one: {known[-1].answer}")
