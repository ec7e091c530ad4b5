"""Test your own operators: feed and collect, a clock that stands still, a source that follows a script.

`verify_operator` runs an operator under every condition that the runtime knows. `check_sink` kills a sink of your own
at each step.

>>> from rayelastic import testing
>>> testing.collect(lambda s: s.map(lambda t: 2 * t.n, name="double"), [(1,), (2,)], {"n": int})
[(2,), (4,)]
"""

from rayelastic.testing.clock import FakeClock
from rayelastic.testing.collect import collect
from rayelastic.testing.script import Gate, Raise, script
from rayelastic.testing.sinks import SinkReport, check_sink
from rayelastic.testing.verify import Report, VerificationError, verify_operator

__all__ = [
    "FakeClock",
    "Gate",
    "Raise",
    "Report",
    "SinkReport",
    "VerificationError",
    "check_sink",
    "collect",
    "script",
    "verify_operator",
]
