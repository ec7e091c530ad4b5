"""What a work is: an input that is made once, and how its result is compared."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

WORKS = Path(__file__).resolve().parent / "works"


@dataclass(frozen=True, slots=True)
class Work:
    """A piece of work.

    Args:
        name: the name of its folder.
        description: one line for the table's head.
        items: how many input items the full input has.
        item: what an item is called.
        tuples: how many tuples are counted as work done; several may come out of one item.
        tuple_name: what a tuple is called, in the plural.
        suffix: of the input file, dot included.
        write_input: writes the first `n` items to a path, the same ones on every machine.
    """

    name: str
    description: str
    items: int
    item: str
    tuples: int
    tuple_name: str
    suffix: str
    write_input: Callable[[Path, int], None]

    def input(self, folder: Path, items: int) -> Path:
        """Return the input file with that many items, written unless it is there already."""
        path = folder / f"{self.name}-{items}{self.suffix}"
        if not path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            partial = path.with_suffix(".partial")
            self.write_input(partial, items)
            partial.rename(path)
        return path

    def program(self, system: str) -> Path:
        """Return the program that does this work on a system; it may not exist."""
        return WORKS / self.name / f"{system.removesuffix('_python')}.py"


def works() -> dict[str, Work]:
    """Return the works that have a folder, by name."""
    names = sorted(path.parent.name for path in WORKS.glob("*/__init__.py"))
    found = (importlib.import_module(f"bench.peers.works.{name}").WORK for name in names)
    return {work.name: work for work in found}
