"""Every error that a user can meet: what is wrong, in which operator, a hint what to do, and a code.

Message form: ``operator 'x' (file.py:12): what is wrong. hint [code]``. All of them survive pickling, so that an error
raised in another process arrives as it was. Imports nothing of the rest of the package.
"""

from __future__ import annotations

import copyreg
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

from rayelastic.errors.codes import ErrorCode

__all__ = [
    "ChangeError",
    "ConfigError",
    "DamagedError",
    "DeclarationError",
    "ErrorCode",
    "GraphError",
    "JavaNotFoundError",
    "JobCancelledError",
    "JobExistsError",
    "JobFailedError",
    "JobNotFoundError",
    "JobOwnerError",
    "LaneError",
    "LinkError",
    "NotShippableError",
    "PELostError",
    "RayUnreachableError",
    "RayelasticError",
    "SchemaError",
    "SetupError",
    "SinkError",
    "SinkLostError",
    "SinkTakenError",
    "SourceError",
    "SourceLostError",
    "SparkError",
    "StateError",
    "UnavailableError",
    "UnreadableError",
    "code_of",
    "is_outage",
]


class RayelasticError(Exception):
    """The base of all errors that rayelastic raises on purpose.

    Args:
        problem: what is wrong, one sentence without a full stop.
        hint: what to do, one sentence.
        code: of the cause; by default that of the class.
    """

    default_code: ClassVar[ErrorCode] = ErrorCode.ERROR

    def __init__(self, problem: str, *, hint: str = "", code: ErrorCode | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.hint = hint
        self.code = code or self.default_code

    def _subject(self) -> str:
        return ""

    @property
    def message(self) -> str:
        """The text without its code, to stand in another text."""
        text = self._subject() + self.problem
        return f"{text}. {self.hint}" if self.hint else text

    def __str__(self) -> str:
        return f"{self.message} [{self.code}]"

    def __format__(self, spec: str) -> str:
        """Return the message without its code, as part of another text: `f"... {error}"`."""
        return format(self.message, spec)

    def __reduce__(self) -> tuple[Any, ...]:
        # BaseException would call the class with args alone, losing the keywords.
        return copyreg.__newobj__, (type(self), *self.args), dict(self.__dict__)  # type: ignore[attr-defined]


class DeclarationError(RayelasticError):
    """What the user declared can't run; raised before anything starts.

    Args:
        problem: what is wrong, one sentence without a full stop.
        hint: what to do about it.
        operator: name of the operator, where there is one.
        location: 'file.py:12' of the user's declaration.
        code: of the cause; by default that of the class.
        details: the code and values of the reason, as JSON has them, where a decision of the compiler is the cause.

    >>> hint, code = "Did you mean 'price'?", ErrorCode.UNKNOWN_FIELD
    >>> print(GraphError("no field 'prize'", operator="vwap", location="job.py:12", hint=hint, code=code))
    operator 'vwap' (job.py:12): no field 'prize'. Did you mean 'price'? [unknown-field]
    """

    default_code = ErrorCode.INVALID_ARGUMENT

    def __init__(
        self,
        problem: str,
        *,
        hint: str = "",
        operator: str | None = None,
        location: str = "",
        code: ErrorCode | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(problem, hint=hint, code=code)
        self.operator = operator
        self.location = location
        self.details = dict(details or {})

    def at(self, operator: str, location: str) -> Self:
        """Tell this error which operator it concerns, where it did not know, and return it."""
        if self.operator is None:
            self.operator = operator
        self.location = self.location or location
        return self

    def _subject(self) -> str:
        where = f" ({_shortened(self.location)})" if self.location else ""
        if self.operator is not None:
            return f"operator '{self.operator}'{where}: "
        return f"{_shortened(self.location)}: " if self.location else ""


def _shortened(location: str) -> str:
    """Shorten a location to one relative to the working directory where it lies below."""
    return location.removeprefix(f"{Path.cwd()}/")


class SchemaError(DeclarationError):
    """A schema can't be laid out as a record, or doesn't match the data."""

    default_code = ErrorCode.INVALID_SCHEMA


class GraphError(DeclarationError):
    """The streams and operators don't form a topology that can run."""

    default_code = ErrorCode.INVALID_TOPOLOGY


class LaneError(DeclarationError):
    """An operator can't run in the lane that was asked for."""

    default_code = ErrorCode.UNSUPPORTED_LANE


class SourceError(DeclarationError):
    """A source can't be read: missing file, no permission, unreadable content."""

    default_code = ErrorCode.SOURCE_FAILED


class SourceLostError(SourceError):
    """The server or store that a source reads doesn't answer: a job with checkpoints waits for it, and restores.

    A source of your own raises it to say so: `raise rel.errors.SourceLostError("the queue doesn't answer")`.
    """

    default_code = ErrorCode.SOURCE_UNREACHABLE


class SinkError(DeclarationError):
    """A sink can't be written."""

    default_code = ErrorCode.SINK_FAILED


class SinkLostError(SinkError):
    """The server or store that a sink writes to doesn't answer: a job with checkpoints waits for it, and restores.

    A sink of your own raises it to say so: `raise rel.errors.SinkLostError("the queue doesn't answer")`.
    """

    default_code = ErrorCode.SINK_UNREACHABLE


class SinkTakenError(SinkError):
    """Another run owns the output of a sink: it wrote there first, or has taken the output over from this run."""

    default_code = ErrorCode.OUTPUT_TAKEN


class NotShippableError(DeclarationError):
    """A function or description can't be sent to another process."""

    default_code = ErrorCode.NOT_SHIPPABLE


class ConfigError(DeclarationError):
    """A setting of the job is out of range, or names what the topology doesn't have."""

    default_code = ErrorCode.INVALID_SETTING


class StateError(DeclarationError):
    """Saved state is damaged or of another format or layout than the operator's, or an operator's can't be saved."""

    default_code = ErrorCode.INVALID_STATE


class DamagedError(StateError):
    """A snapshot or checkpoint isn't what was written, or wasn't completed; an earlier one may be whole."""

    default_code = ErrorCode.DAMAGED_STATE


class UnreadableError(StateError):
    """The place of a snapshot or checkpoint doesn't answer or has no room, or a file there can't be read.

    What is there may be whole.
    """

    default_code = ErrorCode.UNREADABLE_STATE


class SetupError(RayelasticError):
    """The machine or the cluster lacks what the job needs."""

    default_code = ErrorCode.SETUP_FAILED


class JavaNotFoundError(SetupError):
    """Spark needs a Java virtual machine and none was found."""

    default_code = ErrorCode.NO_JAVA


class RayUnreachableError(SetupError):
    """No Ray cluster answers at the address."""

    default_code = ErrorCode.RAY_UNREACHABLE


class SparkError(SetupError):
    """Spark or RayDP could not be started, or rejected a request."""

    default_code = ErrorCode.SPARK_FAILED


class LinkError(RayelasticError):
    """A link between two PEs was rejected or broke.

    Args:
        problem: What is wrong.
        hint: What to do about it.
        link: Name of the link, 'from->to'.
        code: Of the cause; by default that of the class.
    """

    default_code = ErrorCode.LINK_FAILED

    def __init__(self, problem: str, *, hint: str = "", link: str | None = None, code: ErrorCode | None = None) -> None:
        super().__init__(problem, hint=hint, code=code)
        self.link = link

    def _subject(self) -> str:
        return f"link '{self.link}': " if self.link else ""


class JobFailedError(RayelasticError):
    """A job stopped because of an error; raised by ``run`` and ``job.wait``.

    Its `__cause__` is the user's own exception, with its notes; None where that can't be pickled on its way from Ray.

    Args:
        reason: what happened, one sentence.
        job: name of the job.
        operator: the operator in which it happened, where known.
        failing_tuple: the input tuple whose processing raised, where there is one.
        traceback_text: the traceback of the user's own exception, as text.
        code: of the cause: `function-raised` for an exception of the user's own.
    """

    default_code = ErrorCode.JOB_FAILED

    def __init__(
        self,
        reason: str,
        *,
        job: str,
        operator: str | None = None,
        failing_tuple: object = None,
        traceback_text: str = "",
        code: ErrorCode | None = None,
    ) -> None:
        super().__init__(reason, code=code)
        self.reason = reason
        self.job = job
        self.operator = operator
        self.failing_tuple = failing_tuple
        self.traceback_text = traceback_text

    @property
    def message(self) -> str:
        """What happened, in one line."""
        where = f", operator '{self.operator}'" if self.operator else ""
        return f"job '{self.job}'{where}: {self.reason}"

    def __str__(self) -> str:
        text = self.message if f"[{self.code}]" in self.reason else super().__str__()
        if self.failing_tuple is not None:
            text += f"\nfailing tuple: {self.failing_tuple!r}"
        if self.traceback_text:
            text += "\n" + self.traceback_text.rstrip()
        return text


class JobCancelledError(RayelasticError):
    """A job was cancelled before its sources ended; raised by ``job.wait``."""

    default_code = ErrorCode.JOB_CANCELLED

    def __init__(self, job: str) -> None:
        super().__init__(f"job '{job}' was cancelled")
        self.job = job


class JobExistsError(RayelasticError):
    """A job of this name runs on the cluster already."""

    default_code = ErrorCode.JOB_EXISTS


class JobNotFoundError(RayelasticError):
    """No job of this name is on the cluster."""

    default_code = ErrorCode.UNKNOWN_JOB


class JobOwnerError(RayelasticError):
    """The job is somebody else's: to change, end or replace it, name its owner."""

    default_code = ErrorCode.FOREIGN_JOB


class PELostError(RayelasticError):
    """The process of a PE, or of a job's coordinator, is gone."""

    default_code = ErrorCode.PE_LOST


class UnavailableError(RayelasticError, TimeoutError):
    """A job's coordinator can't be reached at the moment. What was asked for may be done or not; ask again."""

    default_code = ErrorCode.UNAVAILABLE


def code_of(error: BaseException | None, other: ErrorCode = ErrorCode.JOB_FAILED) -> ErrorCode:
    """Return the code of an error; `other` for one that rayelastic didn't raise.

    >>> code_of(SinkLostError("the server is gone")), code_of(ZeroDivisionError())
    (<ErrorCode.SINK_UNREACHABLE: 'sink-unreachable'>, <ErrorCode.JOB_FAILED: 'job-failed'>)
    """
    return error.code if isinstance(error, RayelasticError) else other


def is_outage(error: BaseException | None) -> bool:
    """Return whether a server or store outside of the job doesn't answer: the job can wait for it.

    >>> is_outage(SinkLostError("the server is gone")), is_outage(SinkError("no such column"))
    (True, False)
    """
    return isinstance(error, SinkLostError | SourceLostError | UnreadableError)


class ChangeError(RayelasticError):
    """A change of a region's replicas couldn't be carried out: it is undone, or half done where a stream has ended."""

    default_code = ErrorCode.CHANGE_FAILED
