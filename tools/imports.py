"""The imports between modules in a folder of Python packages, read from the source without importing anything.

Every import counts, with its kind: at the top, inside a function, or for the type checker alone.
"""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

BESIDE = {"topologies": "rayelastic"}  # folders that lie beside the package that they are part of, by a link


class Where(enum.Enum):
    """Where an import stands."""

    TOP = "top"
    FUNCTION = "function"
    TYPE_CHECKING = "type checking"


@dataclass(frozen=True, slots=True)
class Import:
    """One imported name: `importer` and `imported` are modules, `imported` perhaps of another project."""

    importer: str
    imported: str
    name: str
    line: int
    where: Where


def modules(root: Path, folders: Iterable[str]) -> dict[str, Path]:
    """The modules below folders of `root` by dotted name: a package by its `__init__`, an extension by its stub."""
    found = (path for folder in folders for path in (root / folder).rglob("*.py*") if path.suffix in (".py", ".pyi"))
    return {dotted(path.relative_to(root)): path for path in sorted(found)}


def dotted(path: Path) -> str:
    """Return the module of a file.

    >>> dotted(Path("rayelastic/plan/__init__.py")), dotted(Path("rayelastic/plan/routing.py"))
    ('rayelastic.plan', 'rayelastic.plan.routing')
    >>> dotted(Path("topologies/vwap.py"))
    'rayelastic.topologies.vwap'
    """
    parts = path.with_suffix("").parts
    parts = (BESIDE[parts[0]], *parts) if parts[0] in BESIDE else parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(module: str, path: Path, known: Mapping[str, Path]) -> list[Import]:
    """What a module imports, in the order of lines; `known` tells a module from a name inside one."""
    reader = _Reader(module, path.name == "__init__.py", known)
    reader.visit(ast.parse(path.read_text(), str(path)))
    return reader.found


def all_imports(known: Mapping[str, Path]) -> list[Import]:
    """Return the imports of all these modules."""
    return [one for module, path in known.items() for one in imports(module, path, known)]


def components(edges: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Return the circles of a graph: its strongly connected components of more than one node, each sorted.

    >>> components({"a": ["b"], "b": ["c"], "c": ["b"]})
    [['b', 'c']]
    """
    reached = {node: _reached(node, edges) for node in edges}
    circles = {frozenset(other for other in reached[node] if node in reached.get(other, ())) for node in edges}
    return sorted(sorted(circle) for circle in circles if len(circle) > 1)


def _reached(start: str, edges: Mapping[str, Iterable[str]]) -> set[str]:
    reached: set[str] = set()
    ahead = [start]
    while ahead:
        for node in edges.get(ahead.pop(), ()):
            if node not in reached:
                reached.add(node)
                ahead.append(node)
    return reached


class _Reader(ast.NodeVisitor):
    def __init__(self, module: str, is_package: bool, known: Mapping[str, Path]) -> None:
        self.found: list[Import] = []
        self._module, self._known = module, known
        self._package = module if is_package else module.rpartition(".")[0]
        self._where = Where.TOP

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._add(alias.name, "", node.lineno)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        base = self._base(node)
        for alias in node.names:
            submodule = f"{base}.{alias.name}"
            if submodule in self._known:
                self._add(submodule, "", node.lineno)
            else:
                self._add(base, alias.name, node.lineno)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._inside(Where.FUNCTION, [node])

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._inside(Where.FUNCTION, [node])

    def visit_If(self, node: ast.If) -> None:
        if ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            self._inside(Where.TYPE_CHECKING, node.body, children=False)
            self._inside(self._where, node.orelse, children=False)
        else:
            self.generic_visit(node)

    def _inside(self, where: Where, nodes: Iterable[ast.AST], children: bool = True) -> None:
        before, self._where = self._where, where
        for node in nodes:
            self.generic_visit(node) if children else self.visit(node)
        self._where = before

    def _base(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parents = self._package.split(".")
        return ".".join([*parents[: len(parents) + 1 - node.level], *([node.module] if node.module else [])])

    def _add(self, imported: str, name: str, line: int) -> None:
        self.found.append(Import(self._module, imported, name, line, self._where))


def packages_above(module: str) -> Iterator[str]:
    """Yield the packages that are imported before a module is.

    >>> list(packages_above("rayelastic.plan.routing"))
    ['rayelastic', 'rayelastic.plan']
    """
    parts = module.split(".")
    for count in range(1, len(parts)):
        yield ".".join(parts[:count])
