"""The main job as a user starts it: text through Spark, RayDP and Ray, and back as a DataFrame, against a Counter."""

from __future__ import annotations

import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyarrow.dataset as dataset
import pytest

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

ROOT = Path(__file__).resolve().parents[2]
WORDS = ["to", "be", "naïve", "日本語", "twelve_bytes", "thirteen_byte", "a-word-of-more-than-twelve-bytes", "🙂"]
SPACES = [" ", "  ", "\t", "\u00a0", "\u2003", "\u3000"]


def test_word_count_through_spark_and_ray(tmp_path: Path) -> None:
    chance = random.Random(11)
    expected: Counter[str] = Counter()
    for number in range(5):
        lines = [
            "".join(chance.choice(WORDS) + chance.choice(SPACES) for _ in range(chance.randrange(12)))
            for _ in range(4000)
        ]
        (tmp_path / f"{number}.txt").write_bytes("\r\n".join(lines).encode())
        for line in lines:
            expected.update(line.split())
    output = tmp_path / "counts"
    command = [sys.executable, "-m", "rayelastic.cli", "submit", "topologies/word_count.py", "--spark", "--pes", "2"]
    done = subprocess.run(
        [*command, "--input", str(tmp_path / "*.txt"), "--output", str(output), "--top", "3"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    table = dataset.dataset(output, format="parquet").to_table()
    counted = dict(zip(table["word"].to_pylist(), table["n"].to_pylist(), strict=True))
    assert counted == expected
    assert f"{sum(expected.values()):,} words, {len(expected):,} distinct" in done.stdout
    assert "/s on average)" in done.stderr, "the last line of the progress"
    lines = done.stdout.splitlines()
    assert [lines[0].partition(" ")[0], lines[2], len(lines)] == ["counted", "the most frequent:", 6], done.stdout
    assert not [word for word in ("(raylet)", '"event"', "Cluster ID") if word in done.stderr], done.stderr
