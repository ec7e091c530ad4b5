"""The check that public names have an example: what counts as one, and what is found."""

from __future__ import annotations

import pytest

from tools import examples


class Base:
    """Shows one method of those below: `>>>` in a text is no example."""

    def shown_below(self) -> None:
        """Without an example of its own."""

    def shown_by_itself(self) -> None:
        """Do nothing.

        >>> Base().shown_by_itself()
        """

    def never_shown(self) -> None:
        """As of `shown_by_itself`."""


class Below(Base):
    """Shows a method that it inherits.

    >>> Below().shown_below()
    """


@pytest.fixture
def public(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("shown_below", "shown_by_itself", "never_shown"):  # only those of this package count
        monkeypatch.setattr(getattr(Base, name), "__module__", "rayelastic.made_up")
    monkeypatch.setattr(examples, "public", lambda: iter([("rel.Base", Base), ("rel.Below", Below)]))


def test_a_method_is_shown_by_itself_or_by_a_class_below_or_above(public: None) -> None:
    assert list(examples.without_example()) == ["rel.Base", "rel.Base.never_shown", "rel.Below.never_shown"]


def test_lint_fails_by_it(public: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert examples.main() == 1
    assert "rel.Base.never_shown: its docstring has no example" in capsys.readouterr().out


def test_all_that_is_public_has_an_example() -> None:
    assert list(examples.without_example()) == []
