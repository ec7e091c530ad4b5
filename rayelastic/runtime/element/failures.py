"""Turns a native failure into one for the user: with the operator, the tuple, and the original traceback.

A compiled function can't raise; it returns the failing tuple's index, and the Python function runs again on that tuple.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from rayelastic import _native
from rayelastic.compile import OperatorCode, load
from rayelastic.compile.lanes.python_lane import TUPLE_ATTRIBUTE
from rayelastic.errors import ErrorCode, JobFailedError, RayelasticError, SinkError, SinkTakenError, code_of, is_outage
from rayelastic.graph.spec.location import is_users
from rayelastic.graph.spec.operator_spec import Lane
from rayelastic.graph.spec.unread import UNREAD
from rayelastic.runtime.values.failure import Cause, Failure

if TYPE_CHECKING:
    from rayelastic.graph.spec.operator_spec import OperatorSpec

TOO_LARGE = (
    ": a tuple has more text than can go"  # link_send.cpp: a link's end fails by itself, its peer because of that
)


def explain_failure(native: _native.OperatorFailure, operators: Mapping[str, OperatorSpec]) -> Failure:
    """Explain a failure.

    Args:
        native: The scheduler's failure.
        operators: The PE's operators, by name; any other name is the end of a link.
    """
    name, record, exception = native.operator, native.record, native.exception
    spec = operators.get(name)
    if spec is None:
        return Failure(native.message, name, lost_link=TOO_LARGE not in native.message, code=ErrorCode.LINK_FAILED)
    shown = None
    if record is not None:
        schema, missing = spec.inputs[native.port].schema, spec.unread if native.port == 0 else ()
        values = [UNREAD if name in missing else value for name, value in zip(schema.names, record, strict=True)]
        shown = repr(schema.tuple_type(*values))
    if exception is not None:
        shown = getattr(exception, TUPLE_ATTRIBUTE, shown)
        reason = "".join(traceback.format_exception_only(exception)).strip()
        if isinstance(exception, RayelasticError):
            reason = reason.removesuffix(f" [{exception.code}]")  # the failure has it
        text, outage = _traceback(exception), is_outage(exception)
        kind = code_of(exception, ErrorCode.FUNCTION_RAISED)
        return Failure(reason, name, shown, text, outside=outage, outage=outage, code=kind, cause=Cause(exception))
    code = spec.body if native.message else spec.body.user_function
    explained = isinstance(code, OperatorCode) and (code.lane is Lane.COMPILED or code is not spec.body)
    if record is not None and isinstance(code, OperatorCode) and explained:
        explanation = load(code).explain(record)
        cause = Cause(explanation.exception) if explanation.exception is not None else None
        said = explanation.message
        return Failure(said, name, shown, explanation.traceback, code=ErrorCode.FUNCTION_RAISED, cause=cause)
    kind = ErrorCode.FUNCTION_RAISED if spec.body.runs_user_code else ErrorCode.JOB_FAILED
    kind = ErrorCode.SOURCE_FAILED if spec.is_source else kind
    message = native.message.removeprefix(f"{name}: ")  # the failure has the operator's name
    return Failure(message or "it failed without a message", name, shown, code=kind)


def _traceback(exception: BaseException) -> str:
    """Return the traceback from the first frame of the user's code on; all of it if there is none."""
    frames = exception.__traceback__
    while frames is not None and not is_users(frames.tb_frame.f_code.co_filename):
        frames = frames.tb_next
    return "".join(traceback.format_exception(type(exception), exception, frames or exception.__traceback__))


def sink_failure(error: SinkError) -> Failure:
    """Explain why a sink couldn't prepare: the job recovers, unless another job has taken over the sink."""
    outside, outage = not isinstance(error, SinkTakenError), is_outage(error)
    cause = Cause(error)
    return Failure(error.message, error.operator, outside=outside, outage=outage, code=error.code, cause=cause)


def completion_failure(error: Exception) -> Failure:
    """Explain why a sink's output couldn't be completed, or a user's object couldn't be shut down."""
    if isinstance(error, JobFailedError):
        return Failure(
            error.reason,
            error.operator,
            traceback=error.traceback_text,
            outside=True,
            code=error.code,
            cause=Cause(error.__cause__),
        )
    if isinstance(error, SinkError):
        failure = sink_failure(error)
        return replace(failure, reason=f"a sink could not be completed: {failure.reason}")
    reason = f"a sink could not be completed: {error}"
    return Failure(reason, outside=True, code=code_of(error), cause=Cause(error))
