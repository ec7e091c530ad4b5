"""What a processing element says of itself, made of the native scheduler's counters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rayelastic.runtime.values.status import BAD_ROW, FAILED, OperatorSample, PESample
from rayelastic.runtime.watch.machine_load import resident_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rayelastic import _native
    from rayelastic.graph.spec.operator_spec import OperatorSpec
    from rayelastic.runtime.values.specs import PESpec


def pe_sample(
    spec: PESpec,
    ids: Mapping[str, int],
    native: _native.Sample | None,
    *,
    seconds: float,
    failed: str | None,
    links: dict[str, dict[str, Any]],
    port: dict[str, int],
    latencies: Mapping[str, tuple[int, ...]],
    widths: Mapping[str, int],
    bad_rows: Mapping[str, int],
) -> PESample:
    """Makes a sample.

    Args:
        spec: of the processing element.
        ids: {operator: its number in the scheduler}.
        native: the scheduler's sample; `None` if it hasn't been started.
        seconds: since the start.
        failed: the operator that failed.
        links: counters of each link.
        port: counters of the data port.
        latencies: {sink: its marks by how long they were under way}.
        widths: channels in use, of stages.
        bad_rows: {source: rows that it left out because they aren't of its schema}.
    """
    if native is None:
        return PESample(spec.pe, seconds, 0, 0.0, (), links, port, rss_bytes=resident_bytes())
    specs = {operator.name: operator for operator in spec.operators}
    lanes = {operator.name: getattr(operator.body, "lane", None) for operator in spec.operators}
    operators = []
    for name, number in ids.items():
        counted = native.operators[number]
        lane = lanes.get(name)
        operators.append(
            OperatorSample(
                name=name,
                model=counted.model,
                tuples_in=counted.tuples_in,
                tuples_out=counted.tuples_out,
                queued=counted.queued,
                queue_capacity=counted.queue_capacity,
                cpu_seconds=counted.cpu_seconds,
                inside_seconds=counted.inside_seconds,
                waited_seconds=counted.waited_seconds,
                blocked_seconds=counted.blocked_seconds,
                errors=int(name == failed),
                lane=lane.value if lane is not None else "",
                state_keys=counted.state_keys,
                state_bytes=counted.state_bytes,
                latency=latencies.get(name, ()),
                channels=widths.get(name, 0),
                answered_by_python=counted.answered,
                dropped=_dropped(specs.get(name), counted, bad_rows.get(name, 0)),
            )
        )
    return PESample(
        pe=spec.pe,
        seconds=seconds,
        threads=native.thread_count,
        token_wait_seconds=native.token_wait_seconds,
        operators=tuple(operators),
        links=links,
        port=port,
        threads_stuck=native.stuck,
        rss_bytes=resident_bytes(),
        cpu_seconds=native.engine_cpu_seconds + sum(one.cpu_seconds for one in native.operators),
    )


def _dropped(spec: OperatorSpec | None, counted: _native.OperatorSample, bad_rows: int) -> dict[str, int]:
    """Tuples that went nowhere, by reason."""
    ports = [] if spec is None else [port.name for port in spec.outputs[1:]]
    counts = dict(zip(ports, counted.untaken, strict=False)) | {FAILED: counted.skipped, BAD_ROW: bad_rows}
    return {reason: count for reason, count in counts.items() if count}
