"""Finds the calls of a program that name an operator first, and rewrites them with `name=`."""

from __future__ import annotations

import ast
import bisect
import io
import re
import tokenize
from collections.abc import Sequence

from tools.codemod_names.edits import Edit, Offsets

# {method: the parameters that followed the name and are needed}
NEEDED: dict[str, tuple[str, ...]] = {
    "source": ("source",),
    "feedback": ("like",),
    "apply": ("operator",),
    "map": ("fn",),
    "filter": ("fn",),
    "flat_map": ("fn",),
    "aggregate": (),
    "event_time": ("field",),
    "sink": ("sink",),
    "merge_by_time": (),
    "cross_join": ("right",),
    "join": ("right",),
    "enrich": ("table",),
    "process": ("fn",),
    "match": ("pattern",),
    "deduplicate": (),
    "scan": ("fn", "start"),
    "combine": ("own",),
    "fold": ("fn", "start"),
    "reduce": ("fn",),
    "parallel": ("width", "body"),
    "elastic": ("body",),
    "elastic_split": ("ways",),
    "split": (),
    "throttle": ("per_second",),
    "delay": ("seconds",),
    "switch": ("control", "on"),
    "gate": ("control",),
    "top": ("k", "by"),
    "collect": (),
}
OTHER_STREAMS = {"key_by", "union", "window", "session", "late", "side", "errors"}  # of a stream, without a name
DISTINCT = {"cross_join", "elastic", "enrich", "event_time", "flat_map", "parallel", "sink"}  # of no others
TOPOLOGIES = {"topology", "topo"}
STREAMS = {"s", "stream", "streams", "keyed", "up"}  # what parameters are called


def calls(masked: str, text: str | None = None, *, spoken: bool = False) -> list[Edit] | None:
    """Return the edits of the calls of a program; None: it is no program."""
    text = masked if text is None else text
    if "\f" in masked or len(masked.splitlines()) != masked.count("\n") + (not masked.endswith("\n") and masked != ""):
        return None  # lines are counted differently by different parts of Python
    try:
        tree = ast.parse(masked)
        tokens = list(tokenize.generate_tokens(io.StringIO(masked).readline))
    except (SyntaxError, ValueError, tokenize.TokenError):
        return None
    offsets = Offsets(masked)
    arguments = Arguments(tokens, offsets)
    known = Known(tree)
    edits: list[Edit] = []
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and known.is_old(node, node.func, spoken)
        ):
            assert node.func.end_lineno is not None
            assert node.func.end_col_offset is not None
            ends = [offsets.of_bytes(one.end_lineno or 0, one.end_col_offset or 0) for one in node.args]
            parts = arguments.of(offsets.of_bytes(node.func.end_lineno, node.func.end_col_offset), ends)
            edits += moved(node, node.func.attr, parts, text, spoken)
    return edits


def moved(call: ast.Call, method: str, parts: Sequence[tuple[int, int]], text: str, spoken: bool) -> list[Edit]:
    (start, end), *others = parts
    start -= text[start - 1] == "\\"  # of an escaped quotation mark
    count = len(call.args) - 1
    if spoken and isinstance(call.args[0], ast.Name):
        return [Edit(start, others[0][0] if count or call.keywords else end)]
    if method == "aggregate" and count:  # emit= had a place; a field of an f-string may be any arguments
        field = isinstance(call.args[1], ast.Name) and not call.args[1].id.strip("_")
        return [Edit(start, start, "name="), Edit(others[0][0], others[0][0], "" if field else "emit=")]
    if not count:
        return [Edit(start, start, "name=")]
    after = others[0][0] - (text[others[0][0] - 1] == "\\")
    if "#" in text[end:after]:
        after = end + text[end:after].index(",") + 1
    elif "\n" in text[end:after] and text[:start].rpartition("\n")[2].strip():  # the next argument stays on its line
        after = end + text[end:after].index("\n")
    last = others[count - 1][1]
    return [Edit(start, after), Edit(last, last, f", name={text[start:end]}")]


class Arguments:
    """Where the arguments of calls stand, by brackets and commas: nodes of `ast` leave brackets around them out."""

    def __init__(self, tokens: Sequence[tokenize.TokenInfo], offsets: Offsets) -> None:
        spaces = (tokenize.NL, tokenize.NEWLINE, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
        self._tokens = [
            (offsets.of(*one.start), offsets.of(*one.end), one.string) for one in tokens if one.type not in spaces
        ]
        self._starts = [start for start, _, _ in self._tokens]

    def of(self, end_of_function: int, ends: Sequence[int]) -> list[tuple[int, int]]:
        """From where to where each argument by position goes, with brackets around it; then where the next one begins.

        Args:
            end_of_function: where what is called ends.
            ends: where the nodes of the arguments end.
        """
        at = bisect.bisect_left(self._starts, end_of_function)
        while self._tokens[at][2] != "(":  # what is called stands in brackets
            at += 1
        parts = []
        for end in ends:
            first = at + 1
            at = bisect.bisect_left(self._starts, end)
            while self._tokens[at][2] == ")" and self._opened(first, at):
                at += 1
            parts.append((self._starts[first], self._tokens[at - 1][1]))
        return [*parts, (self._starts[min(at + 1, len(self._starts) - 1)], -1)]

    def _opened(self, first: int, at: int) -> bool:
        """Return whether a bracket was opened that this one closes."""
        strings = [string for _, _, string in self._tokens[first:at]]
        return sum((one == "(") - (one == ")") for one in strings) > 0


class Known:
    """What a program shows of its names: which are streams or topologies, and which modules."""

    def __init__(self, tree: ast.AST) -> None:
        nodes = list(ast.walk(tree))
        self._imported = {
            (alias.asname or alias.name).split(".")[0]
            for node in nodes
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        }
        self._streams = {node.arg for node in nodes if isinstance(node, ast.arg) and self._is_parameter(node)}
        assigned = [
            (target, node.value)
            for node in nodes
            if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) and node.value is not None
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        ]
        before = -1
        while before < len(self._streams):
            before = len(self._streams)
            for target, value in assigned:
                if self.is_stream(value) or (isinstance(value, ast.Tuple) and any(map(self.is_stream, value.elts))):
                    names = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
                    self._streams |= {one.id for one in names if isinstance(one, ast.Name)}

    def _is_parameter(self, node: ast.arg) -> bool:
        told = ast.unparse(node.annotation) if node.annotation is not None else ""
        return node.arg in STREAMS | TOPOLOGIES or bool(re.search(r"\b(?:\w*Stream|Topology)\b", told))

    def is_stream(self, node: ast.expr) -> bool:
        """Return whether it is known to be a stream, or a topology."""
        if isinstance(node, ast.Name):
            return node.id in self._streams or node.id in TOPOLOGIES
        if isinstance(node, ast.Subscript):
            return self.is_stream(node.value)
        if isinstance(node, ast.Attribute):
            return self.is_stream(node.value) or node.attr in TOPOLOGIES
        if not isinstance(node, ast.Call):
            return False
        if isinstance(node.func, ast.Name):
            return node.func.id == "Topology"
        if not isinstance(node.func, ast.Attribute):
            return False
        method = node.func.attr
        if method in ("key_by", "event_time", "flat_map", "Topology"):
            return True
        if method == "source":
            return len(node.args) > 1 or self.is_stream(node.func.value)
        return (method in NEEDED or method in OTHER_STREAMS) and self.is_stream(node.func.value)

    def is_old(self, call: ast.Call, function: ast.Attribute, spoken: bool) -> bool:
        """Return whether a call has the name of an operator in the first place."""
        method = function.attr
        if method not in NEEDED or not call.args or isinstance(call.args[0], ast.Starred):
            return False
        if any(one.arg == "name" and (method != "aggregate" or is_text(one.value)) for one in call.keywords):
            return False
        receiver, first = function.value, call.args[0]
        root = receiver
        while isinstance(root, ast.Attribute):
            root = root.value
        stands_for_one = isinstance(first, ast.Name) and (not first.id.strip("_") or (spoken and first.id == "name"))
        if isinstance(receiver, ast.Constant | ast.JoinedStr):
            return False
        if isinstance(root, ast.Name) and root.id in self._imported:
            return False
        stream = self.is_stream(receiver)
        given = {one.arg for one in call.keywords}
        behind = len(call.args) - 1
        if method != "merge_by_time" and behind > max(len(NEEDED[method]), method in ("aggregate", "split")):
            return False
        called_so = isinstance(first, ast.Name) and (
            first.id == "name" or (method in DISTINCT and 0 < len(NEEDED[method]) <= behind)
        )
        if not (is_text(first) or stands_for_one or called_so or (stream and not self.is_value(first))):
            return False
        if method == "split" and not stream:
            return is_name(first) and bool(behind == 1 or given - {"maxsplit", None})
        if method in ("process", "combine") and given & {"cls", "own"}:
            return True
        return behind + len(given & set(NEEDED[method])) >= len(NEEDED[method])

    def is_value(self, node: ast.expr) -> bool:
        """Return whether it can't be a name."""
        if isinstance(node, ast.Lambda | ast.Dict | ast.List | ast.Tuple):
            return True
        return (isinstance(node, ast.Constant) and not isinstance(node.value, str)) or self.is_stream(node)


def is_text(node: ast.expr) -> bool:
    if isinstance(node, ast.IfExp):
        return is_text(node.body)
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Add | ast.Mod) and (is_text(node.left) or is_text(node.right))
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def is_name(node: ast.expr) -> bool:
    """Return whether a text can be a name, and hardly what separates the parts of a text."""
    return not isinstance(node, ast.Constant) or any(map(str.isalnum, str(node.value)))
