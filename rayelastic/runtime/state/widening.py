"""Decides whether saved records of state fit a newer declaration: more fields, another order, wider numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rayelastic.compile.code.operator_code import OperatorCode
from rayelastic.runtime.state.descriptor import StateDescriptor, StateKindOf, descriptor_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rayelastic.graph.records.data_type import Column
    from rayelastic.graph.spec.operator_spec import OperatorSpec

__all__ = ["older_records"]

_WIDER = {"c": "sil", "s": "il", "i": "l", "C": "SILsil", "S": "ILil", "I": "Ll", "e": "fg", "f": "g"}  # Arrow formats


def older_records(held: Mapping[str, Any] | None, spec: OperatorSpec) -> StateDescriptor | None:
    """Return the descriptor of saved records that the operator's state can import as older ones.

    Args:
        held: The manifest's descriptor of the state.
        spec: The operator.

    Returns:
        The descriptor; None if the records don't fit, or are as they are declared now.
    """
    new = descriptor_of(spec)
    if held is None or new is None or new.kind is not StateKindOf.RECORD or not isinstance(spec.body, OperatorCode):
        return None
    try:
        old = StateDescriptor.from_json(held)
    except (LookupError, TypeError, ValueError):  # a changed manifest: the check of its forms reports the difference
        return None
    if (old.kind, old.keys, old.ttl) != (new.kind, new.keys, new.ttl) or old.values == new.values:
        return None
    now = {column[0]: column for column in new.values}
    return old if all(column[0] in now and _fits(column, now[column[0]]) for column in old.values) else None


def _fits(old: Column, new: Column) -> bool:
    _, was, could_be_null = old
    _, now, may_be_null = new
    return (was == now or now in _WIDER.get(was, "")) and (may_be_null or not could_be_null)
