"""Single rules of declarations, each at the values where it begins and ends to hold."""

from __future__ import annotations

import datetime as dt
import gzip
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import pytest

from rayelastic.connectors import registry as connectors
from rayelastic.connectors.files.byte_streams import Content
from rayelastic.connectors.memory.declaration import rows as rows_source
from rayelastic.connectors.parquet.growing import LONGEST_PERIOD
from rayelastic.connectors.polled import declaration as polled
from rayelastic.connectors.postgres import declaration as postgres
from rayelastic.errors import DeclarationError, GraphError, SinkError, SourceError
from rayelastic.fluent.stream import Stream
from rayelastic.fluent.topology import Topology
from rayelastic.graph.operators import aggregates
from rayelastic.graph.operators.aggregation import can_have_two_steps
from rayelastic.graph.operators.gathering.accumulators import Top
from rayelastic.graph.operators.pacing import LONGEST_DELAY
from rayelastic.graph.operators.window_function import Bounds, Shown
from rayelastic.graph.records.annotations import form_of
from rayelastic.graph.records.data_type import DataType
from rayelastic.graph.records.forms import list_form, plain_form
from rayelastic.graph.records.from_arrow import reader_of
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.records.time_info import TICKS_PER_SECOND, TimeInfo
from rayelastic.graph.spec.routed import to
from tests.raising import raises
from tests.unit.graph.fakes import FakeCompiler


def rows() -> Stream:
    topology = Topology("test", compiler=FakeCompiler())
    return topology.source(rows_source([("a", 1)], schema={"k": str, "n": int}), name="rows")


def test_what_is_sent_to_a_port_is_a_value() -> None:
    assert to("late", (1,)) == to("late", (1,))
    assert hash(to("late", (1,))) == hash(to("late", (1,)))
    assert to("late", (1,)) != to("early", (1,))
    assert to("late", (1,)) != to("late", (2,))
    assert to("late", (1,)) != ("late", (1,))


@pytest.mark.parametrize(
    ("values", "k", "least", "given"),
    [
        ([3, 9, 5, 9], 2, False, [(9, 1), (9, 3)]),
        ([3, 9, 5, 3], 2, True, [(3, 0), (3, 3)]),
        ([7, 7, 7], 1, False, [(7, 0)]),
        ([1.0, float("nan"), 2.0], 3, False, [(2.0, 2), (1.0, 0)]),
        ([None, 1, None], 3, True, [(1, 1)]),
        ([], 3, True, []),
    ],
)
def test_the_best_are_by_value_and_of_equal_ones_the_first(
    values: list[Any], k: int, least: bool, given: list[Any]
) -> None:
    top = Top(k, by=0, least=least, fields=(0, 1), shown=Shown())
    best = top.new()
    for number, value in enumerate(values):
        best = top.add(best, (value, number))
    expected = [("key", 0, 10, place, *row) for place, row in enumerate(given, start=1)]
    assert list(top.results(("key",), Bounds(0, 10), best)) == expected


def test_ticks_of_each_unit() -> None:
    assert TICKS_PER_SECOND == {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
    assert TimeInfo("at", "ms").ticks(dt.timedelta(minutes=1), "seconds") == 60_000
    assert TimeInfo("at", "s").ticks(2**60, "seconds") == 2**60
    with raises(GraphError, "out-of-range"):
        TimeInfo("at", "s").ticks(0.5, "seconds")
    with raises(GraphError, "wrong-type"):
        TimeInfo("at", "s").ticks(2**60 + 2**10, "seconds")


def test_sizes_in_a_record() -> None:
    """As native_sched/include/rayelastic/record/schema.hpp has them; a test of the engine compares them, too."""
    sizes: dict[int, str] = {1: "bool int8 uint8", 2: "int16 uint16 float16", 4: "int32 uint32 float32 date32 enum"}
    sizes[8] = "int64 uint64 float64 date64 time64 timestamp duration"
    sizes[16] = "string binary decimal uuid list struct map json object"
    found = {DataType[name.upper()]: size for size, names in sizes.items() for name in names.split()}
    assert {kind: kind.size for kind in DataType} == found | {DataType.TIME32: 4}


@pytest.mark.parametrize("seconds", [0, 0.5, LONGEST_DELAY, dt.timedelta(days=1)])
def test_a_delay_within_its_bounds(seconds: Any) -> None:
    assert rows().delay(seconds, name="later", most=10).inputs == ("later",)


@pytest.mark.parametrize("seconds", [-0.001, LONGEST_DELAY + 1, True, "1", float("nan")])
def test_a_delay_out_of_its_bounds(seconds: Any) -> None:
    with raises(GraphError, "out-of-range", operator="later"):
        rows().delay(seconds, name="later", most=10)


@pytest.mark.parametrize("most", [0, -1, 1.5, True])
def test_a_delay_that_holds_nothing(most: Any) -> None:
    with raises(GraphError, "out-of-range", "most=", operator="later"):
        rows().delay(1.0, name="later", most=most)


@pytest.mark.parametrize("options", [{"slide": 5}, {"rest": True}, {"count": None}])
def test_within_is_for_batches_by_count_alone(options: dict[str, Any]) -> None:
    with raises(GraphError, "conflicting-arguments", operator="rows"):
        rows().window(**({"count": 10, "within": 2.0} | options))


class Idle:
    """A source that is asked again after so many seconds."""

    def __init__(self, idle: Any) -> None:
        self.idle = idle

    def partitions(self) -> list[str]:
        return []

    def open(self, partition: str, position: object) -> Any:
        raise AssertionError


@pytest.mark.parametrize("idle", [0, 0.1, 3600])
def test_a_source_may_rest_so_long(idle: Any) -> None:
    polled.polled(Idle(idle), {"n": int}).check("rows")


@pytest.mark.parametrize("idle", [-0.1, float("inf"), float("nan"), True, "1"])
def test_a_source_may_not_rest_so_long(idle: Any) -> None:
    with raises(DeclarationError, "out-of-range", operator="rows"):
        polled.polled(Idle(idle), {"n": int}).check("rows")


def test_a_sink_of_postgres_names_a_table() -> None:
    postgres.postgres("host=there", "public.counts").check("out")
    for conninfo, table in (("host=there", "."), ("host=there", ""), (None, "counts"), ("host=there", None)):
        with raises(SinkError, "wrong-type", operator="out"):
            postgres.postgres(conninfo, table).check("out")  # type: ignore[arg-type]


def test_a_growing_table_grows_once_a_day_at_least() -> None:
    assert dt.timedelta(days=1).total_seconds() == LONGEST_PERIOD


def test_streams_whose_times_are_in_different_units_arent_joined_by_time() -> None:
    topology = Topology("test", compiler=FakeCompiler())
    units: Any = {"fast": "ms", "slow": "s"}
    fast, slow = (
        topology.source(rows_source([], schema={"k": str, "at": int, f"of_{name}": int}), name=name)
        .event_time("at", name=f"times_of_{name}", unit=unit)
        .key_by("k")
        for name, unit in units.items()
    )
    with raises(GraphError, "event-time-mismatch", operator="both"):
        fast.join(slow, name="both", within=3)


@pytest.mark.parametrize("row", [("a",), ("a", 1, 2), "ab", 7])
def test_a_row_of_another_length_is_named(row: Any) -> None:
    with raises(DeclarationError, "schema-mismatch", operator="rows"):
        rows_source([("a", 1), row], schema={"k": str, "n": int}).check("rows")


def test_feedback_is_closed_once() -> None:
    topology = Topology("test", compiler=FakeCompiler())
    start = topology.source(rows_source([("a", 1)], schema={"k": str, "n": int}), name="rows")
    again = topology.feedback(name="again", like=start)
    parts = start.union(again).split(2, name="parts")
    again.close(parts[0])
    with raises(GraphError, "closed-feedback", operator="again"):
        again.close(parts[1])


@pytest.mark.parametrize("ways", [0, 1001, True, 2.0])
def test_a_stream_is_split_into_few(ways: Any) -> None:
    with raises(GraphError, "out-of-range", operator="parts"):
        rows().split(ways, name="parts")


@pytest.mark.parametrize("sink", [connectors.csv, connectors.json, connectors.parquet])
def test_a_sink_that_cant_be_written_is_refused_where_it_is_declared(sink: Any, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with raises(SinkError, "not-writable", operator="out"):
        rows().sink(sink(str(tmp_path / "file" / "rows")), name="out")


@pytest.mark.parametrize(("within", "bounds"), [(3, (3, 0)), ((3, 2), (3, 2)), ((0, 1), (0, 1))])
def test_within_looks_back_and_forward_only_if_it_says_so(within: Any, bounds: tuple[int, int]) -> None:
    topology = Topology("test", compiler=FakeCompiler())
    left, right = (
        topology.source(rows_source([], schema={"k": str, "at": int, f"of_{name}": int}), name=name)
        .event_time("at", name=f"times_of_{name}", unit="s")
        .key_by("k")
        for name in ("left", "right")
    )
    left.join(right, name="both", within=within)
    body: Any = topology.operators["both"].body
    assert (body.before, body.after) == bounds


@pytest.mark.parametrize(
    ("declare", "could"),
    [
        (lambda s: s.aggregate(name="it", n=aggregates.count()), True),
        (lambda s: s.aggregate(name="it", n=aggregates.sum("n"), last=aggregates.last("n")), True),
        (lambda s: s.aggregate(name="it", n=aggregates.mean("n")), False),
        (lambda s: s.aggregate(name="it", n=aggregates.count(), emit="update"), False),
        (lambda s: s.aggregate(name="it", n=aggregates.count(), two_steps=True), False),
        (lambda s: s.map(lambda t: t, name="it"), False),
    ],
)
def test_what_could_have_two_steps_and_hasnt(declare: Any, could: bool) -> None:
    stream = rows()
    declare(stream.key_by("k"))
    operators = stream.topology.operators
    assert {name: can_have_two_steps(spec, operators) for name, spec in operators.items() if name != "rows"} == (
        dict.fromkeys((name for name in operators if name != "rows"), could)
    )


@pytest.mark.parametrize(
    ("declare", "lane", "expected"),
    [
        (lambda s: s.key_by("k").aggregate(name="it", n=aggregates.count(), most=aggregates.max("n")), "python", True),
        (lambda s: s.key_by("k").aggregate(name="it", n=aggregates.count()), "compiled", False),
        (lambda s: s.key_by("k").aggregate(name="it", two_steps=False, n=aggregates.count()), "python", False),
        (lambda s: s.key_by("k").aggregate(name="it", n=aggregates.sum("n")), "python", True),
        (lambda s: s.key_by("k").aggregate(name="it", n=aggregates.sum("x")), "python", False),
        (lambda s: s.key_by("k").aggregate(name="it", n=aggregates.last("n")), "python", False),
        (lambda s: s.key_by("k").aggregate(name="it", emit="update", n=aggregates.count()), "python", False),
        (lambda s: s.aggregate(name="it", n=aggregates.count()), "python", False),
    ],
)
def test_two_steps_by_themselves(declare: Any, lane: Any, expected: bool) -> None:
    topology = Topology("test", compiler=FakeCompiler())
    source = topology.source(rows_source([], schema={"k": str, "n": int, "x": float}), name="rows")
    declare(source.map(lambda t: t, name="function", lane=lane))
    assert ("it.partial" in topology.operators) is expected


def test_no_two_steps_by_themselves_where_the_first_could_have_no_replicas() -> None:
    topology = Topology("test", compiler=FakeCompiler())
    left, right = (topology.source(rows_source([], schema={"k": str}), name=name) for name in ("left", "right"))
    made = left.union(right).map(lambda t: t, name="function", lane="python")
    made.key_by("k").aggregate(name="it", n=aggregates.count())
    left.key_by("k").aggregate(name="behind", n=aggregates.count())  # a source, in Python or not, is no function
    later = left.aggregate(name="all", emit="update", n=aggregates.count()).map(lambda t: t, name="late", lane="python")
    later.key_by("n").aggregate(
        name="third", n_of=aggregates.count()
    )  # what has state stands between it and the source
    assert not {"it.partial", "behind.partial", "third.partial"} & topology.operators.keys()


@pytest.mark.parametrize(
    ("kind", "held"),
    [
        (pa.list_(pa.int64()), DataType.LIST),
        (pa.large_list(pa.int64()), DataType.LIST),
        (pa.list_(pa.int64(), 3), DataType.LIST),
        (pa.struct([("n", pa.int64())]), DataType.STRUCT),
        (pa.map_(pa.string(), pa.int64()), DataType.MAP),
        (pa.int64(), DataType.INT64),
    ],
)
def test_types_with_parts_that_arrow_has(kind: pa.DataType, held: DataType) -> None:
    assert Schema.of(pa.schema([pa.field("it", kind, nullable=False)])).field("it").type is held


def test_lists_are_read_as_what_was_declared() -> None:
    numbers, days = plain_form("l"), list_form(plain_form("l"), of=tuple)
    as_list, as_tuple, nested = (
        reader_of(form, lambda _name, _fields: tuple) for form in (list_form(numbers), days, list_form(days))
    )
    assert (str(list_form(numbers)), str(days)) == ("+l<l>", "+t<l>")
    assert as_list is None, "it is a list already"
    assert as_tuple is not None
    assert as_tuple([1, 2]) == (1, 2)
    assert as_tuple(None) is None
    assert nested is not None
    assert nested([[1], []]) == [(1,), ()]


def test_what_is_said_beside_a_type_counts_if_it_is_one() -> None:
    assert str(form_of(Annotated[int, "so many"])) == str(form_of(int)) == "l"
    assert str(form_of(Annotated[int, "so many", pa.int32()])) == "i"


@pytest.mark.parametrize(("times", "ticks"), [([], 2_000_000), ([("timed", "n", "ms")], 2000)])
def test_batches_wait_by_the_time_of_their_stream_or_the_clock(times: list[Any], ticks: int) -> None:
    stream = rows()
    for name, field, unit in times:
        stream = stream.event_time(field, name=name, unit=unit)
    assert stream.window(count=10, within=2.0).window.within == ticks


def test_of_a_single_number_there_is_a_mean_but_no_deviation() -> None:
    made = rows().aggregate(name="of", mean=aggregates.mean("n"), most=aggregates.max("n"), off=aggregates.stddev("n"))
    assert [(field.name, field.nullable) for field in made.schema.fields] == [
        ("mean", False),
        ("most", False),
        ("off", True),
    ]


@pytest.mark.parametrize(
    ("how", "nullable"),
    [("inner", ["x"]), ("left", ["x", "y"]), ("right", ["k", "n", "x"]), ("full", ["k", "n", "x", "y"])],
)
def test_what_a_join_may_lack(how: Any, nullable: list[str]) -> None:
    """Its key is where one of both is, so it may lack only if that of the right may."""
    left = rows()
    schema = {"key": str | None, "x": int | None, "y": int}
    right = left.topology.source(rows_source([], schema=schema), name="right")  # type: ignore[attr-defined]
    pairs = left.key_by("k").join(right.key_by("key"), name="pairs", how=how)
    assert [field.name for field in pairs.schema.fields if field.nullable] == nullable


def test_a_file_that_became_a_folder_is_no_file_of_rows(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("a\n1\n")
    topology = Topology("test", compiler=FakeCompiler())
    topology.source(connectors.csv(str(path)), name="rows")
    source: Any = topology.operators["rows"].body
    path.unlink()
    path.mkdir()
    with raises(SourceError, "is-a-folder", operator="rows"):
        source.check("rows")


def test_a_damaged_file_says_behind_which_byte(tmp_path: Path) -> None:
    path = tmp_path / "lines.gz"
    path.write_bytes(gzip.compress(b"0123456789\n" * 10, mtime=0)[:-6])
    with Content(str(path), None) as content:
        assert content.read(110) == b"0123456789\n" * 10
        with raises(SourceError, "malformed-file", "gzip", "110"):
            content.read(1)
