"""A driver says so where a cluster of several nodes asks nobody for a token (D9)."""

import logging

import pytest
import ray
from ray._private.authentication import authentication_utils

from rayelastic.on_ray.connect import warn_of_open_cluster


@pytest.mark.parametrize(
    ("nodes", "token", "warned"),
    [
        ([True, True, True], False, True),
        ([True, True], True, False),
        ([True], False, False),
        ([True, False], False, False),
    ],
)
def test_several_nodes_without_a_token_are_warned_of(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, nodes: list[bool], token: bool, warned: bool
) -> None:
    monkeypatch.setattr(ray, "nodes", lambda: [{"Alive": alive} for alive in nodes])
    monkeypatch.setattr(authentication_utils, "is_token_auth_enabled", lambda: token)
    with caplog.at_level(logging.WARNING):
        said = warn_of_open_cluster()
    assert bool(said) is warned
    assert bool(caplog.records) is warned
    assert not warned or "3 nodes asks for no token" in said
