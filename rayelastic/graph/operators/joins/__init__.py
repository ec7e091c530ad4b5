"""Joins: of two streams by key or of each with each, of a stream with a table, and the merge of several by time."""
