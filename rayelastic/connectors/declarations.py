"""The functions of all connectors that users call as `rel.csv(...)`: a line each."""

from rayelastic.connectors.arrow.declaration import arrow, pandas
from rayelastic.connectors.call.declaration import call, print  # noqa: A004  (rel.print)
from rayelastic.connectors.csv.declaration import csv, read_csv
from rayelastic.connectors.generate.declaration import callable, generate, sequence  # noqa: A004  (rel.callable)
from rayelastic.connectors.json.declaration import json, read_json
from rayelastic.connectors.memory.declaration import list, rows  # noqa: A004  (rel.list)
from rayelastic.connectors.parquet.declaration import parquet, read_parquet
from rayelastic.connectors.polled.declaration import polled
from rayelastic.connectors.polled.interval import interval
from rayelastic.connectors.postgres.declaration import postgres
from rayelastic.connectors.text.declaration import read_text, text

__all__ = [
    "arrow",
    "call",
    "callable",
    "csv",
    "generate",
    "interval",
    "json",
    "list",
    "pandas",
    "parquet",
    "polled",
    "postgres",
    "print",
    "read_csv",
    "read_json",
    "read_parquet",
    "read_text",
    "rows",
    "sequence",
    "text",
]
