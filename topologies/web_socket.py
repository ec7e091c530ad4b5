"""Publishing to WebSockets: a sink operator that is a small server, for whoever connects.

aiohttp's server runs in a thread of its own (Ray's dashboard needs the same library). A client that connects late
receives the last message first. A client that reads nothing for some seconds is disconnected, so that it can't block a
job for ever.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import Any

SEND_TIMEOUT = 5.0  # seconds that a viewer may take for one message
START_TIMEOUT = 10.0  # seconds until the port is open


class Publisher:
    """Sends text to all who are connected.

    Args:
        port: of this machine; 0: a free one.
        greeting: what who connects gets as long as nothing was sent.

    Raises:
        OSError: the port is taken.
    """

    def __init__(self, port: int, greeting: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._viewers: set[Any] = set()
        self._last = greeting
        self._thread = threading.Thread(target=self._loop.run_forever, name="web-socket", daemon=True)
        self._thread.start()
        try:
            self._runner, self.port = self._call(self._start(port), START_TIMEOUT)
        except BaseException:
            self._end()
            raise

    def publish(self, text: str) -> None:
        """Send it; return when all viewers have it, or are gone."""
        self._call(self._send(text), 2 * SEND_TIMEOUT)

    def close(self) -> None:
        """Says goodbye to all viewers and frees the port."""
        with contextlib.suppress(TimeoutError):
            self._call(self._stop(), 2 * SEND_TIMEOUT)
        self._end()

    def _call(self, work: Any, timeout: float) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout)

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _start(self, port: int) -> tuple[Any, int]:
        from aiohttp import web

        app = web.Application()
        app.router.add_get("/", self._view)
        runner = web.AppRunner(app, handle_signals=False)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        return runner, runner.addresses[0][1]

    async def _view(self, request: Any) -> Any:
        from aiohttp import web

        viewer = web.WebSocketResponse()
        await viewer.prepare(request)
        self._viewers.add(viewer)
        try:
            await viewer.send_str(self._last)
            async for _ in viewer:  # what viewers say is of no interest; this waits until they go
                continue
        finally:
            self._viewers.discard(viewer)
        return viewer

    async def _send(self, text: str) -> None:
        self._last = text
        await asyncio.gather(*(self._send_to(viewer, text) for viewer in tuple(self._viewers)))

    async def _send_to(self, viewer: Any, text: str) -> None:
        try:
            await asyncio.wait_for(viewer.send_str(text), SEND_TIMEOUT)
        except (ConnectionError, TimeoutError):
            self._viewers.discard(viewer)

    async def _stop(self) -> None:
        for viewer in tuple(self._viewers):
            with contextlib.suppress(ConnectionError, TimeoutError):
                await asyncio.wait_for(viewer.close(message=b"the job has ended"), SEND_TIMEOUT)
        await self._runner.cleanup()
