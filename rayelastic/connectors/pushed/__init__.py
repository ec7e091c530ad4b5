"""Rows that Spark or Ray tasks push from outside: the PE's end."""
