"""Functions whose calls wait at the same time: the calls of one operator that are under way, and its native operator.

The operator's own thread begins calls and collects what they gave; in between they are the event loop's. Only whether a
call is done, and that there is news, goes from the loop to the operator.
"""

from __future__ import annotations

import asyncio
import inspect
import random
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from rayelastic import _native
from rayelastic.compile import OperatorCode
from rayelastic.compile.lanes.ports_lane import Router
from rayelastic.compile.lanes.python_lane import about, error_text
from rayelastic.graph.spec.concurrency import Concurrency, is_async
from rayelastic.graph.spec.dead_letters import OnError
from rayelastic.graph.spec.operator_spec import OperatorKind
from rayelastic.plan.plan_text import counted
from rayelastic.runtime.loops.event_loop import EventLoop, WaitingThreads
from rayelastic.runtime.operators.native_schema import native_schema

if TYPE_CHECKING:
    from rayelastic.graph.spec.operator_spec import OperatorSpec

__all__ = ["Calls", "concurrent_operator"]

FIRST_PAUSE = 0.1  # seconds before a call is made again
LONGEST_PAUSE = 10.0  # seconds: each pause is twice the one before, until then
LEAST_PART = 0.5  # of a pause, by chance: those that failed together don't come back together
SLICE = 0.01  # seconds that a thread waits before it looks whether it has to stop (waiting.hpp)

Collected = tuple[list[list[Any]], int, int, bool]  # by port; tuples and bars; left out; ends with a bar


class _Call:
    """A tuple that is under way."""

    __slots__ = ("done", "error", "item", "made")

    def __init__(self, item: Any) -> None:
        self.item = item
        self.made: Any = None
        self.error: BaseException | None = None
        self.done = False


class Calls:
    """The calls of an operator that are under way, as its native operator asks of them (python_concurrent.hpp).

    Args:
        code: of the operator.
        how: many calls at the same time.
        router: of its output ports, without that of diverted tuples.
        on_error: what happens to a tuple on which a call raises.
        checks: for each of these ports, raises for what isn't a record of its schema.
        loop: that runs what is `async def`, and waits for what isn't.
    """

    def __init__(
        self,
        code: OperatorCode,
        how: Concurrency,
        router: Router,
        on_error: OnError,
        checks: Sequence[Callable[[object], None]],
        loop: EventLoop,
    ) -> None:
        self._code = code
        self._how = how
        self._router = router
        self._on_error = on_error
        self._checks = checks
        self._loop = loop
        self._threads = None if is_async(code.function) else WaitingThreads(how.capacity, f"waits-{code.operator}")
        self._line: deque[_Call | None] = deque()  # None: a bar; the operator's thread's
        self._under_way = 0  # tuples of the line
        self._news = False
        self._changed = threading.Condition()
        self._wake: Callable[[], None] = _nobody
        self._batch: list[_Call] = []  # that isn't full yet; the loop's
        self._timer: asyncio.TimerHandle | None = None
        self._slots = asyncio.Semaphore(how.capacity)
        self._closed = False

    def wakes(self, wake: Callable[[], None]) -> None:
        """Says whom to tell, from another thread, that something is done."""
        self._wake = wake

    def close(self) -> None:
        """Tells nobody any more; what is under way ends with the loop."""
        self._closed = True
        self._wake = _nobody
        if self._threads is not None:
            self._threads.shutdown()

    # --- the operator's thread

    def room(self) -> int:
        """How many tuples may be begun."""
        return self._how.room - self._under_way

    def begin(self, tuples: list[Any]) -> None:
        """Begin a call for each, or puts them into batches."""
        calls = [_Call(item) for item in tuples]
        self._line.extend(calls)
        self._under_way += len(calls)
        self._loop.spawn((lambda: self._batched(calls)) if self._how.max_batch else (lambda: self._alone(calls)))

    def bar(self) -> None:
        """Keep what comes from now on behind what came before."""
        self._line.append(None)

    def wait(self) -> None:
        """Wait for news, for a moment at most."""
        with self._changed:
            self._changed.wait_for(lambda: self._news, SLICE)

    def collect(self) -> Collected | None:
        """What is done and may go out, up to the next bar; None if there is nothing."""
        self._news = False
        lists: list[list[Any]] = [[] for _ in self._checks]
        letters: list[Any] = []
        number = skipped = 0
        for call in self._ready():
            try:
                given = self._given(call)
            except BaseException as error:
                if self._on_error is OnError.FAIL or not isinstance(error, Exception):
                    if number:  # what is before it goes out first
                        self._line.appendleft(call)
                        break
                    about(error, call.item)
                    raise
                skipped += self._on_error is OnError.SKIP
                letters.append((*call.item, error_text(error), self._code.operator))
            else:
                for into, values in zip(lists, given, strict=True):
                    into.extend(values)
            number += 1
            self._under_way -= 1
        bar = bool(self._line) and self._line[0] is None
        if bar:
            self._line.popleft()
        if not number and not bar:
            return None
        if self._on_error is OnError.DIVERT:
            lists.append(letters)
        return lists, number + bar, skipped, bar

    def _ready(self) -> Sequence[_Call]:
        """Take out of the line what is done, in order: all, or what has nothing undone before it."""
        line = self._line
        ready: list[_Call] = []
        undone: list[_Call] = []
        while line and (call := line[0]) is not None and (call.done or not self._how.ordered):
            line.popleft()
            (ready if call.done else undone).append(call)
            if self._on_error is OnError.FAIL and call.error is not None:
                break
        line.extendleft(reversed(undone))
        return ready

    def _given(self, call: _Call) -> list[list[Any]]:
        if call.error is not None:
            raise call.error
        kind, made = self._code.kind, call.made
        if kind is OperatorKind.FILTER:
            given: Any = (call.item,) if made else ()
        elif kind is OperatorKind.MAP:
            given = (made,)
        else:
            given = () if made is None else made
        by_port = self._router.sort(given)
        if self._on_error is not OnError.FAIL:
            for check, values in zip(self._checks, by_port, strict=True):
                for value in values:
                    check(value)
        return by_port

    # --- the loop's thread

    def _alone(self, calls: Sequence[_Call]) -> list[Coroutine[Any, Any, None]]:
        return [self._answer((call,)) for call in calls]

    def _batched(self, calls: Sequence[_Call]) -> list[Coroutine[Any, Any, None]]:
        """Start the batches that are full by now; the rest waits for more, or its time."""
        waiting, most = [*self._batch, *calls], self._how.max_batch
        full = len(waiting) - len(waiting) % most
        if full and self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._batch = waiting[full:]
        if self._batch and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._how.max_wait, self._time_is_up)
        return [self._answer(waiting[first : first + most]) for first in range(0, full, most)]

    def _time_is_up(self) -> None:
        calls, self._batch, self._timer = self._batch, [], None
        self._loop.spawn(lambda: [self._answer(calls)])

    async def _answer(self, calls: Sequence[_Call]) -> None:
        async with self._slots:
            await self._settle(calls)
        for call in calls:
            call.done = True
        with self._changed:
            told, self._news = self._news, True
            self._changed.notify_all()
        if not told:
            self._wake()

    async def _settle(self, calls: Sequence[_Call]) -> None:
        """Find out what each call gives, or raises; of a batch that raises the parts, where failures are tolerated."""
        try:
            if not self._how.max_batch:
                calls[0].made = await self._tried(calls[0].item)
                return
            made = list(await self._tried([call.item for call in calls]))
            if len(made) != len(calls):
                raise ValueError(f"it got {counted(len(calls), 'tuple')}, and gave {counted(len(made), 'result')}")
            for call, one in zip(calls, made, strict=True):
                call.made = one
        except BaseException as error:
            if self._closed and isinstance(error, asyncio.CancelledError):
                raise
            if len(calls) > 1 and self._on_error is not OnError.FAIL and isinstance(error, Exception):
                half = len(calls) // 2
                await self._settle(calls[:half])
                await self._settle(calls[half:])
                return
            for call in calls:
                call.error = error

    async def _tried(self, argument: Any) -> Any:
        """What the function gives, at the first attempt or a later one."""
        pause = FIRST_PAUSE
        for _ in range(self._how.retry):
            try:
                return await self._called(argument)
            except Exception:
                await asyncio.sleep(pause * random.uniform(LEAST_PART, 1))
                pause = min(2 * pause, LONGEST_PAUSE)
        return await self._called(argument)

    async def _called(self, argument: Any) -> Any:
        async with asyncio.timeout(self._how.timeout):
            if self._threads is not None:
                made = await asyncio.get_running_loop().run_in_executor(self._threads, self._plain, argument)
                return await made if inspect.isawaitable(made) else made  # lambda t: fetch(t.url)
            made = self._code.function(argument)
            return [item async for item in made] if hasattr(made, "__aiter__") else await made

    def _plain(self, argument: Any) -> Any:
        made = self._code.function(argument)
        flat = self._code.kind is OperatorKind.FLAT_MAP and not self._how.max_batch
        return list(made) if flat and made is not None else made  # a generator waits here, too


def _nobody() -> None:
    """Nobody is told."""


def concurrent_operator(spec: OperatorSpec, how: Concurrency, loop: EventLoop) -> tuple[_native.Operator, Calls]:
    """Make the operator of a function whose calls wait at the same time.

    Args:
        spec: of the operator.
        how: many, and in which order.
        loop: of its processing element.
    """
    code = spec.body
    assert isinstance(code, OperatorCode)
    schemas = [native_schema(port.schema) for port in spec.outputs]
    ports = spec.outputs[:-1] if spec.on_error is OnError.DIVERT else spec.outputs
    checks = [_native.RecordCheck(spec.name, schema) for schema in schemas[: len(ports)]]
    calls = Calls(code, how, Router([port.name for port in ports]), spec.on_error, checks, loop)
    tuple_type = code.input_schema.tuple_type
    source = native_schema(code.input_schema)
    return _native.Operator.concurrent(spec.name, calls, source, schemas, tuple_type, how.ordered), calls
