"""Errors: their text, and that they arrive in another process as they were."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from rayelastic import errors

CLASSES = [kind for name in errors.__all__ if isinstance(kind := getattr(errors, name), type) and name != "ErrorCode"]
EXAMPLES = [
    errors.RayelasticError("broken", hint="Mend it"),
    *(
        kind("broken", hint="Mend it", operator="x", location="/a/b.py:12", code=errors.ErrorCode.UNKNOWN_FIELD)
        for kind in CLASSES
        if issubclass(kind, errors.DeclarationError)
    ),
    errors.JavaNotFoundError("no java", hint="apt install it"),
    errors.RayUnreachableError("nobody at 1.2.3.4"),
    errors.SparkError("it stopped"),
    errors.LinkError("wrong secret", link="a->b"),
    errors.JobFailedError(
        "ZeroDivisionError", job="j", operator="x", failing_tuple=(1, 0), traceback_text="Traceback ..."
    ),
    errors.JobCancelledError("j"),
]


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda e: type(e).__name__)
def test_pickling_keeps_everything(error: errors.RayelasticError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert again.__dict__ == error.__dict__
    assert again.args == error.args


def test_every_error_is_a_rayelastic_error() -> None:
    assert all(issubclass(kind, errors.RayelasticError) for kind in CLASSES)


def test_texts() -> None:
    where = f"{Path.cwd()}/job.py:3"
    assert str(errors.GraphError("no way", operator="x", location=where, hint="Go back")) == (
        "operator 'x' (job.py:3): no way. Go back [invalid-topology]"
    )
    assert str(errors.GraphError("no way", operator="x")) == "operator 'x': no way [invalid-topology]"
    assert str(errors.GraphError("no way", location="/f.py:3")) == "/f.py:3: no way [invalid-topology]"
    assert str(errors.LinkError("wrong secret", link="a->b")) == "link 'a->b': wrong secret [link-failed]"
    failed = errors.JobFailedError("boom", job="j", operator="x", failing_tuple=(1,), traceback_text="Traceback\n  y\n")
    assert str(failed) == "job 'j', operator 'x': boom [job-failed]\nfailing tuple: (1,)\nTraceback\n  y"
    assert str(errors.JobFailedError("boom", job="j")) == "job 'j': boom [job-failed]"
    assert str(errors.JobCancelledError("j")) == "job 'j' was cancelled [job-cancelled]"


def test_an_operator_once_known_stays() -> None:
    error = errors.GraphError("no", operator="inner").at("outer", "f.py:1")
    assert (error.operator, error.location) == ("inner", "f.py:1")
