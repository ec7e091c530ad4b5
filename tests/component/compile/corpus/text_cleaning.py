"""Text cleaning: normalising, tokens, slugs, masking."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator
from typing import NamedTuple

from corpus.event import Event

STOP_WORDS = {"the", "a", "an", "of", "and", "to", "in", "is", "it"}
PUNCTUATION = ".,;:!?\"'()[]"
SPACES = re.compile(r"\s+")
NOT_WORD = re.compile(r"[^\w\s-]")
EMAIL = re.compile(r"[\w.+-]+@[\w-]+\.[\w.]+")
TAG = re.compile(r"<[^>]+>")
CURLY = {"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"'}


class Token(NamedTuple):
    text: str
    position: int


class Stats(NamedTuple):
    words: int
    letters: int
    longest: str


class Vocabulary(NamedTuple):
    seen: int = 0


def cleaned(t: Event) -> str:
    return " ".join(t.line.split())


def normalised(t: Event) -> str:
    return SPACES.sub(" ", t.line).strip().lower()


def slug(t: Event) -> str:
    text = NOT_WORD.sub("", t.line.lower())
    return re.sub(r"[-\s]+", "-", text).strip("-_")


def tokens(t: Event) -> Iterator[Token]:
    for position, word in enumerate(t.line.split()):
        yield Token(word.strip(PUNCTUATION), position)


def content_words(t: Event) -> Iterator[Token]:
    position = 0
    for word in t.line.lower().split():
        word = word.strip(string.punctuation)
        if word and word not in STOP_WORDS:
            yield Token(word, position)
            position += 1


def stats(t: Event) -> Stats:
    words = t.line.split()
    longest = max(words, key=len) if words else ""
    return Stats(len(words), sum(len(w) for w in words), longest)


def initials(t: Event) -> str:
    return "".join(word[0] for word in t.user.split()).upper()


def title_case(t: Event) -> str:
    return " ".join(word.capitalize() for word in t.line.split(" "))


def is_palindrome(t: Event) -> bool:
    letters = [c.lower() for c in t.line if c.isalnum()]
    return letters == letters[::-1]


def vowels(t: Event) -> int:
    return sum(1 for c in t.line.lower() if c in "aeiou")


def no_vowels(t: Event) -> str:
    return "".join([c for c in t.line if c not in "aeiouAEIOU"])


def caesar(t: Event) -> str:
    out = []
    for c in t.line:
        if "a" <= c <= "z":
            out.append(chr((ord(c) - ord("a") + 3) % 26 + ord("a")))
        elif "A" <= c <= "Z":
            out.append(chr((ord(c) - ord("A") + 3) % 26 + ord("A")))
        else:
            out.append(c)
    return "".join(out)


def without_tags(t: Event) -> str:
    return TAG.sub("", t.line)


def has_email(t: Event) -> bool:
    return EMAIL.search(t.line) is not None


def hidden_email(t: Event) -> str:
    name, at, domain = t.user.partition("@")
    if not at:
        return t.user
    return name[:1] + "*" * max(0, len(name) - 1) + at + domain


def straight_quotes(t: Event) -> str:
    text = t.line
    for curly, plain in CURLY.items():
        text = text.replace(curly, plain)
    return text


def camel_to_snake(t: Event) -> str:
    result = ""
    for i, c in enumerate(t.user):
        if c.isupper() and i > 0:
            result += "_"
        result += c.lower()
    return result


def bigrams(t: Event) -> Iterator[Token]:
    words = t.line.lower().split()
    for i, (first, second) in enumerate(zip(words, words[1:])):
        yield Token(f"{first} {second}", i)


def padded(t: Event) -> str:
    return t.user.strip().ljust(12, ".") + str(t.size).rjust(8) + t.method.center(9, "*")


def sorted_letters(t: Event) -> str:
    return "".join(sorted(t.user.lower()))
