"""Automatic names at restore: what such an operator follows, so that no operator restores the state of another one.

State is matched by name, and an automatic name depends on earlier declarations. So a snapshot records what each such
operator followed. Knows declarations alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from rayelastic.errors import ErrorCode, StateError
from rayelastic.runtime.state.descriptor import descriptors_of

if TYPE_CHECKING:
    from rayelastic.graph.spec.operator_spec import OperatorSpec

__all__ = ["automatic_of", "check_same", "name_to_give", "told_of"]


def automatic_of(operators: Iterable[OperatorSpec]) -> dict[str, str]:
    """Return {operator with an automatic name: what it follows, as text}."""
    return {spec.name: _followed(spec) for spec in operators if spec.automatic}


def told_of(operators: Iterable[OperatorSpec]) -> dict[str, dict[str, Any]]:
    """Return a manifest's part about the operators: descriptors of state, and automatic names."""
    known = list(operators)
    return {"shapes": descriptors_of(known), "automatic": automatic_of(known)}


def _followed(spec: OperatorSpec) -> str:
    by = f" by {', '.join(spec.keys)}" if spec.keys else ""
    return f"{' and '.join(map(repr, spec.taken))}{by}" if spec.taken else str(spec.output_schema)


def check_same(spec: OperatorSpec, then: str | None) -> None:
    """Raise StateError if an automatic name now belongs to an operator that follows something else.

    Args:
        spec: The operator with that name in the topology.
        then: What it followed; None: the program named it.
    """
    if spec.automatic and then is not None and then != (now := _followed(spec)):
        raise StateError(
            f"its name is automatic: it follows {now}, and followed {then} in the snapshot",
            operator=spec.name,
            location=spec.location,
            hint=f"Write name={spec.name!r} to restore that state",
            code=ErrorCode.AUTOMATIC_NAME,
        )


def name_to_give(name: str, form: str | None, operators: Mapping[str, OperatorSpec], known: Iterable[str]) -> str:
    """Return the hint for state whose operator is missing: which `name=` to write.

    Args:
        name: The name in the snapshot.
        form: The form of its state; None: it is a source.
        operators: The operators of the topology.
        known: The names in the snapshot.
    """
    others = set(known)
    same = (one for one in operators.values() if one.automatic and one.name not in others)
    matching = [one for one in same if (one.state_form == form if form else not one.inputs)]
    named = ", or ".join(f"the {one.kind} at {one.location}" for one in matching)
    return f"Write name={name!r} for {named or 'it'}, or restore Snapshot(..., drop=({name!r},))"
