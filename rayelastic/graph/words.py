"""Words of other systems, with this project's word for each: the text of an AttributeError for an unknown name.

The tables are in docs/reference too: `python -m rayelastic.graph.words` writes them.
"""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

_AGGREGATE = ".key_by(field).aggregate(out=rel.{0})"
_KEYED_STATE = ".key_by(field).map(fn, state=State), where fn(t, s) sets fields of s"
_WATERMARK = ".event_time(field, lateness=seconds)"
_NO_PARALLELISM = (
    "nothing: a job finds threads, processes and replicas itself; rel.Elasticity(max_processes=) bounds it"
)
_ORDER = ".sort(field, descending=True), once the input has ended"
_TOP = ".top(n, by=field), once the input has ended; or of a window"
_OUT = ".sink(rel.{0}), then rel.run(topology)"
_POLLED = "rel.polled, which reads partitions by position, and rel.call as sink: see the guide, Sources and sinks"
_BATCH = (
    ".map(fn, concurrent=rel.concurrent(max_batch=n)), whose fn receives a list of tuples. "
    "By key: .window(count=n, within=seconds).process(fn)"
)
_ASYNC = (
    ".map(fn, schema={field: type}, concurrent=rel.concurrent(capacity, ordered=True, timeout=seconds, retry=times)), "
    "where fn may be async"
)
_SIDE = ".map(fn, sides={port: schema}), where fn returns rel.to(port, tuple) for .side(port)"
_OWN_STATE = (
    "an object with on_tuple(t, state, out) and on_time(time, state, out): .key_by(field).process(object, schema=...)"
)
_PORTS = ".apply(operator, port=other) of a class with @rel.operator(inputs={port: schema})"
_FRAME = "rel.pandas() as sink: result['out'] is a DataFrame. Or rel.arrow(), for a pyarrow.Table"

STREAM: dict[str, str] = {
    # Bytewax
    "key_rm": "nothing: keys are fields, and stay in the tuples",
    "stateful_map": _KEYED_STATE,
    "stateful_flat_map": ".key_by(field).flat_map(fn, state=State)",
    "stateful": ".key_by(field).process(operator)",
    "flat_map_value": ".flat_map(fn)",
    "filter_value": ".filter(fn)",
    "map_value": ".map(fn)",
    "fold_final": ".key_by(field).fold(fn, start)",
    "fold_window": ".key_by(field).window(seconds=60).fold(fn, start)",
    "reduce_window": ".key_by(field).window(seconds=60).reduce(fn)",
    "collect_window": ".key_by(field).window(seconds=60).collect()",
    "collect_final": ".sink(rel.list())",
    "enrich_cached": ".enrich(table)",
    "redistribute": _NO_PARALLELISM,
    "output": ".sink(sink)",
    "input": "topology.source(source)",
    # Flink
    "process_function": ".key_by(field).process(operator)",
    "assign_timestamps_and_watermarks": _WATERMARK,
    "assignTimestampsAndWatermarks": _WATERMARK,
    "time_window": ".window(seconds=60)",
    "count_window_all": ".window(count=n)",
    "window_all": ".window(seconds=60) without key_by",
    "connect": ".cross_join(rules, by='arrival') with few rows that change, or " + _PORTS,
    "co_map": _PORTS,
    "broadcast": "nothing: other.cross_join(rules, by='arrival') sends it to all; a dict: .key_by(field).enrich(table)",
    "interval_join": ".key_by(field).join(other.key_by(field), within=(seconds before, seconds after))",
    "get_side_output": _SIDE,
    "getSideOutput": _SIDE,
    "side_output": _SIDE,
    "process": ".key_by(field).process(object, schema=...), or .flat_map(fn), which yields any number of tuples",
    "unordered_wait": _ASYNC,
    "ordered_wait": _ASYNC,
    "async_map": _ASYNC,
    "map_async": _ASYNC,
    "add_sink": ".sink(sink)",
    "sink_to": ".sink(sink)",
    "set_parallelism": _NO_PARALLELISM,
    "setParallelism": _NO_PARALLELISM,
    "rebalance": _NO_PARALLELISM,
    "shuffle": _NO_PARALLELISM,
    "rescale": _NO_PARALLELISM,
    "partition_custom": ".split(ways, by=fn)",
    "uid": "name= of the operator",
    "name": "name= of the operator",
    "slot_sharing_group": _NO_PARALLELISM,
    "start_new_chain": _NO_PARALLELISM,
    "disable_chaining": _NO_PARALLELISM,
    "execute_and_collect": ".collect()",
    "iterate": "topology.feedback(like=stream)",
    # Polars, pandas
    "sort_values": _ORDER,
    "apply_map": ".map(fn)",
    "map_elements": ".map(fn)",
    "map_batches": ".map(fn) with a parameter annotated pyarrow.RecordBatch, or pandas or polars.DataFrame",
    "pipe": "fn(stream): a function of a stream that returns one",
    "top_k": _TOP,
    "nlargest": _TOP,
    "cum_sum": ".key_by(field).scan(lambda total, t: total + t.field, 0)",
    "cumsum": ".key_by(field).scan(lambda total, t: total + t.field, 0)",
    "cast": ".with_columns(column=fn)",
    "tail": ".aggregate(last=rel.last(field))",
    "rolling": ".window(seconds=60, slide=10)",
    "group_by_dynamic": ".key_by(field).window(seconds=60)",
    "join_asof": ".key_by(field).join(other.key_by(field), by='time')",
    "concat": ".union(other)",
    "vstack": ".union(other)",
    "columns": "stream.schema.names",
    "dtypes": "stream.schema",
    "describe": ".aggregate(low=rel.min(field), mean=rel.mean(field), high=rel.max(field))",
    "to_pandas": _FRAME,
    "to_list": ".collect()",
    "to_arrow": _OUT.format("arrow()"),
    "write_csv": _OUT.format("csv(path)"),
    "to_csv": _OUT.format("csv(path)"),
    "write_parquet": _OUT.format("parquet(path)"),
    "to_parquet": _OUT.format("parquet(path)"),
    "write_json": _OUT.format("json(path)"),
    "sink_parquet": _OUT.format("parquet(path)"),
    "iterrows": ".collect()",
    # Spark
    "where": ".filter(fn)",
    "withColumnRenamed": ".rename({old: new})",
    "withWatermark": _WATERMARK,
    "orderBy": _ORDER,
    "unionByName": ".union(other)",
    "unionAll": ".union(other)",
    "repartition": _NO_PARALLELISM,
    "coalesce": _NO_PARALLELISM,
    "cache": "nothing: a stream may have several consumers, and is computed once",
    "persist": "nothing: a stream may have several consumers, and is computed once",
    "toPandas": _FRAME,
    "foreachBatch": _BATCH,
    "foreach_batch": _BATCH,
    "writeStream": ".sink(sink), then rel.run(topology). For foreachBatch: " + _BATCH,
    "start": "rel.run(topology), or rel.start(topology)",
    "reduceByKey": ".key_by(field).reduce(fn), or .key_by(field).sum(field)",
    "groupByKey": ".key_by(field)",
    "write": ".sink(sink)",
    "mapInPandas": ".map(fn) with a parameter annotated pandas.DataFrame",
    "printSchema": "stream.schema",
    "explain": "topology.explain()",
    "run": "rel.run(topology)",
    "buffer": _BATCH,
    "batch": _BATCH,
    "rate_limit": ".throttle(per_second)",
    "count": ".aggregate(n=rel.count()), or .sink(rel.count())",
    **{
        word: f"{_AGGREGATE.format(f'{word}(field)')}, or .aggregate(...) without key_by for all tuples"
        for word in ("sum", "min", "max", "mean", "first", "last", "quantile", "stddev")
    },
    "avg": _AGGREGATE.format("mean(field)"),
    "median": _AGGREGATE.format("quantile(field, 0.5)"),
    "std": _AGGREGATE.format("stddev(field)"),
    "nunique": _AGGREGATE.format("distinct(field)"),
    "n_unique": _AGGREGATE.format("distinct(field)"),
}

TOPOLOGY: dict[str, str] = {
    "run": "rel.run(topology), or rel.submit(topology) on Ray",
    "execute": "rel.run(topology), or rel.submit(topology) on Ray",
    "submit": "rel.submit(topology)",
    "start": "rel.start(topology)",
    "add_source": "topology.source(source)",
    "from_source": "topology.source(source)",
    "input": "topology.source(source)",
    "from_elements": "topology.source(rel.rows(rows, schema))",
    "read_text_file": "topology.source(rel.text(path))",
    "readStream": "topology.source(source)",
    "read": "topology.source(source)",
    "socket_text_stream": "topology.source(rel.callable(fn, schema)), whose generator reads the socket",
    "sink": "stream.sink(sink)",
    "map": "stream.map(fn), of what topology.source returned",
    "set_parallelism": _NO_PARALLELISM,
    "enable_checkpointing": "JobConfig(checkpoint=rel.Checkpoint(location))",
    "graph": "topology.explain()",
    "show": "topology.explain()",
}

MODULE: dict[str, str] = {
    **dict.fromkeys(
        ("Dataflow", "Pipeline", "Flow", "Graph", "StreamExecutionEnvironment", "Environment", "Application", "App"),
        "rel.Topology(name)",
    ),
    **dict.fromkeys(("execute", "cluster_main", "run_main", "cli_main"), "rel.run(topology), or rel.submit(topology)"),
    **dict.fromkeys(
        ("kinesis", "pulsar", "mqtt", "rabbitmq", "redis", "nats", "websocket", "http", "socket", "sqs"),
        _POLLED,
    ),
    **dict.fromkeys(
        ("EventClock", "WatermarkStrategy", "AssignerWithPeriodicWatermarks", "event_time"), f"stream{_WATERMARK}"
    ),
    "SystemClock": "stream.key_by(field).window(seconds=60, clock=True)",
    **dict.fromkeys(
        ("TumblingWindower", "TumblingEventTimeWindows", "TumblingProcessingTimeWindows", "TumblingWindow"),
        "stream.key_by(field).window(seconds=60)",
    ),
    **dict.fromkeys(
        ("SlidingWindower", "SlidingEventTimeWindows", "SlidingProcessingTimeWindows", "Slide", "SlidingWindow"),
        "stream.key_by(field).window(seconds=60, slide=10)",
    ),
    **dict.fromkeys(
        ("SessionWindower", "EventTimeSessionWindows", "ProcessingTimeSessionWindows", "SessionWindow"),
        "stream.key_by(field).session(gap=30)",
    ),
    "CountWindow": "stream.key_by(field).window(count=n)",
    **dict.fromkeys(("Time", "Duration"), "seconds as a number, or a timedelta"),
    **dict.fromkeys(("KeyedProcessFunction", "ProcessFunction", "CoProcessFunction"), _OWN_STATE),
    **dict.fromkeys(
        ("ValueStateDescriptor", "ListStateDescriptor", "MapStateDescriptor", "ValueState", "StateTtlConfig"),
        "@rel.state on a class with fields, and .key_by(field).map(fn, state=State, ttl=seconds)",
    ),
    **dict.fromkeys(
        ("MapFunction", "RichMapFunction", "FlatMapFunction", "FilterFunction"),
        "a function, or an object with __call__(t) and initialize()",
    ),
    "OutputTag": "stream" + _SIDE,
    **dict.fromkeys(("AsyncDataStream", "AsyncFunction"), "stream" + _ASYNC),
    **dict.fromkeys(
        ("Sink", "SinkFunction", "DynamicSink", "StatelessSinkPartition", "ForeachWriter"),
        "rel.call(object), of an object with __call__(t), and perhaps initialize(), flush() and shutdown()",
    ),
    **dict.fromkeys(
        ("Source", "SourceFunction", "DynamicSource", "StatelessSourcePartition", "SimplePollingSource"),
        "rel.callable(fn, schema), whose fn yields tuples; rel.polled where it can rewind",
    ),
    **dict.fromkeys(
        ("HybridSource", "backfill", "bootstrap", "then"), "rel.history(rel.parquet(path, Event)).then(rel.kafka(...))"
    ),
    **dict.fromkeys(
        ("timer", "ticks", "every", "periodic"),
        "rel.interval(seconds); to slow a stream: .throttle(per_second)",
    ),
    **dict.fromkeys(("iceberg", "hudi"), "rel.parquet(path), or rel.spark.sink with Spark's own format"),
    **dict.fromkeys(
        ("s3", "gcs", "hdfs", "azure", "blob"), "rel.parquet('s3://bucket/path'), or text, csv, json: paths are URIs"
    ),
    **dict.fromkeys(
        ("jdbc", "sql", "database", "mysql", "sqlite"), "rel.postgres as sink, or rel.call(fn); rel.polled as source"
    ),
    **dict.fromkeys(("scan_csv", "from_csv"), "rel.csv(path)"),
    "scan_parquet": "rel.parquet(path)",
    **dict.fromkeys(("scan_ndjson", "read_ndjson", "jsonl"), "rel.json(path)"),
    **dict.fromkeys(("file", "lines", "FileSource"), "rel.text(path)"),
    **dict.fromkeys(
        (
            "from_list",
            "from_dicts",
            "from_collection",
            "from_records",
            "iter",
            "from_iterable",
            "TestingSource",
            "DataFrame",
        ),
        "rel.rows(rows, schema)",
    ),
    **dict.fromkeys(("from_generator", "generator", "iterator"), "rel.callable(fn, schema)"),
    **dict.fromkeys(("from_pandas", "from_arrow", "from_polars"), "rel.arrow(table)"),
    **dict.fromkeys(("to_pandas", "polars", "dataframe"), _FRAME),
    "range": "rel.sequence(count)",
    **dict.fromkeys(("stdout", "StdOutSink", "console"), "rel.print()"),
    **dict.fromkeys(("function", "foreach", "callback"), "rel.call(fn)"),
    "collect": "rel.list()",
    "len": "rel.count()",
    "average": "rel.mean(field)",
    "median": "rel.quantile(field, 0.5)",
    **dict.fromkeys(("std", "stdev"), "rel.stddev(field)"),
    **dict.fromkeys(("n_unique", "nunique", "count_distinct", "approx_count_distinct"), "rel.distinct(field)"),
    **dict.fromkeys(("percentile", "p99"), "rel.quantile(field, 0.99)"),
    **dict.fromkeys(("collect_list", "array_agg"), ".key_by(field).window(count=n).collect()"),
    **dict.fromkeys(("Config", "Settings"), "rel.JobConfig(...)"),
    **dict.fromkeys(("lit", "when", "expr", "udf"), "a function: .with_columns(column=lambda t: t.field * 2)"),
    **dict.fromkeys(("DeltaTable", "delta_table", "read_delta", "write_delta", "write_deltalake"), "rel.delta(table)"),
    "KafkaSource": "rel.kafka(brokers, topic)",
    **dict.fromkeys(("KafkaSink", "kafka_sink", "write_kafka"), "rel.to_kafka(brokers, topic)"),
    "window": "stream.event_time(field).key_by(field).window(seconds=60)",
    "key_by": "stream.key_by(field)",
}

RESULT: dict[str, str] = {
    **dict.fromkeys(("to_pandas", "toPandas", "to_polars", "to_arrow", "df"), _FRAME),
    **dict.fromkeys(
        ("collect", "to_list", "result", "results", "rows", "output", "outputs", "fetchall"),
        "result['out'], by the name of a sink",
    ),
    **dict.fromkeys(("stats", "counters"), "result.metrics.operator(name).tuples_in and .tuples_out"),
    **dict.fromkeys(("duration", "elapsed", "time"), "result.seconds"),
    **dict.fromkeys(
        ("wait", "cancel", "stop", "status"), "job = rel.start(topology), which has it: rel.run waits for the end"
    ),
    "show": "print(result['out'])",
    "count": "len(result['out']), or rel.count() as sink",
}

CONFIG: dict[str, str] = {
    **dict.fromkeys(("parallelism", "workers", "processes", "replication", "instances"), _NO_PARALLELISM),
    **dict.fromkeys(("checkpoint_interval", "checkpointing", "recovery"), "checkpoint=rel.Checkpoint(every=seconds)"),
    **dict.fromkeys(("buffer_size", "queue_size", "batch_size"), "threads=rel.Threads(queue_records=, run_records=)"),
    **dict.fromkeys(("ssl", "encryption"), "network=rel.Network(secure=True)"),
    **dict.fromkeys(("ui", "ui_port", "dashboard", "dashboard_port", "port"), "web_port=0"),
    "latency": "goal=rel.Latency(p99=seconds)",
}


_FUNCTION = ".with_columns(column=lambda t: ...), a function of the tuple"
COLUMN: dict[str, str] = {
    **dict.fromkeys(("cum_sum", "cumsum", "over"), ".key_by(field).scan(lambda total, t: total + t.field, 0)"),
    **dict.fromkeys(("str", "dt", "list", "cast", "map_elements", "fill_null", "is_in", "isin"), _FUNCTION),
    "std": "rel.stddev(field)",
    "median": "rel.quantile(field, 0.5)",
    "avg": ".mean()",
    "name": ".alias(name)",
}

ARGUMENT: dict[str, str] = {
    **dict.fromkeys(
        ("concurrency", "max_concurrency", "max_workers", "num_workers", "workers", "capacity", "concurrent_calls"),
        "concurrent=rel.concurrent(10), for calls to services",
    ),
    **dict.fromkeys(("retries", "retry", "max_retries"), "concurrent=rel.concurrent(1, retry=3)"),
    "timeout": "concurrent=rel.concurrent(timeout=5)",
    **dict.fromkeys(("batch_size", "max_batch"), "concurrent=rel.concurrent(max_batch=32)"),
    **dict.fromkeys(("rate_limit", "rate", "per_second"), ".throttle(per_second) before it"),
    **dict.fromkeys(
        ("parallelism", "num_processes", "replicas"),
        _NO_PARALLELISM + ". For calls to services: concurrent=rel.concurrent(10)",
    ),
    **dict.fromkeys(("output_type", "result_type", "returns", "return_dtype", "meta"), "schema={field: type}"),
    **dict.fromkeys(("step_id", "uid"), "name='...'"),
    **dict.fromkeys(("bootstrap_servers", "servers", "broker_address"), "the first of rel.kafka(brokers, topic)"),
    **dict.fromkeys(("group_id", "consumer_group", "group"), "nothing: checkpoints have the offsets of rel.kafka"),
    **dict.fromkeys(("sep", "separator"), "delimiter=','"),
}


def missing(owner: str, word: str, known: Iterable[str], words: Mapping[str, str], what: str = "") -> str:
    """Return the message for an unknown name.

    Args:
        owner: The object without it, such as 'a Stream'.
        word: The attribute's name.
        known: Attributes that exist.
        words: Words of other systems.
        what: The kind of name, such as 'argument '.

    >>> missing("a Stream", "concat", ["map", "union"], STREAM)
    "a Stream has no 'concat'. Here it is .union(other)"
    >>> missing("a Stream", "filtr", ["map", "filter"], STREAM)
    "a Stream has no 'filtr'. Did you mean 'filter'?"
    """
    problem = f"{owner} has no {what}{word!r}"
    if (here := words.get(word)) is not None:
        return f"{problem}. Here it is {here}"
    public = sorted(name for name in known if not name.startswith("_"))
    if close := difflib.get_close_matches(word, public, n=1):
        return f"{problem}. Did you mean {close[0]!r}?"
    if close := difflib.get_close_matches(word, words, n=1, cutoff=0.75):
        return f"{problem}. Here it is {words[close[0]]}"
    return f"{problem}. It has {', '.join(public)}"


def check_arguments(owner: str, given: Iterable[str], known: Sequence[str]) -> None:
    """Raise TypeError with the word for an argument that a function doesn't have.

    >>> check_arguments("rel.csv()", ["delimiter"], ["paths", "delimiter"])
    """
    unknown = next((word for word in given if word not in known), None)
    if unknown is not None:
        raise TypeError(missing(owner, unknown, known, ARGUMENT, "argument "))


def with_known_arguments(function: F) -> F:
    """Let a function of `rel` name the argument that an unknown one stands for."""
    known = list(inspect.signature(function).parameters)

    @functools.wraps(function)
    def called(*args: Any, **given: Any) -> Any:
        check_arguments(f"rel.{function.__name__}()", given, known)
        return function(*args, **given)

    return called  # type: ignore[return-value]


def pages() -> dict[str, str]:
    """Write the pages of the guide, by file.

    >>> [page.splitlines()[0] for page in pages().values()]
    ['# Words of other systems: methods of a stream', '# Words of other systems: topology, module, result, settings']
    """
    rest = {
        "Methods of a topology": TOPOLOGY,
        "Functions of the module": MODULE,
        "What a result has": RESULT,
        "Settings of a JobConfig": CONFIG,
        "Expressions of `rel.col`": COLUMN,
        "Arguments of methods, sources and sinks": ARGUMENT,
    }
    return {
        "words_of_streams.md": _page("methods of a stream", {"Methods of a stream": STREAM}),
        "words.md": _page("topology, module, result, settings", rest),
    }


def _page(title: str, parts: Mapping[str, Mapping[str, str]]) -> str:
    text = [
        f"# Words of other systems: {title}",
        "",
        "<!-- test: tests/unit/graph/test_words.py::test_the_pages_of_the_guide_are_the_tables -->",
        "",
        "What people from Bytewax, Flink, Polars, pandas and Spark look for, and what to write here.",
        "A name of these tables raises an error that says the same.",
    ]
    for title, words in parts.items():
        here: dict[str, list[str]] = {}
        for word, written in words.items():
            here.setdefault(written, []).append(f"`{word}`")
        text += ["", f"## {title}", "", "| there | here |", "|---|---|"]
        text += [f"| {', '.join(names)} | {written.replace('|', chr(92) + '|')} |" for written, names in here.items()]
    return "\n".join(text) + "\n"


if __name__ == "__main__":
    for file, text in pages().items():
        Path("docs", "reference", file).write_text(text)
