"""What is known of a Delta table, for declarations, readers and writers: its types, files and errors."""

from __future__ import annotations

import contextlib
import importlib.util
import urllib.parse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rayelastic.connectors.files.locations import below, is_uri, local_path, shown_location
from rayelastic.errors import DeclarationError, ErrorCode, SinkError, SinkLostError

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable


def check_installed(operator: str, error: type[DeclarationError]) -> None:
    """Raise an error of a class if deltalake isn't installed."""
    if importlib.util.find_spec("deltalake") is None:
        raise error(
            "Delta Lake needs deltalake, which isn't installed",
            operator=operator,
            hint="pip install 'rayelastic[delta]'",
            code=ErrorCode.MISSING_PACKAGE,
        )


def place_of(location: str) -> tuple[str, dict[str, str]]:
    """Return a table's URI and settings, as deltalake has them, of a location as pyarrow has it.

    >>> place_of("s3://key:word@bucket/t?region=eu&endpoint_override=127.0.0.1:9000&scheme=http")[0]
    's3://bucket/t'
    """
    if local_path(location) is not None:
        return location, {}
    parts = urllib.parse.urlsplit(location)
    query = dict(urllib.parse.parse_qsl(parts.query))
    scheme = query.get("scheme", "https")
    endpoint = query.get("endpoint_override", "")
    settings = {
        "AWS_ACCESS_KEY_ID": urllib.parse.unquote(parts.username or ""),
        "AWS_SECRET_ACCESS_KEY": urllib.parse.unquote(parts.password or ""),
        "AWS_REGION": query.get("region", ""),
        "AWS_ENDPOINT_URL": endpoint if "://" in endpoint or not endpoint else f"{scheme}://{endpoint}",
        "AWS_ALLOW_HTTP": "true" if scheme == "http" else "",
    }
    host = parts.netloc.rpartition("@")[2]
    settings |= {"connect_timeout": "10s", "timeout": "60s", "max_retries": "3", "retry_timeout": "20s"}
    return f"{parts.scheme}://{host}{parts.path}", {name: value for name, value in settings.items() if value}


def opened(location: str, version: int | None = None) -> DeltaTable | None:
    """Open a table; None: there is none."""
    from deltalake import DeltaTable
    from deltalake.exceptions import TableNotFoundError

    uri, settings = place_of(location)
    try:
        return DeltaTable(uri, version=version, storage_options=settings)
    except TableNotFoundError:
        return None


@contextlib.contextmanager
def raising(
    location: str,
    how: str,
    error: type[DeclarationError] = SinkError,
    lost: type[DeclarationError] = SinkLostError,
    operator: str | None = None,
) -> Iterator[None]:
    """Raise deltalake's errors as the project's.

    Args:
        location: The table.
        how: What failed: "written", "read".
        error: The class of the errors.
        lost: Their class if a retry may succeed.
        operator: The operator, if it is known.
    """
    from deltalake.exceptions import CommitFailedError, DeltaError, SchemaMismatchError

    try:
        yield
    except (DeltaError, OSError) as problem:
        text = " ".join(str(problem).replace("\x1b[31m↳\x1b[0m", "").split())
        shown, kind, code, hint = (
            f"table {shown_location(location)!r}",
            error,
            None,
            "Check rights, space and the table",
        )
        if isinstance(problem, SchemaMismatchError):
            code, hint = ErrorCode.SCHEMA_MISMATCH, "Write the columns that the table has"
        elif isinstance(problem, CommitFailedError) or (isinstance(problem, OSError) and is_uri(location)):
            kind, hint = lost, "Check that the store answers, and who else writes to the table"
        raise kind(f"{shown} can't be {how}: {text}", operator=operator, hint=hint, code=code) from None


def columns_of(table: DeltaTable) -> pa.Schema:
    """Return the columns of a table."""
    import pyarrow as pa

    return pa.schema(table.schema().to_arrow())


def delta_schema(schema: pa.Schema) -> pa.Schema:
    """Return the columns of a new table for a stream: Delta has neither unsigned numbers nor other units of time."""
    import pyarrow as pa

    return pa.schema([pa.field(one.name, _held(one.type), one.nullable) for one in schema])


def _held(kind: Any) -> Any:
    """Return the smallest type of Delta that holds all values of a type of Arrow."""
    import pyarrow as pa

    types = pa.types
    larger = {
        pa.uint8(): pa.int16(),
        pa.uint16(): pa.int32(),
        pa.uint32(): pa.int64(),
        pa.uint64(): pa.decimal128(20, 0),
        pa.float16(): pa.float32(),
        pa.date64(): pa.date32(),
        pa.large_string(): pa.string(),
        pa.large_binary(): pa.binary(),
    }
    if types.is_timestamp(kind):
        return pa.timestamp("us", "UTC" if kind.tz else None)
    if types.is_list(kind) or types.is_large_list(kind):
        return pa.list_(kind.value_field.with_type(_held(kind.value_type)))
    if types.is_map(kind):
        return pa.map_(_held(kind.key_type), kind.item_field.with_type(_held(kind.item_type)))
    if types.is_struct(kind):
        return pa.struct([one.with_type(_held(one.type)) for one in kind])
    if isinstance(kind, pa.BaseExtensionType):  # a UUID
        return pa.string()
    return larger.get(kind, kind)


def check_columns(table: DeltaTable, columns: pa.Schema, partition_by: tuple[str, ...], location: str) -> None:
    """Raise SinkError unless a table holds rows of these columns.

    Args:
        table: The table.
        columns: Those of the rows; see `delta_schema`.
        partition_by: The columns that folders are to name; none: those of the table.
        location: Its location.
    """
    has, own = columns_of(table), list(table.metadata().partition_columns)
    problem = ""
    for one in columns:
        if one.name not in has.names:
            problem = f"has no column {one.name!r}, which the stream has"
        elif not _fits(one.type, has.field(one.name).type):
            problem = f"has {one.name!r} of {has.field(one.name).type}, and the stream has it of {one.type}"
        elif one.nullable and not has.field(one.name).nullable:
            problem = f"has {one.name!r} without nulls, and the stream's may be None"
    for one in has:
        if one.name not in columns.names and not one.nullable:
            problem = f"needs a column {one.name!r}, which the stream lacks"
    hint = "Map the stream to the columns of the table, or write to another table"
    if not problem and partition_by and list(partition_by) != own:
        problem = f"is partitioned by {own}, and partition_by= is {list(partition_by)}"
        hint = "Leave partition_by= out, or write to another table"
    if problem:
        raise SinkError(f"table {shown_location(location)!r} {problem}", hint=hint, code=ErrorCode.SCHEMA_MISMATCH)


def _fits(kind: pa.DataType, into: pa.DataType) -> bool:
    """Return whether a type holds all values of another one, as the same."""
    import pyarrow as pa

    types = pa.types
    if types.is_list(kind) and types.is_list(into):
        return _fits(kind.value_type, into.value_type)
    if types.is_map(kind) and types.is_map(into):
        return _fits(kind.key_type, into.key_type) and _fits(kind.item_type, into.item_type)
    if types.is_struct(kind) and types.is_struct(into):
        return [one.name for one in kind] == [one.name for one in into] and all(
            _fits(one.type, other.type) for one, other in zip(kind, into, strict=True)
        )
    for is_kind in (types.is_signed_integer, types.is_floating):
        if is_kind(kind) and is_kind(into):
            return bool(kind.bit_width <= into.bit_width)
    return bool(kind == into)


def files_of(table: DeltaTable, location: str) -> list[tuple[str, dict[str, str | None]]]:
    """Return the files of a table in the order of their commits, each with the columns that its folders name."""
    import pyarrow as pa

    added = pa.table(table.get_add_actions(flatten=True))
    names = table.metadata().partition_columns
    values = [added.column(f"partition.{name}").cast(pa.string()).to_pylist() for name in names]
    files = []
    for number, (path, at) in enumerate(
        zip(added.column("path").to_pylist(), added.column("modification_time").to_pylist(), strict=True)
    ):
        constants = {name: own[number] for name, own in zip(names, values, strict=True)}
        files.append((at, _file(path, location), constants))
    return [(path, constants) for _, path, constants in sorted(files, key=lambda file: file[:2])]


def _file(path: str, location: str) -> str:
    """Return the location of a file by its path in the log, which is percent-encoded."""
    if is_uri(path) or path.startswith("/"):
        return path
    return below(location, path if is_uri(location) else urllib.parse.unquote(path))
