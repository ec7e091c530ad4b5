"""What machine code depends on besides the function that it is made of."""

from __future__ import annotations

import functools
import hashlib
import sys
from importlib.util import find_spec
from pathlib import Path

from rayelastic.compile.cache.loader import host_target
from rayelastic.graph.records.schema import Schema

__all__ = ["environment", "layout"]

_ABI_VERSION = 1  # REL_ABI_VERSION of abi.h


@functools.cache
def environment() -> str:
    """What else machine code depends on: versions, this package's own sources, the processor."""
    folder = Path(__file__).parents[1]
    sources = hashlib.sha256()
    parts = ("reading", "lowering", "effects")
    files = [folder / "originals.py", folder / "reasons.py"]
    for path in sorted([*files, *(p for part in parts for p in (folder / part).rglob("*.py"))]):
        sources.update(path.read_bytes())
    versions = [_version(name) for name in ("numba", "llvmlite", "numpy")]
    return repr((_ABI_VERSION, sys.version_info[:3], versions, sources.hexdigest(), host_target()))


def _version(package: str) -> str:
    """The version of an installed package, as the folder beside it is called; importlib.metadata takes 0.1 s for it."""
    found = find_spec(package)
    if found is not None and found.origin is not None:
        folders = sorted(Path(found.origin).parents[1].glob(f"{package}-*.dist-info"))
        if len(folders) == 1:
            return folders[0].name
    from importlib.metadata import version

    return version(package)


def layout(schema: Schema | None) -> object:
    """Of records; what they are called, after an aggregate of many alike for example, is in no machine code."""
    return None if schema is None else schema.fields
