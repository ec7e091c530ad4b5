"""One job in the web UI: its history, its sampler while it runs, and the updates of its viewers."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from rayelastic.errors import ConfigError, ErrorCode, RayelasticError
from rayelastic.runtime.watch.event_log import tell
from rayelastic.web.actions import Actions
from rayelastic.web.events import Event, EventKind
from rayelastic.web.frames import COLUMNS, COUNTED
from rayelastic.web.sampling import Sampler
from rayelastic.web.updates import Updates

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rayelastic.web.history import History
    from rayelastic.web.watched import Watched

PERIOD = 0.8  # seconds between two readings of a job: nobody sees what is older than a second


class Story:
    """What the web UI shows of one job. All methods belong to the server's loop.

    Args:
        name: of the job.
        history: of a job that is over; None: of `job`.
        job: that runs; None: there is none, as with a journal.
    """

    def __init__(self, name: str, history: History | None = None, job: Watched | None = None) -> None:
        self.name = name
        self._sampler = Sampler(job) if job is not None else None
        found = self._sampler.history if self._sampler is not None else history
        if found is None:
            raise ConfigError(
                f"{name!r} isn't a job or a history", hint="Pass a job or its history", code=ErrorCode.WRONG_TYPE
            )
        self.history: History = found
        self._actions = Actions(job, self.history) if job is not None else None
        self._waiting: set[asyncio.Future[None]] = set()
        self._closed = False
        frame = self.history.frame_at(None)
        self._published = self.history.event_count
        self.updates = Updates(self.history.report(frame), frame.operators if frame is not None else None)

    @property
    def live(self) -> bool:
        """Return whether more updates may follow."""
        return self._sampler is not None and not self._sampler.over

    async def sample(self) -> None:
        """Read the job once a period, until it has ended."""
        while self._sampler is not None and not self._sampler.over and not self._closed:
            started = time.monotonic()
            try:
                self._sampler.keep(await asyncio.to_thread(self._sampler.read))
            except (RayelasticError, TimeoutError) as error:
                self._sampler.lose(error)
            self._publish()
            await asyncio.sleep(max(0.05, PERIOD - (time.monotonic() - started)))

    async def newer(self, number: int | None, seconds: float) -> bool:
        """Wait for updates after a number, at most so many seconds; return whether there are any."""
        if number == self.updates.number and not self._closed:
            waits = asyncio.get_running_loop().create_future()
            self._waiting.add(waits)
            try:
                with suppress(TimeoutError):
                    async with asyncio.timeout(seconds):
                        await waits
            finally:
                self._waiting.discard(waits)
        return number != self.updates.number

    def close(self) -> None:
        """Wake all who wait."""
        self._closed = True
        self._wake()

    @property
    def closed(self) -> bool:
        """Return whether the server ends."""
        return self._closed

    def opening(self) -> dict[str, Any]:
        """Return the values that a viewer needs before the first frame."""
        return {
            "name": self.name,
            "live": self.live,
            "actions": self._actions is not None,
            "operators": list(self.history.operators),
            "started": self.history.started,
            "sources": list(self.history.rows.sources),
            "columns": list(COLUMNS),
            "counted": [{"name": one.source, "title": one.page, "unit": one.unit.value} for one in COUNTED],
            "series": self.history.series(),
            "events": self.history.events_from(0),
        }

    async def act(self, wanted: Mapping[str, Any], who: str) -> dict[str, Any]:
        """Answer the first request for an action with a code; do it at the second, which has the code.

        Args:
            wanted: what `Actions.ask` takes, or 'confirm' and the code.
            who: asks; goes into the audit log.
        """
        if self._actions is None or not self.live:
            raise ConfigError(
                f"job {self.name} isn't running", hint="Choose one that runs", code=ErrorCode.JOB_NOT_RUNNING
            )
        if "confirm" not in wanted:
            code, asked = self._actions.ask(wanted)
            return {"confirm": code, "text": asked.text}
        asked = self._actions.confirm(wanted["confirm"])
        problem = ""
        try:
            await _beside(asked.do)
        except (RayelasticError, TimeoutError) as error:
            problem = f"{error}"
        tell("action", job=self.name, action=asked.name, text=asked.text, who=who, problem=problem)
        frame = self.history.frame_at(None)
        seconds = frame.seconds if frame is not None else 0.0
        reason = f"not done: {problem}" if problem else "done"
        self.history.add_events([Event(seconds, EventKind.ACTION, "job", asked.text, reason, "", {"asked by": who})])
        self._publish()
        return {"done": not problem, "text": asked.text, "problem": problem}

    def _publish(self) -> None:
        frame, news = self.history.frame_at(None), {}
        if self.history.event_count > self._published:
            news["new_events"] = self.history.events_from(self._published)
            self._published = self.history.event_count
        self.updates.take(self.history.report(frame), frame.operators if frame is not None else None, **news)
        self._wake()

    def _wake(self) -> None:
        for waits in self._waiting:
            if not waits.done():
                waits.set_result(None)


async def _beside(do: Callable[[], object]) -> None:
    """Do something in a thread of its own, for which the server's end doesn't wait: it may be what ends the server."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def tell_loop(error: Exception | None) -> None:
        if done.cancelled():
            return
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)

    def run() -> None:
        error: Exception | None = None
        try:
            do()
        except Exception as raised:
            error = raised
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(tell_loop, error)

    threading.Thread(target=run, name="action", daemon=True).start()
    await done
