"""Whether every public name, and every method that users call, shows how to use it: `python -m tools.examples`.

An example is a doctest, which pytest runs, in the docstring of a function, class or method; or in that of a class, or
of one below or above it, that uses the method. Classes that users only pass on, and errors, need none.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator

from tools.site import public

ONLY_PASSED_ON = ("rayelastic.spark.Spark", "rayelastic.errors.")


def without_example() -> Iterator[str]:
    """Public names and methods of public classes that no doctest shows."""
    for name, value in public():
        if name.startswith(ONLY_PASSED_ON):
            continue
        if not _example(value):
            yield name
        if inspect.isclass(value):
            of_class = "".join(_example(base) for base in (*value.__mro__, *value.__subclasses__()))
            for method in dir(value):
                if method.startswith("_") or not _is_ours(inspect.getattr_static(value, method)):
                    continue
                own = "".join(_example(base.__dict__.get(method)) for base in value.__mro__)
                if not own and not re.search(rf"\.{method}\b", of_class):
                    yield f"{name}.{method}"


def _example(value: object) -> str:
    """The lines of the doctest of something's own docstring."""
    documented = value.__func__.__doc__ if isinstance(value, classmethod | staticmethod) else value.__doc__
    return "".join(re.findall(r"^\s*(?:>>>|\.\.\.) .*\n?", documented or "", re.MULTILINE))


def _is_ours(member: object) -> bool:
    """Whether it is a function or property of this package: no field, no member of an enum, nothing of Python's."""
    if isinstance(member, classmethod | staticmethod):
        member = member.__func__
    if isinstance(member, property):
        member = member.fget
    return inspect.isfunction(member) and member.__module__.startswith("rayelastic")


def main() -> int:
    missing = list(without_example())
    for name in missing:
        print(f"{name}: its docstring has no example (>>>)")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
