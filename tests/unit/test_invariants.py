"""Broken invariants of plans, changes and checkpoints are noticed where they are decided."""

from __future__ import annotations

from typing import Any

import pytest

from rayelastic.errors import invariants
from rayelastic.errors.invariants import InvariantError, invariant
from rayelastic.plan import plan_change
from rayelastic.plan.exec_plan import ExecPlan, Pipeline, RegionPlan
from rayelastic.plan.regions import Region, RegionKind
from rayelastic.plan.routing import Edge, _router
from rayelastic.runtime.checkpoint.protocol import check_complete
from rayelastic.runtime.journal import ChangeJournal, OpenChange, SavedAt
from rayelastic.runtime.values.snapshot import Part

REGION = Region("r0", RegionKind.DATA_PARALLEL, ("count",), ("word",))
PLAN = ExecPlan("words", (RegionPlan(REGION, (Pipeline(("count",), ("pe0",)),)),))
CHANGE = plan_change.plan_change(PLAN, PLAN.with_replicas("r0", 2))
FORMS = {"count": "counts"}


def part(positions: dict[str, int], *files: str) -> Part:
    return Part(positions, {"count": [(name, "") for name in files]}, {}, {}, {}, {})


def test_an_expensive_check_runs_only_with_assertions(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvariantError, match=r"invariant broken: sums agree \(1, 2\)"):
        invariant(lambda: False, "sums agree", 1, 2)
    monkeypatch.setattr(invariants, "EXPENSIVE", False)
    invariant(lambda: False, "sums agree", 1, 2)


def test_no_more_batches_move_than_a_change_has() -> None:
    batches = -(-2048 // 20)
    OpenChange(CHANGE, 20, moved=batches, undoing=batches)
    with pytest.raises(InvariantError, match="moved"):
        OpenChange(CHANGE, 20, moved=batches + 1)
    with pytest.raises(InvariantError, match="moved back"):
        OpenChange(CHANGE, 20, moved=1, undoing=2)


def test_a_partition_that_is_left_out_of_a_change_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    moved = plan_change._moved

    def lossy(before: Any, after: Any) -> Any:
        return [plan_change.PartitionMoves(m.source, m.target, m.partitions[1:]) for m in moved(before, after)]

    monkeypatch.setattr(plan_change, "_moved", lossy)
    with pytest.raises(InvariantError, match="from one ring to the other"):
        plan_change.plan_change(PLAN, PLAN.with_replicas("r0", 3))


def test_a_router_that_lacks_a_replica_is_noticed() -> None:
    region = PLAN.with_replicas("r0", 2, ("pe0", "pe1")).region("r0")
    taking = region.pipelines[0].pes
    _router(Edge("lines", "count"), "pe0", region, taking)
    with pytest.raises(InvariantError, match="each replica"):
        _router(Edge("lines", "count"), "pe0", region, taking[:1])


@pytest.mark.parametrize(
    ("parts", "broken"),
    [
        ([], "each PE"),
        ([part({}), part({})], "each PE"),
        ([Part({"lines": 1}, {"lines": [("f", "")]}, {}, {}, {}, {})], "has a form"),
        ([part({"lines": 1}, "pe0-1", "pe0-1")], "belongs to one"),
    ],
)
def test_a_checkpoint_that_lacks_or_doubles_a_part_is_noticed(parts: list[Part], broken: str) -> None:
    check_complete(FORMS, PLAN, [part({"lines": 1}, "pe0-1", "pe0-2")])
    with pytest.raises(InvariantError, match=broken):
        check_complete(FORMS, PLAN, parts)


def test_checkpoints_are_recorded_in_order() -> None:
    journal = ChangeJournal()
    journal.checkpointed(SavedAt(2, "/two"), PLAN, 2)
    with pytest.raises(InvariantError, match="ids of checkpoints"):
        journal.checkpointed(SavedAt(2, "/again"), PLAN, 2)
