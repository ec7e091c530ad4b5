"""The event loop of a PE for async I/O, in its own thread, and threads for blocking functions.

Knows no operators. Its threads are daemons: a call that never returns keeps no process alive.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor, Future
from typing import Any

PATIENCE = 1.0  # seconds that calls have to unwind when the loop ends


class EventLoop:
    """An event loop that starts with its first use.

    Args:
        name: The thread's name.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def spawn(self, make: Callable[[], list[Coroutine[Any, Any, None]]]) -> None:
        """Make coroutines in the loop's thread, and run them; return at once."""
        loop = self._loop if self._loop is not None else self._started()
        loop.call_soon_threadsafe(self._spawn, make)

    def wait_for(self, coroutine: Coroutine[Any, Any, Any], timeout: float | None = None) -> Any:
        """Run a coroutine on the loop, and return its result; TimeoutError after so many seconds."""
        loop = self._loop if self._loop is not None else self._started()
        return asyncio.run_coroutine_threadsafe(coroutine, loop).result(timeout)

    def close(self) -> None:
        """Cancel what runs on it, and end it; safe to repeat."""
        loop, thread = self._loop, self._thread
        if loop is None or thread is None or loop.is_closed():
            return
        with contextlib.suppress(RuntimeError):  # it has just ended
            loop.call_soon_threadsafe(loop.stop)
        thread.join(2 * PATIENCE)

    def _started(self) -> asyncio.AbstractEventLoop:
        self._loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[None]] = set()  # the loop itself holds them weakly
        self._thread = threading.Thread(target=self._run, args=(self._loop,), name=self._name, daemon=True)
        self._thread.start()
        return self._loop

    def _spawn(self, make: Callable[[], list[Coroutine[Any, Any, None]]]) -> None:
        assert self._loop is not None
        for coroutine in make():
            task = self._loop.create_task(coroutine)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
            left = asyncio.all_tasks(loop)
            for task in left:
                task.cancel()
            if left:
                loop.run_until_complete(asyncio.wait(left, timeout=PATIENCE))
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            loop.close()


class WaitingThreads(Executor):
    """Threads for blocking calls, made on demand.

    Args:
        most: The most threads.
        name: The threads' name.

    >>> threads = WaitingThreads(2, "waiting")
    >>> threads.submit(pow, 2, 3).result()
    8
    >>> threads.shutdown()
    """

    def __init__(self, most: int, name: str) -> None:
        self._most = most
        self._name = name
        self._work: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._threads = 0
        self._busy = 0  # calls that have a thread or wait for one

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call a function in a thread of the pool, as soon as one is free."""
        future: Future[Any] = Future()
        self._work.put((future, lambda: fn(*args, **kwargs)))
        with self._lock:
            self._busy += 1
            missing = self._threads < min(self._busy, self._most)
            self._threads += missing
        if missing:
            threading.Thread(target=self._run, name=self._name, daemon=True).start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002 - an Executor's
        """End the threads, each after its call, without waiting for them."""
        with self._lock:
            for _ in range(self._threads):
                self._work.put(None)

    def _run(self) -> None:
        while (item := self._work.get()) is not None:
            future, call = item
            if future.set_running_or_notify_cancel():
                try:
                    result = call()
                except BaseException as error:
                    future.set_exception(error)
                else:
                    future.set_result(result)
            with self._lock:
                self._busy -= 1
