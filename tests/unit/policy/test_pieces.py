"""Cutting graphs: chains, trees and graphs that meet again; and what an estimate makes of them."""

import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rayelastic.policy.element.guided.estimate import Configuration, Estimate, Explanation, Profile  # type: ignore[attr-defined]
from rayelastic.policy.element.pieces import OperatorGraph


def anywhere(name: Any) -> Any:
    return name != "source"


@given(st.lists(st.integers(1, 100), min_size=1, max_size=30), st.integers(1, 8))
def test_no_piece_of_a_chain_is_dearer_than_asked_for(costs: Any, pieces: Any) -> None:
    names = ["source", *(f"op{i}" for i in range(len(costs)))]
    by_name = {"source": 0.0} | {f"op{i}": float(cost) for i, cost in enumerate(costs)}
    graph = OperatorGraph(names)
    most = max(sum(costs) / pieces, max(costs))
    queued = graph.cut(by_name, most, anywhere)
    made = graph.piece_costs(by_name, queued)
    assert max(made.values()) <= most + 1e-9
    assert sum(made.values()) == sum(costs)
    assert len(queued) <= 2 * pieces  # greedy: two neighbouring pieces are dearer than one may be


def test_fewest_queues_on_a_tree() -> None:
    upstream = {"a": ["source"], "b": ["a"], "c": ["a"], "d": ["a"]}
    graph = OperatorGraph(["source", "a", "b", "c", "d"], upstream)
    costs = {"source": 0.0, "a": 1.0, "b": 3.0, "c": 2.0, "d": 1.0}
    assert graph.cut(costs, 4.0, anywhere) == {"b"}
    assert graph.cut(costs, 7.0, anywhere) == frozenset()
    assert graph.cut(costs, 4.0, anywhere, fixed=frozenset({"d"})) == {"b", "d"}


def test_an_operator_that_several_feed_is_shared_among_their_pieces() -> None:
    upstream = {"a": ["source"], "b": ["source"], "sink": ["a", "b"]}
    graph = OperatorGraph(["source", "a", "b", "sink"], upstream)
    costs = {"source": 1.0, "a": 2.0, "b": 2.0, "sink": 4.0}
    assert graph.piece_costs(costs, frozenset({"a"})) == {"source": 5.0, "a": 4.0}
    assert graph.piece_costs(costs, frozenset({"sink"})) == {"source": 5.0, "sink": 4.0}
    assert graph.crossings(dict.fromkeys(costs, 1.0), frozenset({"sink"})) == {"source": 0.5, "sink": 0.5}


def test_what_others_do_of_an_operator_is_not_cut_off() -> None:
    graph = OperatorGraph(["source", "a", "b"], {"a": ["source"], "b": ["source", "a"]})
    costs = {"source": 0.0, "a": 1.0, "b": 4.0}  # b's work is half the source's, half a's
    assert graph.cut(costs, 5.0, anywhere) == frozenset()
    assert graph.cut(costs, 4.0, anywhere) == {"a"}


def test_what_may_not_be_cut_is_not() -> None:
    graph = OperatorGraph(["source", "a", "b"])
    assert graph.cut({"source": 0.0, "a": 1.0, "b": 1.0}, 1.0, lambda name: name == "a") == {"a"}


def estimate(explanation: Any, costs: Any = (250,) * 4) -> Any:
    names = ["source", *(f"op{i}" for i in range(len(costs)))]
    samples = {"source": 0.0} | {f"op{i}": float(cost) for i, cost in enumerate(costs)}
    profile = Profile(samples, dict.fromkeys(names, 1e5), float(sum(costs)), busy=1.0, reference=1e5)
    return Estimate(profile, OperatorGraph(names), explanation)


ALL = frozenset(f"op{i}" for i in range(4))


def test_queues_are_put_where_they_pay() -> None:
    assert estimate(Explanation(0.001, 0.0)).place(3, 4.0, ALL, frozenset()) in ({"op1", "op2", "op3"}, ALL)
    assert estimate(Explanation(0.5, 0.0)).place(3, 4.0, ALL, frozenset()) != ALL
    assert estimate(Explanation(5.0, 0.0)).place(3, 4.0, ALL, frozenset()) == frozenset()
    assert estimate(Explanation(0.001, 0.0)).place(3, 1.0, ALL, frozenset()) == frozenset()


def test_a_dear_operator_bounds_the_throughput() -> None:
    one = estimate(Explanation(0.0, 0.0), costs=(10, 970, 10, 10))
    assert one.throughput(Configuration(8, ALL), 8.0) < 1.1


def test_measurements_are_explained_again() -> None:
    """What a hop and a balance gave is found again, among the plausible explanations."""
    truth = estimate(Explanation(0.1, 0.5))
    configurations = [Configuration(3, cut) for cut in truth.cuts(3, 4.0, ALL, frozenset())]
    measured = [(c, math.log(truth.throughput(c, 4.0)), 1.0) for c in configurations]
    found = estimate(None).fitted(measured, 4.0)
    assert any(0.03 < one.hop < 0.3 and 0.3 <= one.balance <= 0.75 for one in found)


def test_those_that_meet_share_the_work_by_what_they_give() -> None:
    upstream = {"a": ["source"], "b": ["source"], "sink": ["a", "b"]}
    costs = {"source": 0.0, "a": 1.0, "b": 1.0, "sink": 4.0}
    queued = frozenset({"a", "b"})
    names = ["source", "a", "b", "sink"]
    given = OperatorGraph(names, upstream, {"a": 3.0, "b": 1.0})
    assert given.piece_costs(costs, queued) == {"source": 0.0, "a": 4.0, "b": 2.0}
    assert OperatorGraph(names, upstream).piece_costs(costs, queued) == {"source": 0.0, "a": 3.0, "b": 3.0}
    assert given.crossings({"sink": 8.0, "a": 3.0, "b": 1.0}, queued | {"sink"}) == {
        "source": 2.0,
        "a": 1.5 + 3.0,
        "b": 0.5 + 1.0,
        "sink": 4.0,
    }
    assert given.cut(costs, 3.9, lambda name: name == "sink") == {"sink"}


def test_where_pieces_meet_without_a_queue_one_at_a_time_does_what_is_behind() -> None:
    """Four fifths of all work are in the sink, at which two pieces take their turns, of half the work each."""
    names, upstream = ["source", "a", "b", "sink"], {"a": ["source"], "b": ["source"], "sink": ["a", "b"]}
    samples = {"source": 0.0, "a": 100.0, "b": 100.0, "sink": 800.0}
    profile = Profile(samples, dict.fromkeys(names, 1e3), 1000.0, busy=1.0, reference=1e4)
    made = Estimate(profile, OperatorGraph(names, upstream), Explanation(0.0, 0.0))
    assert 1.1 < made.throughput(Configuration(4, frozenset({"a", "b"})), cpus=8) <= 1 / 0.8


def test_a_queue_whose_filler_runs_what_is_behind_it_is_the_one_to_have() -> None:
    """Its two threads divide all work evenly, wherever it stands; without that queues have to stand in the middle."""
    names = ["lines", "words", "counts", "out"]
    samples = {"lines": 150.0, "words": 350.0, "counts": 500.0, "out": 0.0}
    profile = Profile(samples, {"lines": 1e6, "words": 1e6, "counts": 1e7, "out": 0.0}, 1000.0, 1.0, 1e6)
    movable = frozenset(names[1:])

    def found(shared: frozenset[str]) -> tuple[frozenset[str], float]:
        graph = OperatorGraph(names, shared=shared)
        estimate = Estimate(profile, graph, Explanation(0.005, 0.0))
        queued = estimate.place(1, 2.0, movable, frozenset())
        return queued, round(estimate.throughput(Configuration(1, queued), 2.0), 1)

    assert found(frozenset({"words", "counts"})) == ({"words"}, 1.9)
    assert found(frozenset()) == ({"counts"}, 1.9)
    samples |= {"words": 650.0, "counts": 200.0}
    assert found(frozenset({"words", "counts"})) == ({"words"}, 1.9)
    assert found(frozenset()) == ({"words", "counts"}, 1.4)


def test_what_has_another_queue_behind_it_is_run_by_its_own_threads_alone() -> None:
    graph = OperatorGraph(["source", "parse", "count"], shared=frozenset({"parse", "count"}))
    costs = {"source": 1.0, "parse": 5.0, "count": 6.0}
    assert graph.piece_costs(costs, frozenset({"parse", "count"})) == {"source": 1.0, "parse": 5.5, "count": 5.5}
    union = OperatorGraph(["a", "b", "count"], {"count": ["a", "b"]}, shared=frozenset({"count"}))
    costs = {"a": 1.0, "b": 1.0, "count": 6.0}  # of several who fill it one at a time does
    assert union.piece_costs(costs, frozenset({"count"})) == {"a": 1.0, "b": 1.0, "count": 6.0}


def test_a_queue_in_front_of_what_costs_nothing_divides_nothing() -> None:
    graph = OperatorGraph(["source", "free"])
    assert graph.split({"source": 2.0, "free": 0.0}, frozenset(), lambda name: name != "source") is None
    assert graph.split({"source": 2.0, "free": 0.1}, frozenset(), lambda name: name != "source") == "free"


def test_a_long_chain_of_shared_operators_is_no_deeper_than_a_short_one() -> None:
    names = ["source", *(f"op{i}" for i in range(3000))]
    graph = OperatorGraph(names, shared=frozenset(names[1:]))
    costs = dict.fromkeys(names, 1.0)
    assert graph.piece_costs(costs, frozenset({"op0"})) == {"source": 1500.5, "op0": 1500.5}
    assert graph.piece_costs(costs, frozenset({"op0", "op2999"}))["source"] == 1.0  # another queue behind it


def test_another_explanation_looks_at_no_placement_again() -> None:
    class Counted(OperatorGraph):
        looked = 0

        def piece_costs(self, costs: Any, queued: Any) -> Any:
            self.looked += 1
            return super().piece_costs(costs, queued)

    names = ["source", "a", "b"]
    graph = Counted(names)
    profile = Profile(dict.fromkeys(names, 100.0), dict.fromkeys(names, 1e5), 300.0, busy=1.0, reference=1e5)
    usual, both = Estimate(profile, graph), Configuration(2, frozenset({"a", "b"}))
    dear = usual.explained(Explanation(0.5, 0.0))
    assert dear.throughput(both, 4.0) < usual.throughput(both, 4.0)
    assert dear.throughput(both, 4.0) == Estimate(profile, OperatorGraph(names), dear.explanation).throughput(both, 4.0)
    assert graph.looked == 1
