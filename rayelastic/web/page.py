"""The web UI of a job, or of several, served from a thread of this process until it is closed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING

from rayelastic.errors import ConfigError, ErrorCode
from rayelastic.runtime.port.certificates import server_context
from rayelastic.web.access import QUIET, Access, Visitors
from rayelastic.web.server import PageApp

if TYPE_CHECKING:
    from rayelastic.plan.settings.tls import TLS
    from rayelastic.web.history import History
    from rayelastic.web.watched import Catalogue, Watched

HOST = "127.0.0.1"
START = 30.0  # seconds for the server to open its port
END = 10.0  # seconds for it to close


class Page:
    """A web UI that is being served.

    Args:
        jobs: running jobs by name.
        histories: of jobs that are over, by name.
        catalogue: finds more jobs.
        port: to listen at; 0: a free one.
        host: the address to listen at. Whoever reaches it needs the token.
        tls: its certificates, and the address to listen at; None: plain HTTP.

    Raises:
        ConfigError: the port can't be opened.
    """

    def __init__(
        self,
        jobs: Mapping[str, Watched] | None = None,
        histories: Mapping[str, History] | None = None,
        catalogue: Catalogue | None = None,
        *,
        port: int = 0,
        host: str = HOST,
        tls: TLS | None = None,
    ) -> None:
        self.access = Access()
        self.port = port
        self._host = host = host if tls is None else tls.host
        self._context = None if tls is None else server_context(tls)
        self._known = (dict(jobs or {}), dict(histories or {}), catalogue)
        self._ready = threading.Event()
        self._problem: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, name="page", daemon=True)
        self._thread.start()
        self._ready.wait(START)
        if self._problem is not None:
            raise ConfigError(
                f"the web UI can't be served at {host}:{port}: {self._problem}",
                hint="Pass another port, or 0 for a free one",
                code=ErrorCode.PORT_IN_USE,
            ) from self._problem

    @property
    def url(self) -> str:
        """The address with the token, to be opened in a browser."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        scheme = "http" if self._context is None else "https"
        return f"{scheme}://{host}:{self.port}/?token={self.access.token}"

    def wait(self) -> None:
        """Return when it is closed, or with Ctrl-C."""
        while self._thread.is_alive():
            self._thread.join(1.0)

    def close(self) -> None:
        """End it; safe to repeat."""
        loop, ended = self._loop, self._ended
        if loop is not None and ended is not None and not loop.is_closed():
            loop.call_soon_threadsafe(ended.set)
        self._thread.join(END)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except Exception as error:  # raised by the constructor; later nobody reads it
            self._problem = error
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        from aiohttp import web

        jobs, histories, catalogue = self._known
        visitors = Visitors()
        served = PageApp(self.access, visitors, jobs, histories, catalogue)
        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        self._loop.set_exception_handler(
            lambda _, context: QUIET.warning("%s: %s", context["message"], context.get("exception"))
        )
        runner = web.AppRunner(served.made(), access_log=None, shutdown_timeout=1.0, logger=QUIET)
        await runner.setup()
        assert runner.server is not None
        listener = visitors.listen(self._host, self.port)
        self.port = listener.getsockname()[1]
        accepting = asyncio.create_task(visitors.accept(listener, runner.server, self._context))
        self._ready.set()
        try:
            await served.start()
            await self._ended.wait()
        finally:
            accepting.cancel()
            await asyncio.gather(accepting, return_exceptions=True)
            listener.close()
            await served.close()
            await runner.cleanup()
            visitors.close()
