"""The proof that both sides of a connection know the job's secret, as values: no socket, no thread, no clock.

Reliability rules D2 and D3. Four messages, at most 256 bytes of them read before the dialling side has proved itself:

    dialler -> port   magic, version, length, epoch, 32-byte nonce, job id, sender, receiver, channel
    port -> dialler   go on, 32-byte nonce, proof
    dialler -> port   proof
    port -> dialler   accepted, or why not

A proof is HMAC-SHA256 of the whole transcript under the secret, with the prover's side in front. So neither proof can
be reflected, and a recorded one is useless against a fresh nonce. Nothing is ever unpickled (D5).
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import struct
from collections import OrderedDict
from dataclasses import dataclass
from enum import Enum

from rayelastic.errors import ErrorCode, LinkError

MAGIC = b"RELH"
VERSION = 1
NONCE_BYTES = 32
PROOF_BYTES = 32
SECRET_BYTES = 32  # 256 bits (D2)
MAX_UNPROVED_BYTES = 256  # read from a peer before it has proved anything (D3)
REPLY_BYTES = 1 + NONCE_BYTES + PROOF_BYTES
VERDICT_BYTES = 1

_PREFIX = struct.Struct("<4sBxHQ32s")  # magic, version, length of the whole message, epoch, nonce
PREFIX_BYTES = _PREFIX.size
_MAX_HELLO_BYTES = MAX_UNPROVED_BYTES - PROOF_BYTES
_MIN_HELLO_BYTES = PREFIX_BYTES + 4  # four texts of no length
_REMEMBERED_NONCES = 65_536


class Refusal(Enum):
    """Why a port rejected a connection; the value is the counter's name."""

    SECRET = "secret"  # the proof is wrong
    LENGTH = "length"  # a length that no hello has
    GARBAGE = "garbage"  # not a hello at all
    VERSION = "version"  # a hello of another version
    REPLAY = "replay"  # a nonce that was used before
    EPOCH = "epoch"  # an older link epoch than the port's
    IDENTITY = "identity"  # the right secret, but meant for another job or PE
    TIMEOUT = "timeout"  # not proved within the deadline
    LOST = "lost"  # the peer went away before the end
    BUSY = "busy"  # too many pending handshakes, or too many a second
    CHANNEL = "channel"  # accepted, but no server of a channel wanted it
    ENCRYPTION = "encryption"  # accepted, but then not able to speak TLS with the key of this connection


_CODES = {refusal: code for code, refusal in enumerate(Refusal, start=1)}
_REFUSALS = {code: refusal for refusal, code in _CODES.items()}
ACCEPTED = 0


class HandshakeError(LinkError):
    """A connection was rejected, or its peer couldn't prove that it belongs to the job.

    Args:
        refusal: The reason.
        problem: What happened, with the peer's name.
        hint: What the user can do.

    Example:
        >>> str(HandshakeError(Refusal.BUSY, "pe-1 rejected the connection", hint="Try again."))
        'pe-1 rejected the connection. Try again. [link-failed]'
    """

    def __init__(self, refusal: Refusal, problem: str, *, hint: str = "") -> None:
        super().__init__(problem, hint=hint)
        self.refusal = refusal


@dataclass(frozen=True, slots=True)
class Hello:
    """The two ends of a connection, and its purpose.

    Args:
        sender: The PE (or Spark task) that dials.
        receiver: The PE whose port is dialled.
        channel: `link:<edge>` or `ingest:<source>`.
        epoch: The sender's link epoch; ports reject older ones than their own.
    """

    sender: str
    receiver: str
    channel: str
    epoch: int


def derive_secret(secret: bytes, channel: str) -> bytes:
    """Derive the secret of one channel, from which the job's secret can't be found.

    Ingest channels use it, so that Spark's workers never see the job's own secret.

    Args:
        secret: the job's secret, 32 bytes.
        channel: for example `ingest:lines`.

    Returns:
        32 bytes.

    Example:
        >>> derive_secret(bytes(32), "ingest:lines") == derive_secret(bytes(32), "ingest:words")
        False
    """
    return hmac.digest(check_secret(secret), b"rayelastic channel\0" + channel.encode(), hashlib.sha256)


def channel_secret(secret: bytes, channel: str) -> bytes:
    """Choose the secret that a port with the job's `secret` expects on `channel`."""
    return derive_secret(secret, channel) if is_ingest(channel) else secret


def is_ingest(channel: str) -> bool:
    """Return whether a channel is for rows from outside the job."""
    return channel.startswith("ingest:")


def check_secret(secret: bytes) -> bytes:
    """Return `secret`, or raise ValueError if it is too short to be one."""
    if len(secret) < SECRET_BYTES:
        raise ValueError(f"a secret has at least {SECRET_BYTES} bytes, this one has {len(secret)}")
    return secret


def _key(secret: bytes, transcript: bytes) -> bytes:
    """Return the key of one connection, for TLS: both nonces are in the transcript, so no two have the same."""
    return hmac.digest(secret, b"rayelastic key\0" + transcript, hashlib.sha256)


def _proof(secret: bytes, side: bytes, transcript: bytes) -> bytes:
    return hmac.digest(secret, b"rayelastic handshake\0" + side + b"\0" + transcript, hashlib.sha256)


def _encode_hello(job_id: str, hello: Hello, nonce: bytes) -> bytes:
    texts = [text.encode() for text in (job_id, hello.sender, hello.receiver, hello.channel)]
    length = PREFIX_BYTES + sum(1 + len(text) for text in texts)
    if length > _MAX_HELLO_BYTES:
        raise LinkError(
            f"the names '{job_id}', '{hello.sender}', '{hello.receiver}' and '{hello.channel}' take {length} bytes, "
            f"a handshake has room for {_MAX_HELLO_BYTES}",
            hint="Use shorter names for the operators.",
            code=ErrorCode.BAD_NAME,
        )
    prefix = _PREFIX.pack(MAGIC, VERSION, length, hello.epoch, nonce)
    return prefix + b"".join(bytes([len(text)]) + text for text in texts)


class Dialler:
    """The dialling side of a handshake.

    Args:
        job_id: The job that both sides belong to.
        hello: The two ends, and the purpose.
        secret: The job's secret for a link, the derived one for an ingest channel.

    Raises:
        LinkError: The names are too long for a handshake.
        ValueError: The secret is too short.

    Example:
        >>> secret = bytes(range(32))
        >>> dialler = Dialler("job", Hello("pe-0", "pe-1", "link:a->b", 3), secret)
        >>> listener = Listener("job", "pe-1", secret, Nonces(), epoch=3)
        >>> reply = listener.receive(dialler.opening)
        >>> verdict = listener.receive(dialler.prove(reply))
        >>> dialler.conclude(verdict)
        >>> listener.hello
        Hello(sender='pe-0', receiver='pe-1', channel='link:a->b', epoch=3)
    """

    def __init__(self, job_id: str, hello: Hello, secret: bytes) -> None:
        self._secret = check_secret(secret)
        self._receiver = hello.receiver
        self._nonce = secrets.token_bytes(NONCE_BYTES)
        self.key = b""  # of this connection, once the port has proved itself; empty: it hasn't
        self.opening = _encode_hello(job_id, hello, self._nonce)

    def prove(self, reply: bytes) -> bytes:
        """Check the port's reply and return the dialler's proof; an untrusted port gets an empty one (32 zero bytes).

        Args:
            reply: The first byte alone if it isn't zero, else all REPLY_BYTES bytes.

        Raises:
            HandshakeError: The port rejected the connection before it had proved anything.
        """
        if reply[0] != ACCEPTED:
            self.conclude(reply[:1])
        nonce, proof = reply[1 : 1 + NONCE_BYTES], reply[1 + NONCE_BYTES :]
        transcript = self.opening + nonce
        trusted = nonce != self._nonce and hmac.compare_digest(proof, _proof(self._secret, b"port", transcript))
        if not trusted:
            return bytes(PROOF_BYTES)
        self.key = _key(self._secret, transcript)
        return _proof(self._secret, b"dialler", transcript)

    def conclude(self, verdict: bytes) -> None:
        """Raise HandshakeError unless the port accepted, and has proved that it knows the secret."""
        if verdict[0] != ACCEPTED or not self.key:
            refusal = _REFUSALS.get(verdict[0], Refusal.GARBAGE) if verdict[0] != ACCEPTED else Refusal.SECRET
            problem, hint = _WHY[refusal]
            raise HandshakeError(refusal, f"'{self._receiver}' rejected the connection: {problem}", hint=hint)


_WHY = {
    Refusal.SECRET: ("the two sides don't have the same secret", "Are both of the same job?"),
    Refusal.LENGTH: ("the length of the handshake is wrong", "Does something between the nodes change traffic?"),
    Refusal.GARBAGE: ("what was sent isn't a handshake", "Does something else listen at that address?"),
    Refusal.VERSION: (f"it speaks another version than {VERSION}", "Install the same rayelastic on all nodes."),
    Refusal.REPLAY: ("the nonce was used before", "Dial again."),
    Refusal.EPOCH: ("the link epoch is older than its own", "This side was replaced and has to stop."),
    Refusal.IDENTITY: ("it is of another job, or another PE", "Ask the coordinator for the address again."),
    Refusal.TIMEOUT: ("the handshake took too long", "Is one of the nodes overloaded?"),
    Refusal.LOST: ("the connection broke", "Check that it still runs"),
    Refusal.BUSY: ("too many handshakes at once", "Dial again."),
    Refusal.ENCRYPTION: ("no encrypted connection could be made", "Is OpenSSL there the same as here?"),
    Refusal.CHANNEL: ("nobody there serves the channel", "Is the plan the same on both sides?"),
}


class Nonces:
    """The nonces of the accepted handshakes, the newest 65,536 of them.

    Forgetting older ones is safe: a replayed proof doesn't fit the port's fresh nonce either.
    """

    def __init__(self) -> None:
        self._seen: OrderedDict[bytes, None] = OrderedDict()

    def __contains__(self, nonce: bytes) -> bool:
        return nonce in self._seen

    def add(self, nonce: bytes) -> None:
        """Remember `nonce`."""
        self._seen[nonce] = None
        if len(self._seen) > _REMEMBERED_NONCES:
            self._seen.popitem(last=False)


class Listener:
    """The listening side of one handshake: bytes in, answers out.

    Read at most `wanted` bytes at a time and pass them to `receive`; it ends when `hello` is set, or with a
    HandshakeError.

    Args:
        job_id: The job of this port.
        pe_id: The PE of this port.
        secret: The job's secret; ingest channels are checked against the one derived from it.
        nonces: The nonces of earlier handshakes, shared by all handshakes of a port.
        epoch: Hellos of older epochs are rejected.
        since: Those of clients that push rows are rejected below this; `epoch` by default.
    """

    def __init__(
        self, job_id: str, pe_id: str, secret: bytes, nonces: Nonces, *, epoch: int, since: int | None = None
    ) -> None:
        self._job_id, self._pe_id, self._secret = job_id, pe_id, secret
        self._nonces, self._epoch = nonces, epoch
        self._since = epoch if since is None else since
        self._hello_bytes = b""
        self._expected_proof = b""
        self._claimed: tuple[str, Hello] | None = None
        self._received = b""
        self.wanted = PREFIX_BYTES
        self.hello: Hello | None = None
        self.key = b""  # of this connection; proved once `hello` is set

    def receive(self, data: bytes) -> bytes:
        """Process bytes from the peer and return the answer, which may be empty.

        Raises:
            HandshakeError: The connection is to be rejected.
        """
        answer = b""
        self._received += data
        while len(self._received) >= self.wanted > 0:
            part, self._received = self._received[: self.wanted], self._received[self.wanted :]
            if self._expected_proof:
                answer += self._judge(part)
            elif not self._hello_bytes:
                self._start(part)
            else:
                answer += self._reply(self._hello_bytes + part)
        return answer

    def _start(self, prefix: bytes) -> None:
        magic, version, length, _, nonce = _PREFIX.unpack(prefix)
        if magic != MAGIC:
            raise _rejection(Refusal.GARBAGE)
        if version != VERSION:
            raise _rejection(Refusal.VERSION)
        if not _MIN_HELLO_BYTES <= length <= _MAX_HELLO_BYTES:
            raise _rejection(Refusal.LENGTH)
        if nonce in self._nonces:
            raise _rejection(Refusal.REPLAY)
        self._hello_bytes = prefix
        self.wanted = length - PREFIX_BYTES

    def _reply(self, opening: bytes) -> bytes:
        job_id, sender, receiver, channel = _texts(opening[PREFIX_BYTES:])
        epoch = _PREFIX.unpack(opening[:PREFIX_BYTES])[3]
        self._hello_bytes = opening
        self._claimed = job_id, Hello(sender, receiver, channel, epoch)
        secret = channel_secret(self._secret, channel)
        nonce = secrets.token_bytes(NONCE_BYTES)
        self._expected_proof = _proof(secret, b"dialler", opening + nonce)
        self.key = _key(secret, opening + nonce)
        self.wanted = PROOF_BYTES
        return bytes([ACCEPTED]) + nonce + _proof(secret, b"port", opening + nonce)

    def _judge(self, proof: bytes) -> bytes:
        if self._claimed is None or not hmac.compare_digest(proof, self._expected_proof):
            raise _rejection(Refusal.SECRET)
        job_id, hello = self._claimed
        nonce = _PREFIX.unpack(self._hello_bytes[:PREFIX_BYTES])[4]
        if nonce in self._nonces:  # two handshakes at once with one nonce: the second loses
            raise _rejection(Refusal.REPLAY)
        self._nonces.add(nonce)
        if job_id != self._job_id or hello.receiver != self._pe_id:
            raise _rejection(Refusal.IDENTITY)
        if hello.epoch < (self._since if is_ingest(hello.channel) else self._epoch):
            raise _rejection(Refusal.EPOCH)
        self.hello = hello
        self.wanted = 0
        return bytes([ACCEPTED])


def verdict(refusal: Refusal) -> bytes:
    """Encode a port's answer to a peer that it rejects."""
    return bytes([_CODES[refusal]])


def _rejection(refusal: Refusal) -> HandshakeError:
    return HandshakeError(refusal, f"rejected a connection: {refusal.value}")


def _texts(data: bytes) -> tuple[str, str, str, str]:
    texts: list[str] = []
    at = 0
    for _ in range(4):
        if at >= len(data):
            raise _rejection(Refusal.LENGTH)
        end = at + 1 + data[at]
        if end > len(data):
            raise _rejection(Refusal.LENGTH)
        try:
            texts.append(data[at + 1 : end].decode())
        except UnicodeDecodeError:
            raise _rejection(Refusal.GARBAGE) from None
        at = end
    if at != len(data):
        raise _rejection(Refusal.LENGTH)
    return texts[0], texts[1], texts[2], texts[3]
