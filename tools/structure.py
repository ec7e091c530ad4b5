"""What makes a change costly, counted, and a ratchet on it: `python -m tools.structure`; `--list` shows the places.

Each limit is in pyproject.toml, `[tool.structure]`; it may fall and never rise. Ruff limits parameters, import-linter
finds import cycles.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE, NATIVE = "rayelastic", "native_sched"
MEMBERS = 25  # data members of a class; a dataclass is a table of values
OPTIONAL = ("on_ray", "spark", "picture", "plot", "lowering")  # need packages that not everybody has
CPP_CLASS = re.compile(
    r"^( *)(?:class|struct)(?: alignas\([^)]*\))? (\w+)[^;{]*\{\n(.*?)^\1\};", re.DOTALL | re.MULTILINE
)
CPP_OTHER = re.compile(r"(?:using|friend|static|template|enum|struct|class|return|public|private)\b")


def large_classes(root: Path) -> Iterator[str]:
    """Yield the classes with too many data members."""
    for path, tree in python_files(root):
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.ClassDef)
                and not node.decorator_list
                and (count := len(attributes(node))) > MEMBERS
            ):
                yield f"{path}:{node.lineno} {node.name}: {count}"
    for file in sorted((root / NATIVE).rglob("*.hpp")):
        text = re.sub(r" *//.*", "", file.read_text())
        for indent, name, body in CPP_CLASS.findall(text):
            lines = re.findall(rf"^{indent}  (\S.*)$", body, re.MULTILINE)
            if (count := sum(map(members, lines))) > MEMBERS:
                yield f"{file.relative_to(root)} {name}: {count}"


def attributes(node: ast.ClassDef) -> set[str]:
    """Return the attributes that a class's own methods assign."""
    stores = (one for one in ast.walk(node) if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store))
    return {one.attr for one in stores if isinstance(one.value, ast.Name) and one.value.id == "self"}


def members(line: str) -> int:
    """Return how many data members a line of a C++ class declares.

    >>> [members(line) for line in ("std::map<K, V> known_ REL_GUARDED_BY(m);", "int a_ = f(3), b_{1};", "int f();")]
    [1, 2, 0]
    """
    declared = re.sub(r"\{.*|=.*| REL_\w+\(.*?\)|<.*>", "", line).rstrip(" ;")
    if not line.endswith(";") or CPP_OTHER.match(line) or "(" in declared or " " not in declared.strip():
        return 0
    return max(1, len(re.findall(r"\b\w+_(?=[{,;]| =| REL_)", line)))


def late_imports(root: Path) -> Iterator[str]:
    """Yield the imports of the project's own modules inside functions, but for those of optional parts."""
    for path, tree in python_files(root):
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                for node in ast.walk(function):
                    if isinstance(node, ast.Import | ast.ImportFrom):
                        from_ = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                        for name in from_ or [one.name for one in node.names]:
                            if name.startswith(PACKAGE) and not set(OPTIONAL) & set(name.split(".")):
                                yield f"{path}:{node.lineno} {name}"


def mentions(root: Path, pattern: str) -> Iterator[str]:
    """Yield the product's files that mention a concept."""
    for folder, suffixes in ((PACKAGE, {".py"}), (NATIVE, {".hpp", ".cpp"})):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in suffixes and "tests" not in path.parts and re.search(pattern, path.read_text()):
                yield path.relative_to(root).as_posix()


def python_files(root: Path) -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted((root / PACKAGE).rglob("*.py")):
        yield path.relative_to(root), ast.parse(path.read_text())


def measured(root: Path, concepts: Mapping[str, int]) -> dict[str, list[str]]:
    """Return the places of each count."""
    counts = {"large-classes": list(large_classes(root)), "imports-in-functions": list(late_imports(root))}
    return counts | {pattern: list(mentions(root, pattern)) for pattern in concepts}


def main(arguments: Sequence[str], root: Path = ROOT) -> int:
    settings = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["structure"]
    concepts: dict[str, int] = settings.pop("files-that-mention", {})
    limits: dict[str, int] = settings | concepts
    counts = measured(root, concepts)
    for name, places in counts.items():
        print(f"{name:32}{len(places):5}  limit {limits[name]:4}" + ("  can be lowered" * (len(places) < limits[name])))
        if "--list" in arguments or len(places) > limits[name]:
            print("".join(f"    {place}\n" for place in places), end="")
    rose = [name for name, places in counts.items() if len(places) > limits[name]]
    print(f"rose: {', '.join(rose)}" if rose else "nothing rose")
    return 1 if rose else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
