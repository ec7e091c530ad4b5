"""The boxes of a plan's picture: an operator, operators that are alike, a region, a PE, or a node each.

A large graph is shown collapsed and opened where somebody looks. Must not know how it is drawn.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from rayelastic.graph.spec.ports import operator_of
from rayelastic.plan.plan_parts import ShownPlan

MANY = 60  # operators from which on those that are alike share a box
LIKE = 3  # operators that are worth it
ROUNDS = 12  # of distinguishing operators by their neighbours, at most
DIGITS = re.compile(r"\d+")


class Detail(Enum):
    """How much of a plan is shown, from all to the least."""

    OPERATORS = "operators"
    ALIKE = "alike"
    REGIONS = "regions"
    PES = "pes"
    NODES = "nodes"


@dataclass(frozen=True, slots=True)
class Group:
    """One box.

    Args:
        name: unique, such as 'r1', or 'region:r1' of a region.
        title: what to write into it.
        detail: what it stands for.
        operators: in it, in topological order.
    """

    name: str
    title: str
    detail: Detail
    operators: tuple[str, ...]


def detail_of(operators: int) -> Detail:
    """Return the default detail for a number of operators.

    >>> detail_of(59), detail_of(60)
    (<Detail.OPERATORS: 'operators'>, <Detail.ALIKE: 'alike'>)
    """
    return Detail.OPERATORS if operators < MANY else Detail.ALIKE


def grouped(plan: ShownPlan, detail: Detail, opened: Container[str] = ()) -> tuple[Group, ...]:
    """Divide the operators of a plan into boxes.

    Args:
        plan: whose operators.
        detail: what a box is.
        opened: names of boxes that are replaced by the next finer ones. These are the PEs of a node, the regions of a
            PE, and the operators of a region or of a group of similar operators.
    """
    alike = _alike(plan) if detail is Detail.ALIKE else {}
    found: dict[str, tuple[str, Detail, list[str]]] = {}
    for planned in plan.regions:
        for pipeline in planned.pipelines:
            pes = ", ".join(dict.fromkeys(pipeline.pes))
            nodes = ", ".join(dict.fromkeys(plan.nodes.get(pe, "not placed") for pe in pipeline.pes))
            region = planned.region.name
            for operator in pipeline.operators:
                ways = {
                    Detail.NODES: (f"node:{nodes}", nodes),
                    Detail.PES: (f"pe:{pes}", pes),
                    Detail.REGIONS: (f"region:{region}", f"{region}  {_shown(planned.region.operators)}"),
                }
                steps = [ways[one] for one in _STEPS[detail]]
                if operator in alike:
                    steps = [(f"alike:{alike[operator][0]}", alike[operator][1])]
                name, title = next((step for step in steps if step[0] not in opened), (operator, operator))
                kind = _KINDS.get(name.partition(":")[0] if name != operator else "", Detail.OPERATORS)
                found.setdefault(name, (title, kind, []))[2].append(operator)
    return tuple(
        Group(name, f"{title}  x {len(members)}" if kind is Detail.ALIKE else title, kind, tuple(members))
        for name, (title, kind, members) in found.items()
    )


def edges_between(plan: ShownPlan, groups: Iterable[Group]) -> tuple[tuple[str, str], ...]:
    """Return the edges of a plan between boxes, each pair once."""
    home = {operator: group.name for group in groups for operator in group.operators}
    pairs = ((home[operator_of(stream)], home[operator_of(end)]) for stream, end in plan.edges)
    return tuple(dict.fromkeys(pair for pair in pairs if pair[0] != pair[1]))


def shortened(text: str, letters: int) -> str:
    """Shorten a text by its middle, because names differ at their ends.

    >>> shortened("normalise_and_validate_7", 12), shortened("words", 12)
    ('normal…ate_7', 'words')
    """
    if len(text) <= letters:
        return text
    tail = (letters - 1) // 2
    return f"{text[: letters - 1 - tail]}…{text[len(text) - tail :]}"


_STEPS: Mapping[Detail, tuple[Detail, ...]] = {
    Detail.OPERATORS: (),
    Detail.ALIKE: (),
    Detail.REGIONS: (Detail.REGIONS,),
    Detail.PES: (Detail.PES, Detail.REGIONS),
    Detail.NODES: (Detail.NODES, Detail.PES, Detail.REGIONS),
}
_KINDS = {"alike": Detail.ALIKE, "region": Detail.REGIONS, "pe": Detail.PES, "node": Detail.NODES}


def _shown(operators: tuple[str, ...]) -> str:
    return operators[0] if len(operators) == 1 else f"{operators[0]} … {operators[-1]}"


def _alike(plan: ShownPlan) -> dict[str, tuple[str, str]]:
    """Return {operator: (the first operator of its group, the pattern of their names)}, for large groups.

    Operators are alike if their names differ in numbers alone, and their upstream and downstream operators are alike.
    Colour refinement (Weisfeiler and Leman 1968) finds them. It compares sets, so the number of branches makes no
    difference.
    """
    names = [operator for planned in plan.regions for operator in planned.region.operators]
    before: dict[str, list[str]] = {name: [] for name in names}
    after: dict[str, list[str]] = {name: [] for name in names}
    for stream, end in plan.edges:
        before[operator_of(end)].append(operator_of(stream))
        after[operator_of(stream)].append(operator_of(end))
    colour: dict[str, int] = _numbered({name: (DIGITS.sub("*", name),) for name in names})
    for _ in range(ROUNDS):
        finer = _numbered(
            {
                name: (
                    colour[name],
                    tuple(sorted({colour[one] for one in before[name]})),
                    tuple(sorted({colour[one] for one in after[name]})),
                )
                for name in names
            }
        )
        done = len(set(finer.values())) == len(set(colour.values()))
        colour = finer
        if done:
            break
    classes: dict[int, list[str]] = {}
    for name in names:
        classes.setdefault(colour[name], []).append(name)
    return {
        name: (members[0], DIGITS.sub("*", members[0]))
        for members in classes.values()
        if len(members) >= LIKE
        for name in members
    }


def _numbered(keys: Mapping[str, tuple[object, ...]]) -> dict[str, int]:
    numbers: dict[tuple[object, ...], int] = {}
    return {name: numbers.setdefault(key, len(numbers)) for name, key in keys.items()}
