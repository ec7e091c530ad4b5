"""Machine code on disk: the next process loads it in milliseconds, without Numba; damage is seen."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest
from harness import FLAT_MAP, request

from rayelastic.compile import Compiler
from rayelastic.compile.cache.code_cache import CacheEntry, CodeCache, key_of
from rayelastic.compile.reading.identity import Identity
from rayelastic.graph.records.schema import Schema

ROOT = Path(__file__).parents[3]

PROGRAM = """
import sys
from typing import NamedTuple
from rayelastic.compile import Compiler
from rayelastic.compile.cache.loader import host_target, load_image, register_symbols
from rayelastic.graph.spec.requests import FunctionRequest, FunctionKind
from rayelastic.graph.records.schema import Schema

class Word(NamedTuple):
    word: str
    count: int

def words(t):
    for w in t.line.split():
        yield Word(w, 1)

host_target()
register_symbols({"rel_flush": 1})
code = Compiler().compile(FunctionRequest("words", FunctionKind.FLAT_MAP, words, Schema.of({"line": str})))
owner, address = load_image(code.machine)
print("numba" in sys.modules, code.lane.value, code.output_schema)
"""


def run(directory: Path) -> list[str]:
    environment = os.environ | {"XDG_CACHE_HOME": str(directory), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.split(maxsplit=2)


def test_the_second_process_needs_no_numba(tmp_path: Path) -> None:
    first, second = run(tmp_path), run(tmp_path)
    assert first == ["True", "compiled", "Word(word: string, count: int64)\n"]
    assert second == ["False", "compiled", "Word(word: string, count: int64)\n"]
    folder = tmp_path / "rayelastic"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert [p.suffix for p in folder.iterdir()] == [".rel"]


REFUSED = """
import sys
from rayelastic.compile import Compiler
from rayelastic.graph.spec.requests import FunctionRequest, FunctionKind
from rayelastic.graph.records.schema import Schema

def shown(t):
    return __import__("json").dumps(t.n)

given, made = Schema.of({"n": int}), Schema.of({"s": str})
code = Compiler().compile(FunctionRequest("shown", FunctionKind.MAP, shown, given, made))
print("numba" in sys.modules, code.lane.value, code.reason, code.refusal["code"])
"""


def test_the_second_process_knows_what_cannot_be_compiled_by_its_lines(tmp_path: Path) -> None:
    program = tmp_path / "shows.py"
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path / "cache"), "PYTHONPATH": str(ROOT)}
    told = []
    for text in (REFUSED, REFUSED, "\n" + REFUSED):  # the last one a line below
        program.write_text(text)
        told.append(
            subprocess.run(
                [sys.executable, program], env=environment, capture_output=True, text=True, check=True
            ).stdout
        )
    first, second, moved = (one.split(maxsplit=2) for one in told)
    assert (first[:2], second[:2], moved[:2]) == (["True", "python"], ["False", "python"], ["True", "python"])
    assert first[2] == second[2] == moved[2].replace("shows.py:9", "shows.py:8")
    assert "shows.py:8" in first[2]


class Word(NamedTuple):
    word: str
    count: int = 1  # type: ignore[assignment]


def words(t):
    for w in t.line.split():
        yield Word(w)


def test_what_replaces_a_field_is_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = CodeCache(tmp_path)
    kept = []
    monkeypatch.setattr(cache, "put", lambda entry: kept.append(entry) or CodeCache.put(cache, entry))  # type: ignore[func-returns-value]
    for name in ("Word", "named_by_an_aggregate"):
        asked = request(lambda t: t._replace(count=t.count + 1), Schema.of(Word).renamed(name))
        assert Compiler(cache).compile(asked).output_schema.tuple_type is Word
    assert len(kept) == 1


def test_equal_functions_are_compiled_once_and_damage_is_seen(tmp_path: Path) -> None:
    def again(t):
        for w in t.line.split():
            yield Word(w)

    asked = request(words, {"line": str}, FLAT_MAP)
    code = Compiler(CodeCache(tmp_path)).compile(asked)
    same = Compiler(CodeCache(tmp_path)).compile(request(again, {"line": str}, FLAT_MAP))
    assert same.machine == code.machine  # the entry that was kept
    assert same.output_schema.tuple_type is Word
    (kept,) = tmp_path.iterdir()
    kept.write_bytes(kept.read_bytes()[:-1])
    assert CodeCache(tmp_path).get(code.machine.key) is None  # type: ignore[union-attr]
    assert Compiler(CodeCache(tmp_path)).compile(asked).machine.key == code.machine.key  # type: ignore[union-attr]


def test_a_reason_of_another_release_is_found_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = request(lambda t: len(repr(t.n)), {"n": int}, output=Schema.of(int))
    first = Compiler(CodeCache(tmp_path)).compile(asked).refusal
    with monkeypatch.context() as patch:
        patch.setattr(CodeCache, "get", lambda cache, key: CacheEntry("", b"", (), False, '{"code": "gone"}'))
        assert Compiler(CodeCache(tmp_path)).compile(asked).refusal == first
    assert first is not None
    assert (first["code"], first["what"]) == ("write_instead", "repr")


def test_what_changes_the_key() -> None:
    def adder(n):
        return lambda t: t.value + n

    assert Identity(adder(1)).digest == Identity(adder(1)).digest
    assert Identity(adder(1)).digest != Identity(adder(2)).digest
    assert Identity(adder(1)).digest != Identity(adder(1.0)).digest
    assert not Identity(adder(object())).known


def test_a_folder_that_others_can_write_to_is_not_used(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    cache = CodeCache(tmp_path)
    cache.put(CacheEntry("e", b"code", (), False, "input", b"k"))
    assert list(tmp_path.iterdir()) == []
    assert cache.get(key_of(b"k")) is not None  # in memory
    assert CodeCache(tmp_path).get(key_of(b"k")) is None


ENTRY = CacheEntry("e", b"code", (), False, "input", b"k")


def of_a_stranger(file: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make a file of another user")
    os.chown(file, 65534, 65534)


def linked(file: Path) -> None:
    file.rename(file.with_suffix(".elsewhere"))
    file.symlink_to(file.with_suffix(".elsewhere"))


@pytest.mark.parametrize(
    "changed",
    [
        lambda file: file.chmod(0o666),
        lambda file: file.chmod(0o620),
        lambda file: file.with_suffix(".second").hardlink_to(file),
        linked,
        of_a_stranger,
    ],
    ids=["of all", "of the group", "a second name", "a link", "of a stranger"],
)
def test_a_file_that_others_can_write_to_is_not_used_and_is_replaced(
    tmp_path: Path, changed: Callable[[Path], object]
) -> None:
    CodeCache(tmp_path).put(ENTRY)
    (file,) = tmp_path.iterdir()
    assert CodeCache(tmp_path).get(key_of(b"k")) == ENTRY
    changed(file)
    assert CodeCache(tmp_path).get(key_of(b"k")) is None
    CodeCache(tmp_path).put(ENTRY)  # what a process does that compiled it anew
    assert CodeCache(tmp_path).get(key_of(b"k")) == ENTRY


def test_a_link_in_place_of_the_folder_is_not_followed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder, link = tmp_path / "folder", tmp_path / "link"
    CodeCache(folder).put(ENTRY)
    link.symlink_to(folder)
    cache = CodeCache(link)
    assert cache.get(key_of(b"k")) is cache.get(key_of(b"other")) is None
    (said,) = caplog.messages
    assert f"machine code in {link} isn't used: it is a link" in said


def test_many_write_and_read_at_once(tmp_path: Path) -> None:
    def work(number: int) -> bool:
        entry = CacheEntry("e", bytes(range(256)) * 400, ("rel_flush",), True, "input", b"%d" % (number % 3))
        CodeCache(tmp_path).put(entry)
        return CodeCache(tmp_path).get(key_of(entry.inputs)) == entry

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(60)))
    assert len(list(tmp_path.iterdir())) == 3
