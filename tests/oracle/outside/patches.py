"""Functions that call members of modules which a test has patched, in some of the runs of a program."""

from __future__ import annotations

import random

from tests.oracle.program import Patch, Program

__all__ = ["program"]

# Member, what stands in its place, what the function returns, its type, whether it is another at each call by itself.
PATCHED = (
    ("time.time", "lambda: 1000.0", "time.time() + {x}", "x", True),
    ("time.monotonic", "lambda: 7.0", "time.monotonic()", "x", True),
    ("time.perf_counter_ns", "lambda: 7", "time.perf_counter_ns() + {i}", "i", True),
    ("random.random", "lambda: 0.25", "random.random() + {x}", "x", False),
    ("random.randint", "lambda a, b: 6", "random.randint(1, 6) + {i}", "i", False),
    ("math.sqrt", "lambda x: 42.0", "math.sqrt(abs({x}))", "x", False),
    ("math.floor", "lambda x: 4", "math.floor(float({i})) + {i}", "i", False),
    ("math.pi", "3.0", "math.pi * {x}", "x", False),
    ("numpy.sqrt", "lambda x: 4.0", "float(np.sqrt(abs({x})))", "x", False),
    ("numpy.random.rand", "lambda: 0.5", "float(np.random.rand())", "x", False),
    ("operator.add", "lambda a, b: 3", "operator.add({i}, 1)", "i", False),
    ("re.sub", "lambda *a: 'none'", "re.sub('a', 'b', {s})", "s", False),
    ("string.digits", "'xyz'", "string.digits + {s}", "s", False),
    ("os.path.basename", "lambda p: 'base'", "os.path.basename({s})", "s", False),
    ("os.getpid", "lambda: 1", "os.getpid() * 0 + {i}", "i", False),
    ("json.dumps", "lambda x: 'json'", "json.dumps({i})", "s", False),
    ("statistics.mean", "lambda x: 4.0", "float(statistics.mean([{i}, 1]))", "x", False),
    ("bisect.bisect_left", "lambda a, x: 9", "bisect.bisect_left([1, 2, 3], {i})", "i", False),
    ("locale.getlocale", "lambda: ('xx', 'yy')", "str(locale.getlocale()[0])", "s", False),
    ("uuid.uuid4", "lambda: 'id'", "str(uuid.uuid4())", "s", True),
)
FORMS = (
    "def f(t):\n    return {}",
    "f = lambda t: {}",
    "def helper(t):\n    return {}\ndef f(t):\n    return helper(t)",
    "class C:\n    def __call__(self, t):\n        return {}\nf = C()",
    "def make():\n    def f(t):\n        return {}\n    return f\nf = make()",
)


def program(chosen: random.Random) -> Program:
    """A program of one member, which is patched in its first run or in its second."""
    from tests.oracle.outside import filled

    member, fake, expression, output, moves = chosen.choice(PATCHED)
    body = chosen.choice(FORMS).replace("{}", filled(expression, chosen))
    phases = chosen.choice(((True, False), (False, True), (True, False, True)))
    return Program(body, "map", declared=(output,), repeated=True, patch=Patch(member, fake, phases, moves))
