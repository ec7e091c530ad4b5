"""Finds the test files nearest to a source file: by imports, the number of modules between, and names.

It reads the source alone. `./dev test --changed` and `./dev mutate` use this map.
"""

from __future__ import annotations

import ast
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from tools.imports import all_imports, dotted, modules

FOLDERS = ("rayelastic", "topologies", "bench", "tools", "tests")
FACADE = "rayelastic"
LEVELS = ("tests/unit", "tests/component")  # the cluster's tests are too slow to be near anything
DIRECT, NEAR = 1, 2  # imports from a test to what it tests; those further away count where there is none as near
NATIVE = "tests/component/native"
PAGES = {"README.md": "tests/component/test_readme.py", "docs": "tests/component/test_guide.py"}


class Rank(NamedTuple):
    """How near a test file is; the smaller, the nearer.

    Args:
        distance: imports from it to the module, one less where its name says the module's.
        level: of tests: 0 for unit tests.
        stranger: whether it stands in no folder of the module's layer.
        breadth: how many modules it reaches.
    """

    distance: int
    level: int
    stranger: bool
    breadth: int


class Nearest:
    """The map from source files to test files.

    Args:
        root: of the source tree.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._known = modules(root, FOLDERS)
        self._tests = [name for name, path in self._known.items() if self._level(path) is not None]
        self._distances = self._measured(self._edges())

    def of_module(self, module: str, near: int = DIRECT) -> list[Path]:
        """Return the tests of a module, nearest first; component tests only where no unit test imports it.

        Args:
            module: of our own.
            near: imports away at most, if there is any test so near.
        """
        ranks = {test: self._rank(test, module) for test in self._tests if module in self._distances[test]}
        if any(rank.distance <= DIRECT and rank.level == 0 for rank in ranks.values()):
            ranks = {test: rank for test, rank in ranks.items() if rank.level == 0}
        furthest = max(near, min((rank.distance for rank in ranks.values()), default=0))
        chosen = sorted((rank, test) for test, rank in ranks.items() if rank.distance <= furthest)
        return [self._known[test].relative_to(self._root) for _, test in chosen]

    def of_files(self, changed: Iterable[Path], near: int = DIRECT) -> list[Path]:
        """The tests of changed files, paths from the root: near ones, and what changed among tests themselves."""
        found: dict[Path, None] = {}
        for path in changed:
            found.update(dict.fromkeys(self._of_file(path, near)))
        return list(found)

    def _of_file(self, path: Path, near: int) -> list[Path]:
        if path.parts[0] == "native_sched":
            return [Path(NATIVE)]
        for page, test in PAGES.items():
            if path.parts[0] == page:
                return [Path(test)]
        module = dotted(path)
        if path.suffix != ".py" or module not in self._known:
            return []
        if path.parts[0] == "tests":
            return [path] if path.name.startswith("test_") else self._importers(module)
        source = self._known[module]  # not where it was, if it has become a folder
        doctests = [source.relative_to(self._root)] if ">>> " in source.read_text() else []
        return [*doctests, *self.of_module(module, near)]

    def _importers(self, helper: str) -> list[Path]:
        tests = [test for test in self._tests if helper in self._distances[test]]
        return [self._known[test].relative_to(self._root) for test in tests]

    def _level(self, path: Path) -> int | None:
        """Which level of tests a file belongs to; None if it is no test file."""
        name = path.relative_to(self._root).as_posix()
        if not path.name.startswith("test_"):
            return None
        return next((number for number, level in enumerate(LEVELS) if name.startswith(f"{level}/")), None)

    def _rank(self, test: str, module: str) -> Rank:
        reached, path = self._distances[test], self._known[test]
        layer = module.split(".")[1] if "." in module else ""
        distance = reached[module] - is_named_after(test, module)
        return Rank(distance, self._level(path) or 0, layer not in path.parts, len(reached))

    def _edges(self) -> dict[str, set[str]]:
        """Who imports whom; what comes from the facade comes from where it lives."""
        everything = all_imports(self._known)
        homes = {one.name: one.imported for one in everything if one.importer == FACADE and one.name}
        edges: defaultdict[str, set[str]] = defaultdict(set)
        for one in everything:
            if one.importer != FACADE and one.imported in self._known:
                edges[one.importer].add(one.imported)
        for module, imported in edges.items():
            if FACADE in imported:
                imported.discard(FACADE)
                imported.update(from_facade(self._known[module], homes))
        return edges

    def _measured(self, edges: Mapping[str, Iterable[str]]) -> dict[str, dict[str, int]]:
        return {test: distances(test, edges) for test in self._tests}


def distances(start: str, edges: Mapping[str, Iterable[str]]) -> dict[str, int]:
    """How many imports lead to each module; a helper among the tests is no step.

    >>> distances("tests.a", {"tests.a": ["tests.b"], "tests.b": ["x"], "x": ["y"], "y": ["z"]})
    {'tests.b': 0, 'x': 1, 'y': 2, 'z': 3}
    """
    found: dict[str, int] = {}
    ahead = deque([(start, 0)])
    while ahead:
        module, distance = ahead.popleft()
        for imported in edges.get(module, ()):
            step = distance + (not imported.startswith("tests."))
            if step < found.get(imported, step + 1):
                found[imported] = step
                ahead.append((imported, step))
    return found


def from_facade(path: Path, homes: Mapping[str, str]) -> set[str]:
    """Where the names live that a file takes from the facade: `rel.sum` is of `graph.aggregates`."""
    used = {node.attr for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Attribute)}
    return {homes[name] for name in used & homes.keys()}


def is_named_after(test: str, module: str) -> bool:
    """Return whether a test file says by its name what it tests.

    >>> is_named_after("tests.unit.policy.test_guided", "rayelastic.policy.element.guided.controller")
    True
    >>> is_named_after("tests.unit.plan.test_routing", "rayelastic.plan.hash_ring")
    False
    """
    said = set(test.rpartition(".")[2].split("_")[1:])
    *folders, name = module.split(".")
    return set(name.split("_")) <= said or said <= {word for part in [*folders[1:], name] for word in part.split("_")}
