"""Methods of every stream that delay tuples: by the clock, or until another stream releases them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from rayelastic.fluent.base import StreamBase, StreamT, taken
from rayelastic.fluent.naming import named
from rayelastic.graph.operators.gates import CONTROL, gate, switch
from rayelastic.graph.operators.pacing import delay, throttle
from rayelastic.graph.records.time_info import Seconds
from rayelastic.graph.spec.declaration import NewOperator
from rayelastic.graph.spec.upstream import Upstream


class PassageMethods(StreamBase[StreamT]):
    """Operators that delay tuples."""

    __slots__ = ()

    @named
    def throttle(self, per_second: float, *, name: str = "") -> StreamT:
        """Emit tuples at a rate, evenly; faster input waits, and back-pressure slows its source.

        The rate holds on average: a late wake-up is made up for. After a pause of the input, at most the tuples of one
        second are emitted at once.

        Args:
            name: The operator's name; 'throttle' by default.
            per_second: The rate, in tuples.

        Raises:
            GraphError: The name is taken or invalid, or the rate isn't above 0.
            GraphError: The name is taken or invalid, or no such rate.

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
        """Emit each tuple so many seconds after it arrived, by the clock, in order.

        Args:
            seconds: Seconds, or a timedelta.
            name: The operator's name; 'delay' by default.
            most: The number of tuples to buffer in memory; back-pressure slows the source when it is full.

        Raises:
            GraphError: The name is taken or invalid, or an invalid time or number.

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
        """Let tuples pass while a switch is on, which another stream turns on and off.

        Waiting tuples are kept in memory, and emitted in order when the switch is turned on, or when the input ends.

        Args:
            control: The other stream.
            on: A function of its tuples: whether the switch is on from now on.
            name: The operator's name; 'switch' by default.
            start: Whether it is on at first.
            off: What happens to tuples while it is off: 'wait' or 'drop'.

        Raises:
            GraphError: The name is taken or invalid, or an invalid stream, function or choice.

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
        """Limit the tuples in flight: at most `most` pass that another stream hasn't acknowledged.

        Waiting tuples are kept in memory, and emitted when the input ends in any case.

        Args:
            control: The stream of acknowledgements: each of its tuples lets one more pass.
            name: The operator's name; 'gate' by default.
            most: The number of tuples that pass before the first acknowledgement.
            passes: A function of a tuple of `control`: how many it lets pass, instead of one.

        Raises:
            GraphError: The name is taken or invalid, or an invalid stream, function or number.

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
