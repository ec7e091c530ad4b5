"""Rows that somebody outside pushes, such as Spark's tasks: both ends of the connection."""
