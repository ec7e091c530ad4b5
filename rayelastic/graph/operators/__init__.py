"""Operators of a stream: a file for each one, with a function from an `Upstream` to an `OperatorSpec`.

They don't know `Stream`, the class that users hold.
"""
