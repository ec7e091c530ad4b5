"""Objects of Python's on their way between operators: pickled, under a MAC, so that nothing else is ever unpickled.

The key is drawn in the process that declares a topology, and travels with the topology's functions, never with tuples.
Where bytes go from one function to the next within a process, and nobody else ever has them, they need no MAC.
"""

from __future__ import annotations

import functools
import hashlib
import hmac
import pickle
import secrets
from dataclasses import dataclass, field

__all__ = ["WITHIN_PROCESS", "Seal", "seal_of_this_process"]

_DIGEST = "sha256"
_SIZE = hashlib.sha256().digest_size


@dataclass(frozen=True, slots=True)
class Seal:
    """Makes bytes of objects, and objects of these bytes alone.

    Args:
        key: of the MAC; None: without one.

    >>> seal = Seal(b"a key")
    >>> seal.opened(seal.sealed({1, 2}))
    {1, 2}
    >>> seal.opened(Seal(b"another").sealed({1, 2}))
    Traceback (most recent call last):
    ValueError: an object of another job, or damaged: its bytes aren't under this job's key
    """

    key: bytes | None = field(repr=False)

    def sealed(self, value: object) -> bytes:
        """Pickle an object.

        Raises:
            TypeError: it can't be pickled.
        """
        try:
            made = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
        except Exception as error:
            raise TypeError(f"a {type(value).__name__} can't be pickled for the next operator: {error}") from error
        return made if self.key is None else hmac.digest(self.key, made, _DIGEST) + made

    def opened(self, given: bytes) -> object:
        """Unpickle an object.

        Raises:
            ValueError: it isn't under this key.
        """
        made = memoryview(given)
        if self.key is not None:
            digest, made = made[:_SIZE], made[_SIZE:]
            if not hmac.compare_digest(digest, hmac.digest(self.key, made, _DIGEST)):
                raise ValueError("an object of another job, or damaged: its bytes aren't under this job's key")
        return pickle.loads(made)  # noqa: S301 -- only what was sealed, or has never left its process


WITHIN_PROCESS = Seal(None)


@functools.cache
def seal_of_this_process() -> Seal:
    """The seal of the objects in all topologies that are declared here."""
    return Seal(secrets.token_bytes(32))
