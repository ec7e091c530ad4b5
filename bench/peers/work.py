"""What a work is: an input that is made once, and how its result is compared."""

from __future__ import annotations

import importlib
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

WORKS = Path(__file__).resolve().parent / "works"
SEED = 1  # of the dice that make an input of lines


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
        own = WORKS / self.name / f"{system.removesuffix('_python')}.py"
        return WORKS.parent / "ported.py" if system == "rayelastic" and not own.exists() else own


def lines(line: Callable[[random.Random, int], str]) -> Callable[[Path, int], None]:
    """Write an input of text: `line(dice, number)` gives each of its lines.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     lines(lambda dice, number: f"{number} {dice.randrange(10)}")(Path(file.name), 3)
    ...     Path(file.name).read_text()
    '0 2\\n1 9\\n2 1\\n'
    """

    def write_input(path: Path, items: int) -> None:
        dice = random.Random(SEED)
        with path.open("w") as file:
            file.writelines(f"{line(dice, number)}\n" for number in range(items))

    return write_input


def works() -> dict[str, Work]:
    """Return the works that have a folder, by name."""
    names = sorted(path.parent.name for path in WORKS.glob("*/__init__.py"))
    found = (importlib.import_module(f"bench.peers.works.{name}").WORK for name in names)
    return {work.name: work for work in found}
