"""A calibrated model of a PE, the *plant*, so that the same controllers run on 2 cores and on 200.

Knows `policy` and `plan` types only: no threads, clocks, files written, Ray or native code. Every figure that comes
from here is a simulated one and is to be labelled so.
"""
