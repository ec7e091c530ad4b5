"""Python objects in transport between operators: pickled, with a MAC, so that nothing else is ever unpickled.

The process that declares a topology draws the key. It is shipped with the topology's functions, never with tuples.
Bytes that go from one function to the next within a process need no MAC.
"""

from __future__ import annotations

import functools
import hashlib
import hmac
import pickle
import secrets
from dataclasses import dataclass, field

_DIGEST = "sha256"
_SIZE = hashlib.sha256().digest_size


@dataclass(frozen=True, slots=True)
class Seal:
    """Pickles objects, and unpickles only what it pickled.

    Args:
        key: The key of the MAC; None: without one.

    >>> seal = Seal(b"a key")
    >>> seal.opened(seal.sealed({1, 2}))
    {1, 2}
    >>> seal.opened(Seal(b"another").sealed({1, 2}))
    Traceback (most recent call last):
    ValueError: an object of another job, or damaged: its bytes aren't under this job's key
    """

    key: bytes | None = field(repr=False)

    @property
    def fingerprint(self) -> str:
        """A digest of the key, by which others recognise what they can open."""
        return hashlib.sha256(b"the key of objects" + (self.key or b"")).hexdigest()[:16]

    def sealed(self, value: object) -> bytes:
        """Pickle an object.

        Raises:
            TypeError: It can't be pickled.
        """
        try:
            pickled = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
        except Exception as error:
            raise TypeError(f"a {type(value).__name__} can't be pickled for the next operator: {error}") from error
        return pickled if self.key is None else hmac.digest(self.key, pickled, _DIGEST) + pickled

    def opened(self, given: bytes) -> object:
        """Unpickle an object.

        Raises:
            ValueError: Its MAC isn't of this key.
        """
        payload = memoryview(given)
        if self.key is not None:
            digest, payload = payload[:_SIZE], payload[_SIZE:]
            if not hmac.compare_digest(digest, hmac.digest(self.key, payload, _DIGEST)):
                raise ValueError("an object of another job, or damaged: its bytes aren't under this job's key")
        return pickle.loads(payload)  # noqa: S301 -- only what was sealed, or has never left its process


WITHIN_PROCESS = Seal(None)


@functools.cache
def seal_of_this_process() -> Seal:
    """Return the seal of the objects in all topologies that this process declares."""
    return Seal(secrets.token_bytes(32))
