"""The error policies of operators: tuples that fail stop the job, are dropped, or are diverted with their error."""

from __future__ import annotations

from enum import Enum

from rayelastic.errors import ErrorCode, GraphError
from rayelastic.graph.records.schema import DataType, Schema, laid_out
from rayelastic.graph.records.shown import invalid
from rayelastic.graph.spec.ports import OutputPort

ERRORS = "errors"  # the output port of diverted tuples
_ADDED = ("error", "operator")


class OnError(Enum):
    """What an operator does with a tuple on which its function raises."""

    FAIL = "fail"  # the job fails
    SKIP = "skip"  # the tuple is dropped
    DIVERT = "divert"  # it goes to the port `errors`, with the reason and the operator's name

    @classmethod
    def _missing_(cls, value: object) -> OnError | None:
        """Take the words of other systems for the same."""
        return {"raise": cls.FAIL, "ignore": cls.SKIP, "drop": cls.SKIP, "dead_letter": cls.DIVERT}.get(str(value))


def on_error_of(choice: object, parameter: str = "on_error") -> OnError:
    """Convert a user's choice into the enum.

    Raises:
        GraphError: It is unknown.
    """
    try:
        return OnError(choice)
    except ValueError:
        raise invalid(parameter, choice, "Choose 'fail', 'skip' or 'divert'", ErrorCode.UNKNOWN_CHOICE) from None


def dead_letters(schema: Schema) -> OutputPort:
    """Lay out the port of diverted tuples: their fields, then `error` and `operator`.

    Raises:
        GraphError: the tuples have a field of that name already.

    >>> print(dead_letters(Schema.of({"n": int})).schema)
    DeadLetter(n: int64, error: string, operator: string)
    """
    for name in _ADDED:
        if schema.find(name) is not None:
            raise GraphError(
                f"its tuples have a field '{name}', which dead letters add",
                hint="Map that field to another name",
                code=ErrorCode.DUPLICATE_FIELD,
            )
    text = DataType.STRING.default_format
    columns = [(field.name, field.format, field.nullable) for field in schema.fields]
    return OutputPort(ERRORS, laid_out("DeadLetter", [*columns, *((name, text, False) for name in _ADDED)]))
