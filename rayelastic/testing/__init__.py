"""For those who test their own operators: feed and collect, a clock that stands still, a source that follows a script,
and `verify_operator`, which runs an operator under every condition that the runtime knows.

>>> from rayelastic import testing
>>> testing.collect(lambda s: s.map("double", lambda t: 2 * t.n), [(1,), (2,)], {"n": int})
[(2,), (4,)]
"""

from rayelastic.testing.clock import FakeClock
from rayelastic.testing.collect import collect
from rayelastic.testing.script import Gate, Raise, script
from rayelastic.testing.verify import Report, VerificationError, verify_operator

__all__ = ["FakeClock", "Gate", "Raise", "Report", "VerificationError", "collect", "script", "verify_operator"]
