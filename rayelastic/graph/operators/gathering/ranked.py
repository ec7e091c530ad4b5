"""`sort` and `top` of a whole stream, or of each key: kept in memory, and emitted when the input has ended.

`top` is one window of the whole input, natively, and a selection of the fields without the rank.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rayelastic.errors import ErrorCode, GraphError
from rayelastic.graph.operators.aggregates import Emit
from rayelastic.graph.operators.columns import select
from rayelastic.graph.operators.gathering.declared import MOST, PLACE, When, is_ranked, window_top
from rayelastic.graph.operators.windows import WHOLE
from rayelastic.graph.records.shown import shown
from rayelastic.graph.spec.operator_class import operator
from rayelastic.graph.spec.operator_spec import OperatorSpec
from rayelastic.graph.spec.upstream import Upstream


@operator(outputs="in")
class Ranked:
    """Emits tuples in the order of fields; of equal ones the first to arrive comes first.

    Args:
        by: The fields' positions.
        descending: Whether the largest is first.
        keys: Positions of the key fields.
        most: How many tuples of a key; None: all, with those without a value last.
    """

    def __init__(self, by: tuple[int, ...], descending: bool, keys: tuple[int, ...], most: int | None) -> None:
        self.by, self.descending, self.keys, self.most = by, descending, keys, most
        self.kept: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}

    def invoke(self, t: Any) -> tuple[Any, ...]:
        """Keep the tuple."""
        kept = self.kept.setdefault(tuple(t[key] for key in self.keys), [])
        kept.append(tuple(t))
        if self.most and len(kept) >= 2 * self.most + 100:
            kept[:] = self._in_order(kept)
        return ()

    def shutdown(self) -> Iterator[tuple[Any, ...]]:
        """Emit what is kept, in order."""
        for kept in self.kept.values():
            yield from self._in_order(kept)

    def _in_order(self, rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        for field in reversed(self.by):
            known = [row for row in rows if not _is_missing(row[field])]
            known.sort(key=lambda row: row[field], reverse=self.descending)  # stable either way
            rows = known if self.most else known + [row for row in rows if _is_missing(row[field])]
        return rows[: self.most]


def _is_missing(value: Any) -> bool:
    return value is None or value != value  # NaN


def native_top(up: Upstream, name: str, n: int, by: str, *, least: bool) -> tuple[OperatorSpec, ...]:
    """Return the operators of a `top` that runs natively; none if it can't."""
    if n > MOST or not is_ranked(up.schema.field(by).type):
        return ()
    place = PLACE
    while place in up.schema.names:
        place += "_"
    best = window_top(up, WHOLE, f"{name}.best", n, by, least, When(Emit.FINAL, None, None), place)
    return best, select(up.behind(best), name, tuple(up.schema.names))


def ranked(up: Upstream, by: tuple[Any, ...], *, descending: bool, most: object) -> Ranked:
    """See ``Stream.sort`` and ``Stream.top``.

    Raises:
        GraphError: No field, an unknown one, or an invalid number.
    """
    names = up.schema.names
    if not by:
        raise GraphError("sort needs a field", hint=up.schema.suggestion(""), code=ErrorCode.MISSING_ARGUMENT)
    if (unknown := next((field for field in by if field not in names), None)) is not None:
        hint = up.schema.suggestion(unknown)
        raise GraphError(f"{up.schema.name} has no field {shown(unknown)}", hint=hint, code=ErrorCode.UNKNOWN_FIELD)
    if most is not None and (isinstance(most, bool) or not isinstance(most, int) or most < 1):
        hint = "Pass a number, 1 or more"
        raise GraphError(f"top of {shown(most)} tuples", hint=hint, code=ErrorCode.OUT_OF_RANGE)
    return Ranked(tuple(map(names.index, by)), descending, tuple(map(names.index, up.keys)), most)
