"""What a checkpoint is, when it is due, which nodes have it, and what remains of one that fails: decisions alone.

Pure: knows operators, flows and counters, nothing that runs. `take.py` does what it decides, `restarts.py` decides on
recoveries.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from rayelastic.errors.invariants import invariant
from rayelastic.plan.config import Regions

if TYPE_CHECKING:
    from rayelastic.graph.spec.operator_spec import OperatorSpec
    from rayelastic.plan.exec_plan import ExecPlan
    from rayelastic.plan.settings.checkpoint import Checkpoint
    from rayelastic.runtime.values.checkpoint_record import CheckpointCounters
    from rayelastic.runtime.values.snapshot import Part
    from rayelastic.runtime.values.specs import JobSpec

STANDSTILL_SHARE = 20  # sources are held for at most one part in so many of the time
ASKED_SHARE = 2  # the same for a requested checkpoint, because the requesting source waits anyway
FIRST = 1.0  # seconds until the first one: before it the job could only restart from its beginning
LONGEST_WAIT = 600.0  # seconds between two checkpoints, however long they take
MOST_BACKOFF = 16  # periods after failures in a row

Flow = Mapping[str, tuple[int, int]]  # {link: (put into it here, received from it here)}


class Kind(Enum):
    """What is taken of a job."""

    CHECKPOINT = "checkpoint"  # recoveries restore it; it shares files with others, and is removed after newer ones
    SAVEPOINT = "savepoint"  # refers to nothing else, is never removed, and no recovery restores it
    STOP = "stop"  # a savepoint with which the job ends

    @property
    def is_alone(self) -> bool:
        """Whether it refers to no other one."""
        return self is not Kind.CHECKPOINT


def remains(kind: Kind, *, resumed: bool) -> bool:
    """Return whether the files of one stay whose line that it is complete couldn't be written, but may be there.

    Args:
        kind: Its kind.
        resumed: Whether the journal has a later line, that the job continues.
    """
    return kind is Kind.CHECKPOINT or (kind is Kind.STOP and not resumed)


def check_complete(forms: Mapping[str, str], plan: ExecPlan, parts: Sequence[Part]) -> None:
    """Check that the parts of a checkpoint are all of the job, and that none is doubled.

    Args:
        forms: {operator: the form of its state}.
        plan: The plan in force.
        parts: What the elements have saved.

    Raises:
        InvariantError: A part is missing, or a position or file is doubled.
    """
    invariant(len(parts) == len(plan.pes), "each PE of the plan has saved its part", len(parts), len(plan.pes))
    positions = [name for part in parts for name in part.positions]
    invariant(len(set(positions)) == len(positions), "a source has one position", positions)
    files = [name for part in parts for chunks in part.files.values() for name, _ in chunks]
    invariant(len(set(files)) == len(files), "a file of state belongs to one operator of one PE", files)
    saved = {name for part in parts for name in part.files}
    invariant(saved <= forms.keys(), "what is saved has a form", saved)


def second_nodes(owners: Collection[str], hosts: Collection[str], before: Mapping[str, str]) -> dict[str, str]:
    """Return {node: the node that gets the second copy of its share}, without those for which no other node exists.

    Copies are spread evenly: a node gets at most one more than its part. An earlier choice stays unless that node has
    gone or has too many.

    Args:
        owners: The nodes with a share.
        hosts: The nodes that can get a copy.
        before: The choice so far.

    >>> second_nodes(["a", "b", "c"], ["a", "b", "c"], {})
    {'a': 'b', 'b': 'c', 'c': 'a'}
    >>> second_nodes(["a"], ["a"], {})
    {}
    """
    ring = sorted(hosts)
    most = -(-len(owners) // max(1, len(ring)))
    load = dict.fromkeys(ring, 0)
    chosen: dict[str, str] = {}
    for owner in sorted(owners):
        second = before.get(owner, owner)
        if second != owner and load.get(second, most) < most:
            chosen[owner] = second
            load[second] += 1
    for owner in sorted(set(owners) - chosen.keys()):
        after = [node for node in ring if node > owner] + [node for node in ring if node < owner]
        if after:  # of equally loaded nodes the next one in the ring, so that all shares of a ring differ
            chosen[owner] = min(after, key=lambda node: load[node])
            load[chosen[owner]] += 1
    invariant(all(owner != second for owner, second in chosen.items()), "a second copy is on another node", chosen)
    return chosen


def lost_shares(copies: Mapping[str, str], hosts: Collection[str]) -> list[str]:
    """Return the nodes whose share of a checkpoint no node has any more; empty: the checkpoint can be read.

    Args:
        copies: {node with a share: the node with its second copy, or empty}.
        hosts: The nodes that exist.

    >>> lost_shares({"a": "b", "b": "c", "c": ""}, ["b"])
    ['c']
    """
    return [owner for owner, second in copies.items() if owner not in hosts and second not in hosts]


@dataclass(frozen=True, slots=True)
class Schedule:
    """How often checkpoints are taken.

    Args:
        settings: The settings of the job's checkpoints.
    """

    settings: Checkpoint

    def wait(self, counters: CheckpointCounters, failed: int, *, asked: bool = False) -> float:
        """Return the seconds until the next one is due.

        Args:
            counters: Those so far.
            failed: How many failed in a row.
            asked: Whether it is requested by a source that waits meanwhile.
        """
        if asked:
            backoff = min(FIRST, self.settings.every) * min(MOST_BACKOFF, (1 << failed) - 1)
            return min(LONGEST_WAIT, max(backoff, ASKED_SHARE * counters.paused))
        if not counters.taken and not failed:
            return min(FIRST, self.settings.every)
        backoff = self.settings.every * min(MOST_BACKOFF, 1 << failed)
        return min(LONGEST_WAIT, max(backoff, STANDSTILL_SHARE * counters.paused))


def why_standstill(job: JobSpec) -> str:
    """Return why the sources of a job are held while a checkpoint is taken; empty: barriers flow with the records."""
    for spec in job.operators.values():
        if spec.loop_edges:
            return f"a loop leads back to '{spec.name}': what goes round in it can't be cut in two"
        if any(port.demand is not None for port in spec.inputs):
            return f"'{spec.name}' waits until each input has what it wants: no mark stands between two of its calls"
        if not spec.body.aligns:
            return f"'{spec.name}' is between the channels of a stage, where turns are under way"
    meeting = _where_streams_meet(job)
    for spec in job.operators.values():
        if meeting and (woken := _why_woken(spec)):
            return f"'{spec.name}' {woken}, and {meeting}"
    return ""


def _why_woken(spec: OperatorSpec) -> str:
    """Return what runs an operator between its tuples; empty: nothing."""
    if spec.body.concurrent is not None:
        return "waits for several calls at a time"
    return "is woken by the clock" if spec.body.uses_clock else ""


def _where_streams_meet(job: JobSpec) -> str:
    for spec in job.operators.values():
        if len(spec.edges) > 1:
            return f"several streams lead to '{spec.name}'"
    return "regions may have several replicas" if job.config.regions not in (None, Regions.FIXED) else ""


def is_empty(flows: Mapping[str, Flow]) -> bool:
    """Return whether no tuple is in flight between elements.

    A link with only one known end is from or to an element that has left, and transports nothing any more.

    Args:
        flows: {element: its links}.

    >>> is_empty({"pe0": {"a->b": (5, 0)}, "pe1": {"a->b": (0, 5)}})
    True
    >>> is_empty({"pe0": {"a->b": (5, 0)}, "pe1": {"a->b": (0, 4)}})
    False
    >>> is_empty({"pe0": {"a->b": (5, 0), "c->c": (3, 2)}})
    False
    """
    links: dict[str, list[tuple[int, int]]] = {}
    for flow in flows.values():
        for link, counts in flow.items():
            links.setdefault(link, []).append(counts)
    return all(
        sum(put for put, _ in ends) == sum(received for _, received in ends)
        for ends in links.values()
        if len(ends) > 1 or all(ends[0])
    )
