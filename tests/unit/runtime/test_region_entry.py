"""Marks in front of a region whose streams end while its replicas change."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

import rayelastic as rel
from rayelastic._native import RouterAnswer
from rayelastic.errors import PELostError
from rayelastic.plan.exec_plan import ExecPlan
from rayelastic.plan.fusion import plan_topology
from rayelastic.runtime.port.data_port import PortAddress
from rayelastic.runtime.rescale.region_entry import COMMAND_TIMEOUT, RegionEntry
from rayelastic.runtime.rescale.router_at import StreamEndedError
from tests.raising import raises

NAMES = ("trades", "quotes")
LEFT, RIGHT = "trades->bargains", "quotes->bargains/right"


def planned() -> tuple[ExecPlan, str]:
    topology = rel.Topology("joined")
    trades, quotes = (topology.source(rel.rows([], schema={"item": int, name: int}), name=name) for name in NAMES)
    trades.key_by("item").join(quotes.key_by("item"), name="bargains", how="inner").sink(rel.count(), name="out")
    plan = plan_topology(topology)
    region = plan.region_of("bargains").region.name
    return plan.with_replicas(region, 2, ("pe0", "pe1")), region


class Routers:
    """Those of all elements: which streams have ended, which marks they sent, what is waited for and told."""

    def __init__(self, ended: Sequence[str] = (), lost: Sequence[str] = ()) -> None:
        self.ended, self.lost = set(ended), set(lost)
        self.marks: list[tuple[str, str, int]] = []
        self.awaited: list[tuple[str, str, str]] = []
        self.told: list[tuple[str, str]] = []  # that nothing comes by an edge

    def element(self, pe: str, timeout: float) -> Any:
        if pe not in ("pe0", "pe1") or (pe in self.lost and timeout == COMMAND_TIMEOUT):
            raise PELostError(f"there is no {pe}")

        def hold(edge: str, runs: Sequence[tuple[int, int]], owner: int, mark: int, epoch: int) -> RouterAnswer:
            if edge in self.ended:
                return RouterAnswer.ENDED
            self.marks.append((pe, edge, mark))
            return RouterAnswer.DONE

        def await_end(region: str, edge: str, patience: float) -> bool:
            self.awaited.append((pe, region, edge))
            return pe not in self.lost

        def attach(edge: str, target: int, link: Any, address: PortAddress, epoch: int) -> RouterAnswer:
            return RouterAnswer.ENDED if edge in self.ended else RouterAnswer.DONE

        def end(edge: str) -> None:
            self.told.append((pe, edge))

        return SimpleNamespace(routing=SimpleNamespace(hold=hold, await_end=await_end, attach=attach, end=end))

    def is_running(self, pe: str) -> bool:
        return True

    def is_lost(self, pe: str) -> bool:
        return pe in self.lost


def held(routers: Routers) -> tuple[int, list[str]]:
    plan, region = planned()
    marks = count(7)
    return RegionEntry(routers, plan, region, epoch=3).hold([5], 1, lambda: next(marks), lambda: None)


def test_a_mark_comes_by_all_streams() -> None:
    routers = Routers()
    assert held(routers) == (7, ["pe0", "pe0"])
    assert sorted(routers.marks) == [("pe0", RIGHT, 7), ("pe0", LEFT, 7)]
    assert routers.awaited == []


def test_where_a_stream_has_ended_another_mark_comes_behind_all_that_the_owner_makes_of_it() -> None:
    routers = Routers(ended=[LEFT])
    assert held(routers) == (8, ["pe0"])
    assert routers.marks == [("pe0", RIGHT, 7), ("pe0", RIGHT, 8)]
    assert routers.awaited == [("pe1", planned()[1], LEFT)]


def test_nothing_can_be_held_of_streams_that_have_ended() -> None:
    with raises(StreamEndedError, "link-failed", LEFT, RIGHT):
        held(Routers(ended=[LEFT, RIGHT]))


def test_an_owner_that_is_lost_gets_through_nothing() -> None:
    with raises(PELostError, "pe-lost", str(LEFT)):
        held(Routers(ended=[LEFT], lost=["pe1"]))


def attached(routers: Routers) -> list[tuple[str, str]]:
    plan, region = planned()
    RegionEntry(routers, plan, region, epoch=3).attach(1, PortAddress("pe1", 1), ["pe1"], lambda: None)
    return routers.told


@pytest.mark.parametrize(("ended", "told"), [([], []), ([LEFT], [("pe1", LEFT)]), ([RIGHT], [("pe1", RIGHT)])])
def test_a_new_replica_is_told_that_nothing_comes_of_a_stream_that_has_ended(
    ended: list[str], told: list[tuple[str, str]]
) -> None:
    assert attached(Routers(ended)) == told


def test_a_new_replica_has_nothing_to_do_where_all_streams_have_ended() -> None:
    with raises(StreamEndedError, "link-failed", LEFT, RIGHT):
        attached(Routers([LEFT, RIGHT]))


@pytest.mark.parametrize("lost", [[], ["pe1"]])
def test_a_replica_that_is_given_up_is_told_that_nothing_comes_if_it_is_there(lost: list[str]) -> None:
    routers = Routers(lost=lost)
    plan, region = planned()
    RegionEntry(routers, plan, region, epoch=3).part(1)
    assert sorted(routers.told) == ([] if lost else [("pe1", RIGHT), ("pe1", LEFT)])
