"""Requests that wait at the same time: 200 of 50 ms each, 32 at a time, to a server of this machine.

    python -m bench.micro.waiting [capacity=32] [rounds=5]

The job is examples/ported/http_enrichment.py, from its start to its end. What a process loads for its first job is in a
row of its own. The limit is the same requests by asyncio alone, in an event loop with a semaphore.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import rayelastic as rel
from bench.harness import Row, compared, settings
from examples.ported.http_enrichment import beside_service, build

REQUESTS = 200


def job(port: int, capacity: int) -> float:
    """Seconds of a job, which has all answers in the order of the requests."""
    topology = build(port, capacity)
    began = time.monotonic()
    known = rel.run(topology)["out"]
    took = time.monotonic() - began
    assert [t.number for t in known] == list(range(REQUESTS))
    return took


def alone(port: int, capacity: int) -> float:
    """Of asyncio without a job."""

    async def ask(number: int, room: asyncio.Semaphore) -> bytes:
        async with room:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(f"GET /{number} HTTP/1.0\r\n\r\n".encode())
            answer = await reader.read()
            writer.close()
            return answer

    async def every() -> list[bytes]:
        room = asyncio.Semaphore(capacity)
        return await asyncio.gather(*(ask(number, room) for number in range(REQUESTS)))

    began = time.monotonic()
    assert len(asyncio.run(every())) == REQUESTS
    return time.monotonic() - began


def main() -> None:
    given = settings(capacity=32, rounds=5)
    capacity = given["capacity"]
    what = f"{REQUESTS} requests of 50 ms, {capacity} at a time"

    def measured(port: int) -> tuple[float, Row]:
        def ours() -> float:
            return job(port, capacity)

        first, by_asyncio = ours(), "asyncio alone"
        return first, compared("waiting", what, "s", given["rounds"], ours, lambda: alone(port, capacity), by_asyncio)

    first, row = asyncio.run(beside_service(measured))
    row.print()
    replace(row, key="waiting.first", what=f"{what}, first job of a process", ours=[first], limit=row.limit[:1]).print()


if __name__ == "__main__":
    main()
