"""The user's objects of a PE: one of its own for each operator, initialized before, shut down after.

Knows no native operators. Operator classes with ports look after their own object (ports_lane.py).
"""

from __future__ import annotations

import copy
import inspect
import logging
import traceback
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rayelastic.compile.lanes.python_lane import error_text
from rayelastic.errors import ErrorCode, JobFailedError, StateError
from rayelastic.graph.operators.processes import KeyedProcess
from rayelastic.graph.spec.operator_spec import Lane
from rayelastic.graph.spec.user_objects import INITIALIZE, SHUTDOWN, is_object, method_of
from rayelastic.runtime.watch.event_log import tell

if TYPE_CHECKING:
    from rayelastic.graph.spec.operator_spec import OperatorSpec
    from rayelastic.runtime.loops.event_loop import EventLoop

CLOSE_TIMEOUT = 5.0  # seconds for an async shutdown() where the job ends early


def with_copy(spec: OperatorSpec) -> OperatorSpec:
    """Return an operator with a copy of the user's object, as one has that was sent to another process.

    Functions, methods and classes stay as they are, and so does an object that was compiled: nothing calls it.

    Raises:
        StateError: it can't be copied.
    """
    given = _object_of(spec)
    if given is None or spec.lane is Lane.COMPILED:
        return spec
    try:
        return _with(spec, copy.deepcopy(given))
    except Exception as error:  # whatever it holds
        raise StateError(
            f"its object of class {type(given).__name__} can't be copied, and each start from a checkpoint needs a "
            f"copy: {error_text(error)}",
            operator=spec.name,
            location=spec.location,
            hint="Open connections, files and locks in initialize(), or run the job without checkpoints",
            code=ErrorCode.NOT_COPYABLE,
        ) from error


class UserObjects:
    """Those of one PE.

    Args:
        job: its name, for messages.
        pe: the element.
        loop: runs what is `async def`.
    """

    def __init__(self, job: str, pe: str, loop: EventLoop) -> None:
        self._job = job
        self._pe = pe
        self._loop = loop
        self._ending: dict[str, Callable[[], Any]] = {}  # the shutdown() of those that were initialized

    def initialized(self, spec: OperatorSpec) -> OperatorSpec:
        """Initialize the object of an operator: a copy of its own, where it has `initialize`.

        Raises:
            JobFailedError: it raised.
        """
        given = _object_of(spec)
        if given is None:
            return spec
        if isinstance(spec.body, KeyedProcess):
            given = copy.deepcopy(given)  # two operators may have been declared with one object
        elif method_of(given, INITIALIZE) is not None:
            given = copy.copy(given)  # the user's own stays free of connections, and can be sent elsewhere
        if (initialize := method_of(given, INITIALIZE)) is not None:
            self._call(spec.name, initialize)
        if (shutdown := method_of(given, SHUTDOWN)) is not None:
            self._ending[spec.name] = shutdown
        return _with(spec, given)

    def shut_down(self) -> None:
        """Shut down all objects: their streams have ended.

        Raises:
            JobFailedError: one raised; names the operator.
        """
        for name in list(self._ending):
            self._call(name, self._ending.pop(name))

    def close(self, left_behind: Collection[str]) -> None:
        """Shut down what hasn't been, as its job ends early; log who raises.

        Args:
            left_behind: operators that a thread is still in.
        """
        for name in list(self._ending):
            shutdown = self._ending.pop(name)
            if name not in left_behind:
                try:
                    self._call(name, shutdown, CLOSE_TIMEOUT)
                except JobFailedError as error:
                    why = error.reason
                    tell(
                        "shutdown raised", job=self._job, pe=self._pe, level=logging.WARNING, operator=name, reason=why
                    )

    def _call(self, operator: str, method: Callable[[], Any], timeout: float | None = None) -> None:
        try:
            made = method()
            if inspect.iscoroutine(made):
                self._loop.wait_for(made, timeout)
        except Exception as error:
            reason, shown = error_text(error), "".join(traceback.format_exception(error))
            raise JobFailedError(
                reason, job=self._job, operator=operator, traceback_text=shown, code=ErrorCode.FUNCTION_RAISED
            ) from error


def _object_of(spec: OperatorSpec) -> Any:
    given = getattr(spec.body, spec.body.object_field) if spec.body.object_field else None
    return given if given is not None and is_object(given) else None


def _with(spec: OperatorSpec, own: Any) -> OperatorSpec:
    body: Any = spec.body
    return replace(spec, body=replace(body, **{body.object_field: own}))
