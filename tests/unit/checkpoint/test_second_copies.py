"""Which node gets the second copy of a share, and which losses a checkpoint survives."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from rayelastic.runtime.checkpoint.protocol import lost_shares, second_nodes
from rayelastic.runtime.journal import ChangeJournal, SavedAt
from rayelastic.runtime.values.checkpoint_record import CheckpointCounters, CheckpointRecord, Copied
from rayelastic.runtime.values.status import JobMetrics
from rayelastic.runtime.watch.metric_table import METRICS, MetricsReader
from tests.unit.runtime.performing import GROW, Run

NODES = [f"n{number}" for number in range(8)]
AGE = "rayelastic_job_checkpoint_second_copy_age_seconds"
HOSTS = st.sets(st.sampled_from(NODES), min_size=1)


@given(HOSTS, HOSTS, st.dictionaries(st.sampled_from(NODES), st.sampled_from(NODES)))
def test_a_second_copy_is_on_another_node_and_copies_are_spread_evenly(
    owners: set[str], hosts: set[str], before: dict[str, str]
) -> None:
    chosen = second_nodes(owners, hosts, before)
    assert all(second in hosts and second != owner for owner, second in chosen.items())
    assert chosen.keys() == {owner for owner in owners if hosts - {owner}}, "each share for which a node exists has one"
    most = -(-len(owners) // len(hosts))
    assert max(Counter(chosen.values()).values(), default=0) <= most + 1
    assert second_nodes(owners, hosts, chosen) == chosen or max(Counter(chosen.values()).values()) > most, "it stays"


@given(HOSTS, st.data())
def test_a_new_choice_is_even(hosts: set[str], data: st.DataObject) -> None:
    owners = data.draw(st.sets(st.sampled_from(sorted(hosts)), min_size=1))
    counts = Counter(second_nodes(owners, hosts, {}).values())
    assert max(counts.values(), default=1) == 1, "each host has a share at most, so it gets one copy"


@given(HOSTS, st.lists(st.tuples(st.sampled_from(NODES), st.booleans()), max_size=30), st.data())
def test_what_is_called_lost_is_lost(hosts: set[str], events: list[tuple[str, bool]], data: st.DataObject) -> None:
    """Nodes go with their disks and come back empty; a checkpoint is taken now and then, and read at each step."""
    disks: dict[str, set[tuple[int, str]]] = {node: set() for node in hosts}
    saved: list[dict[str, str]] = []
    chosen: dict[str, str] = {}
    for node, comes in events:
        if node in disks and not comes and len(disks) > 1:
            del disks[node]
        elif comes:
            disks.setdefault(node, set())
        for earlier, copies in enumerate(saved):
            readable = all(any((earlier, owner) in disk for disk in disks.values()) for owner in copies)
            may_be_read = not lost_shares(copies, disks)
            assert may_be_read or not readable, "what is given up at once can't be read"
        if data.draw(st.booleans()):
            owners = data.draw(st.sets(st.sampled_from(sorted(disks)), min_size=1))
            chosen = second_nodes(owners, disks, chosen)
            for owner in owners:
                for holder in {owner, chosen.get(owner, owner)}:
                    disks[holder].add((len(saved), owner))
            saved.append({owner: chosen.get(owner, "") for owner in owners})
            for one in disks if len(disks) > 1 else ():
                assert not lost_shares(saved[-1], disks.keys() - {one}), "any one node may be lost"


def test_the_journal_knows_the_nodes_of_a_checkpoint() -> None:
    journal = ChangeJournal(store := Lines())
    at = SavedAt(3, "/there/00000003", {"a": "b", "b": ""})
    journal.checkpointed(at, Run(GROW).change.old, keep=2)
    again = ChangeJournal(store).checkpoints
    assert again == (at,)
    assert again[0].nodes == {"a", "b"}


class Lines:
    """A store in memory."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def lines(self) -> list[str]:
        return self._lines

    def append(self, line: str, *, alone: bool) -> None:
        self._lines.append(line)

    def close(self) -> None:
        pass


def test_the_age_of_two_copies_is_a_metric_where_nodes_have_disks_of_their_own() -> None:
    def age(*copies: Copied) -> float | None:
        counters = CheckpointCounters()
        for at, copied in enumerate(copies, 1):
            counters = counters.completed(CheckpointRecord(at, float(at), 0.1, copied=copied))
        assert counters.copied_bytes == sum(copied.bytes for copied in copies)
        readings = list(MetricsReader().read(JobMetrics("job", 10.0, (), {}, counters)))
        assert {reading.metric for reading in readings} <= METRICS.keys()
        return {reading.metric: reading.value for reading in readings}.get(AGE)

    two, one = Copied({"a": "b"}, 5), Copied({"a": ""}, 0, "no other host exists")
    assert age(two, one) == 9.0
    assert age(one) == 10.0
    assert age(Copied()) is None, "every node sees the location"
