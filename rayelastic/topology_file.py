"""Load a topology from a file or module; the parameters of its `build` and `report` become options.

A topology file has `build(**parameters) -> Topology` and may have `report(result, **parameters) -> str`.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
import types
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from rayelastic.errors import DeclarationError, ErrorCode
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
            raise DeclarationError(
                f"{where} has no function build(); write one that returns a rel.Topology", code=ErrorCode.NOT_A_TOPOLOGY
            )
        self._build: Callable[..., Topology] = build
        self._report: Callable[..., str] | None = getattr(self.module, "report", None)

    def options(self, defaults: Mapping[str, object]) -> list[click.Option]:
        """Make an option of each parameter of `build` and `report`.

        Args:
            defaults: of some parameters, in place of their own.
        """
        return [self._option(name, one, defaults) for name, one in self._parameters().items()]

    def _option(self, name: str, parameter: inspect.Parameter, defaults: Mapping[str, object]) -> click.Option:
        option = f"--{name.replace('_', '-')}"
        kind = _option_type(parameter)
        default = defaults.get(name, parameter.default)
        required = default is inspect.Parameter.empty
        names = [f"{option}/--no-{option[2:]}" if kind is bool else option, name]
        return click.Option(
            names,
            type=None if kind is bool else kind,
            required=required,
            default=None if required else default,
            show_default=not required and default is not None,
            help=_documentation(name, self._build, self._report),
        )

    def build(self, options: Mapping[str, Any]) -> Topology:
        """Declare the topology with the options' values."""
        return self._build(**self._chosen(self._build, options))

    def report(self, result: Any, options: Mapping[str, Any]) -> str | None:
        """Return what the module reports of a result; None if it has no `report`."""
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
    def _chosen(function: Callable[..., Any], options: Mapping[str, Any]) -> dict[str, Any]:
        return {name: options[name] for name in inspect.signature(function).parameters if name in options}


def _load(where: str) -> types.ModuleType:
    path = Path(where)
    if path.suffix == ".py":
        if not path.is_file():
            raise DeclarationError(
                f"there is no topology file {where}; pass the path of a Python file or a module name",
                code=ErrorCode.MISSING_FILE,
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
            f"there is no topology module {where!r} ({error}); pass a module name or a path ending in .py",
            code=ErrorCode.MISSING_MODULE,
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
    """Return the line of the docstring's `Args:` that explains a parameter."""
    for function in functions:
        for line in (inspect.getdoc(function) or "").splitlines() if function is not None else ():
            if line.strip().startswith(f"{name}: "):
                return line.split(": ", 1)[1]
    return None
