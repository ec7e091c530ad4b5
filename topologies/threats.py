"""What counts as a threat in network traffic: names made by an algorithm, data carried in names, bursts of volume.

A channel of each detection is a few operators one behind the other. The scores are plain ones of our own: what the
paper's application looked for isn't published. Knows neither captures nor how many channels there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import rayelastic as rel
from rayelastic.topologies import dns

RARE = (10, 16)  # DNS types that browsers hardly ever ask for: NULL and TXT
UNREGISTERED = 65_000  # DNS types from here on belong to nobody


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What counts as a threat; values of our own, that separate what `dns_traffic` makes.

    Args:
        label: bytes of the shortest label that is judged.
        generated: score from which on a name counts as generated, 0 to 1.
        window: seconds in which the names that a client asks for under a domain are judged together.
        queries: names in it at least.
        tunnel: score from which on they count as a tunnel, 0 to 1.
        weight: of the last second in a sender's usual volume.
        burst: times the usual volume.
        volume: bytes in a second at least.
    """

    label: int = 7
    generated: float = 0.5
    window: int = 10
    queries: int = 5
    tunnel: float = 0.6
    weight: float = 0.1
    burst: float = 4.0
    volume: int = 5000


class Name(NamedTuple):
    """A registered domain, and what is odd about its label."""

    time: int
    domain: bytes
    label: bytes
    entropy: float
    digits: float
    vowels: float
    pairs: float
    score: float


class Carried(NamedTuple):
    """What stands in front of a registered domain, and what is odd about it."""

    time: int
    client: bytes
    domain: bytes
    text: bytes
    kind: int
    length: int
    entropy: float
    odd: float
    rare: float


class Suspect(NamedTuple):
    """A client and a domain in a window."""

    client: bytes
    domain: bytes
    start: int
    queries: int
    score: float


class Sent(NamedTuple):
    """What a datagram adds to the volume of its sender."""

    time: int
    source: bytes
    target: bytes
    size: int


class Usual(NamedTuple):
    """The usual volume of a sender, bytes in a second; its state, too."""

    volume: float = 0.0
    seconds: int = 0


class Second(NamedTuple):
    """The volume of a sender in a second, beside what is usual."""

    source: bytes
    start: int
    volume: int
    targets: int
    usual: float
    ratio: float
    level: int


# --- generated domains ------------------------------------------------------------------------------------------------


def names(least: int) -> Callable[[Any], Iterator[Name]]:
    """Return the function from a question to the registered domain asked for; none for short, reverse and encoded
    names.
    """

    def domain_asked(t: Any) -> Iterator[Name]:
        name = t.name.lower()
        domain = name[dns.domain_start(name) :]
        dot = domain.find(b".")
        if not t.response and dot >= least and not domain.endswith(b".arpa") and not domain.startswith(b"xn--"):
            yield Name(t.time, domain, domain[:dot], 0.0, 0.0, 0.0, 0.0, 0.0)

    return domain_asked


def name_score(t: Name) -> Name:
    """Few pairs of letters as in words, digits, few vowels, many different letters."""
    disorder = min(1.0, max(0.0, (t.entropy - 2.5) / 1.25))
    mute = max(0.0, 1.0 - 3.0 * t.vowels)
    score = 0.45 * (1.0 - t.pairs) + 0.2 * min(1.0, 4.0 * t.digits) + 0.1 * mute + 0.25 * disorder
    return t._replace(score=score)


def generated_of(stream: rel.Stream, suffix: str, limits: Thresholds) -> rel.Stream:
    """Return a channel of DGA detection: each domain once."""
    least = limits.generated
    once = stream.key_by("domain").deduplicate(name=f"once{suffix}")
    entropy = once.map(lambda t: t._replace(entropy=dns.entropy(t.label)), name=f"label_entropy{suffix}")
    digits = entropy.map(lambda t: t._replace(digits=dns.share(t.label, dns.DIGITS)), name=f"digits{suffix}")
    vowels = digits.map(lambda t: t._replace(vowels=dns.share(t.label, dns.VOWELS)), name=f"vowels{suffix}")
    pairs = vowels.map(lambda t: t._replace(pairs=dns.common_pairs(t.label)), name=f"pairs{suffix}")
    return pairs.map(name_score, name=f"name_score{suffix}").filter(
        lambda t: t.score >= least, name=f"generated{suffix}"
    )


# --- tunnels ----------------------------------------------------------------------------------------------------------


def carried(t: dns.Question) -> Iterator[Carried]:
    """Return what stands in front of the registered domain asked for."""
    start = dns.domain_start(t.name)
    if not t.response and start > 1:
        text = t.name[: start - 1]
        yield Carried(t.time, t.client, t.name[start:].lower(), text, t.kind, len(text), 0.0, 0.0, 0.0)


def rare(t: Carried) -> Carried:
    """Return whether browsers hardly ever ask for such records."""
    return t._replace(rare=1.0 if t.kind in RARE or t.kind > UNREGISTERED else 0.0)


def tunnel_score(t: Any) -> Suspect:
    """Many different, long, disorderly names, with bytes that names don't have, of rare records."""
    many = min(1.0, t.names / 20.0)
    long = min(1.0, t.length / 40.0)
    score = 0.3 * many + 0.2 * long + 0.15 * min(1.0, t.entropy / 4.0) + 0.1 * min(1.0, 4.0 * t.odd) + 0.25 * t.rare
    return Suspect(t.client, t.domain, t.start, t.queries, score)


def tunnels_of(stream: rel.Stream, suffix: str, limits: Thresholds) -> rel.Stream:
    """Return a channel of tunnelling detection: suspect clients and domains, window by window."""
    queries, least = limits.queries, limits.tunnel
    entropy = stream.map(lambda t: t._replace(entropy=dns.entropy(t.text)), name=f"text_entropy{suffix}")
    odd = entropy.map(lambda t: t._replace(odd=1.0 - dns.share(t.text, dns.PLAIN)), name=f"odd{suffix}")
    windows = odd.map(rare, name=f"rare{suffix}").key_by("client", "domain").window(seconds=limits.window)
    window = windows.aggregate(
        name=f"per_domain{suffix}",
        queries=rel.count(),
        names=rel.distinct("text"),
        length=rel.mean("length"),
        entropy=rel.mean("entropy"),
        odd=rel.mean("odd"),
        rare=rel.mean("rare"),
    )
    scored = window.map(tunnel_score, name=f"tunnel_score{suffix}")
    return scored.filter(lambda t: t.queries >= queries and t.score >= least, name=f"tunnel{suffix}")


# --- bursts -----------------------------------------------------------------------------------------------------------


def usual(weight: float) -> Callable[[Any, Any], Second]:
    """Return the function that sets a sender's volume beside what was usual before, which then takes it in."""

    def beside(t: Any, s: Any) -> Second:
        before = s.volume if s.seconds > 0 else float(t.volume)
        s.volume = before + weight * (t.volume - before)
        s.seconds += 1
        return Second(t.source, t.start, t.volume, t.targets, before, 0.0, 0)

    return beside


def level(t: Second) -> Second:
    """How bad a burst is: 1 for each doubling of the ratio."""
    worse, ratio = 0, t.ratio
    while ratio >= 2.0:
        worse, ratio = worse + 1, ratio / 2.0
    return t._replace(level=worse)


def bursts_of(stream: rel.Stream, suffix: str, limits: Thresholds) -> rel.Stream:
    """Return a channel of volumetric analysis: seconds in which a sender sent much more than usual."""
    times, least = limits.burst, limits.volume
    sent = stream.map(lambda t: Sent(t.time, t.source, t.target, t.size), name=f"sent{suffix}")
    seconds = sent.key_by("source").window(seconds=1)
    volume = seconds.aggregate(name=f"per_second{suffix}", volume=rel.sum("size"), targets=rel.distinct("target"))
    beside = volume.key_by("source").map(usual(limits.weight), name=f"usual{suffix}", state=Usual)
    ratio = beside.map(lambda t: t._replace(ratio=t.volume / t.usual if t.usual > 0 else 1.0), name=f"ratio{suffix}")
    burst = ratio.filter(lambda t: t.ratio >= times and t.volume >= least, name=f"burst{suffix}")
    return burst.map(level, name=f"level{suffix}")
