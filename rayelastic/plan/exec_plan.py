"""How a topology runs, as an immutable value: regions, their pipelines and replicas, processing elements, links.

Plans are compared and printed by tests; who applies them is not known here.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rayelastic.plan.regions import Region, RegionKind

__all__ = ["ExecPlan", "Pipeline", "Placement", "PlanLink", "RegionPlan"]

WIDTH = 80  # columns of the text form


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Operators of one region that run together, in one processing element."""

    operators: tuple[str, ...]
    pe: str


@dataclass(frozen=True, slots=True)
class RegionPlan:
    """A region and its degree of parallelism: pipelines x replicas."""

    region: Region
    pipelines: tuple[Pipeline, ...]
    replicas: int = 1


@dataclass(frozen=True, slots=True)
class PlanLink:
    """A stream that leaves a processing element."""

    source: str
    target: str
    from_pe: str
    to_pe: str

    @property
    def name(self) -> str:
        """The name of the link: 'words->counts'."""
        return f"{self.source}->{self.target}"


@dataclass(frozen=True, slots=True)
class Placement:
    """A hint for whoever places processing elements on nodes.

    Args:
        cpus: CPUs to count for each.
        spread: whether they are to go to different nodes where there are several.
    """

    cpus: float
    spread: bool


@dataclass(frozen=True, slots=True)
class ExecPlan:
    """What runs where.

    Args:
        topology: name of the topology.
        regions: in topological order.
        pes: processing element -> its operators in topological order; the elements in order of their first operator.
        links: streams that leave a processing element, in topological order of their consumers.
        placement: hint for the nodes.
    """

    topology: str
    regions: tuple[RegionPlan, ...]
    pes: Mapping[str, tuple[str, ...]]
    links: tuple[PlanLink, ...]
    placement: Placement

    def pe_of(self, operator: str) -> str:
        """Return the processing element of an operator; KeyError if the plan doesn't have it."""
        for pe, operators in self.pes.items():
            if operator in operators:
                return pe
        raise KeyError(operator)

    def text(self) -> str:
        """Write the plan down for people, in at most 80 columns where names allow it."""
        operators = sum(len(names) for names in self.pes.values())
        parts = [
            counted(operators, "operator"),
            counted(len(self.regions), "region"),
            counted(len(self.pes), "processing element"),
            counted(len(self.links), "link"),
        ]
        lines = [f"{self.topology}: {', '.join(parts)}"]
        for pe in self.pes:
            lines += ["", f"{pe}  ({self.placement.cpus:g} CPU)"]
            for planned in self.regions:
                lines += _region_lines(planned, pe)
        if self.links:
            lines += ["", "links"]
            width = max(len(f"{link.source} -> {link.target}") for link in self.links)
            for link in self.links:
                lines.append(f"  {f'{link.source} -> {link.target}':<{width}}  {link.from_pe} -> {link.to_pe}")
        return "\n".join(lines) + "\n"

    def to_json(self) -> str:
        """Write the plan down for programs."""
        return json.dumps(self.to_dict(), indent=2)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain dicts, lists, strings and numbers."""
        return {
            "topology": self.topology,
            "regions": [
                {
                    "name": planned.region.name,
                    "kind": planned.region.kind.value,
                    "keys": list(planned.region.keys),
                    "replicas": planned.replicas,
                    "pipelines": [{"pe": p.pe, "operators": list(p.operators)} for p in planned.pipelines],
                }
                for planned in self.regions
            ],
            "pes": {pe: list(operators) for pe, operators in self.pes.items()},
            "links": [{"name": link.name, "from_pe": link.from_pe, "to_pe": link.to_pe} for link in self.links],
            "placement": {"cpus": self.placement.cpus, "spread": self.placement.spread},
        }


def kind_text(region: Region) -> str:
    """Say how a region can be parallelised: 'data-parallel by word'."""
    return (
        f"data-parallel by {', '.join(region.keys)}" if region.kind is RegionKind.DATA_PARALLEL else region.kind.value
    )


def counted(count: int, noun: str) -> str:
    """Write a number of things: '1 region', '2 regions'."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _region_lines(planned: RegionPlan, pe: str) -> Iterator[str]:
    here = [p for p in planned.pipelines if p.pe == pe]
    if not here:
        return
    total = len(planned.pipelines)
    pipelines = counted(total, "pipeline") if len(here) == total else f"{len(here)} of {counted(total, 'pipeline')}"
    replicas = counted(planned.replicas, "replica")
    yield f"  {planned.region.name}  {kind_text(planned.region)}, {pipelines} x {replicas}"
    for pipeline in here:
        yield from textwrap.wrap(
            " > ".join(pipeline.operators),
            WIDTH,
            initial_indent="      ",
            subsequent_indent="        ",
            break_long_words=False,
            break_on_hyphens=False,
        )
