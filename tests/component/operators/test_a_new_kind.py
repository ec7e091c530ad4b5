"""A kind of operator is one description and one row of a table: nothing else has to know it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import rayelastic as rel
from rayelastic import _native
from rayelastic.compile import OperatorCode, PortsCode
from rayelastic.graph.operators.processes import KeyedProcess
from rayelastic.graph.operators.windows import WindowKind
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.operator_spec import Lane, OperatorBody, OperatorSpec
from rayelastic.graph.spec.ports import OUT, InputPort, OutputPort
from rayelastic.runtime.operators import natives
from rayelastic.runtime.operators.functions import FunctionPort, Resources
from rayelastic.runtime.operators.native_schema import native_schema
from tests.component.operators.timed_rows import MANUAL

PRODUCT = Path(rel.__file__).parent
GIVES = Schema.of({"side": int, "n": int}, name="Tagged")
MOST_FILES = 6  # that a new kind of operator touches, native ones included; one more if its state can be read
NATIVE_FILES = 3  # its class, its constructor and the generated stub
MOST_WINDOW_FILES = 5
NATIVE_WINDOW_FILES = 2  # its class and the table of window kinds


@dataclass(frozen=True, slots=True)
class Tagged(OperatorBody):
    """Emits the tuples of two streams with the number of their stream."""

    operator_kind = "tagged"
    reason = "two streams, by arrival"

    @property
    def lane(self) -> Lane:
        return Lane.PYTHON


def make(spec: OperatorSpec, _body: Tagged, _: Resources) -> _native.Operator:
    inputs = [FunctionPort(native_schema(port.schema), port.schema.tuple_type) for port in spec.inputs]
    call = lambda port, run: [[(port, t[0]) for t in run]]  # noqa: E731
    return _native.Operator.python_ports(spec.name, call, inputs, [native_schema(GIVES)])


@pytest.fixture
def topology(monkeypatch: pytest.MonkeyPatch) -> rel.Topology:
    monkeypatch.setitem(natives._MAKERS, Tagged, make)
    made = rel.Topology("tagged")
    left, right = (made.source(rel.rows([(n,), (n + 1,)], {"n": int}), name=f"from{n}") for n in (1, 5))
    others: Any = (InputPort("right", right.schema, right.inputs),)
    up = left._upstream
    spec = up.operator("both", Tagged(), "here.py:1", (OutputPort(OUT, GIVES),), others=others)
    left._declare(spec).sink(rel.list(), name="out")
    return made


def test_two_inputs_run_with_a_description_and_a_row(topology: rel.Topology) -> None:
    assert sorted(map(tuple, rel.run(topology, MANUAL)["out"])) == [(0, 1), (0, 2), (1, 5), (1, 6)]


def test_a_new_kind_is_shown_and_planned(topology: rel.Topology) -> None:
    lines = topology.explain().splitlines()
    assert any(re.match(r"\s+both\s+tagged\s+python\s+two streams, by arrival", line) for line in lines), lines


def test_without_its_row_a_kind_cannot_run(topology: rel.Topology, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(natives._MAKERS, Tagged)
    with pytest.raises(Exception, match="Tagged"):
        rel.run(topology, MANUAL)


def naming(*patterns: str) -> Iterator[str]:
    """The modules of the product in which one of the patterns stands, comments and docstrings left out."""
    wanted = re.compile("|".join(patterns))
    for path in sorted(PRODUCT.rglob("*.py")):
        if wanted.search(re.sub(r'""".*?"""|#[^\n]*', "", path.read_text(), flags=re.DOTALL)):
            yield path.relative_to(PRODUCT).as_posix()


OF_USERS = (KeyedProcess, OperatorCode, PortsCode)  # a user's code, which the compiler and its lanes know
KEEPS_STATE = "runtime/state/descriptor.py"  # names those whose state can be read
GOVERNED = "runtime/loops/channel_loop.py"  # changes the number of channels


@pytest.mark.parametrize(
    "kind", [kind for kind in natives._MAKERS if kind not in OF_USERS], ids=lambda kind: kind.__name__
)
def test_few_modules_name_the_description_of_an_operator(kind: type[OperatorBody]) -> None:
    imported = rf"from {re.escape(kind.__module__)} import [^\n]*\b{kind.__name__}\b"
    asking = {name for name in naming(imported) if not name.startswith("graph/operators")}
    assert asking - {KEEPS_STATE, GOVERNED} == {"runtime/operators/natives.py"}
    assert 2 + len(asking) + NATIVE_FILES <= MOST_FILES + 1  # the description and the method of Stream, and these


@pytest.mark.parametrize("kind", [WindowKind.COUNT, WindowKind.TIME, WindowKind.SESSION], ids=lambda kind: kind.value)
def test_few_modules_name_a_kind_of_windows(kind: WindowKind) -> None:
    asking = [name for name in naming(rf"WindowKind\.{kind.name}\b") if "gathering" not in name]
    assert asking == ["graph/operators/windows.py"]
    assert len(asking) + 1 + NATIVE_WINDOW_FILES <= MOST_WINDOW_FILES  # and the method of Stream
