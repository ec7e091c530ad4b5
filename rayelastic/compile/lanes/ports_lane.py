"""Per-run callables of operator classes: one call for each run or firing, under the Python token.

The engine calls `call(port, tuples[, states])`; for a class that waits for all its ports `call(firings, [tuples of
each])`. When the input ends, it calls `call(-1, None)`. It receives a list for each output port, or None. Firing 0 is
the rest (J03).
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rayelastic.compile.code.ports_code import PortsCode
from rayelastic.compile.lanes.frames import frame_of, run_of
from rayelastic.compile.lanes.kept_object import KeptObject
from rayelastic.compile.lanes.python_lane import error_text, marked, position
from rayelastic.graph.spec.dead_letters import OnError
from rayelastic.graph.spec.operator_spec import Lane
from rayelastic.graph.spec.ports import DemandKind
from rayelastic.graph.spec.routed import Routed


class Router:
    """Sorts a function's results by output port.

    Args:
        ports: The names of the output ports, in order.

    >>> from rayelastic.graph.spec.routed import to
    >>> Router(["out", "late"]).sort([(1,), to("late", (2,)), (3,)])
    [[(1,), (3,)], [(2,)]]
    """

    def __init__(self, ports: Sequence[str]) -> None:
        self._numbers = {port: number for number, port in enumerate(ports)}

    def sort(self, items: Iterable[Any]) -> list[list[Any]]:
        """Return a list for each output port."""
        sorted_items: list[list[Any]] = [[] for _ in self._numbers]
        self.sort_into(sorted_items, items)
        return sorted_items

    def sort_into(self, lists: list[list[Any]], items: Iterable[Any]) -> None:
        """Add to the list of each output port."""
        for item in items:
            if type(item) is Routed:
                lists[self.number(item.port)].append(item.value)
            elif lists:
                lists[0].append(item)
            else:
                raise ValueError(f"it gave {item!r}, but has no output port")

    def number(self, port: object) -> int:
        """Return the number of an output port.

        Raises:
            ValueError: An unknown port.
        """
        try:
            return self._numbers[port]  # type: ignore[index]
        except (KeyError, TypeError):
            raise ValueError(
                f"there is no output port {port!r}; there are {', '.join(self._numbers) or 'none'}"
            ) from None


def chosen(function: Callable[[Any], Any], ports: int) -> Callable[..., list[Any]]:
    """Return the per-run callable of a split by a function from a tuple to the number of an output port.

    >>> chosen(lambda t: t % 2, 2)(0, [1, 2, 3])
    [[2], [1, 3]]
    """

    def call(_: int, tuples: Sequence[Any]) -> list[Any]:
        lists: list[list[Any]] = [[] for _ in range(ports)]
        for index, item in enumerate(tuples):
            try:
                number = function(item)
                if not 0 <= number < ports:
                    raise IndexError(f"chose output {number} of {ports}")
                lists[number].append(item)
            except Exception as error:
                marked(error, index)
                raise
        return lists

    return call


class PortsFunction:
    """An operator class in this process: a copy of the user's instance, called with runs.

    Args:
        code: The shipped class.

    Attributes:
        call: The per-run callable.
        kept: The instance's state, for checkpoints.
        checks: For each output port, a function that raises for an invalid record; if failing tuples are tolerated.
    """

    def __init__(self, code: PortsCode) -> None:
        self._instance = copy.deepcopy(code.instance)
        self._router = Router([port.name for port in code.outputs])
        self.checks: Sequence[Callable[[object], None]] = ()
        self._ended = False
        self._initialized = False
        self.kept = KeptObject(self._instance)
        self.call: Callable[..., list[Any] | None] = self._made(code)

    def initialize(self) -> None:
        """Call the user's `initialize`, if there is one."""
        initialize = getattr(self._instance, "initialize", None)
        if initialize is not None:
            with self.kept.opening():
                initialize()
        self._initialized = True

    def close(self) -> None:
        """Call `shutdown` of an operator that hasn't reached its end; its results are dropped."""
        if self._initialized and not self._ended:
            with contextlib.suppress(Exception):
                list(self._shutdown())

    def _shutdown(self) -> Iterable[Any]:
        self._ended = True
        shutdown = getattr(self._instance, "shutdown", None)
        made: Iterable[Any] | None = shutdown() if shutdown is not None else None
        return () if made is None else made

    def _made(self, code: PortsCode) -> Callable[..., list[Any] | None]:
        if code.lane is Lane.VECTORISED:
            return self._of_runs(code)
        if code.is_conjunctive:
            return self._of_firings(code)
        return self._of_tuples(code)

    def _of_tuples(self, code: PortsCode) -> Callable[..., list[Any] | None]:
        names = [port.name for port in code.inputs]
        invoke, router, several = self._instance.invoke, self._router, len(names) > 1
        tolerates = code.on_error is not OnError.FAIL

        def call(port: int, tuples: Sequence[Any] | None, states: Sequence[Any] | None = None) -> list[Any] | None:
            if tuples is None:
                last: list[Any] = router.sort(self._shutdown())
                return [*last, None] if code.on_error is OnError.DIVERT else last
            if tolerates:
                return self._tolerant(code, port, tuples, states)
            lists: list[list[Any]] = [[] for _ in code.outputs]
            rest = iter(tuples)
            front = (names[port],) if several else ()
            try:
                if states is None:
                    for item in rest:
                        made = invoke(*front, item)
                        if made is not None:
                            router.sort_into(lists, _items(made))
                else:
                    for item, state in zip(rest, states, strict=True):
                        made = invoke(*front, item, state)
                        if made is not None:
                            router.sort_into(lists, _items(made))
            except BaseException as error:
                marked(error, position(tuples, rest))
                raise
            return lists

        return call

    def _tolerant(self, code: PortsCode, port: int, tuples: Sequence[Any], states: Sequence[Any] | None) -> list[Any]:
        lists: list[list[Any]] = [[] for _ in code.outputs]
        letters: list[tuple[int, str]] = []
        front = (code.inputs[port].name,) if len(code.inputs) > 1 else ()
        for index, item in enumerate(tuples):
            try:
                made = self._instance.invoke(*front, item, *(() if states is None else (states[index],)))
                given = self._router.sort(() if made is None else _items(made))
                for check, values in zip(self.checks, given, strict=True):
                    for value in values:
                        check(value)
            except Exception as error:
                letters.append((index, error_text(error)))
                continue
            for into, values in zip(lists, given, strict=True):
                into.extend(values)
        return [*lists, letters] if code.on_error is OnError.DIVERT else lists

    def _of_firings(self, code: PortsCode) -> Callable[..., list[Any] | None]:
        invoke, router = self._instance.invoke, self._router
        drain = getattr(self._instance, "drain", None)
        demands = [port.demand for port in code.inputs]

        def call(firings: int, runs: Sequence[Sequence[Any]] | None) -> list[Any] | None:
            if runs is None:
                return router.sort(self._shutdown())
            lists: list[list[Any]] = [[] for _ in code.outputs]
            if firings == 0:
                made: Any = drain(*runs) if drain is not None else None
                if made is not None:
                    router.sort_into(lists, _items(made))
            for firing in range(firings):
                # A demand of at least so many allows one firing with all waiting tuples.
                parts = [
                    run[firing * demand.count : (firing + 1) * demand.count]
                    if demand is not None and demand.kind is DemandKind.EXACT
                    else run
                    for run, demand in zip(runs, demands, strict=True)
                ]
                made = invoke(*parts)
                if made is not None:
                    router.sort_into(lists, _items(made))
            return lists

        return call

    def _of_runs(self, code: PortsCode) -> Callable[..., list[Any] | None]:
        names = [port.name for port in code.inputs]
        invoke, drain, several = self._instance.invoke, getattr(self._instance, "drain", None), len(names) > 1

        def call(number: int, runs: Any) -> list[Any] | None:
            if runs is None:
                last = self._shutdown()
                return None if isinstance(last, tuple) and not last else self._by_port(last, code)
            made: Any
            if code.is_conjunctive:
                function = drain if number == 0 else invoke
                made = None if function is None else function(*(frame_of(run, code.library) for run in runs))
            else:
                frame = frame_of(runs, code.library)
                made = invoke(names[number], frame) if several else invoke(frame)
            return self._by_port(made, code)

        return call

    def _by_port(self, made: Any, code: PortsCode) -> list[Any] | None:
        if made is None:
            return None
        if len(code.outputs) == 1:
            return [run_of(made, code.library, code.outputs[0].schema)]
        if not isinstance(made, Mapping):
            raise TypeError(f"expected {{output port: run}}, got {type(made).__name__}")
        runs: list[Any] = [None] * len(code.outputs)
        for port, run in made.items():
            number = self._router.number(port)
            runs[number] = run_of(run, code.library, code.outputs[number].schema)
        return runs


def _items(made: Any) -> Any:
    """Return a function's result as several tuples: a NamedTuple, or a routed tuple, is a single one."""
    if type(made) is Routed or (isinstance(made, tuple) and hasattr(made, "_fields")):
        return (made,)
    return made
