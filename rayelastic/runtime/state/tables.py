"""Exported state as Arrow tables and Python values.

A native operator of the same kind, without the user's functions, imports the exports and returns its rows. So nothing
here knows how state is laid out in bytes. Python values are unpickled only if the caller says that the exports are
trusted.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, is_dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from rayelastic import _native
from rayelastic.compile import Flags
from rayelastic.errors import DamagedError, ErrorCode, StateError
from rayelastic.graph.records.forms import plain_form
from rayelastic.graph.records.from_arrow import reader_of
from rayelastic.graph.records.schema import Schema, generated_type, laid_out
from rayelastic.runtime.operators.native_schema import native_schema
from rayelastic.runtime.operators.natives import native_join, native_windows
from rayelastic.runtime.operators.own_aggregates import read_only
from rayelastic.runtime.operators.window_functions import state_reader
from rayelastic.runtime.state.descriptor import Columns, StateDescriptor, StateKindOf

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

SIDE = (("side", "u", False),)
LEADING: dict[StateKindOf, Columns] = {  # the first columns, where these aren't the keys
    StateKindOf.PATTERN: (("sequence", "l", True), ("step", "u", True), ("until", "l", True)),
    StateKindOf.DELAY: (("due_in", "tDu", False),),
    StateKindOf.MERGE: (("input", "l", False),),
}
DAMAGED = "Use an earlier snapshot"
PICKLED = (StateKindOf.VALUE, StateKindOf.TIMERS)  # by key
WINDOWS = (StateKindOf.FUNCTION, StateKindOf.FOLD)  # of functions
WITH_ARGUMENTS = (*WINDOWS, StateKindOf.WINDOW, StateKindOf.JOIN, StateKindOf.PATTERN, StateKindOf.MERGE)
VALUE = "value"  # a field beside the bounds of a window


class _Rows(NamedTuple):
    """State as columns, the key fields first."""

    names: list[str]
    columns: list[pa.ChunkedArray]
    pickled: list[bytes]  # the value of each key, if these are Python values


def table_of(chunks: Iterable[bytes], descriptor: StateDescriptor, *, trusted: bool) -> pa.Table:
    """Return the state in exports of an operator; `rel.read_snapshot` has the columns.

    Args:
        chunks: The exports.
        descriptor: Of the state.
        trusted: Whether Python values in them may be unpickled.

    Raises:
        StateError: A chunk is damaged, holds Python values of an unknown class, or isn't trusted.
    """
    import pyarrow as pa

    if descriptor.kind in (StateKindOf.OBJECT, StateKindOf.HOLDING):
        whole: list[bytes] = []
        _import(_native.KeyedState.object(bytes, whole.append), chunks)
        objects = _objects(whole, trusted=trusted)
        if descriptor.kind is StateKindOf.HOLDING:
            return _holding_table(objects, descriptor)
        title, values = _values(objects)
        return pa.table([values], [title])
    names, columns, pickled = _rows(chunks, descriptor)
    if descriptor.kind not in (*PICKLED, StateKindOf.FUNCTION):
        return pa.table(columns, names)
    objects = _objects(pickled, trusted=trusted)
    if descriptor.kind is not StateKindOf.TIMERS:
        title, values = _values(objects)
        return pa.table([*columns, values], [*names, title])
    timers = pa.array([sorted(timed.timers) for timed in objects], pa.list_(pa.int64()))
    title, values = _values([timed.state for timed in objects])
    return pa.table([*columns, values, timers], [*names, title, "timers"])


def pairs_of(chunks: Sequence[bytes], descriptor: StateDescriptor) -> Iterator[tuple[Any, Any]]:
    """Yield each key with its state, as Python values; the exports are of our own job.

    A key of one field is its value, another one a tuple. The state of records and aggregates is a tuple with the names
    of their fields. That of operators with timers is the user's own state. Windows of functions have a dict of what
    they have accumulated, by start and end. Compiled ones have a value, or a tuple with the names of its fields.
    """
    keys, is_record = descriptor.key_names, descriptor.kind is StateKindOf.RECORD
    _, columns, pickled = _rows(chunks, descriptor)
    fields = [column for column in descriptor.values if is_record or column[0] not in keys]
    texts = [text for _, text, _ in (*descriptor.keys, *fields)]
    listed = [_python_values(column, text) for column, text in zip(columns, texts, strict=True)]
    if descriptor.kind in (*PICKLED, StateKindOf.FUNCTION):
        objects = _objects(pickled, trusted=True)
        values = [timed.state for timed in objects] if descriptor.kind is StateKindOf.TIMERS else objects
    elif descriptor.kind is StateKindOf.FOLD and len(descriptor.accumulated) == 1:
        values = listed[-1]
    else:
        fields = list(descriptor.accumulated) if descriptor.kind is StateKindOf.FOLD else fields
        values = list(map(laid_out("State", fields).tuple_type, *listed[len(listed) - len(fields) :]))
    windows: dict[Any, dict[Any, Any]] = {}
    for number, value in enumerate(values):
        members = tuple(column[number] for column in listed[: len(keys)])
        key = members[0] if len(members) == 1 else members
        if descriptor.kind in WINDOWS:
            start, end = listed[len(keys)][number], listed[len(keys) + 1][number]
            windows.setdefault(key, {})[start, end] = value
        else:
            yield key, value
    yield from windows.items()


# --- native operators -------------------------------------------------------------------------------------------------


def state_of(descriptor: StateDescriptor) -> _native.KeyedState:
    """Return the empty state of an operator without the user's functions, which imports exports of such state."""
    d = descriptor
    if d.kind in PICKLED or d.kind is StateKindOf.RECORD:
        times = [(d.ttl[1], "l", False)] if d.ttl[1] and d.ttl[1] not in d.key_names else []
        schema = native_schema(laid_out("Key", [*d.keys, *times]))
        if d.kind in PICKLED:
            return _native.KeyedState.objects(schema, d.key_names, dict, d.ttl, unpickles=False)
        initial = bytes(d.value_schema.record_size)
        return _native.KeyedState(schema, d.key_names, native_schema(d.value_schema), initial, d.ttl)
    state = _operator(d).state
    assert state is not None
    return state


def _operator(descriptor: StateDescriptor) -> _native.Operator:
    d = descriptor
    if not d.arguments and d.kind in WITH_ARGUMENTS:
        raise StateError(
            "its snapshot is of an earlier version, which didn't save how to show this state",
            hint="Restore it with a job, and read a snapshot of that job",
            code=ErrorCode.OLDER_VERSION,
        )
    match d.kind:
        case StateKindOf.AGGREGATE:
            schemas = native_schema(d.left_schema), native_schema(d.value_schema)
            return _native.Operator.aggregate("state", *schemas, d.key_names, list(d.aggregates), "final", d.ttl)
        case StateKindOf.WINDOW:
            described = "state", native_schema(d.left_schema), native_schema(d.value_schema), d.key_names
            options = {**d.arguments, "ttl": d.ttl, "rest": not d.ttl[0]}  # also incomplete windows by count
            return native_windows(described, options, aggregates=list(d.aggregates))
        case StateKindOf.FOLD:
            source, record = d.left_schema, laid_out("State", d.record)
            described = "state", native_schema(source), native_schema(d.value_schema), d.key_names
            own = read_only(source, record, laid_out("Accumulated", d.accumulated))
            return native_windows(described, d.arguments, own=own)
        case StateKindOf.FUNCTION:
            gives = _with_value(d)
            described = "state", native_schema(d.left_schema), native_schema(gives), d.key_names
            return native_windows(described, d.arguments, function=state_reader(d.left_schema, gives, d.value_schema))
        case StateKindOf.JOIN:
            output = laid_out("Output", [(name, text, True) for name, text, _ in d.takes])
            arguments = {**d.arguments, "right_fields": []}
            return native_join("state", d.left_schema, d.value_schema, output, arguments, d.ttl)
        case StateKindOf.PATTERN:
            marks = _native.Operator.python(
                "state", list, native_schema(d.value_schema), native_schema(Schema.of(int)), flags=Flags.ONE_TO_ONE
            )
            arguments = {**d.arguments, "steps": list(map(tuple, d.arguments["steps"]))}
            keys = native_schema(d.key_schema)
            return _native.Operator.pattern(marks, keys, d.key_names, fields=[], outer=False, **arguments)
        case StateKindOf.MERGE:
            return _native.Operator.merge("state", native_schema(d.value_schema), len(d.flags), **d.arguments)
        case _:
            return _native.Operator.delay("state", native_schema(d.value_schema), 0.0, 1)


def _import(state: _native.KeyedState, chunks: Iterable[bytes]) -> None:
    try:
        for chunk in chunks:
            state.import_(chunk)
    except _native.StateError as error:
        raise DamagedError(f"{error}", hint=DAMAGED) from None


def _rows(chunks: Iterable[bytes], descriptor: StateDescriptor) -> _Rows:
    import pyarrow as pa

    d, keys = descriptor, descriptor.key_names
    if d.kind in (StateKindOf.AGGREGATE, StateKindOf.WINDOW, StateKindOf.FOLD):
        results = _results(chunks, d)
        return _Rows(results.column_names, results.columns, [])
    if d.kind is StateKindOf.FUNCTION:
        results = _results(chunks, d)
        *columns, values = results.columns
        return _Rows(results.column_names[:-1], columns, values.to_pylist())
    state = state_of(d)
    _import(state, chunks)
    if d.kind in PICKLED:
        return _Rows(keys, _columns(state, d.keys), state.values())
    first = LEADING.get(d.kind, d.keys) if d.kind is not StateKindOf.JOIN else (*SIDE, *d.takes)
    names = [name for name, _, _ in first]
    columns = _columns(state, (*first, *d.values))
    if d.kind is StateKindOf.MERGE:
        inputs = pa.array(d.flags, pa.string())
        columns[0] = pa.chunked_array([inputs.take(numbers) for numbers in columns[0].chunks], pa.string())
    prefix = {StateKindOf.RECORD: "state", StateKindOf.JOIN: "right"}.get(d.kind, "tuple")
    others = [f"{prefix}_{name}" if name in names else name for name, _, _ in d.values]
    return _Rows([*names, *others], columns, [])


def _columns(state: _native.KeyedState, fields: Columns) -> list[pa.ChunkedArray]:
    """Return the rows of a state, which has such fields, as columns."""
    import pyarrow as pa

    schema = laid_out("Rows", [(f"column{number}", text, True) for number, (_, text, _) in enumerate(fields)])
    try:
        batches = state.to_arrow(native_schema(schema))
    except (RuntimeError, ValueError) as error:
        raise DamagedError(f"{error}", hint=DAMAGED) from None
    if not fields:  # pyarrow doesn't count rows without columns
        return []
    return list(pa.Table.from_batches(batches, schema.to_arrow()).columns)


def _results(chunks: Iterable[bytes], descriptor: StateDescriptor) -> pa.Table:
    """Return what aggregates, or open windows, would emit now."""
    final = _operator(descriptor)
    assert final.state is not None
    _import(final.state, chunks)
    feeder = _native.ArrowFeeder(native_schema(descriptor.left_schema))
    feeder.finish()
    source = _native.Operator.arrow_source("nothing", native_schema(descriptor.left_schema), feeder)
    return _output([source, final], _with_value(descriptor))


def _with_value(descriptor: StateDescriptor) -> Schema:
    """Return the schema of what the reading operator emits."""
    if descriptor.kind is not StateKindOf.FUNCTION:
        return descriptor.value_schema
    return laid_out("State", [*descriptor.values, (VALUE, "z", False)])


def _output(operators: Sequence[_native.Operator], schema: Schema) -> pa.Table:
    """Return the output of a chain of operators, of which the first is a source.

    Args:
        operators: Native operators.
        schema: The schema of the last one's output.

    Raises:
        StateError: One has failed.
    """
    import pyarrow as pa

    batches: list[pa.RecordBatch] = []
    scheduler = _native.Scheduler()
    sink = _native.Operator.arrow_sink("results", native_schema(schema), batches.append)
    for one, other in pairwise([scheduler.add(operator) for operator in (*operators, sink)]):
        scheduler.connect(one, other)
    scheduler.start(1)
    scheduler.wait()
    failure = scheduler.failure()
    scheduler.stop()
    if failure is not None:
        raise DamagedError(f"its content is invalid: {failure.message}", hint=DAMAGED)
    return pa.Table.from_batches(batches, schema.to_arrow())


def _holding_table(states: Sequence[Any], descriptor: StateDescriptor) -> pa.Table:
    """Return the state of a switch or gate, what it is set to and the tuples that wait, as one row."""
    import pyarrow as pa

    schema = descriptor.value_schema
    (setting,) = descriptor.flags
    waiting = [row for _, tuples in states for row in tuples]
    never_waits = Flags.SOURCE | Flags.NEEDS_TOKEN
    source = _native.Operator.python("waiting", lambda: iter(waiting), None, native_schema(schema), flags=never_waits)
    rows = _output([source], schema).combine_chunks().to_struct_array().combine_chunks()
    ends = [0, *accumulate(len(tuples) for _, tuples in states)]
    lists = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), rows)
    return pa.table([pa.array([set_to for set_to, _ in states]), lists], [setting, "waiting"])


# --- Python values ----------------------------------------------------------------------------------------------------


def _python_values(column: Any, text: str) -> list[Any]:
    """Return the values of a column; of enums with a known class, their members."""
    reader: Callable[[Any], Any] | None = reader_of(plain_form(text), generated_type)
    values: list[Any] = column.to_pylist()
    return values if reader is None else [reader(value) for value in values]


def _objects(pickled: Sequence[bytes], *, trusted: bool) -> list[Any]:
    if pickled and not trusted:
        raise StateError(
            "it holds pickled Python values, which are read from signed snapshots only",
            hint="Pass the key with which it was written, as rel.Snapshot(folder, key=...)",
            code=ErrorCode.UNSIGNED_VALUES,
        )
    return [_unpickled(data) for data in pickled]


def _unpickled(data: bytes) -> Any:
    try:
        return pickle.loads(data)  # noqa: S301  (signed, or of our own job: the caller says so)
    except Exception as error:  # an unknown or changed class may raise anything
        raise StateError(
            f"a value of it can't be loaded here: {type(error).__name__}: {error}",
            hint="Make the classes of its state importable here",
            code=ErrorCode.MISSING_MODULE,
        ) from None


def _values(objects: Sequence[Any]) -> tuple[str, pa.Array]:
    """Return a column of Python values; it has another name if they are shown as Python writes them."""
    import pyarrow as pa

    try:
        return "value", pa.array([_plain(value) for value in objects])
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        return "value_as_text", pa.array([repr(value) for value in objects], pa.string())


def _plain(value: Any) -> Any:
    if hasattr(value, "_asdict"):
        return value._asdict()
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
