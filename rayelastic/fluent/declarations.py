"""A topology's declared operators, by name: streams write into it. Knows no streams, threads, plans or engines."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, NoReturn

from rayelastic.errors import ErrorCode, GraphError
from rayelastic.graph.spec.declaration import check_name
from rayelastic.graph.spec.location import caller_location
from rayelastic.graph.spec.loops import check_loops, fed_back
from rayelastic.graph.spec.operator_spec import OperatorSpec
from rayelastic.graph.spec.order import check_shippable, check_taken, topological_order
from rayelastic.graph.spec.requests import FunctionCompiler
from rayelastic.graph.words import TOPOLOGY, missing


class Declarations:
    """Operators by name, and the feedbacks that are still open.

    Args:
        name: The topology's name.
        compiler: Makes operator functions of Python functions.
    """

    def __init__(self, name: str, *, compiler: FunctionCompiler) -> None:
        try:
            check_name(name, "a topology")
        except GraphError as error:
            error.location = caller_location()
            raise
        self.name = name
        self.compiler = compiler
        self._operators: dict[str, OperatorSpec] = {}
        self._feedbacks: dict[str, str | None] = {}  # where each is declared; None: it is closed

    if not TYPE_CHECKING:  # otherwise type checkers would accept every name

        def __getattr__(self, word: str) -> NoReturn:
            if word.startswith("_"):
                raise AttributeError(f"a Topology has no {word!r}")
            raise AttributeError(missing("a Topology", word, dir(type(self)), TOPOLOGY))

    @property
    def operators(self) -> Mapping[str, OperatorSpec]:
        """The operators by name, in declared order; read only."""
        return MappingProxyType(self._operators)

    def validate(self, *, shipped: bool = True) -> None:
        """Check the topology as a whole.

        Args:
            shipped: Whether functions and descriptions will be sent to other processes, and so must pickle.

        Raises:
            GraphError: No source, a stream without a sink, or a cycle.
            NotShippableError: A function can't be pickled; the message names the operator and the offending object.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("numbers")
        >>> numbers = topology.source(rel.sequence(3), name="numbers")
        >>> topology.validate()
        Traceback (most recent call last):
        rayelastic.errors.GraphError: operator 'numbers' (...): its output has no sink. ... [no-sink]
        """
        if not any(spec.is_source for spec in self._operators.values()):
            raise GraphError(
                f"topology '{self.name}' has no source",
                hint="Start with topology.source(rel.text(...))",
                code=ErrorCode.NO_SOURCE,
            )
        for feedback, location in self._feedbacks.items():
            if location is not None:
                raise GraphError(
                    "this feedback isn't closed: no stream returns",
                    operator=feedback,
                    location=location,
                    hint="Call its close(stream) with the stream at the end of the loop",
                    code=ErrorCode.OPEN_FEEDBACK,
                )
        topological_order(self._operators)
        check_loops(self._operators)
        check_taken(self._operators)
        if shipped:
            check_shippable(self._operators.values())


def declare(topology: Declarations, *specs: OperatorSpec) -> None:
    """Add operators."""
    topology._operators.update((spec.name, spec) for spec in specs)


def is_free(topology: Declarations, name: str) -> bool:
    """Return whether no operator, feedback, or operator derived from one has the name."""
    taken = (*topology._operators, *topology._feedbacks)
    return not any(other == name or other.startswith(f"{name}.") for other in taken)


def mark_automatic(topology: Declarations, names: Iterable[str]) -> None:
    """Mark operators whose names are automatic."""
    topology._operators.update((name, replace(topology._operators[name], automatic=True)) for name in names)


def drafted(topology: Declarations, operators: Mapping[str, OperatorSpec]) -> Declarations:
    """Return another topology of the same class, with these operators."""
    draft = copy.copy(topology)
    draft._operators = dict(operators)
    draft._feedbacks = {}
    return draft


def open_feedback(topology: Declarations, name: str, location: str) -> None:
    """Register a stream that is consumed before it is produced.

    Raises:
        GraphError: The name is taken.
    """
    if name in topology._feedbacks:
        raise GraphError("another feedback has this name", hint="Rename it", code=ErrorCode.DUPLICATE_NAME)
    topology._feedbacks[name] = location


def close_feedback(topology: Declarations, name: str, placeholder: str, streams: tuple[str, ...]) -> bool:
    """Replace a feedback's placeholder by its streams; return whether an operator consumes it."""
    changed = {
        spec.name: fed_back(spec, placeholder, streams)
        for spec in topology._operators.values()
        if placeholder in (taken for taken, _ in spec.edges)
    }
    if changed:
        topology._operators.update(changed)
        topology._feedbacks[name] = None
    return bool(changed)
