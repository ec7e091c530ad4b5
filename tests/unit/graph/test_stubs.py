"""What checkers know of the streams and of the sources has the parameters that run: the stub, and the overloads."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_overloads

import pytest

import rayelastic as rel
from rayelastic.fluent import stream as streams
from rayelastic.fluent.base import StreamBase

STUB = ast.parse(Path(streams.__file__).with_suffix(".pyi").read_text())
CLASSES = {node.name: node for node in STUB.body if isinstance(node, ast.ClassDef)}
PUBLIC = ("Stream", "KeyedStream", "TimelyStream", "WindowedStream")
DYNAMIC = re.compile(r"\b(Any|Callable|Stream|StreamT|str \| Emit|object|Mapping)\b|str \| Emit")  # typed more closely

Parameters = dict[str, inspect.Parameter]


def methods(name: str) -> dict[str, list[ast.FunctionDef]]:
    """The overloads of each public method of a class of the stub, without inherited ones."""
    found: dict[str, list[ast.FunctionDef]] = {}
    for node in CLASSES[name].body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            found.setdefault(node.name, []).append(node)
        if isinstance(node, ast.Assign):  # another name of a method
            found[ast.unparse(node.targets[0])] = found[ast.unparse(node.value)]
    return found


def options(name: str) -> Iterator[str]:
    """The keys of a TypedDict of the stub."""
    for base in CLASSES[name].bases:
        if isinstance(base, ast.Name) and base.id in CLASSES:
            yield from options(base.id)
    yield from (node.target.id for node in CLASSES[name].body if isinstance(node, ast.AnnAssign))  # type: ignore[union-attr]


def stubbed(node: ast.FunctionDef) -> Parameters:
    """The parameters of one overload, its shared options among them."""
    empty, kinds, args = inspect.Parameter.empty, inspect.Parameter, node.args
    found: list[tuple[ast.arg, Any, Any]] = []
    positional = [*args.posonlyargs, *args.args]
    defaults: list[Any] = [*[None] * (len(positional) - len(args.defaults)), *args.defaults]
    for at, (arg, default) in enumerate(zip(positional, defaults, strict=True)):
        kind = kinds.POSITIONAL_ONLY if at < len(args.posonlyargs) else kinds.POSITIONAL_OR_KEYWORD
        found.append((arg, default, kind))
    if args.vararg:
        found.append((args.vararg, None, kinds.VAR_POSITIONAL))
    found += [
        (arg, default, kinds.KEYWORD_ONLY) for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True)
    ]
    made = {
        arg.arg: kinds(
            arg.arg,
            kind,
            default=empty if default is None else ast.unparse(default),
            annotation=ast.unparse(arg.annotation) if arg.annotation else empty,
        )
        for arg, default, kind in found
    }
    if args.kwarg and args.kwarg.annotation is not None:
        unpacked = re.fullmatch(r"Unpack\[(\w+)\]", ast.unparse(args.kwarg.annotation))
        if unpacked is None:
            made[args.kwarg.arg] = kinds(args.kwarg.arg, kinds.VAR_KEYWORD)
        else:
            made |= {name: kinds(name, kinds.KEYWORD_ONLY, default="...") for name in options(unpacked[1])}
    return made


def check(overloads: list[Parameters], real: Parameters, of: str) -> None:
    """Compare names, order, kinds, defaults and plain types."""
    assert {name for one in overloads for name in one} == set(real), of
    for one in overloads:
        ordered = [name for name, p in one.items() if p.kind is not p.KEYWORD_ONLY and p.kind is not p.VAR_KEYWORD]
        there = [name for name, p in real.items() if p.kind is not p.KEYWORD_ONLY and p.kind is not p.VAR_KEYWORD]
        assert ordered == there[: len(ordered)], of
        for name, parameter in one.items():
            as_it_runs = real[name]
            first_of_several = parameter.kind is parameter.POSITIONAL_ONLY and (
                name == "self" or as_it_runs.kind is parameter.VAR_POSITIONAL
            )
            assert parameter.kind == as_it_runs.kind or first_of_several, f"{of}: {name}"
            if parameter.default is not parameter.empty:
                assert as_it_runs.default is not as_it_runs.empty, f"{of}: {name} has no default"
                if parameter.default != "...":
                    assert as_it_runs.default == ast.literal_eval(parameter.default), f"{of}: {name}"
            elif len(overloads) == 1:
                assert as_it_runs.default is as_it_runs.empty, f"{of}: {name} has a default"
            spelled = str(as_it_runs.annotation).replace("dt.", "")
            if isinstance(parameter.annotation, str) and len(overloads) == 1 and not DYNAMIC.search(spelled):
                assert parameter.annotation.replace("'", '"') == spelled.replace("'", '"'), f"{of}: {name}"


@pytest.mark.parametrize("name", PUBLIC)
def test_stub_has_the_methods_that_run(name: str) -> None:
    known, real = set(methods(name)), getattr(streams, name)
    for base in real.__mro__[1:]:
        known |= set(methods(base.__name__)) if base.__name__ in PUBLIC else set()
    public = {word for word, value in inspect.getmembers(real) if not word.startswith("_") and callable(value)}
    properties = {word for word in ("topology",) if name == "WindowedStream"}
    assert known - properties == public - {word for word in vars(StreamBase) if not word.startswith("_")}


@pytest.mark.parametrize("name", PUBLIC)
def test_stub_has_the_parameters_that_run(name: str) -> None:
    for method, overloads in methods(name).items():
        real = getattr(getattr(streams, name), method)
        if isinstance(real, property):
            continue
        signature = dict(inspect.signature(real).parameters)
        check([stubbed(node) for node in overloads], signature, f"{name}.{method}")


def _expanded(function: Callable[..., Any]) -> Parameters:
    made: Parameters = {}
    for name, parameter in inspect.signature(function).parameters.items():
        unpacked = re.fullmatch(r"Unpack\[(\w+)\]", str(parameter.annotation))
        if unpacked is None:
            default = parameter.default if parameter.default is parameter.empty else repr(parameter.default)
            made[name] = parameter.replace(default=default)
            continue
        shared = getattr(sys.modules[function.__module__], unpacked[1])
        made |= {key: inspect.Parameter(key, parameter.KEYWORD_ONLY, default="...") for key in shared.__annotations__}
    return made


SOURCES = (
    rel.rows, rel.csv, rel.json, rel.parquet, rel.arrow, rel.generate, rel.callable, rel.polled,
    rel.Topology.source,
)  # fmt: skip


@pytest.mark.parametrize("function", SOURCES, ids=lambda function: function.__name__)
def test_overloads_of_a_source_have_the_parameters_that_run(function: Callable[..., Any]) -> None:
    overloads = get_overloads(inspect.unwrap(function))
    assert overloads
    check([_expanded(one) for one in overloads], dict(inspect.signature(function).parameters), function.__name__)


def test_annotations_name_the_type_of_the_tuples_where_they_are_evaluated() -> None:
    assert str(rel.Stream[int]) == "rayelastic.fluent.stream.Stream[int]"
    assert str(rel.KeyedStream[int, str]) == "rayelastic.fluent.stream.KeyedStream[int, str]"
    assert "WindowedStream[int, str]" in str(rel.WindowedStream[int, str])
