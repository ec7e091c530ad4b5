"""What may have replicas while a job runs, and by which keys tuples are dealt out to them."""

from __future__ import annotations

from typing import Any

import rayelastic as rel
from rayelastic.plan.exec_plan import ExecPlan
from rayelastic.plan.explain import explain
from rayelastic.plan.fusion import plan_topology
from rayelastic.plan.regions import RegionKind
from rayelastic.plan.routing import PERouting, elastic_regions, keeps_replicas, routings_of, why_fixed
from rayelastic.reasons import Code

TRADE, QUOTE = {"item": int, "price": float}, {"code": int, "ask": float}


def joined(**how: Any) -> rel.Topology:
    topology = rel.Topology("joined")
    trades = topology.source(rel.rows([], schema=TRADE), name="trades").key_by("item")
    quotes = topology.source(rel.rows([], schema=QUOTE), name="quotes").key_by("code")
    trades.join(quotes, name="bargains", **({"how": "inner"} | how)).key_by("item").aggregate(
        name="n", n=rel.count()
    ).sink(rel.count(), name="out")
    return topology


def test_a_join_starts_a_region_with_replicas() -> None:
    topology = joined()
    plan = plan_topology(topology)
    planned = plan.region_of("bargains")
    assert (planned.region.kind, planned.region.operators) == (RegionKind.DATA_PARALLEL, ("bargains", "n"))
    assert (planned.region.keys, dict(planned.region.further_keys)) == (("item",), {"right": ("code",)})
    assert elastic_regions(plan) == (planned.region.name,)
    assert ExecPlan.from_dict(plan.to_record()) == plan


def test_each_port_of_a_join_is_dealt_out_by_its_own_keys() -> None:
    """Under two names the same key, so that what matches meets in one replica."""
    topology = joined()
    plan = plan_topology(topology)
    region = plan.region_of("bargains").region.name
    routing = routings_of(plan.with_replicas(region, 2, ("pe0", "pe1")), ["pe0"], (region,))["pe0"]
    assert {router.edge.end: router.keys for router in routing.routers} == {
        "bargains": ("item",),
        "bargains/right": ("code",),
    }
    assert len({router.ring for router in routing.routers}) == 1


def test_streams_behind_a_region_leave_those_who_have_replicas_and_no_other() -> None:
    topology = rel.Topology("counted")
    made = topology.source(rel.rows([], schema=TRADE), name="made").key_by("item")
    made.aggregate(name="n", n=rel.count()).sink(rel.count(), name="out")
    plan = plan_topology(topology)
    region = plan.region_of("n").region.name
    wide = plan.with_replicas(region, 2, ("pe0", "pe1"))
    of = routings_of(wide, ("pe0", "pe1", "pe2"), (region,))
    assert [link.name for link in of["pe1"].links_out] == ["n->out@pe1>pe0"]
    assert of["pe0"].links_out == of["pe2"].links_out == ()
    assert of["pe2"] == PERouting((), (), {}, (), frozenset())
    assert [(gather.edge.end, gather.local, len(gather.links)) for gather in of["pe0"].gathers] == [("out", True, 1)]


def test_a_join_of_a_stream_with_itself_deals_both_out_in_front_of_it() -> None:
    topology = rel.Topology("itself")
    same = topology.source(rel.rows([], schema=TRADE), name="same").filter(
        lambda t: t.price > 0, name="some", lane="python"
    )
    same.key_by("item").join(same.key_by("item"), name="pairs", how="inner").sink(rel.count(), name="out")
    plan = plan_topology(topology)
    assert plan.region_of("pairs").region.operators == ("pairs",)
    assert plan.region_of("some").region.kind is RegionKind.STATELESS


def ruled(keyed: bool, timed: bool) -> tuple[rel.Topology, ExecPlan]:
    topology = rel.Topology("ruled")
    paid: Any = topology.source(rel.rows([], schema={"who": str, "at": int}), name="paid")
    rules: Any = topology.source(rel.rows([], schema={"rule": str, "since": int}), name="rules")
    if timed:
        paid, rules = paid.event_time("at", name="time"), rules.event_time("since", name="rule_time")
    paid = paid.key_by("who") if keyed else paid
    joined = paid.cross_join(rules.key_by("rule"), name="each", by=None if timed else "arrival")
    joined.filter(lambda t: t.who > t.rule, name="broken", lane="python").sink(rel.count(), name="out")
    return topology, plan_topology(topology)


def test_rules_of_a_stream_without_keys_go_everywhere_and_its_tuples_in_turn() -> None:
    _, plan = ruled(keyed=False, timed=False)
    planned = plan.region_of("each")
    assert (planned.region.kind, planned.region.operators) == (RegionKind.STATELESS, ("each", "broken"))
    assert planned.region.shares_state
    assert planned.region.name in elastic_regions(plan)
    assert ExecPlan.from_dict(plan.to_record()) == plan
    routing = routings_of(plan.with_replicas(planned.region.name, 2, ("pe0", "pe1")), ["pe0"], (planned.region.name,))[
        "pe0"
    ]
    assert {router.edge.end: (router.in_turn, router.everywhere) for router in routing.routers} == {
        "each": (True, False),
        "each/right": (False, True),
    }


def test_what_replicas_that_take_turns_give_leaves_in_order_where_the_first_is() -> None:
    _, plan = ruled(keyed=False, timed=False)
    region = plan.region_of("each").region.name
    wide = plan.with_replicas(region, 3, ("pe0", "pe1", "pe2"))
    of = routings_of(wide, wide.pes, (region,))
    assert of["pe0"].links_out == ()
    assert [[link.name for link in of[pe].links_out] for pe in ("pe1", "pe2")] == [
        ["broken->broken@pe1>pe0"],
        ["broken->broken@pe2>pe0"],
    ]
    (gather,) = (gather for gather in of["pe0"].gathers if gather.in_turn)
    assert gather.links == of["pe1"].links_out + of["pe2"].links_out
    assert gather.local


def test_rules_as_of_a_time_keep_one_replica_without_keys() -> None:
    """What comes of a turn leaves when the watermark says so, not with the turn."""
    assert ruled(keyed=False, timed=True)[1].region_of("each").region.kind is RegionKind.PIPELINE
    assert ruled(keyed=True, timed=True)[1].region_of("each").region.kind is RegionKind.DATA_PARALLEL


def test_streams_from_several_places_meet_before_replicas_take_turns() -> None:
    """The replicas of a keyed region send to the first replica's PE, and its one router deals their tuples out."""
    topology = rel.Topology("behind")
    made = topology.source(rel.rows([], schema=TRADE), name="made").key_by("item").aggregate(name="n", n=rel.count())
    rules = topology.source(rel.rows([], schema=QUOTE), name="rules")
    made.cross_join(rules, name="each", by="arrival").sink(rel.count(), name="out")
    plan = plan_topology(topology)
    keyed, free = plan.region_of("n").region.name, plan.region_of("each").region.name
    assert plan.region_of("each").region.kind is RegionKind.STATELESS
    wide = plan.with_replicas(keyed, 2, ("pe0", "pe1")).with_replicas(free, 2, ("pe0", "pe2"))
    of = routings_of(wide, wide.pes, (keyed, free))
    assert [link.name for link in of["pe1"].links_out] == ["n->each@pe1>pe0"]
    (router,) = (router for router in of["pe0"].routers if router.region == free and router.in_turn)
    assert ([edge.name for edge in router.streams], router.local) == (["n->each"], 0)
    assert [link.name for link in router.links.values()] == ["->each@pe0>pe2"]
    assert [(gather.edge.name, gather.local) for gather in of["pe0"].gathers if not gather.in_turn] == [
        ("n->each", True)
    ]
    assert "->each" in [gather.edge.name for gather in of["pe2"].gathers]


def test_rules_in_the_order_of_times_say_what_would_give_them_replicas() -> None:
    topology = rel.Topology("timed")
    rules = topology.source(rel.rows([], schema={"rule": int, "at": int}), name="rules").event_time(
        "at", name="rule_time"
    )
    made = topology.source(rel.rows([], schema={"item": int, "at": int}), name="trades").event_time("at", name="time")
    made.cross_join(rules, name="each").sink(rel.count(), name="out")
    why = why_fixed(plan_topology(topology).region_of("each"))
    assert why == Code.IN_ORDER_OF_TIMES(operator="each")


def test_late_tuples_that_somebody_takes_keep_a_region_as_it_is() -> None:
    topology = rel.Topology("late")
    made = topology.source(rel.rows([], schema={"item": int, "at": int}), name="trades")
    timed = made.event_time("at", name="time")
    pairs = timed.key_by("item").join(timed.key_by("item"), name="pairs", within=5)
    pairs.key_by("item").aggregate(name="n", n=rel.count()).sink(rel.count(), name="out")
    plan = plan_topology(topology)
    region = plan.region_of("pairs")
    assert region.region.operators == ("pairs", "n")
    assert why_fixed(region) is None
    pairs.late().sink(rel.count(), name="late")
    assert why_fixed(plan_topology(topology).region_of("pairs")) == Code.SEVERAL_OUTPUTS(operators=["pairs"])


def test_a_keyed_class_with_several_inputs_keeps_one_replica() -> None:
    @rel.state
    class Seen:
        n: int = 0

    @rel.operator(inputs={"trade": TRADE, "quote": QUOTE}, outputs={"n": int}, state=Seen)
    class Count:
        def invoke(self, port: str, t: Any, state: Seen) -> Any:
            yield (state.n,)

    topology = rel.Topology("counted")
    trades = topology.source(rel.rows([], schema=TRADE), name="trades").key_by("item")
    quotes = topology.source(rel.rows([], schema=QUOTE), name="quotes").key_by("code")
    topology.apply(Count(), name="count", trade=trades, quote=quotes).sink(rel.count(), name="out")
    plan = plan_topology(topology)
    assert why_fixed(plan.region_of("count")) == Code.SEVERAL_INPUTS(operators=["count"])


def test_each_operator_with_one_replica_says_why() -> None:
    @rel.operator(outputs=TRADE)
    class Remembering:
        def invoke(self, t: Any) -> Any:
            yield t

    @rel.operator(outputs=TRADE, stateless=True)
    class Ending:
        def invoke(self, t: Any) -> Any:
            yield t

        def shutdown(self) -> Any:
            return ()

    @rel.operator(outputs=TRADE, stateless=True)
    class Free:
        def invoke(self, t: Any) -> Any:
            yield t

    topology = rel.Topology("whys")
    trades = topology.source(rel.rows([], schema=TRADE), name="trades").throttle(5, name="slow")
    objects = trades.apply(Remembering(), name="remembering").apply(Ending(), name="ending")
    objects.apply(Free(), name="free").sink(rel.count(), name="out")
    plan = plan_topology(topology)
    assert {name: plan.region_of(name).region.why_fixed(name) for name in topology.operators} == {
        "trades": Code.KIND_HAS_ONE(kind="source"),
        "slow": Code.WHOLE_STREAM(operator="slow"),
        "remembering": Code.OBJECT_MAY_CHANGE(operator="remembering"),
        "ending": Code.ACTS_AT_END(operator="ending"),
        "free": None,
        "out": Code.ONE_SINK(operator="out"),
    }
    assert ExecPlan.from_dict(plan.to_record()) == plan
    assert "'slow' has state of the whole stream" in explain(topology, plan).replace("\n          ", " ")


def test_the_error_of_a_region_that_keeps_its_replicas_names_no_setting() -> None:
    """Nobody is sent to a setting that the job has already."""
    topology = rel.Topology("kept")
    topology.source(rel.rows([], schema=TRADE), name="trades").throttle(5, name="slow").sink(rel.count(), name="out")
    plan = plan_topology(topology)
    error = keeps_replicas(plan.region_of("slow"))
    assert "'slow' has state of the whole stream" in str(error)
    assert "JobConfig" not in str(error)
