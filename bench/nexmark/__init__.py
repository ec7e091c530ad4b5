"""Nexmark: the field's queries over an auction's events, beside DuckDB, Polars and Flink on the same events.

`./dev bench nexmark` measures and writes the page; `--list` says what each query asks and how it is declared.
"""
