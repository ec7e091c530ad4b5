"""The handshake as values: who is accepted, who is refused and for which reason (D2, D3)."""

import random
from typing import Any

import pytest

from rayelastic.errors import LinkError
from rayelastic.runtime.port.handshake import (
    MAX_UNPROVED_BYTES,
    PREFIX_BYTES,
    PROOF_BYTES,
    Dialler,
    HandshakeError,
    Hello,
    Listener,
    Nonces,
    Refusal,
    derive_secret,
)
from tests.raising import raises

SECRET = bytes(range(32))
HELLO = Hello("pe-0", "pe-1", "link:a->b", 7)


def listener(nonces: Nonces | None = None, epoch: int = 7, secret: bytes = SECRET) -> Listener:
    return Listener("job", "pe-1", secret, nonces or Nonces(), epoch=epoch)


def refusal_of(dialler: Dialler, port: Listener) -> Refusal:
    with pytest.raises(HandshakeError) as caught:
        port.receive(dialler.prove(port.receive(dialler.opening)))
    assert port.hello is None
    return caught.value.refusal


def test_the_same_secret_is_accepted_on_both_sides() -> None:
    dialler, port = Dialler("job", HELLO, SECRET), listener()
    dialler.conclude(port.receive(dialler.prove(port.receive(dialler.opening))))
    assert port.hello == HELLO
    assert port.wanted == 0


def test_byte_by_byte_gives_the_same() -> None:
    dialler, port = Dialler("job", HELLO, SECRET), listener()
    reply = b"".join(port.receive(dialler.opening[i : i + 1]) for i in range(len(dialler.opening)))
    proof = dialler.prove(reply)
    assert b"".join(port.receive(proof[i : i + 1]) for i in range(len(proof))) == b"\0"
    assert port.hello == HELLO


def test_another_secret_is_refused() -> None:
    assert refusal_of(Dialler("job", HELLO, bytes(32)), listener()) is Refusal.SECRET


def test_a_dialler_gives_nothing_to_a_port_that_cannot_prove() -> None:
    dialler, impostor = Dialler("job", HELLO, SECRET), listener(secret=bytes(32))
    assert dialler.prove(impostor.receive(dialler.opening)) == bytes(PROOF_BYTES)


def test_a_port_that_cannot_prove_is_not_believed_when_it_accepts() -> None:
    dialler, impostor = Dialler("job", HELLO, SECRET), listener(secret=bytes(32))
    assert dialler.prove(impostor.receive(dialler.opening)) == bytes(PROOF_BYTES)
    with pytest.raises(HandshakeError) as caught:
        dialler.conclude(b"\0")
    assert caught.value.refusal is Refusal.SECRET


def test_both_sides_get_the_same_key_which_no_other_connection_has() -> None:
    keys = set()
    for _ in range(3):
        dialler, port = Dialler("job", HELLO, SECRET), listener()
        dialler.conclude(port.receive(dialler.prove(port.receive(dialler.opening))))
        assert dialler.key == port.key
        keys.add(port.key)
    assert len(keys) == 3
    assert {len(key) for key in keys} == {32}


def test_a_port_that_reflects_the_nonce_and_proof_is_not_trusted() -> None:
    dialler = Dialler("job", HELLO, SECRET)
    nonce = dialler.opening[PREFIX_BYTES - 32 : PREFIX_BYTES]
    assert dialler.prove(b"\0" + nonce + bytes(PROOF_BYTES)) == bytes(PROOF_BYTES)


def test_an_older_epoch_is_refused_and_a_newer_one_is_not() -> None:
    assert refusal_of(Dialler("job", HELLO, SECRET), listener(epoch=8)) is Refusal.EPOCH
    dialler, port = Dialler("job", HELLO, SECRET), listener(epoch=6)
    port.receive(dialler.prove(port.receive(dialler.opening)))
    assert port.hello == HELLO


def test_who_pushes_rows_is_of_no_older_epoch_where_replicas_have_changed() -> None:
    channel = "ingest:lines"
    pushing = Dialler("job", Hello("task", "pe-1", channel, 7), derive_secret(SECRET, channel))
    port = Listener("job", "pe-1", SECRET, Nonces(), epoch=9, since=7)
    port.receive(pushing.prove(port.receive(pushing.opening)))
    assert port.hello == Hello("task", "pe-1", channel, 7)
    before = Dialler("job", Hello("task", "pe-1", channel, 6), derive_secret(SECRET, channel))
    assert refusal_of(before, Listener("job", "pe-1", SECRET, Nonces(), epoch=9, since=7)) is Refusal.EPOCH
    assert refusal_of(Dialler("job", HELLO, SECRET), Listener("job", "pe-1", SECRET, Nonces(), epoch=9, since=7))


def test_a_replayed_hello_is_refused() -> None:
    nonces = Nonces()
    dialler, port = Dialler("job", HELLO, SECRET), listener(nonces)
    proof = dialler.prove(port.receive(dialler.opening))
    port.receive(proof)
    with pytest.raises(HandshakeError) as caught:
        listener(nonces).receive(dialler.opening)
    assert caught.value.refusal is Refusal.REPLAY
    again = listener()  # a port that has forgotten the nonce: its own nonce is fresh, so the old proof is wrong
    again.receive(dialler.opening)
    with pytest.raises(HandshakeError) as caught:
        again.receive(proof)
    assert caught.value.refusal is Refusal.SECRET


@pytest.mark.parametrize(("job", "receiver"), [("other", "pe-1"), ("job", "pe-2")])
def test_another_job_or_processing_element_is_refused(job: Any, receiver: Any) -> None:
    assert refusal_of(Dialler(job, Hello("pe-0", receiver, "link:a->b", 7), SECRET), listener()) is Refusal.IDENTITY


def test_ingest_takes_the_derived_secret_of_its_own_channel_only() -> None:
    hello = Hello("spark", "pe-1", "ingest:lines", 7)
    port = listener()
    dialler = Dialler("job", hello, derive_secret(SECRET, "ingest:lines"))
    port.receive(dialler.prove(port.receive(dialler.opening)))
    assert port.hello == hello
    assert refusal_of(Dialler("job", hello, SECRET), listener()) is Refusal.SECRET
    assert refusal_of(Dialler("job", hello, derive_secret(SECRET, "ingest:words")), listener()) is Refusal.SECRET
    assert refusal_of(Dialler("job", HELLO, derive_secret(SECRET, HELLO.channel)), listener()) is Refusal.SECRET


def test_names_that_do_not_fit_are_an_error_that_says_so() -> None:
    Dialler("job", Hello("pe-0", "pe-1", "link:" + "x" * 150, 7), SECRET)
    with raises(LinkError, "bad-name"):
        Dialler("job", Hello("pe-0", "pe-1", "link:" + "x" * 300, 7), SECRET)


def test_a_short_secret_is_an_error() -> None:
    with pytest.raises(ValueError, match="32"):
        Dialler("job", HELLO, b"short")


@pytest.mark.parametrize(
    ("at", "value", "refusal"),
    [
        (0, b"GET ", Refusal.GARBAGE),
        (4, b"\x02", Refusal.VERSION),
        (6, b"\xff\xff", Refusal.LENGTH),
        (6, b"\x00\x00", Refusal.LENGTH),
        (6, (MAX_UNPROVED_BYTES).to_bytes(2, "little"), Refusal.LENGTH),
        (PREFIX_BYTES, b"\xff", Refusal.LENGTH),
        (PREFIX_BYTES + 1, b"\xff", Refusal.GARBAGE),
    ],
)
def test_broken_hellos_are_refused_by_reason(at: Any, value: Any, refusal: Any) -> None:
    opening = bytearray(Dialler("job", HELLO, SECRET).opening)
    opening[at : at + len(value)] = value
    with pytest.raises(HandshakeError) as caught:
        listener().receive(bytes(opening))
    assert caught.value.refusal is refusal


def test_no_mutation_of_a_transcript_is_accepted() -> None:
    rng = random.Random(7)
    for _ in range(3000):
        dialler, port = Dialler("job", HELLO, SECRET), listener()
        opening = bytearray(dialler.opening)
        opening[rng.randrange(len(opening))] ^= 1 << rng.randrange(8)
        asked = 0
        try:
            reply = port.receive(bytes(opening))
            asked = len(opening)
            if reply:
                port.receive(dialler.prove(reply))
        except HandshakeError:
            pass
        assert port.hello is None
        assert asked + max(port.wanted, 0) <= MAX_UNPROVED_BYTES


def test_random_bytes_are_refused_or_wait_for_more() -> None:
    rng = random.Random(8)
    for _ in range(3000):
        port = listener()
        with pytest.raises(HandshakeError):
            port.receive(rng.randbytes(MAX_UNPROVED_BYTES))
        assert port.hello is None
