"""The events of Nexmark as Arrow tables: people, auctions and bids in the proportion 1 : 3 : 46, from a seed.

It follows the public description (Tucker, Tufte, Papadimos, Maier: "NEXMark", and the generators of Apache Beam and
Flink that its queries are run with): hot auctions, sellers and bidders, prices over six orders of magnitude, auctions
that end after about 1,700 further events, texts that fill events up to 200, 500 and 100 bytes. No two events have
the same time, in microseconds, so each query has one right answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

RATE = 10_000  # events per second of event time, as Beam's generator has it
START = 1_436_918_400_000_000  # us; 2015-07-15, Beam's BASE_TIME
CYCLE, PEOPLE, AUCTIONS = 50, 1, 3  # events of a cycle; of these, people and auctions come first
FIRST = 1000  # the first id of a person and of an auction
FIRST_CATEGORY, CATEGORIES = 10, 5
ACTIVE_PEOPLE, PERSON_LEAD = 1000, 10  # people who bid and sell; and those who do before they are known
IN_FLIGHT, AUCTION_LEAD = 100, 10  # auctions that are open at a time
HOT_AUCTIONS, HOT_SELLERS, HOT_BIDDERS, HOT = 2, 4, 4, 100  # one in so many isn't hot; each 100th id is
CHANNELS = 10_000
HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
CITIES = (
    "Phoenix",
    "Los Angeles",
    "San Francisco",
    "Boise",
    "Portland",
    "Bend",
    "Redmond",
    "Seattle",
    "Kent",
    "Cheyenne",
)
FIRST_NAMES = ("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter")
LAST_NAMES = ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris")
EXTRA = {
    "person": (70, 105),
    "auction": (304, 456),
    "bid": (55, 82),
}  # bytes, from and to: events of about 200, 500, 100


@dataclass(frozen=True, slots=True)
class Events:
    """The three tables; columns are nullable, as Arrow's default is."""

    people: Any
    auctions: Any
    bids: Any

    @property
    def count(self) -> int:
        """The number of events."""
        return sum(table.num_rows for table in (self.people, self.auctions, self.bids))


def events(count: int, seed: int = 1, rate: int = RATE) -> Events:
    """Make the first events of an auction.

    Args:
        count: How many.
        seed: Of the dice: the same events for the same numbers.
        rate: Events per second of event time.

    >>> made = events(1000)
    >>> made.people.num_rows, made.auctions.num_rows, made.bids.num_rows
    (20, 60, 920)
    """
    dice = np.random.default_rng(seed)
    number = np.arange(count, dtype=np.int64)
    cycle, offset = np.divmod(number, CYCLE)
    at = START + number * 1_000_000 // rate
    person, auction = offset < PEOPLE, (offset >= PEOPLE) & (offset < PEOPLE + AUCTIONS)
    bid = offset >= PEOPLE + AUCTIONS
    return Events(
        _people(dice, cycle[person], at[person]),
        _auctions(dice, cycle[auction], offset[auction], at[auction], rate),
        _bids(dice, cycle[bid], at[bid]),
    )


def _people(dice: np.random.Generator, cycle: Ints, at: Ints) -> Any:
    n = len(at)
    names = _product(FIRST_NAMES, LAST_NAMES, " ")
    return _table(
        id=cycle + FIRST,
        name=_chosen(dice, names, n),
        email=_joined(_letters(dice, 7, 7, n), "@", _letters(dice, 5, 5, n), ".com"),
        credit_card=_joined(
            *(part for digits in range(4) for part in (_chosen(dice, _fours(), n), " ")[: 1 + (digits < 3)])
        ),
        city=_chosen(dice, CITIES, n),
        state=_chosen(dice, STATES, n),
        date_time=at,
        extra=_letters(dice, *EXTRA["person"], n),
    )


def _auctions(dice: np.random.Generator, cycle: Ints, offset: Ints, at: Ints, rate: int) -> Any:
    n, people = len(at), cycle + 1
    seller = _often(dice, people - 1, HOT_SELLERS, 0, _active(dice, people))
    horizon = IN_FLIGHT * CYCLE // AUCTIONS * 1_000_000 // rate
    first = 1 + dice.integers(0, 100, n)
    return _table(
        id=cycle * AUCTIONS + offset - PEOPLE + FIRST,
        item_name=_letters(dice, 3, 20, n),
        description=_letters(dice, 3, 100, n),
        initial_bid=_price(dice, n),
        reserve=_price(dice, n) + first,
        date_time=at,
        expires=at + 1000 + dice.integers(0, 2 * horizon, n),
        seller=seller + FIRST,
        category=FIRST_CATEGORY + dice.integers(0, CATEGORIES, n),
        extra=_letters(dice, *EXTRA["auction"], n),
    )


def _bids(dice: np.random.Generator, cycle: Ints, at: Ints) -> Any:
    n, people, last = len(at), cycle + 1, (cycle + 1) * AUCTIONS - 1
    first = np.maximum(last - IN_FLIGHT, 0)
    auction = _often(dice, last, HOT_AUCTIONS, 0, first + dice.integers(0, last - first + 1 + AUCTION_LEAD, n))
    bidder = _often(dice, people - 1, HOT_BIDDERS, 1, _active(dice, people))
    channel = np.where(
        dice.random(n) < 0.5, dice.integers(0, len(HOT_CHANNELS), n), len(HOT_CHANNELS) + dice.integers(0, CHANNELS, n)
    )
    paths = _joined(*(part for _ in range(3) for part in ("/", _letters(dice, 3, 5, CHANNELS + len(HOT_CHANNELS)))))
    known = pa.array([f"&channel_id={(number * 2_654_435_761) % 2**30}" for number in range(CHANNELS)])
    ids = pa.concat_arrays([pa.array([""] * len(HOT_CHANNELS)), known])
    urls = _joined("https://www.nexmark.com", paths, "/item.htm?query=1", ids)
    names = pa.array([*HOT_CHANNELS, *(f"channel-{number}" for number in range(CHANNELS))])
    return _table(
        auction=auction + FIRST,
        bidder=bidder + FIRST,
        price=_price(dice, n),
        channel=names.take(pa.array(channel)),
        url=urls.take(pa.array(channel)),
        date_time=at,
        extra=_letters(dice, *EXTRA["bid"], n),
    )


def _often(dice: np.random.Generator, last: Ints, ratio: int, shift: int, otherwise: Ints) -> Ints:
    """Return the latest hot id, but in one of `ratio` cases another."""
    return np.where(dice.integers(0, ratio, len(last)) > 0, last // HOT * HOT + shift, otherwise)


def _active(dice: np.random.Generator, people: Ints) -> Ints:
    active = np.minimum(people, ACTIVE_PEOPLE)
    return people - active + dice.integers(0, active + PERSON_LEAD, len(people))


def _price(dice: np.random.Generator, n: int) -> Ints:
    return np.round(10.0 ** (dice.random(n) * 6) * 100).astype(np.int64)


def _table(**columns: Any) -> Any:
    made = {
        name: pa.array(column, pa.timestamp("us")) if name in ("date_time", "expires") else pa.array(column)
        for name, column in columns.items()
    }
    return pa.table(made)


def _chosen(dice: np.random.Generator, words: Any, n: int) -> Any:
    return pa.array(words).take(pa.array(dice.integers(0, len(words), n)))


def _letters(dice: np.random.Generator, least: int, most: int, n: int) -> Any:
    """Return texts of lower-case letters, `least` to `most` of them."""
    ends = np.cumsum(dice.integers(least, most + 1, n), dtype=np.int32)
    letters = dice.integers(ord("a"), ord("z") + 1, int(ends[-1]) if n else 0, dtype=np.uint8)
    offsets = np.concatenate([np.zeros(1, np.int32), ends])
    return pa.StringArray.from_buffers(n, pa.py_buffer(offsets), pa.py_buffer(letters))


def _joined(*parts: Any) -> Any:
    return pc.binary_join_element_wise(*parts, "")


def _product(words: tuple[str, ...], others: tuple[str, ...], between: str) -> list[str]:
    return [f"{word}{between}{other}" for word in words for other in others]


def _fours() -> list[str]:
    return [f"{number:04}" for number in range(10_000)]
