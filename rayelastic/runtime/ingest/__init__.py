"""Rows that a client such as a Spark task pushes: both ends of the connection."""
