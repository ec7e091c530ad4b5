"""`switch` and `gate`: operators that buffer tuples until another stream releases them (P34).

They are operator classes with two input ports, consumed in order of arrival. The buffered tuples are operator state, in
memory. Knows no threads, PEs or native code.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from rayelastic.errors import ErrorCode, GraphError
from rayelastic.graph.operators.composition import class_operator
from rayelastic.graph.records.shown import check_flag, invalid, shown
from rayelastic.graph.spec.declaration import NewOperator, binds
from rayelastic.graph.spec.operator_class import operator
from rayelastic.graph.spec.operator_spec import OperatorSpec
from rayelastic.graph.spec.upstream import Upstream
from rayelastic.graph.spec.user_objects import check_object

DATA, CONTROL = "data", "control"  # the input ports


class Holding:
    """Base of operators that buffer tuples: `snapshot` returns their setting and the tuples.

    Attributes:
        setting: The setting's name.
    """

    setting: ClassVar[str]


@operator(inputs={DATA: None, CONTROL: None}, outputs={"out": DATA}, lane="python")
class _Switch(Holding):
    setting = "on"

    def __init__(self, on: Callable[[Any], Any], start: bool, waits: bool) -> None:
        self._turns = on
        self._on = start
        self._waits = waits
        self._waiting: list[Any] = []

    def invoke(self, port: str, t: Any) -> Iterable[Any]:
        if port == CONTROL:
            self._on = bool(self._turns(t))
            return self.shutdown() if self._on else ()
        if self._on:
            return [t]
        if self._waits:
            self._waiting.append(t)
        return ()

    def shutdown(self) -> Iterable[Any]:
        waiting, self._waiting = self._waiting, []
        return waiting

    def snapshot(self) -> tuple[bool, list[Any]]:
        return self._on, self._waiting

    def restore(self, kept: tuple[bool, list[Any]]) -> None:
        self._on, self._waiting = kept


@operator(inputs={DATA: None, CONTROL: None}, outputs={"out": DATA}, lane="python")
class _Gate(Holding):
    setting = "may_pass"

    def __init__(self, most: int, passes: Callable[[Any], int] | None) -> None:
        self._may_pass = most
        self._passes = passes
        self._waiting: deque[Any] = deque()

    def invoke(self, port: str, t: Any) -> Iterable[Any]:
        if port == DATA:
            self._waiting.append(t)
        else:
            self._may_pass += 1 if self._passes is None else self._passes(t)
        count = max(0, min(self._may_pass, len(self._waiting)))
        self._may_pass -= count
        return [self._waiting.popleft() for _ in range(count)]

    def shutdown(self) -> Iterable[Any]:
        return self._waiting

    def snapshot(self) -> tuple[int, list[Any]]:
        return self._may_pass, list(self._waiting)

    def restore(self, kept: tuple[int, list[Any]]) -> None:
        self._may_pass, self._waiting = kept[0], deque(kept[1])


def switch(
    up: Upstream, name: str, control: Upstream | None, on: Callable[[Any], Any], start: bool, off: str
) -> OperatorSpec:
    """See ``Stream.switch``."""
    with NewOperator(name, up.operators):
        _check(on, "on")
        if off not in ("wait", "drop"):
            raise invalid("off", off, "Choose 'wait' or 'drop'", ErrorCode.UNKNOWN_CHOICE)
        check_flag("start", start)
    return class_operator(
        name, _Switch(on, start, off == "wait"), {DATA: up, CONTROL: control}, up.operators, up.compiler
    )


def gate(
    up: Upstream, name: str, control: Upstream | None, most: int, passes: Callable[[Any], int] | None
) -> OperatorSpec:
    """See ``Stream.gate``."""
    with NewOperator(name, up.operators):
        if passes is not None:
            _check(passes, "passes")
        _check_most(most)
    return class_operator(name, _Gate(most, passes), {DATA: up, CONTROL: control}, up.operators, up.compiler)


def _check(function: object, what: str) -> None:
    if not callable(function) or not binds(function, (None,)):
        raise GraphError(
            f"{what}={shown(function)} isn't a function of a tuple",
            hint="Pass lambda t: ...",
            code=ErrorCode.NOT_A_FUNCTION,
        )
    check_object(function)


def _check_most(most: object) -> None:
    if not isinstance(most, int) or isinstance(most, bool) or most < 0:
        raise invalid("most", most, "Pass a number of tuples, 0 or more")
