"""What is different by design, or is known and not yet mended: each as narrow as it can be told.

A difference of which one of these is true is counted under its name and isn't a failure.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass

from tests.oracle.compare import Difference
from tests.oracle.program import Program


@dataclass(frozen=True, slots=True)
class Known:
    """One known difference.

    Args:
        name: its own, as in the guide's list.
        meaning: what differs, in one sentence.
        is_so: whether a difference is this one.
    """

    name: str
    meaning: str
    is_so: Callable[[Program, Difference], bool]


def known(program: Program, found: Difference) -> str:
    """The name of what a difference is known as, empty if it is new."""
    return next((one.name for one in KNOWN if one.is_so(program, found)), "")


def _is_long_number(program: Program, found: Difference) -> bool:
    """`int(text)`, or `map(int, texts)`, of a part with more than 64 bits refuses the tuple whatever follows."""
    texts = [cell for cell in found.rows[-1] if isinstance(cell, str)] if found.rows else []
    digits = any(len(re.sub(r"\D", "", text)) >= 19 for text in texts)
    return found.kind == "refused" and digits and re.search(r"\bint\b", program.body) is not None


def _is_least_int(program: Program, found: Difference) -> bool:
    """The least of all 64-bit integers has no positive counterpart, which `math.gcd` makes on its way."""
    least = any(cell == -(2**63) for row in found.rows for cell in row if type(cell) is int)
    return found.kind == "refused" and least and "gcd(" in program.body


def _is_early_year(program: Program, found: Difference) -> bool:
    """`%Y` of a year below 1000 has as many digits as the C library gives it."""
    early = any(getattr(cell, "year", 1000) < 1000 for row in found.rows for cell in row)
    return found.kind == "refused" and early and "strftime(" in program.body


def _is_one_type(program: Program, found: Difference) -> bool:
    """Equal numbers, of which compiled code gives the float: two ways through the function give an int and a float."""
    ways = ast.IfExp | ast.If | ast.BoolOp | ast.For | ast.While | ast.Try | ast.Match
    nodes = list(ast.walk(ast.parse(program.source)))
    meet = any(isinstance(node, ways) for node in nodes) or re.search(r"\b(min|max|sum|get|pop)\(", program.source)
    return found.kind == "type" and bool(meet) and bool(re.search(r"'float ", found.ours))


def _is_nan_identity(program: Program, found: Difference) -> bool:
    """A container with NaN is sorted or asked for NaN, which Python finds by identity: compiled code refuses."""
    compares = [node for node in ast.walk(ast.parse(program.body)) if isinstance(node, ast.Compare)]
    has_nan = any(isinstance(cell, float) and cell != cell for cell in found.rows[-1]) if found.rows else False
    sorts = re.search(r"\bsorted\(|\.sort\(", program.body)
    return found.kind == "refused" and has_nan and (bool(sorts) or any(_looks_into(node) for node in compares))


def _looks_into(node: ast.Compare) -> bool:
    """Whether containers are compared, or one is asked for a value; texts aren't containers."""
    given = [one for one in (node.left, *node.comparators) if not isinstance(one, ast.Attribute | ast.Constant)]
    if any(isinstance(one, ast.In | ast.NotIn) for one in node.ops):
        return node.comparators[0] in given
    return any(isinstance(one, ast.List | ast.Tuple | ast.ListComp) for one in given)


def _is_frozen(program: Program, found: Difference) -> bool:
    """Somebody else changed what is outside the function after its declaration: it is as it was then."""
    return found.kind == "frozen" and "change" in program.body


KNOWN = (
    Known("frozen", "globals and closures are as at declaration", _is_frozen),
    Known(
        "int-of-long-text", "int() of a text beyond 64 bits refuses the tuple, under a handler, too", _is_long_number
    ),
    Known("least-int", "math.gcd() of the least 64-bit integer refuses the tuple", _is_least_int),
    Known("early-years", "strftime() of years below 1000 refuses the tuple", _is_early_year),
    Known("one-type", "a variable that is once int and once float is a float", _is_one_type),
    Known("nan-identity", "a tuple is refused where NaN meets NaN in a container, or is sorted", _is_nan_identity),
)
