"""Bounds of replicas that users set, for the regions of a plan, and the plan that a job starts with."""

from __future__ import annotations

from collections.abc import Mapping

from rayelastic.errors import ConfigError
from rayelastic.plan.exec_plan import ExecPlan
from rayelastic.plan.routing import elastic_regions, why_fixed
from rayelastic.plan.settings.replicas import ReplicaBounds, span_of


def bounds_of_regions(plan: ExecPlan, replicas: Mapping[str, ReplicaBounds]) -> dict[str, ReplicaBounds]:
    """Return {region: bounds} in a plan.

    Args:
        plan: of the job.
        replicas: {operator: bounds}; one operator of a region stands for all of it.

    Raises:
        ConfigError: an operator that can't have replicas, or two that say different things of one region.
    """
    found: dict[str, ReplicaBounds] = {}
    for operator, bounds in replicas.items():
        planned = plan.region_of(operator)
        name, why = planned.region.name, why_fixed(planned)
        if why and bounds != (1, 1):
            raise ConfigError(
                f"JobConfig(replicas=...) is about its region {name}, which keeps one replica: {why}",
                operator=operator,
                hint="Leave it out, or key its input: topology.explain() shows which regions can have replicas",
            )
        if found.setdefault(name, bounds) != bounds:
            raise ConfigError(
                f"JobConfig(replicas=...) says {bounds} of its region {name}, and {found[name]} by another operator",
                operator=operator,
                hint="Name one operator of each region",
            )
    return found


def with_least(
    plan: ExecPlan,
    replicas: Mapping[str, ReplicaBounds],
    most_processes: int | None = None,
) -> ExecPlan:
    """Return the plan in which each region has the fewest replicas that it may have, each in an element of its own.

    Args:
        plan: with one replica of each region.
        replicas: {operator: bounds}; of a schedule the fewest of the whole day.
        most_processes: that the job may have; None: any number.

    Raises:
        ConfigError: as `bounds_of_regions`; or it would have more processes than it may.
    """
    for name, bounds in bounds_of_regions(plan, replicas).items():
        least, _ = span_of(bounds)
        present = plan.region(name).pipelines[0].pes
        if least > len(present):
            plan = plan.with_replicas(name, least, (*present, *plan.fresh_pes(least - len(present))))
    if most_processes is not None and len(plan.pes) > most_processes:
        raise ConfigError(
            f"JobConfig(replicas=...) asks for {len(plan.pes)} processes at least, and max_processes={most_processes}",
            hint="Give fewer replicas at least, or a larger max_processes",
        )
    return plan


def check_elastic(plan: ExecPlan, setting: str) -> None:
    """Refuse a setting that needs replicas in a job that can have none.

    Args:
        plan: of the job.
        setting: as users know it.

    Raises:
        ConfigError: no region can have replicas; says why not, of the last one that does something.
    """
    if elastic_regions(plan):
        return
    inner = [planned for planned in plan.regions if not planned.region.kind.is_fixed] or list(plan.regions)
    first = inner[-1].region.operators[0]
    raise ConfigError(
        f"JobConfig({setting}) is reached by more replicas, and no region can have any: "
        f"{inner[-1].region.name} keeps one, as {why_fixed(inner[-1])}",
        operator=first,
        hint="Leave it out, or key the operators' inputs",
    )
