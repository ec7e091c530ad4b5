"""What the tests of readers share: a job that reads one source, and what it failed with."""

from __future__ import annotations

from typing import Any

import rayelastic as rel
from rayelastic.errors import RayelasticError


def rows(source: Any) -> list[Any]:
    """The tuples of a source."""
    topology = rel.Topology("reads")
    topology.source(source, name="rows").sink(rel.list(), name="out")
    read: list[Any] = rel.run(topology)["out"]
    return read


def lines(*paths: object, encoding: str | None = None) -> list[str]:
    """The lines of text files."""
    return [t.line for t in rows(rel.text([str(path) for path in paths], encoding=encoding))]


def refused(source: Any) -> str:
    """What a source is refused with, or fails with."""
    try:
        read = rows(source)
    except RayelasticError as error:
        return str(error)
    raise AssertionError(f"nothing was said, and {len(read)} rows read: {read[:3]}")
