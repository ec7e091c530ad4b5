"""Async I/O: the calls of one operator that are in flight, and its native operator.

The operator's own thread starts calls and collects their results; in between the event loop runs them. The loop only
notifies the operator that a call is done.
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
from rayelastic.graph.spec.requests import FunctionKind
from rayelastic.plan.plan_text import counted
from rayelastic.runtime.loops.event_loop import EventLoop, WaitingThreads
from rayelastic.runtime.operators.native_schema import native_schema

if TYPE_CHECKING:
    from rayelastic.graph.spec.operator_spec import OperatorSpec

FIRST_PAUSE = 0.1  # seconds before a call is retried
LONGEST_PAUSE = 10.0  # seconds: each pause is twice the one before, until then
LEAST_PART = 0.5  # of a pause, at random, so that calls that failed together don't retry together
SLICE = 0.01  # seconds that a thread waits before it checks whether it has to stop (waiting.hpp)

Collected = tuple[list[list[Any]], int, int, bool]  # by port; tuples and bars; dropped; ends with a bar


class _Call:
    """A tuple in flight."""

    __slots__ = ("done", "error", "item", "made")

    def __init__(self, item: Any) -> None:
        self.item = item
        self.made: Any = None
        self.error: BaseException | None = None
        self.done = False


class Calls:
    """The calls of an operator that are in flight, for its native operator (python_concurrent.hpp).

    Args:
        code: The operator's code.
        how: The limits of concurrent calls.
        router: Sorts by output port, without that of diverted tuples.
        on_error: What happens to a tuple on which a call raises.
        checks: For each of these ports, a function that raises for an invalid record.
        loop: Runs `async def` functions, and waits for others.
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
        self._batch: list[_Call] = []  # not full yet; only the loop uses it
        self._timer: asyncio.TimerHandle | None = None
        self._slots = asyncio.Semaphore(how.capacity)
        self._closed = False

    def wakes(self, wake: Callable[[], None]) -> None:
        """Set the function that wakes the operator, from another thread, when a call is done."""
        self._wake = wake

    def close(self) -> None:
        """Stop waking the operator; calls in flight end with the loop."""
        self._closed = True
        self._wake = _nobody
        if self._threads is not None:
            self._threads.shutdown()

    # --- the operator's thread

    def room(self) -> int:
        """Return the number of tuples that may be started."""
        return self._how.room - self._under_way

    def begin(self, tuples: list[Any]) -> None:
        """Start a call for each tuple, or put them into batches."""
        calls = [_Call(item) for item in tuples]
        self._line.extend(calls)
        self._under_way += len(calls)
        self._loop.spawn((lambda: self._batched(calls)) if self._how.max_batch else (lambda: self._alone(calls)))

    def bar(self) -> None:
        """Keep all later results after the earlier ones."""
        self._line.append(None)

    def wait(self) -> None:
        """Wait for a call to be done, for a moment at most."""
        with self._changed:
            self._changed.wait_for(lambda: self._news, SLICE)

    def collect(self) -> Collected | None:
        """Return the results that may be emitted, up to the next bar; None if there are none."""
        self._news = False
        lists: list[list[Any]] = [[] for _ in self._checks]
        letters: list[Any] = []
        number = skipped = 0
        for call in self._ready():
            try:
                emitted = self._given(call)
            except BaseException as error:
                if self._on_error is OnError.FAIL or not isinstance(error, Exception):
                    if number:  # earlier results are emitted first
                        self._line.appendleft(call)
                        break
                    about(error, call.item)
                    raise
                skipped += self._on_error is OnError.SKIP
                letters.append((*call.item, error_text(error), self._code.operator))
            else:
                for into, values in zip(lists, emitted, strict=True):
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
        """Remove the calls that are done, in order: all, or those without an unfinished one before them."""
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
        if kind is FunctionKind.FILTER:
            given: Any = (call.item,) if made else ()
        elif kind is FunctionKind.MAP:
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
        """Start the full batches; the rest waits for more tuples, or its time."""
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
            had_news, self._news = self._news, True
            self._changed.notify_all()
        if not had_news:
            self._wake()

    async def _settle(self, calls: Sequence[_Call]) -> None:
        """Wait for the result or exception of each call; a failed batch is split, if failures are tolerated."""
        try:
            if not self._how.max_batch:
                calls[0].made = await self._tried(calls[0].item)
                return
            made = list(await self._tried([call.item for call in calls]))
            if len(made) != len(calls):
                raise ValueError(f"it got {counted(len(calls), 'tuple')}, and gave {counted(len(made), 'result')}")
            for call, result in zip(calls, made, strict=True):
                call.made = result
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
        """Return the function's result, at the first attempt or a later one."""
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
        flat = self._code.kind is FunctionKind.FLAT_MAP and not self._how.max_batch
        return list(made) if flat and made is not None else made  # a generator waits here, too


def _nobody() -> None:
    """Wake nothing."""


def concurrent_operator(spec: OperatorSpec, how: Concurrency, loop: EventLoop) -> tuple[_native.Operator, Calls]:
    """Make the operator of a function with concurrent calls.

    Args:
        spec: The operator.
        how: The limits and the order of calls.
        loop: Its PE's event loop.
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
