"""Constants of policies' modules, which nobody can set: `sensitivity` plays with other values of them, too.

A constant is a number that a module of `rayelastic.policy` gives a name in capitals; what it is, the comment behind it
says. Another value holds in that module and in those that import it from there.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType

import rayelastic.policy

LINE = re.compile(r"^([A-Z][A-Z_0-9]+) = (?:[-+0-9.e /_]+)(?:  # (.*))?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class FixedConstant:
    """A number with a name.

    Args:
        module: where it stands.
        name: in capitals.
        value: the usual one.
        meaning: what its comment says.
    """

    module: str
    name: str
    value: float
    meaning: str

    @property
    def others(self) -> list[float]:
        """The other values that are tried: half and twice; of what is only a little more than 1, what it is more.

        >>> [FixedConstant("m", "A", value, "").others for value in (12e-9, 0.9, 1.5, 3.0, 4)]
        [[6e-09, 2.4e-08], [0.45, 0.95], [1.25, 2.0], [1.5, 6.0], [2, 8]]
        """
        value = self.value
        if isinstance(value, int):
            return [other for other in (value // 2, 2 * value) if other > 0]
        if 1.0 < value < 2.0:
            return [1 + (value - 1) / 2, 1 + 2 * (value - 1)]
        return [value / 2, (1 + value) / 2 if 0.01 < value < 1.0 else 2 * value]

    @property
    def label(self) -> str:
        """With its module's own name, as in "estimate.HELD"."""
        return f"{self.module.rpartition('.')[2]}.{self.name}"


def fixed_constants(package: ModuleType = rayelastic.policy) -> list[FixedConstant]:
    """Return the constants of a package's modules, in their order.

    >>> next(one for one in fixed_constants() if one.label == "estimate.HELD").value
    0.25
    """
    found = []
    for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        module = importlib.import_module(info.name)
        for name, meaning in LINE.findall(inspect.getsource(module)):
            found.append(FixedConstant(module.__name__, name, getattr(module, name), meaning))
    return found


@contextlib.contextmanager
def having(constant: FixedConstant, value: float) -> Iterator[None]:
    """Return the policies with another value of a constant, until the block ends.

    >>> from rayelastic.policy.element.guided import estimate
    >>> held = next(one for one in fixed_constants() if one.label == "estimate.HELD")
    >>> with having(held, 0.5):
    ...     estimate.HELD
    0.5
    >>> estimate.HELD
    0.25
    """
    policies = [module for name, module in list(sys.modules.items()) if name.startswith("rayelastic.policy.")]
    holders = [sys.modules[constant.module], *(module for module in policies if imports(module, constant))]
    for holder in holders:
        setattr(holder, constant.name, value)
    try:
        yield
    finally:
        for holder in holders:
            setattr(holder, constant.name, constant.value)


def imports(module: ModuleType, constant: FixedConstant) -> bool:
    """Return whether a module has a constant from where it stands."""
    found = [node for node in ast.walk(ast.parse(inspect.getsource(module))) if isinstance(node, ast.ImportFrom)]
    return any(node.module == constant.module and constant.name in {one.name for one in node.names} for node in found)
