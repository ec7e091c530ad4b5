"""Reads keyed state of a running job, from the element that has the key. Knows elements only through a callback."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rayelastic import _native
from rayelastic.errors import ConfigError, ErrorCode, PELostError, StateError
from rayelastic.runtime.state.descriptor import StateDescriptor, descriptor_of, required
from rayelastic.runtime.state.keys import key_hash
from rayelastic.runtime.values.status import State

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rayelastic.graph.spec.operator_spec import OperatorSpec

Ask = Callable[[str, tuple[tuple[int, int], ...], int], list[bytes]]  # by operator, ranges of hashes, how many keys

READ_TIMEOUT = 60.0  # seconds for an element to read some keys: its operator may be in a long call
EVERYTHING = ((0, (1 << 64) - 1),)  # all hashes
AT_ITS_END = "what a job has kept is in its savepoints once it has ended: job.snapshot(), rel.read_snapshot()"


def check_readable(job: str, operator: str, state: State) -> None:
    """Reject a job whose operators have no state at the moment, or none any more.

    Raises:
        StateError: The message names the operator, and how to read its state.
    """
    if state is not State.RUNNING:
        hint = AT_ITS_END[0].upper() + AT_ITS_END[1:] if state.is_final else "Ask again when it runs"
        problem = f"job '{job}' is {state.value}: its state can't be read"
        raise StateError(problem, operator=operator, hint=hint, code=ErrorCode.JOB_NOT_RUNNING)


def read_state(
    operators: Mapping[str, OperatorSpec],
    operator: str,
    key: tuple[Any, ...] | None,
    most: int,
    hosting: Iterable[Ask],
) -> tuple[StateDescriptor, list[bytes]]:
    """Export a key, or some keys, of a running operator.

    Args:
        operators: The job's operators, by name.
        operator: The operator.
        key: The values of the key's fields; None: any.
        most: The most keys.
        hosting: Calls each element that has the operator.

    Returns:
        The descriptor of the state, and the exports.

    Raises:
        StateError: An unknown operator, no state that can be read, an invalid key, or an element that doesn't answer:
            it is busy, or has ended meanwhile.
    """
    limit: object = most
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
        hint = "Pass a whole number, 1 or more"
        raise ConfigError(f"a limit of {most!r} keys", hint=hint, code=ErrorCode.OUT_OF_RANGE)
    spec = operators.get(operator)
    if spec is None:
        keeping = ", ".join(repr(name) for name, one in operators.items() if _looked_up(one) is not None)
        hint = f"Those that keep state that can be looked at are {keeping}" if keeping else "None keeps state"
        raise StateError("the job has no such operator", operator=operator, hint=hint, code=ErrorCode.UNKNOWN_OPERATOR)
    descriptor = required(_looked_up(spec), operator, spec.state_form)
    ranges = EVERYTHING if key is None else ((key_hash(key, descriptor, operator),) * 2,)
    chunks: list[bytes] = []
    keys_found = 0
    for ask in hosting:
        if keys_found < most:
            try:
                chunks += ask(operator, ranges, most - keys_found)
            except (PELostError, TimeoutError) as error:
                raise unread(operator, error) from error
            keys_found = sum(_native.keys_in(chunk) for chunk in chunks)
    return descriptor, chunks


def unread(operator: str, error: Exception) -> StateError:
    """Return the error if no element has answered."""
    problem, hint = f"its state couldn't be read: {error}", f"Ask again; {AT_ITS_END}"
    return StateError(problem, operator=operator, hint=hint, code=ErrorCode.STATE_NOT_READABLE)


def _looked_up(spec: OperatorSpec) -> StateDescriptor | None:
    """Return the descriptor of its state; None if there is nothing to look up by key."""
    descriptor = descriptor_of(spec)
    return descriptor if descriptor is not None and descriptor.is_by_key else None
