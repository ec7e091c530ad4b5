"""The text form of a plan, for people and for golden tests."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from rayelastic.graph.records.shown import counted, short
from rayelastic.plan.plan_parts import RegionPlan, ShownPlan
from rayelastic.plan.regions import Region, RegionKind

__all__ = ["WIDTH", "counted", "kind_text", "plan_text", "short"]

WIDTH = 80  # columns of the text form


def plan_text(plan: ShownPlan) -> str:
    """Write a plan down: each PE with its pipelines, and the links between them."""
    operators = sum(len(planned.region.operators) for planned in plan.regions)
    parts = [
        counted(operators, "operator"),
        counted(len(plan.regions), "region"),
        counted(len(plan.pes), "PE"),
        counted(len(plan.links), "link"),
    ]
    epoch = f", epoch {plan.epoch}" if plan.epoch else ""
    lines = [f"{plan.topology}: {', '.join(parts)}{epoch}"]
    for pe in plan.pes:
        node = f" on {plan.nodes[pe]}" if pe in plan.nodes else ""
        lines += ["", f"{pe}  ({plan.placement.cpus:g} CPU){node}"]
        for planned in plan.regions:
            lines += _region_lines(planned, pe)
    if plan.links:
        lines += ["", "links"]
        width = max(len(f"{link.stream} -> {link.end}") for link in plan.links)
        for link in plan.links:
            lines.append(f"  {f'{link.stream} -> {link.end}':<{width}}  {link.from_pe} -> {link.to_pe}")
    return "\n".join(lines) + "\n"


def kind_text(region: Region) -> str:
    """Say how a region can be parallelised: 'data-parallel by word'."""
    return (
        f"data-parallel by {', '.join(region.keys)}" if region.kind is RegionKind.DATA_PARALLEL else region.kind.value
    )


def _region_lines(planned: RegionPlan, pe: str) -> Iterator[str]:
    here = [p for p in planned.pipelines if pe in p.pes]
    if not here:
        return
    total, replicas = len(planned.pipelines), planned.replicas
    pipelines = counted(total, "pipeline") if len(here) == total else f"{len(here)} of {counted(total, 'pipeline')}"
    copies = max(p.pes.count(pe) for p in here)
    shown = counted(replicas, "replica") if copies == replicas else f"{copies} of {counted(replicas, 'replica')}"
    keys = sum(planned.shares[replica] for replica, home in enumerate(here[0].pes) if planned.shares and home == pe)
    share = f", {keys:,} of {counted(planned.partitions, 'partition')}" if keys else ""
    yield f"  {planned.region.name}  {kind_text(planned.region)}, {pipelines} x {shown}{share}"
    for pipeline in here:
        yield from textwrap.wrap(
            " > ".join(pipeline.operators),
            WIDTH,
            initial_indent="      ",
            subsequent_indent="        ",
            break_long_words=False,
            break_on_hyphens=False,
        )
