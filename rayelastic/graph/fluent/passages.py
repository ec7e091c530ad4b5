"""Methods of every stream by which tuples pass later: by the clock, or when another stream lets them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from rayelastic.graph.fluent.base import StreamBase, StreamT, taken
from rayelastic.graph.fluent.naming import named
from rayelastic.graph.operators.gates import CONTROL, gate, switch
from rayelastic.graph.operators.pacing import delay, throttle
from rayelastic.graph.records.time_info import Seconds
from rayelastic.graph.spec.declaration import NewOperator
from rayelastic.graph.spec.upstream import Upstream

__all__ = ["PassageMethods"]


class PassageMethods(StreamBase[StreamT]):
    """Operators that hold tuples back."""

    __slots__ = ()

    @named
    def throttle(self, per_second: float, *, name: str = "") -> StreamT:
        """Emit tuples at a rate, evenly; faster input waits, and back-pressure slows its source.

        The rate holds on average: a late wake-up is made up for. After a pause of the input, tuples of one second at
        most are emitted at once.

        Args:
            name: of the operator; by default 'throttle'.
            per_second: tuples.

        Raises:
            GraphError: the name is taken or bad, or no such rate.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("slow")
        >>> topology.source(rel.sequence(100)).throttle(per_second=1e4).sink(rel.count(), name="out")
        <sink out>
        >>> rel.run(topology)["out"]
        100
        """
        return self._declare(throttle(self._upstream, name, per_second))

    @named
    def delay(self, seconds: Seconds, *, name: str = "", most: int = 100_000) -> StreamT:
        """Pass tuples on so many seconds after they came, by the clock, in order.

        Args:
            seconds: or a timedelta.
            name: of the operator; by default 'delay'.
            most: tuples that wait in memory; when there are more the source is held back.

        Raises:
            GraphError: the name is taken or bad, or no such time or number.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("later")
        >>> topology.source(rel.sequence(100), name="n").delay(0.01, name="later").sink(rel.count(), name="out")
        <sink out>
        >>> rel.run(topology)["out"]
        100
        """
        return self._declare(delay(self._upstream, name, seconds, most))

    @named
    def switch(
        self,
        control: StreamT,
        on: Callable[[Any], Any],
        *,
        name: str = "",
        start: bool = True,
        off: Literal["wait", "drop"] = "wait",
    ) -> StreamT:
        """Let tuples pass while a switch is on, that another stream turns on and off.

        What waits is kept in memory, goes out in order when the switch is turned on, and at the end in any case.

        Args:
            control: the other stream.
            on: of a tuple of that: whether the switch is on from now on.
            name: of the operator; by default 'switch'.
            start: whether it is on at first.
            off: what happens to tuples meanwhile: 'wait' or 'drop'.

        Raises:
            GraphError: the name is taken or bad, no such stream, function or choice.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("switched")
        >>> turns = topology.source(rel.rows([(False,)], schema={"on": bool}), name="turns")
        >>> numbers = topology.source(rel.sequence(3), name="numbers")
        >>> numbers.switch(turns, lambda t: t.on, name="switch").sink(rel.list(), name="out")
        <sink out>
        >>> [t.value for t in rel.run(topology)["out"]]
        [0, 1, 2]
        """
        return self._declare(switch(self._upstream, name, self._control(name, control), on, start, off))

    @named
    def gate(
        self, control: StreamT, *, name: str = "", most: int = 1, passes: Callable[[Any], int] | None = None
    ) -> StreamT:
        """Let tuples pass as others are done with: no more than `most` that another stream hasn't acknowledged.

        What waits is kept in memory, and goes out at the end in any case.

        Args:
            control: acknowledges: each of its tuples lets one more pass.
            name: of the operator; by default 'gate'.
            most: tuples that pass before the first acknowledgement.
            passes: of a tuple of `control`: instead, how many it lets pass.

        Raises:
            GraphError: the name is taken or bad, no such stream, function or number.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("gated")
        >>> done = topology.source(rel.sequence(2), name="done")
        >>> numbers = topology.source(rel.sequence(5), name="numbers")
        >>> numbers.gate(done, name="gate", most=2).sink(rel.list(), name="out")
        <sink out>
        >>> [t.value for t in rel.run(topology)["out"]]
        [0, 1, 2, 3, 4]
        """
        return self._declare(gate(self._upstream, name, self._control(name, control), most, passes))

    def _control(self, name: str, control: object) -> Upstream | None:
        with NewOperator(name, self.topology.operators):
            return taken(self.topology, CONTROL, control)
