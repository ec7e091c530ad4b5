"""The state of an operator class's object, as bytes for a checkpoint, and its restore into another such object.

Knows neither operators nor checkpoints.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class KeptObject:
    """The state of an object: what its `snapshot()` returns and its `restore(kept)` accepts, or else its attributes.

    An attribute that `initialize()` has set and that can't be pickled, such as a connection, is left out. The object
    that restores the bytes has its own, because it was initialized before.

    Args:
        instance: The object.

    >>> class Count:
    ...     def __init__(self):
    ...         self.count = 0
    >>> first, second = Count(), Count()
    >>> first.count = 7
    >>> KeptObject(second).restore(KeptObject(first).snapshot())
    >>> second.count
    7
    """

    def __init__(self, instance: Any) -> None:
        self._instance = instance
        self._own = hasattr(instance, "snapshot")
        self._initialized: set[str] = set()  # attributes
        self._opened: set[str] = set()  # the ones that can't be pickled

    @contextmanager
    def opening(self) -> Iterator[None]:
        """Initialize the object inside the context."""
        before = dict(_attributes(self._instance))
        yield
        after = _attributes(self._instance)
        self._initialized = {name for name, value in after.items() if name not in before or before[name] is not value}

    def snapshot(self) -> bytes:
        """Return the object's current state.

        Raises:
            TypeError: It can't be pickled; the message names the attributes.
        """
        import cloudpickle

        if self._own:
            return _pickled(self._instance.snapshot(), f"what {type(self._instance).__name__}.snapshot() returns")
        try:
            return cloudpickle.dumps(self._saved())  # type: ignore[no-any-return]
        except Exception:  # whatever a user's object raises
            unsaved = {name for name, value in self._saved().items() if not _is_picklable(value)}
        if not unsaved <= self._initialized:
            names = ", ".join(f"self.{name}" for name in sorted(unsaved - self._initialized))
            raise TypeError(f"{names} of {type(self._instance).__name__} can't be pickled")
        self._opened |= unsaved
        return _pickled(self._saved(), f"what {type(self._instance).__name__} keeps")

    def restore(self, saved: bytes) -> None:
        """Restore the result of `snapshot`, after the object was initialized.

        Args:
            saved: Saved by an object of the same class, of this job or signed: it is unpickled.
        """
        import cloudpickle

        kept = cloudpickle.loads(saved)
        if self._own:
            self._instance.restore(kept)
            return
        for name in _attributes(self._instance).keys() - kept.keys() - self._initialized:
            object.__delattr__(self._instance, name)
        for name, value in kept.items():
            object.__setattr__(self._instance, name, value)

    def _saved(self) -> dict[str, Any]:
        attributes = _attributes(self._instance)
        return {name: value for name, value in attributes.items() if name not in self._opened}


def _attributes(instance: Any) -> dict[str, Any]:
    """Return its attributes, in its dictionary and in slots."""
    slots = (name for cls in type(instance).__mro__ for name in _slots_of(cls))
    there = {name: getattr(instance, name) for name in slots if hasattr(instance, name)}
    return {**there, **getattr(instance, "__dict__", {})}


def _slots_of(cls: type) -> tuple[str, ...]:
    slots = cls.__dict__.get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else tuple(slots)
    return tuple(
        f"_{cls.__name__.lstrip('_')}{name}" if name.startswith("__") and not name.endswith("__") else name
        for name in names
        if name not in ("__dict__", "__weakref__")
    )


def _is_picklable(value: Any) -> bool:
    try:
        _pickled(value, "")
    except TypeError:
        return False
    return True


def _pickled(value: Any, what: str) -> bytes:
    import cloudpickle

    try:
        return cloudpickle.dumps(value)  # type: ignore[no-any-return]
    except Exception as error:  # whatever a user's object raises
        raise TypeError(f"{what} can't be pickled: {error}") from error
