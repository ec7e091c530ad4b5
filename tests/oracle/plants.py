"""Faults that can be planted, so that one sees whether the oracle finds them: `./dev oracle 5000 --plant NAME`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["PLANTS", "plant"]


def _cells() -> None:
    """A1: a function that changes something outside itself is compiled."""
    from rayelastic.compile import compiler
    from rayelastic.compile.reading import syntax

    syntax.cells_written = lambda code: iter(())  # type: ignore[attr-defined, assignment, misc]
    compiler.first_change = lambda function, given: None  # type: ignore[attr-defined]


def _zones() -> None:
    """A2: a time with a zone is computed in UTC."""
    from rayelastic.compile.lowering.base.moment_types import MomentType
    from rayelastic.compile.lowering.records import fields

    fields.moment_type = lambda unit, zone: MomentType(unit, "UTC" if zone else "")  # type: ignore[attr-defined]


def _floats() -> None:
    """A5: an int becomes a float on its way."""
    from rayelastic.compile.lowering.records import fields

    honest = fields.load_plain

    def dishonest(context: Any, builder: Any, field: Any, record: Any) -> Any:
        value = honest(context, builder, field, record)
        return builder.fptosi(builder.sitofp(value, fields.F64), fields.I64) if field.type.is_integer else value

    fields.load_plain = dishonest


def _members() -> None:
    """B1: a member of an installed module is known by its name."""
    import types

    from rayelastic.compile import compiler
    from rayelastic.compile.originals import is_installed
    from rayelastic.compile.reading import identity

    honest = identity.Identity._attribute

    def dishonest(self: Any, owner: Any, name: str, found: Any) -> None:
        known = isinstance(found, int | float | str | bytes | types.ModuleType)
        if known or not (isinstance(owner, types.ModuleType) and is_installed(owner.__name__)):
            honest(self, owner, name, found)

    identity.Identity._attribute = dishonest  # type: ignore[method-assign]
    compiler.replaced_member = lambda modules=(): ""  # type: ignore[attr-defined]


PLANTS: dict[str, Callable[[], None]] = {"A1": _cells, "A2": _zones, "A5": _floats, "B1": _members}


def plant(name: str) -> None:
    """Plants a fault in this process, and so in those that are forked from it; empty: none."""
    if name:
        PLANTS[name]()
