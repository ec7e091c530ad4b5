"""What is generated from the code: `python -m tools.reference` writes it anew.

These are tables of the guide, and the dashboard and alert rules in `cluster`. A page marks a table by
`<!-- made: SUBJECT -->` and `<!-- end -->`. The subject is `settings`, of a job and of the objects in it;
`command NAME`, the help of a command; `metrics`; `alerts`; `reasons FIRST LAST`; or `errors`.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import os
import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, get_args

import rayelastic as rel
from rayelastic import cli, errors
from rayelastic.errors.codes import ErrorCode
from rayelastic.errors.meanings import MEANINGS
from rayelastic.plan.config import LogLevel, RegionsName
from rayelastic.plan.settings.elasticity import AlgorithmName
from rayelastic.plan.settings.threads import ModelName
from rayelastic.reasons import Code
from rayelastic.runtime.watch.metric_table import METRICS
from tools.dashboard import alert_rules, alerts, dashboard

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs"
FILES = {ROOT / "cluster/grafana_dashboard.json": dashboard, ROOT / "cluster/alert_rules.yaml": alert_rules}
SETTINGS: tuple[type[Any], ...] = (
    rel.JobConfig,
    rel.Threads,
    rel.Elasticity,
    rel.Checkpoint,
    rel.Network,
    rel.TLS,
    rel.Latency,
    rel.Schedule,
    rel.PaperElasticity,
)
ENUMS = {  # as annotations write them: the enum, then the names of its members
    "ThreadingModel | ModelName": ModelName,
    "Algorithm | AlgorithmName": AlgorithmName,
    "Regions | RegionsName": RegionsName,
    "LogLevel": LogLevel,
}
WIDTH = "100"  # columns of a command's help


def filled(text: str) -> str:
    """Return the text of a page with each marked part made anew."""
    marked = re.compile(r"(<!-- made: (.+?) -->\n).*?(<!-- end -->)", re.DOTALL)
    return marked.sub(lambda found: f"{found[1]}{_made(found[2])}{found[3]}", text)


def _made(subject: str) -> str:
    kind, _, name = subject.partition(" ")
    if kind == "settings":
        rows = (row for settings in SETTINGS for row in _settings(settings))
        return _table("setting | type | default | meaning", rows)
    if kind == "errors":
        return _errors()
    if kind == "metrics":
        rows = ((f"`{one.name}`", one.kind.value, ", ".join(one.labels), one.text) for one in METRICS.values())
        return _table("name | kind | labels | meaning", rows)
    if kind == "alerts":
        return _table("rule | fires when", alerts())
    if kind == "reasons":
        return _table("code | sentence", _reasons(*name.split()))
    return f"```text\n{_help(name)}```\n"


def raised() -> dict[ErrorCode, set[str]]:
    """The classes with which each code is raised, read from the code. Each class raises its default code, too."""
    named = ((name, getattr(errors, name)) for name in errors.__all__)
    kinds = {name: kind for name, kind in named if isinstance(kind, type) and issubclass(kind, errors.RayelasticError)}
    found: dict[ErrorCode, set[str]] = defaultdict(set)
    for name, kind in kinds.items():
        found[kind.default_code].add(name)
    for path in sorted(Path(rel.__file__).parent.rglob("*.py")):
        if path.parent.name == "errors":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "ErrorCode":
                found[ErrorCode[node.attr]].update()
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func).rpartition(".")[2]
                called = "StateError" if called == "state_error" else called  # OperatorSpec.state_error
                for value in (*node.args, *(one.value for one in node.keywords)) if called in kinds else ():
                    if isinstance(value, ast.Attribute) and ast.unparse(value.value) == "ErrorCode":
                        found[ErrorCode[value.attr]].add(called)
    return found


def _errors() -> str:
    classes = raised()
    text = ""
    for group, codes in groupby(MEANINGS, lambda code: MEANINGS[code].group):
        rows = (
            (f"`{code}`", ", ".join(f"`{name}`" for name in sorted(classes[code])), *MEANINGS[code][1:])
            for code in sorted(codes)
        )
        text += f"### {group}\n\n{_table('code | class | what it means | what to do', rows)}\n"
    return text


def _table(head: str, rows: Iterator[tuple[str, ...]]) -> str:
    lines = [head, " | ".join("---" for _ in head.split(" | ")), *(" | ".join(row) for row in rows)]
    return "".join(f"| {line} |\n" for line in lines)


def _reasons(first: str, last: str) -> Iterator[tuple[str, ...]]:
    """The codes from one to another, with their sentences; a name in brackets is a value."""
    codes = [code.name.lower() for code in Code]
    for code in list(Code)[codes.index(first) : codes.index(last) + 1]:
        words = re.sub(r"\{(\w+):?(.*?)\}", lambda found: f"`{found[1]}`{_form(found[2])}", code.value)
        yield f"`{code.name.lower()}`", words if code.value.startswith("{") else _sentence(words)


def _form(form: str) -> str:
    """What follows a value in a sentence: the noun that counts it, or a word."""
    if not form.isalpha() or form in ("rate", "setting", "list", "code", "ratio"):
        return ""
    return f" {form}" if form in ("were", "faster") else f" {form}s"


def _settings(settings: type[Any]) -> Iterator[tuple[str, ...]]:
    """Name, type, default and meaning of each parameter; the meaning is that of the docstring's `Args`."""
    documented = (inspect.getdoc(settings) or "").partition("Args:\n")[2].partition("\n\n")[0]
    meanings = dict(re.findall(r"^ {4}(\w+): (.*?)(?=^ {4}\w|\Z)", documented, re.DOTALL | re.MULTILINE))
    for one in inspect.signature(settings).parameters.values():
        meaning = " ".join(meanings[one.name].split()).replace("|", "or")
        yield f"`{settings.__name__}({one.name}=)`", f"`{_type(one)}`", _default(one), _sentence(meaning)


def _type(setting: inspect.Parameter) -> str:
    text = str(setting.annotation)
    for written, names in ENUMS.items():
        text = text.replace(written, " | ".join(map(repr, get_args(names))))
    return text.replace(" | ", " or ")


def _default(setting: inspect.Parameter) -> str:
    if setting.default is inspect.Parameter.empty:
        return "required"
    return f"`{getattr(setting.default, 'value', setting.default)!r}`"


def _sentence(text: str) -> str:
    return text if text.startswith("'") else text[:1].upper() + text[1:]


def _help(command: str) -> str:
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = WIDTH
    try:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            cli.main([command, "--help"])
    finally:
        os.environ.pop("COLUMNS")
        if before is not None:
            os.environ["COLUMNS"] = before
    return printed.getvalue()


if __name__ == "__main__":
    for page in sorted(PAGES.rglob("*.md")):
        if (text := page.read_text()) != filled(text):
            page.write_text(filled(text))
    for path, text_of in FILES.items():
        path.write_text(text_of())
