"""What people write: expressions by type, and the constants and tables that stand outside the function.

A line is a weight and a template. `$s` is an expression of type s; `$s'` one that sees the names which the template
binds by `@w:s`; `$s0` a name, a field or a constant. Types are letters: s str, b bytes, i int, x float, p bool,
a datetime, e date, g timedelta; n before one: or None; l list, S set; d and two letters: dict, with t for (str, int) as
a key; `tsi` a tuple. k is a small whole number, n one that isn't negative, w a word, c a separator, as constants.
F("..", a) is an f-string.
"""

from __future__ import annotations

from tests.oracle import ordinary
from tests.oracle.containers import CONSUMERS as OF_CONTAINERS
from tests.oracle.containers import CONTAINERS
from tests.oracle.containers import LEAVES as OF_LEAVES
from tests.oracle.scalars import SCALARS
from tests.oracle.seldom import SCALARS as SELDOM

__all__ = ["CONSTANTS", "CONSUMERS", "EXPRESSIONS", "LEAVES"]

EXPRESSIONS = {**{kind: table + SELDOM.get(kind, "\n")[1:] for kind, table in SCALARS.items()}, **CONTAINERS}
LEAVES = {**OF_LEAVES, **ordinary.LEAVES}
CONSUMERS = {**OF_CONTAINERS, **ordinary.CONSUMERS}
CONSTANTS = {
    **ordinary.CONSTANTS,
    "RATES": 'RATES = {"GET": 1.5, "a": 2.0, "longer than twelve bytes": -1.0, "": 0.25}',
    "NAMES": 'NAMES = {1: "one", -3: "three", 1000000000000: "many", 0: ""}',
    "CODES": 'CODES = {"GET": 1, "POST": 2, "error": -1, "ß": 3}',
    "LEVELS": "LEVELS = [10, 20, 30]",
    "STOP": 'STOP = {"the", "a", "ä"}',
    "PAIR": 'PAIR = re.compile(r"(\\w+)=(-?\\d+)?(;|$)")',
    "WORD": 'WORD = re.compile(r"\\bERROR\\b|^\\s*the", re.IGNORECASE)',
    "CUTOFF": "CUTOFF = dt.datetime(2020, 5, 17, 3, 4, 5, 6)",
    "HOUR": "HOUR = dt.timedelta(hours=1)",
}
