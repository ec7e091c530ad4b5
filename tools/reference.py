"""Writes the reference of the public surface: `python -m tools.reference FILE`. All of it comes from the docstrings.

Public is what `rayelastic.__all__` names, `rayelastic.testing` and `rayelastic.errors`, and what users get from these.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

MODULES = ("rayelastic", "rayelastic.spark", "rayelastic.testing", "rayelastic.errors")
GIVEN = {  # what users hold without making it themselves
    "rayelastic.graph.fluent.stream": ("Stream", "KeyedStream"),
    "rayelastic.runtime.values.status": ("JobStatus", "JobMetrics", "PESample", "OperatorSample"),
}


def reference() -> str:
    """The reference as Markdown.

    >>> text = reference()
    >>> "`Stream.map(" in text and "## rayelastic.testing" in text
    True
    """
    lines = ["# Reference", "", "Made of the docstrings by `./dev docs`.", ""]
    for module in map(importlib.import_module, MODULES):
        lines += [f"## {module.__name__}", "", inspect.getdoc(module) or "", ""]
        for name in sorted(getattr(module, "__all__", [])):
            lines += _entry(name, getattr(module, name))
    lines += ["## What the above give", ""]
    for home, names in GIVEN.items():
        for name in names:
            lines += _entry(name, getattr(importlib.import_module(home), name))
    return "\n".join(lines)


def undocumented() -> Iterator[str]:
    """Public names without a docstring.

    >>> list(undocumented())
    []
    """
    for module in map(importlib.import_module, MODULES):
        for name in getattr(module, "__all__", []):
            if not inspect.getdoc(getattr(module, name)):
                yield f"{module.__name__}.{name}"


def _entry(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, ModuleType):
        return
    yield from (f"### `{name}{_signature(value)}`", "", *_doc(value))
    if not inspect.isclass(value):
        return
    homes = [base for base in reversed(value.__mro__) if base.__module__.startswith("rayelastic")]
    for method, member in {name: member for base in homes for name, member in vars(base).items()}.items():
        if method.startswith("_") or not (inspect.isfunction(member) or isinstance(member, property)):
            continue
        function = member.fget if isinstance(member, property) else member
        shown = "" if isinstance(member, property) else _signature(member)
        yield from (f"#### `{name}.{method}{shown}`", "", *_doc(function))


def _signature(value: Any) -> str:
    if inspect.isclass(value) and not dataclasses.is_dataclass(value) and "__init__" not in vars(value):
        return ""
    try:
        return str(inspect.signature(value)).replace("self, ", "").replace("(self)", "()")
    except (TypeError, ValueError):
        return ""


def _doc(value: Any) -> Iterator[str]:
    yield from ("```text", inspect.getdoc(value) or "", "```", "")


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(reference(), encoding="utf-8")
