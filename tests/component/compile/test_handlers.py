"""`except` with classes of exceptions: compiled, a handler catches what CPython's would."""

# ruff: noqa: DTZ001, RUF059 -- functions as users write them

from __future__ import annotations

import datetime as dt
import math
from typing import Any, NamedTuple

import pytest
from harness import MAP, request, same_as_python

from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.operator_spec import Lane
from tests.raising import check_reason


class Row(NamedTuple):
    s: str
    i: int
    x: float
    n: int | None
    sn: str | None


class OwnError(ValueError):
    pass


TEXTS = ["", "7", "0", "-5", "x", "1 2", "1,0,x", "1,x,0", "0,x", "k=1", "k=x", "a b", " 12 ", "½", "\x1c", "1 x 0"]
ROWS = [
    (
        text,
        at % 5 - 1,
        (0.0, -0.0, 1.5, 1e308, float("inf"), -1.0)[at % 6],
        (None, 0, 3)[at % 3],
        (None, "a", "")[at % 3],
    )
    for at, text in enumerate(TEXTS * 3)
]
TABLE = {"x": 1, "7": 2}


def two(t):
    try:
        return 10 // int(t.s)
    except ValueError:
        return -1
    except ZeroDivisionError:
        return -2


def one_of_two(t):
    try:
        return 10 // int(t.s)
    except ValueError:
        return -1


def several(t):
    try:
        k, v = t.s.split("=")
        return [4, 5, 6][t.i] + int(v) + {1: 2, 3: 4}[t.i]
    except (IndexError, TypeError):
        return -1
    except KeyError:
        return -2
    except ValueError:
        return -3


def base_classes(t):
    try:
        return {1: 2}[t.i] + len(t.s.split()[t.i]) + 10 // t.i
    except LookupError:
        return -1
    except ArithmeticError:
        return -2


def raised(t):
    try:
        if t.i < 0:
            raise OwnError("negative " + t.s)
        if t.i == 0:
            raise KeyError("zero")
        return int(t.s)
    except OwnError:
        return -1
    except ValueError:
        return -2
    except LookupError as error:
        raise IndexError from error


def checked(x):
    if x < 0:
        raise OwnError("negative")
    if x > 2:
        raise OverflowError("big")
    return x


def passed_on(s):
    try:
        return int(s)
    except KeyError:
        return 5


def from_helpers(t):
    try:
        return checked(t.i) + passed_on(t.s)
    except ValueError:
        return -1


def nested(t):
    try:
        try:
            return 10 // int(t.s)
        except ZeroDivisionError:
            return [1, 2, 3][t.i + 1]
        except KeyError:
            return -4
    except ValueError:
        return -1
    except IndexError:
        return -2


def again(t):
    try:
        try:
            return [1, 2][t.i]
        except IndexError:
            try:
                return int(t.s)
            except ValueError:
                pass
            raise
    except LookupError:
        return -1


def final(t):
    k = 0
    try:
        try:
            k = int(t.s)
        finally:
            k += 100
    except TypeError:
        return -2
    except ValueError:
        return k
    return k


def otherwise(t):
    try:
        n = int(t.s)
    except ZeroDivisionError:
        return -1
    except ValueError:
        return -2
    else:
        return 10 // n


def in_a_loop(t):
    n = 0
    for w in t.s.split(","):
        try:
            n += 100 // int(w)
        except ZeroDivisionError:
            n += 1
            continue
        except ValueError:
            n += 2
            break
    else:
        n += 1000
    return n


def first_of_two(t):
    try:
        return sum(10 // int(w) for w in t.s.split(","))
    except ZeroDivisionError:
        return -1
    except ValueError:
        return -2


def none_used(t):
    try:
        return t.n + 1
    except ValueError:
        return -1
    except (TypeError, AttributeError):
        return -2


def any_other(t):
    try:
        return 10 // int(t.s) + TABLE[t.s]
    except KeyError:
        return -1
    except Exception:
        return -9


def of_math(t):
    try:
        return math.exp(t.x) + math.sqrt(t.x)
    except OverflowError:
        return -1.0
    except ValueError:
        return -2.0


def of_lists(t):
    a = [1, 2]
    try:
        a.remove(t.i)
        return a.pop(t.i) + a.index(2)
    except IndexError:
        return -1
    except ValueError:
        return -2


def of_nothing(t):
    try:
        return max(len(w) for w in t.s.split())
    except IndexError:
        return -1
    except ValueError:
        return -2


CASES = [
    two, one_of_two, several, base_classes, raised, from_helpers, nested, again, final, otherwise, in_a_loop,
    first_of_two, none_used, any_other, of_math, of_lists, of_nothing,
]  # fmt: skip


@pytest.mark.parametrize("function", CASES, ids=[f.__name__ for f in CASES])
def test_handlers_catch_what_pythons_catch(compiled: Any, function: Any) -> None:
    runner = compiled(function, Row, MAP)
    for row in ROWS:
        same_as_python(runner, row)


def test_what_none_would_raise_is_not_guessed(compiled: Any) -> None:
    def upper(t):
        try:
            return t.sn.upper()
        except TypeError:  # CPython raises an AttributeError, for t.n + 1 a TypeError
            return "caught"

    runner = compiled(upper, Row, MAP)
    assert runner([("", 0, 0.0, None, "a")]).items == [("A",)]
    assert runner([("", 0, 0.0, None, None)]).failed == 0


def looked_at(t):
    try:
        return len(t.s) // t.i
    except ZeroDivisionError as error:
        return len(str(error))


def local_in_try(t):
    def parsed(s):
        return 10 // int(s)

    try:
        return parsed(t.s)
    except ValueError:
        return -1


def argument_that_raises(t):
    try:
        if t.i > 0:
            raise ValueError(t.s.split()[1])
    except ValueError:
        return 1
    except IndexError:
        return 2
    return 3


def test_an_argument_that_may_raise_is_not_guessed(compiled: Any) -> None:
    runner = compiled(argument_that_raises, Row, MAP)
    assert runner([("a b", 1, 0.0, None, None)]).failed == 0, "refused: Python's answer is taken"
    assert runner([("a", 1, 0.0, None, None)]).failed == 0
    assert runner([("a", 0, 0.0, None, None)]).items == [(3,)]


@pytest.mark.parametrize(
    ("function", "reason"), [(looked_at, ("reads_exception",)), (local_in_try, ("raises_in_try",))]
)
def test_handlers_that_are_refused(compiler: Any, function: Any, reason: Any) -> None:
    code = compiler.compile(request(function, Row, output=Schema.of(int)))
    assert code.lane is Lane.PYTHON
    check_reason(code.refusal, *reason, "test_handlers.py:")


class Moment(NamedTuple):
    i: int
    x: float
    s: str
    at: dt.datetime
    span: dt.timedelta


def later(t):
    try:
        return (t.at + t.span).year
    except ValueError:
        return -1


def earlier(t):
    when = t.at
    try:
        when -= t.span
    except ValueError:
        return -1
    return when.year


def shared_out(t):
    try:
        return (t.span / t.i).days
    except ZeroDivisionError:
        return -1


def made_by_a_helper(i):
    try:
        return (dt.datetime(9999, 12, 1) + dt.timedelta(days=i)).year
    except ValueError:
        return -1


def helped(t):
    return made_by_a_helper(t.i)


def whole(t):
    try:
        return int(t.x)
    except ValueError:
        return -1


def stepped(t):
    try:
        return t.s[:: t.i]
    except IndexError:
        return "no"


MOMENTS = [
    (number, x, "text", at, span)
    for number in (0, 1, 31, -2)
    for x in (1.5, float("inf"), float("nan"))
    for at in (dt.datetime(1, 1, 1), dt.datetime(2020, 5, 17), dt.datetime(9999, 12, 31, 23))
    for span in (dt.timedelta(1), dt.timedelta(-1))
]
OF_TIMES = [later, earlier, shared_out, helped, whole, stepped]


@pytest.mark.parametrize("function", OF_TIMES, ids=[f.__name__ for f in OF_TIMES])
def test_a_handler_of_another_class_lets_it_pass(compiled: Any, function: Any) -> None:
    runner = compiled(function, Moment, MAP)
    for row in MOMENTS:
        same_as_python(runner, row)
