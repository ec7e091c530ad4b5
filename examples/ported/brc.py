"""Least, mean and greatest temperature of each station, of lines `station;temperature`.

After 1brc.py of Bytewax's examples, the one billion row challenge. `python examples/ported/brc.py measurements.txt`
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import rayelastic as rel


class Line(NamedTuple):
    """Of a file."""

    line: str


class Measured(NamedTuple):
    """At a station."""

    station: str
    degrees: float


def parse(t: Line) -> Measured:
    """Take a line apart."""
    station, degrees = t.line.split(";")
    return Measured(station, float(degrees))


def build(path: str) -> rel.Topology:
    """Return the topology, for a file."""
    topology = rel.Topology("brc")
    measured = topology.source(rel.text(path), name="lines").map(parse, name="parse").key_by("station")
    wanted: dict[str, Any] = {"least": rel.min("degrees"), "mean": rel.mean("degrees"), "greatest": rel.max("degrees")}
    measured.aggregate(name="stations", **wanted).sink(rel.list(), name="out")
    return topology


if __name__ == "__main__":
    for one in sorted(rel.run(build(sys.argv[1]))["out"]):
        print(f"{one.station}={one.least:.1f}/{one.mean:.1f}/{one.greatest:.1f}")
