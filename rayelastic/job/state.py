"""The keyed state of an operator of a running job, as whoever has the job looks at it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from rayelastic.errors import PELostError
from rayelastic.runtime.saved.chunks import pairs_of, table_of
from rayelastic.runtime.saved.keys import parsed_key
from rayelastic.runtime.saved.live import unread

if TYPE_CHECKING:
    import pyarrow as pa

    from rayelastic.runtime.saved.shapes import Shape

__all__ = ["OperatorState"]

MOST = 1000  # keys, where nothing is said

Read = Callable[[tuple[Any, ...] | None, int], tuple["Shape", Sequence[bytes]]]


class OperatorState:
    """What an operator of a running job keeps by key. Each key is read at a safe point between two of its tuples.

    Different keys may be read at different moments; for one moment of all take a snapshot. While a checkpoint is taken
    or replicas change, a question waits.

    Args:
        operator: its name.
        read: asks the job for the state of a key, or of so many keys.
    """

    def __init__(self, operator: str, read: Read) -> None:
        self._operator = operator
        self._asked = read

    def get(self, key: Any, default: Any = None) -> Any:
        """What a key has, as it was at one moment; `default` if nothing.

        Args:
            key: its value, or a tuple of the values of its fields; () without keys.
            default: what is returned for a key that isn't there.

        Returns:
            A record, or what aggregates would give now, as a tuple with names; the user's own value in other lanes.

        Raises:
            StateError: there can't be such a key, the operator keeps nothing by key that could be looked at, or the job
                isn't running, or ends meanwhile; names the operator and the hint.
        """
        values = key if isinstance(key, tuple) else (key,)
        shape, chunks = self._read(values, 1)
        return next((value for _, value in pairs_of(chunks, shape)), default)

    def key_of(self, texts: Sequence[str]) -> tuple[Any, ...]:
        """Return the key whose fields are written so, as on a command line; 'null' is None where a field may be that.

        A text may stand in double quotes, as in JSON: '"null"' is the text.

        Raises:
            StateError: as `get`.
        """
        shape, _ = self._read(None, 1)
        return parsed_key(texts, shape)

    def items(self, limit: int = MOST) -> Iterator[tuple[Any, Any]]:
        """Some keys with what they have, `limit` at most, in no order; see `get`."""
        shape, chunks = self._read(None, limit)
        return islice(pairs_of(chunks, shape), limit)

    def keys(self, limit: int = MOST) -> Iterator[Any]:
        """Some keys, `limit` at most, in no order."""
        return (key for key, _ in self.items(limit))

    def table(self, limit: int = MOST) -> pa.Table:
        """Return the same as an Arrow table; see `rel.read_snapshot`."""
        shape, chunks = self._read(None, limit)
        return table_of(chunks, shape, trusted=True).slice(0, limit)

    def _read(self, key: tuple[Any, ...] | None, most: int) -> tuple[Shape, Sequence[bytes]]:
        try:
            return self._asked(key, most)
        except (PELostError, TimeoutError) as error:  # of the coordinator
            raise unread(self._operator, error) from error
