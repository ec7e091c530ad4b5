"""The inputs of machine code besides its function: versions, sources, and the processor."""

from __future__ import annotations

import functools
import hashlib
import sys
from importlib.util import find_spec
from pathlib import Path

from rayelastic.compile.cache.loader import host_target
from rayelastic.graph.records.schema import Schema

_ABI_VERSION = 1  # REL_ABI_VERSION of abi.h


@functools.cache
def environment() -> str:
    """Return them: versions, this package's own sources, the processor."""
    folder = Path(__file__).parents[1]
    sources = hashlib.sha256()
    parts = ("reading", "lowering", "effects")
    files = [folder / "originals.py", folder / "reasons.py"]
    for path in sorted([*files, *(p for part in parts for p in (folder / part).rglob("*.py"))]):
        sources.update(path.read_bytes())
    versions = [_version(name) for name in ("numba", "llvmlite", "numpy")]
    return repr((_ABI_VERSION, sys.version_info[:3], versions, sources.hexdigest(), host_target()))


def _version(package: str) -> str:
    """Return the version of an installed package from its folder's name; importlib.metadata takes 0.1 s."""
    found = find_spec(package)
    if found is not None and found.origin is not None:
        folders = sorted(Path(found.origin).parents[1].glob(f"{package}-*.dist-info"))
        if len(folders) == 1:
            return folders[0].name
    from importlib.metadata import version

    return version(package)


def layout(schema: Schema | None) -> object:
    """Return the layout of records without their name, which isn't part of machine code."""
    return None if schema is None else schema.fields
