"""The keyed state of an operator of a running job, as the job's holder reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from rayelastic.errors import PELostError
from rayelastic.runtime.state.keys import parsed_key
from rayelastic.runtime.state.queries import unread
from rayelastic.runtime.state.tables import pairs_of, table_of

if TYPE_CHECKING:
    import pyarrow as pa

    from rayelastic.runtime.state.descriptor import StateDescriptor

MOST = 1000  # keys, by default

Read = Callable[[tuple[Any, ...] | None, int], tuple["StateDescriptor", Sequence[bytes]]]


class OperatorState:
    """The keyed state of an operator of a running job. Each key is read at a safe point between two of its tuples.

    Different keys may be read at different moments; for one moment of all, take a snapshot. A call waits while a
    checkpoint is taken or replicas change.

    Args:
        operator: Its name.
        read: Reads the state of a key, or of so many keys, from the job.
    """

    def __init__(self, operator: str, read: Read) -> None:
        self._operator = operator
        self._asked = read

    def get(self, key: Any, default: Any = None) -> Any:
        """Return the state of a key at one moment; `default` if it has none.

        Args:
            key: Its value, or a tuple of the values of its fields; () without keys.
            default: The result for a key without state.

        Returns:
            A record, or the current results of aggregates, as a tuple with names; the user's own value in Python
            operators.

        Raises:
            StateError: An invalid key, an operator without keyed state to read, or a job that isn't running, or ends
                meanwhile. The message names the operator and a hint.
        """
        values = key if isinstance(key, tuple) else (key,)
        descriptor, chunks = self._read(values, 1)
        return next((value for _, value in pairs_of(chunks, descriptor)), default)

    def key_of(self, texts: Sequence[str]) -> tuple[Any, ...]:
        """Return the key whose fields are written so, as on a command line; 'null' is None in a nullable field.

        A text may be in double quotes, as in JSON: '"null"' is the text.

        Raises:
            StateError: As for `get`.
        """
        descriptor, _ = self._read(None, 1)
        return parsed_key(texts, descriptor)

    def items(self, limit: int = MOST) -> Iterator[tuple[Any, Any]]:
        """Yield some keys with their state, `limit` at most, in no order; see `get`."""
        descriptor, chunks = self._read(None, limit)
        return islice(pairs_of(chunks, descriptor), limit)

    def keys(self, limit: int = MOST) -> Iterator[Any]:
        """Yield some keys, `limit` at most, in no order."""
        return (key for key, _ in self.items(limit))

    def table(self, limit: int = MOST) -> pa.Table:
        """Return the same as an Arrow table; see `rel.read_snapshot`."""
        descriptor, chunks = self._read(None, limit)
        return table_of(chunks, descriptor, trusted=True).slice(0, limit)

    def _read(self, key: tuple[Any, ...] | None, most: int) -> tuple[StateDescriptor, Sequence[bytes]]:
        try:
            return self._asked(key, most)
        except (PELostError, TimeoutError) as error:  # of the coordinator
            raise unread(self._operator, error) from error
