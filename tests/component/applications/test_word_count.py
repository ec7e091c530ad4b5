"""The word count topology in this process, against `collections.Counter` over the same text."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pyarrow.parquet as parquet
import pytest

import rayelastic as rel
from rayelastic.plan.settings.threads import ModelName
from rayelastic.topologies import word_count

SPACES = [" ", "  ", "\t", "\u00a0", "\u2003", "\u3000", "\x1c", "\x85"]
WORDS = [
    "a",
    "the",
    "naïve",
    "日本語",
    "twelve_bytes",
    "thirteen_byte",
    "a-rather-long-word-of-thirty-bytes",
    "🙂",
    "\u200b",
]


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """Words of all lengths and scripts, all white space and line ends, an empty file, a last line without end."""
    chance = random.Random(7)
    for number, line_end in enumerate(("\n", "\r\n", "\r")):
        lines = [
            "".join(chance.choice(WORDS) + chance.choice(SPACES) for _ in range(chance.randrange(12)))
            for _ in range(2000)
        ]
        (tmp_path / f"{number}.txt").write_bytes((line_end.join(lines) + " end").encode())
    (tmp_path / "empty.txt").write_bytes(b"")
    return tmp_path


def reference(folder: Path) -> Counter[str]:
    counter: Counter[str] = Counter()
    for path in sorted(folder.glob("*.txt")):
        for line in path.read_text(encoding="utf-8").splitlines():
            counter.update(line.split())
    return counter


def counted(output: Path) -> Counter[str]:
    table = parquet.read_table(output)
    return Counter(dict(zip(table["word"].to_pylist(), table["n"].to_pylist(), strict=True)))


@pytest.mark.parametrize("pes", [1, 2, 3])
@pytest.mark.parametrize("threading", ["manual", "dynamic", "dedicated"])
def test_counts_equal_the_reference(text: Path, tmp_path: Path, pes: int, threading: ModelName) -> None:
    output = tmp_path / "out"
    topology = word_count.build(input=str(text / "*.txt"), output=str(output))
    result = rel.run(topology, rel.JobConfig(pes=pes, threads=rel.Threads(count=2, model=threading)))
    expected = reference(text)
    assert counted(output) == expected
    assert result.metrics.operator("words").tuples_out == sum(expected.values())
    assert f"{sum(expected.values()):,} words, {len(expected):,} distinct" in word_count.report(
        result, output=str(output)
    )


def test_without_a_folder_the_counts_come_back_as_a_table(text: Path) -> None:
    result = rel.run(word_count.build(input=str(text / "*.txt"), output=None))
    expected = reference(text)
    assert dict(zip(*result["out"].to_pydict().values(), strict=True)) == expected
    said = word_count.report(result, output=None)
    assert f"{sum(expected.values()):,} words, {len(expected):,} distinct\n" in said
    assert "all counts" not in said


def test_default_input_is_counted_right(tmp_path: Path) -> None:
    expected: Counter[str] = Counter()
    for path in word_count.default_input():
        expected.update(Path(path).read_text(encoding="utf-8").split())
    output = tmp_path / "out"
    rel.run(word_count.build(output=str(output)))
    assert counted(output) == expected


def test_its_declarations_are_shown_where_they_stand(text: Path) -> None:
    """Its folder is in the package, whose own frames are left out."""
    topology = word_count.build(input=str(text / "*.txt"), output="out")
    places = {operator.location.rpartition(":")[0] for operator in topology.operators.values()}
    assert places == {word_count.__file__}
