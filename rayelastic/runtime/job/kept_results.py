"""The sinks' results of a finished job, as lines of its journal, so that they outlive the coordinator's process.

Paths and row counts are always kept; rows in memory up to a megabyte in all. Nothing is pickled.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from rayelastic.errors import ErrorCode, PELostError
from rayelastic.plan.plan_text import counted
from rayelastic.runtime.values.status import SinkResult

MOST_BYTES = 1 << 20  # of rows: the journal is in the memory of Ray's GCS


def encoded(results: Mapping[str, SinkResult], most: int = MOST_BYTES) -> dict[str, dict[str, Any]]:
    """Return results in a form that JSON holds.

    >>> encoded({"out": SinkResult("out", 3, "/tmp/out.csv")})
    {'out': {'rows': 3, 'text': '/tmp/out.csv'}}
    """
    kept: dict[str, dict[str, Any]] = {}
    for name, result in results.items():
        kept[name] = {"rows": result.rows}
        if isinstance(result.value, str):
            kept[name]["text"] = result.value
        elif result.value is not None:
            table = base64.b64encode(_to_bytes(result.value)).decode() if result.value.nbytes <= most else None
            kept[name]["table"] = table
            most -= len(table or "")
    return kept


def decoded(kept: Mapping[str, Mapping[str, Any]]) -> dict[str, SinkResult]:
    """Restore the results.

    Raises:
        PELostError: The rows of a sink were too many to be kept.
    """
    results = {}
    for name, result in kept.items():
        value: Any = result.get("text")
        if "table" in result:
            if result["table"] is None:
                raise PELostError(
                    f"the job has finished, but the {counted(result['rows'], 'row')} that sink '{name}' kept in memory "
                    "were lost with its coordinator",
                    hint="Write them to files",
                    code=ErrorCode.RESULTS_LOST,
                )
            value = _to_table(base64.b64decode(result["table"]))
        results[name] = SinkResult(name, result["rows"], value)
    return results


def _to_bytes(table: Any) -> bytes:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _to_table(data: bytes) -> Any:
    import pyarrow as pa

    with pa.ipc.open_stream(data) as reader:
        return reader.read_all()
