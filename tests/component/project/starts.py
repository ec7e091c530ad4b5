"""One start of the examples: runs programs one after the other in this process, and writes down what their jobs left.

Used by test_starts.py as a program of its own: python starts.py RESULT EXAMPLE...
An example is a page of the guide, `README` or the name of a module of topologies.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import runpy
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
GRAPH = {"tuples": 2000}
TOPOLOGIES: dict[str, dict[str, Any]] = {
    "bushy": GRAPH | {"depth": 3},
    "data_parallel": GRAPH | {"width": 5},
    "joker_regions": GRAPH | {"multiplications": 10, "keys": 100},
    "load_balance": GRAPH | {"flops": 100, "pause": 0.0},
    "login_failures": {"output": "out", "lines": 2000},
    "mixed": GRAPH | {"paths": 2, "operators": 5},
    "packet_analysis": {"output": "out", "packets": 500},
    "pipeline": GRAPH | {"operators": 10},
    "radio_imaging": {"output": "out", "samples": 500, "frequencies": 1, "cells": 64},
    "vwap": {"output": "out", "count": 2000},
    "wiki_word_count": {"count": 300},
    "word_count": {"input": str(ROOT / "README.md"), "output": "out"},
}


def examples() -> list[str]:
    """All that there are."""
    docs = ROOT / "docs"
    paths = sorted(path for path in docs.rglob("*.md") if "```python" in path.read_text())
    pages = [str(path.relative_to(docs).with_suffix("")) for path in paths]
    return ["README", *pages, *TOPOLOGIES]


def rows_of(value: Any) -> list[str]:
    """What a sink left, in an order of its own: where threads meet, streams have none."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    if isinstance(value, str | Path) and Path(value).exists():
        form = "parquet" if list(Path(value).glob("**/*.parquet")) or str(value).endswith(".parquet") else "csv"
        value = ds.dataset(str(value), format=form).to_table()
    if isinstance(value, pa.Table):
        value = value.to_pylist()
    shown = sorted(repr(row) for row in value) if isinstance(value, list) else [repr(value)]
    return [re.sub(rf"{tempfile.gettempdir()}/tmp\w+", "...", row) for row in shown]  # folders of that start alone


def run(name: str, folder: Path) -> None:
    """Runs one example in its own folder."""
    os.chdir(folder)
    if name in TOPOLOGIES:
        import rayelastic as rel

        rel.run(importlib.import_module(f"rayelastic.topologies.{name}").build(**TOPOLOGIES[name]))
        return
    page = ROOT / "README.md" if name == "README" else ROOT / "docs" / f"{name}.md"
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    program = folder / f"{Path(name).name}_page.py"
    program.write_text("\n".join(blocks))
    runpy.run_path(str(program), run_name=program.stem)


def main(result: str, names: list[str]) -> None:
    sys.path.insert(0, str(ROOT))
    from rayelastic.job import Job

    left: dict[str, list[dict[str, list[str]]]] = {}
    of_example: list[dict[str, list[str]]] = []
    seen: set[int] = set()
    wait = Job.wait

    def noted(self: Job, timeout: float | None = None) -> Any:
        found = wait(self, timeout)
        if id(found) not in seen:
            seen.add(id(found))
            kept.append(found)
            of_example.append({sink: rows_of(value) for sink, value in found.items()})
        return found

    kept: list[Any] = []
    compiled = ""  # the first example that had Numba imported
    Job.wait = noted  # type: ignore[method-assign]
    for name in names:
        of_example = left[name] = []
        with tempfile.TemporaryDirectory() as folder:
            run(name, Path(folder))
            os.chdir(ROOT)
        compiled = compiled or (name if "numba" in sys.modules else "")
    Path(result).write_text(json.dumps({"left": left, "compiled": compiled}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
