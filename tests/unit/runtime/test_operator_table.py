"""A table of counters is the sequence of its samples: whoever looks at one can't tell."""

from __future__ import annotations

import pickle
from dataclasses import replace

from rayelastic.commands.plain_values import plain
from rayelastic.runtime.values.operator_table import OperatorTable
from rayelastic.runtime.values.period import pe_period
from rayelastic.runtime.values.status import JobMetrics, OperatorSample, PESample

SAMPLES = (
    OperatorSample("lines", "dedicated", 0, 7, 0, lane="built-in"),
    OperatorSample(
        "counts", "dynamic", 7, 3, 2, 10, 0.5, 0.75, 0.25, 0.125, 1, "compiled", 4, 96, answered_by_python=2
    ),
    OperatorSample("out", "manual", 3, 0, 0, latency=(0, 2, 1, 0), channels=2, dropped={"late": 5}),
)


def test_samples_come_out_as_they_went_in() -> None:
    table = OperatorTable.of(SAMPLES)
    assert tuple(table) == SAMPLES
    assert table == SAMPLES
    assert (table[1], table[-1], table[1:], len(table)) == (SAMPLES[1], SAMPLES[2], SAMPLES[1:], 3)
    assert table != SAMPLES[:2]
    assert OperatorTable.of(table) is table
    assert table.column("tuples_in").tolist() == [0, 7, 3]


def test_a_job_reads_it_as_any_sequence() -> None:
    metrics = JobMetrics("words", 1.0, (PESample("pe0", 1.0, 1, 0.0, OperatorTable.of(SAMPLES)),))
    assert metrics.operator("counts") == SAMPLES[1]
    assert pickle.loads(pickle.dumps(metrics)) == metrics
    assert plain(metrics)["pes"][0]["operators"][2]["dropped"] == {"late": 5}


def test_there_may_be_none() -> None:
    assert tuple(OperatorTable.of(())) == ()


def test_it_is_sent_in_one_piece() -> None:
    """Ray pads buffers that it sends apart with what its memory had before: words of tuples of an encrypted job."""
    buffers: list[pickle.PickleBuffer] = []
    sent = pickle.dumps(OperatorTable.of(SAMPLES), protocol=5, buffer_callback=buffers.append)
    assert not buffers
    assert pickle.loads(sent) == SAMPLES


def test_a_period_has_what_counters_grew_by_and_gauges_as_they_are() -> None:
    """A PE that restarted counts from 0; one without operators has none in the period."""
    before, after = (
        PESample(
            "pe0", seconds, 2, wait, (OperatorSample("out", "manual", tuples, 0, 3, latency=marks, dropped=dropped),),
            links={"a->b": {"bytes_sent": sent, "unconsumed_bytes": 7, "refused": {}}}, cpu_seconds=wait,
        )
        for seconds, wait, tuples, marks, dropped, sent in (
            (1.0, 0.5, 10, (1, 0), {"late": 1}, 100),
            (3.0, 0.75, 14, (1, 2), {"late": 4, "failed": 1}, 150),
        )
    )  # fmt: skip
    period = pe_period(before, after)
    assert (period.seconds, period.threads, period.gil_wait_seconds, period.cpu_seconds) == (2.0, 2, 0.25, 0.25)
    assert period.links == {"a->b": {"bytes_sent": 50, "unconsumed_bytes": 7, "refused": {}}}
    (out,) = period.operators
    assert (out.tuples_in, out.queued, out.latency, out.dropped) == (4, 3, (0, 2), {"late": 3, "failed": 1})
    assert pe_period(after, before).operators[0].tuples_in == 10, "since it restarted"
    assert pe_period(None, after) == after
    assert tuple(pe_period(replace(before, operators=()), replace(after, operators=())).operators) == ()
