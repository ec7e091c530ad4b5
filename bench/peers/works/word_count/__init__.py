"""Word count: how often each word occurs in 200,000 sentences of ten Zipf-distributed words out of 50,000."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

from bench.peers.work import Work

SENTENCES = 1_000_000
WORDS = 10  # in a sentence
VOCABULARY = 50_000
SEED = 20_190  # the Zipf exponent is 1, as for natural text


def write_input(path: Path, sentences: int) -> None:
    """Write that many sentences, one a line."""
    generator = random.Random(SEED)
    letters = "etaoinshrdlucmfwypvbgk"
    words: dict[str, None] = {}
    while len(words) < VOCABULARY:
        words["".join(generator.choices(letters, k=min(3 + len(words) // 2_000, generator.randint(3, 11))))] = None
    weights = list(itertools.accumulate(1.0 / rank for rank in range(1, VOCABULARY + 1)))
    vocabulary = list(words)
    with path.open("w") as file:
        for _ in range(sentences):
            file.write(" ".join(generator.choices(vocabulary, cum_weights=weights, k=WORDS)) + "\n")


WORK = Work(
    name="word_count",
    description="each word's number of occurrences, text to table",
    items=SENTENCES,
    item="sentence",
    tuples=SENTENCES * WORDS,
    tuple_name="words",
    suffix=".txt",
    write_input=write_input,
)
