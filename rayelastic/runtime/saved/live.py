"""Reads keyed state of a running job, from whichever element has the key. Knows no elements, but how to ask them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rayelastic import _native
from rayelastic.errors import ConfigError, StateError
from rayelastic.runtime.saved.chunks import keys_in
from rayelastic.runtime.saved.keys import key_bytes
from rayelastic.runtime.saved.shapes import Shape, required, shape_of
from rayelastic.runtime.snapshot import state_form

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rayelastic.graph.spec.operator_spec import OperatorSpec

__all__ = ["READ_TIMEOUT", "Ask", "read_state"]

Ask = Callable[[str, tuple[tuple[int, int], ...], int], list[bytes]]  # by operator, ranges of hashes, how many keys

READ_TIMEOUT = 60.0  # seconds for an element to read some keys: its operator may be in a long call
EVERYTHING = ((0, (1 << 64) - 1),)  # all hashes


def read_state(
    operators: Mapping[str, OperatorSpec],
    operator: str,
    key: tuple[Any, ...] | None,
    most: int,
    hosting: Iterable[Ask],
) -> tuple[Shape, list[bytes]]:
    """Exports of a key, or of some keys, of an operator that runs.

    Args:
        operators: of the job, by name.
        operator: whose state.
        key: the values of its fields; None: any.
        most: keys.
        hosting: asks the elements that have the operator, each one.

    Returns:
        How the state is laid out, and the exports.

    Raises:
        StateError: there is no such operator, it keeps nothing that can be looked at, or that can't be a key of it.
    """
    given: object = most
    if not isinstance(given, int) or isinstance(given, bool) or given < 1:
        raise ConfigError(f"a limit of {most!r} keys", way_out="Give a whole number, 1 or more")
    spec = operators.get(operator)
    if spec is None:
        keeping = ", ".join(repr(name) for name, one in operators.items() if shape_of(one) is not None)
        way_out = f"Those that keep state that can be looked at are {keeping}" if keeping else "None keeps state"
        raise StateError("the job has no such operator", operator=operator, way_out=way_out)
    shape = required(shape_of(spec), operator, state_form(spec))
    ranges = EVERYTHING
    if key is not None:
        known, null = key_bytes(key, shape, operator)
        hashed = _native.null_key_hash() if null else _native.key_hash(known)
        ranges = ((hashed, hashed),)
    chunks: list[bytes] = []
    found = 0
    for ask in hosting:
        if found < most:
            chunks += ask(operator, ranges, most - found)
            found = sum(keys_in(chunk) for chunk in chunks)
    return shape, chunks
