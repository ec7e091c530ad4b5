"""Loads a topology from a file or module and turns the parameters of its `build` and `report` into options.

A topology file has `build(**parameters) -> Topology` and may have `report(result, **parameters) -> str`.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import inspect
import sys
import types
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rayelastic.errors import DeclarationError
from rayelastic.topology import Topology


class TopologyFile:
    """A module that builds a topology.

    Args:
        where: the path of a Python file, or the dotted name of a module.

    Raises:
        DeclarationError: there is no such file or module, or it has no `build`.
    """

    def __init__(self, where: str) -> None:
        self.module = _load(where)
        build = getattr(self.module, "build", None)
        if not callable(build):
            raise DeclarationError(f"{where} has no function build(); write one that returns a rel.Topology")
        self._build: Callable[..., Topology] = build
        self._report: Callable[..., str] | None = getattr(self.module, "report", None)

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Adds one option for each parameter of `build` and `report`."""
        group = parser.add_argument_group(f"parameters of {self.module.__name__}")
        for name, parameter in self._parameters().items():
            option = f"--{name.replace('_', '-')}"
            kind = _option_type(parameter)
            documented = _documentation(name, self._build, self._report)
            if kind is bool:
                group.add_argument(
                    option, dest=name, action=argparse.BooleanOptionalAction, default=parameter.default, help=documented
                )
            else:
                required = parameter.default is inspect.Parameter.empty
                group.add_argument(
                    option,
                    dest=name,
                    type=kind,
                    required=required,
                    default=None if required else parameter.default,
                    help=documented,
                )

    def build(self, options: argparse.Namespace) -> Topology:
        """Declares the topology with the parameters given."""
        return self._build(**self._chosen(self._build, options))

    def report(self, result: Any, options: argparse.Namespace) -> str | None:
        """What the module has to say of a result; `None` if it says nothing."""
        return None if self._report is None else self._report(result, **self._chosen(self._report, options))

    def _parameters(self) -> dict[str, inspect.Parameter]:
        found: dict[str, inspect.Parameter] = {}
        for function in (self._build, self._report):
            if function is not None:
                skipped = 1 if function is self._report else 0
                signature = inspect.signature(function, eval_str=True)
                for name, parameter in list(signature.parameters.items())[skipped:]:
                    found.setdefault(name, parameter)
        return found

    @staticmethod
    def _chosen(function: Callable[..., Any], options: argparse.Namespace) -> dict[str, Any]:
        return {
            name: getattr(options, name) for name in inspect.signature(function).parameters if hasattr(options, name)
        }


def _load(where: str) -> types.ModuleType:
    path = Path(where)
    if path.suffix == ".py":
        if not path.is_file():
            raise DeclarationError(
                f"there is no topology file {where}; give the path of a Python file or a module name"
            )
        folder = str(path.resolve().parent)
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        sys.path.insert(0, folder)
        spec.loader.exec_module(module)
        _ship_by_value(module)
        return module
    sys.path.insert(0, str(Path.cwd()))
    try:
        module = importlib.import_module(where)
    except ModuleNotFoundError as error:
        raise DeclarationError(
            f"there is no topology module {where!r} ({error}); give a module name or a path ending in .py"
        ) from error
    _ship_by_value(module)
    return module


def _ship_by_value(module: types.ModuleType) -> None:
    """Other nodes don't have the file: what is defined in it travels with the job."""
    import cloudpickle

    cloudpickle.register_pickle_by_value(module)


def _option_type(parameter: inspect.Parameter) -> Callable[[str], Any]:
    annotation = parameter.annotation
    if isinstance(annotation, types.UnionType):
        annotation = next(choice for choice in typing.get_args(annotation) if choice is not type(None))
    return annotation if annotation in (bool, int, float, str) else str


def _documentation(name: str, *functions: Callable[..., Any] | None) -> str | None:
    """The line of the docstring's `Args:` that explains a parameter."""
    for function in functions:
        for line in (inspect.getdoc(function) or "").splitlines() if function is not None else ():
            if line.strip().startswith(f"{name}: "):
                return line.split(": ", 1)[1].replace("%", "%%")
    return None
