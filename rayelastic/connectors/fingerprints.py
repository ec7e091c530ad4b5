"""A fingerprint of a source's input, so that a restored job detects that its input has changed.

A position is a number of rows. It is valid only in the same input: files of the same lengths, with the same first and
last bytes, in the same order. The last file may have grown, and more may follow it.
"""

from __future__ import annotations

import hashlib
from typing import Any

from rayelastic.connectors.description import Content, Source
from rayelastic.connectors.files.locations import LocationError, may_return
from rayelastic.connectors.inputs import Input, Piece, Place
from rayelastic.errors import ErrorCode, SourceLostError
from rayelastic.graph.records.shown import counted
from rayelastic.graph.spec.operator_spec import OperatorSpec


def input_of(spec: OperatorSpec, place: Place | None = None, position: object = None) -> Input:
    """Inspect the input of a source.

    Args:
        spec: The source.
        place: Its place.
        position: Its position, if the source reports it.

    Raises:
        OSError: A file doesn't exist any more.
    """
    assert isinstance(spec.body, Source)
    source, _ = spec.body.input_at(position, 0)
    return Input(source.kind, tuple(_piece(one, one.size) for one in source.contents()), place, position)


def check_input(spec: OperatorSpec, before: Input, position: int) -> None:
    """Raise StateError if a source's input has changed since the job was stopped.

    Args:
        spec: The source.
        before: Its input then.
        position: The rows that it had emitted.

    Raises:
        SourceLostError: Its store doesn't answer.
    """
    assert isinstance(spec.body, Source)
    source, rows = spec.body.input_at(before.position, position)
    try:
        problem = _difference(source, before, rows)
    except (OSError, LocationError) as error:
        if is_away(source, error):
            raise SourceLostError(
                f"its input can't be compared: {error}", operator=spec.name, location=spec.location
            ) from error
        problem = f"can't be read: {error}"
    if problem is not None:
        problem = f"the snapshot has its position in the input, {problem}"
        drop = f"or restore Snapshot(..., drop=({spec.name!r},)), which reads from the start"
        hint = f"Restore its input, to which rows may have been appended, {drop}"
        raise spec.state_error(problem, hint, ErrorCode.CHANGED_INPUT)


def is_away(body: object, error: OSError | LocationError) -> bool:
    """Return whether the store of a source's input may answer again later."""
    if isinstance(error, LocationError):
        return error.is_outage
    return any(may_return(error, path) for path in getattr(body, "paths", ()))


def _difference(source: Source[Any], before: Input, position: int) -> str | None:
    if source.kind != before.kind:
        return f"which was {before.kind} and is {source.kind} now"
    contents, unit = source.contents() if before.pieces else (), source.unit
    if source.is_shorter_than(position):
        return f"which had {counted(position, 'row')} and more, and has {source.contents()[0].size} now"
    if contents and len(contents) < len(before.pieces):
        return f"which was {counted(len(before.pieces), 'file')} and is {len(contents)} now"
    for number, (old, content) in enumerate(zip(before.pieces, contents, strict=False)):
        which = f"the file of number {number + 1} of which" if len(before.pieces) > 1 else "which"
        last = number + 1 == len(before.pieces)
        if content.size < old.size or (content.size > old.size and not last):
            return f"{which} had {old.size} {unit} and has {content.size} now"
        now = _piece(content, old.size)
        if (old.start and now.start != old.start) or (old.end and now.end != old.end):
            return f"{which} begins or goes on with other {unit} now"
    return None


def _piece(content: Content, size: int) -> Piece:
    edge = min(content.edge, size)
    return Piece(size, _hash(content.between(0, edge)), _hash(content.between(size - edge, size)))


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32] if data else ""
