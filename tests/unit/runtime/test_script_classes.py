"""Classes of a script are found in what was shipped of it, and have their names in `__main__` then."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from rayelastic.runtime.element.script_classes import name_script_classes, script_classes

SCRIPT = """
from functools import partial

class ScriptItem:
    pass

class ScriptBase:
    def made(self):
        return [ScriptItem() for _ in range(2)]

class ScriptKept(ScriptBase):
    pass

class ScriptDefault:
    pass

class ScriptClosed:
    pass

class ScriptUnused:
    pass

class ScriptOuter:
    class Inner:
        pass

def outer():
    closed = ScriptClosed
    def add(t, kept, like=ScriptDefault()):
        kept.last = closed()
        return ScriptOuter.Inner()
    return add

bound = partial(outer(), like=None)
"""
NAMES = ("ScriptItem", "ScriptBase", "ScriptKept", "ScriptDefault", "ScriptClosed", "ScriptUnused", "ScriptOuter")


@dataclass(frozen=True)
class Shipped:
    state: Any
    function: Any


@pytest.fixture
def script() -> Iterator[dict[str, Any]]:
    """What a script defines, in a process whose `__main__` is another one."""
    defined: dict[str, Any] = {"__name__": "__main__"}
    exec(SCRIPT, defined)  # as a process gets it that unpickles it
    yield defined
    for name in NAMES:
        if hasattr(sys.modules["__main__"], name):
            delattr(sys.modules["__main__"], name)


def test_what_functions_and_classes_refer_to_is_found(script: dict[str, Any]) -> None:
    found = {cls.__qualname__ for cls in script_classes([Shipped(script["ScriptKept"], script["bound"])])}
    assert found == {*NAMES, "ScriptOuter.Inner"} - {"ScriptUnused"}


def test_values_of_such_classes_are_pickled_by_name(script: dict[str, Any]) -> None:
    kept = script["ScriptKept"]()
    kept.items, kept.inner = kept.made(), script["ScriptOuter"].Inner()
    with pytest.raises(pickle.PicklingError):
        pickle.dumps(kept)
    name_script_classes([Shipped(script["ScriptKept"], script["bound"])])
    again = pickle.loads(pickle.dumps(kept))
    assert type(again) is script["ScriptKept"]
    assert [type(one) for one in again.items] == [script["ScriptItem"]] * 2
    assert type(again.inner) is script["ScriptOuter"].Inner


def test_a_name_that_is_taken_stays_what_it_is(script: dict[str, Any]) -> None:
    sys.modules["__main__"].ScriptItem = "another"  # type: ignore[attr-defined]
    name_script_classes([script["ScriptItem"]])
    assert sys.modules["__main__"].ScriptItem == "another"


def test_data_of_any_size_takes_no_time(script: dict[str, Any]) -> None:
    assert list(script_classes([list(range(10_000_000)), {"deep": [script["ScriptItem"]()]}])) == [script["ScriptItem"]]


class Raising(Mapping[str, Any]):
    """Has what isn't there in this process."""

    def __getitem__(self, key: str) -> Any:
        raise OSError("the file is closed")

    def __iter__(self) -> Iterator[str]:
        yield "first"

    def __len__(self) -> int:
        return 1


def test_data_that_raises_when_it_is_looked_at_keeps_no_job_from_starting(script: dict[str, Any]) -> None:
    assert list(script_classes([Shipped(script["ScriptItem"], Raising())])) == [script["ScriptItem"]]
