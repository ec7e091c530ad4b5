"""Programs about lines of text: line ends, encodings, byte order marks, compression."""

from __future__ import annotations

import random
import re

from tests.oracle_io.program import Expected, Program, encoded, packed

PIECES = ("", "a", "é", "日本", "😀", "x" * 100, " ", "\t", "\0", "\u2028", "\x0b", "\x1c", "\ufeff", "#", '"')
ENDS = ("\n", "\n", "\r\n", "\r")


def text_program(chance: random.Random) -> Program:
    """Makes a program."""
    files, rows, options = [], [], None
    for _ in range(chance.choice([1, 1, 2])):
        text = "".join(chance.choice(PIECES) + chance.choice(ENDS) for _ in range(chance.randint(0, 8)))
        text += chance.choice(PIECES) if chance.random() < 0.5 else ""
        text = text.lstrip("\ufeff\0")  # a mark of its own, or what makes one of UTF-16 one of UTF-32
        content, more = encoded(chance, text)
        if options is not None and more != options:
            continue
        options = more
        files.append(packed(chance, content))
        lines = re.split("\r\n|\n|\r", text)
        rows += [(line,) for line in (lines[:-1] if lines[-1] == "" else lines)]
    return Program("text", files, options or {}, Expected(rows), round_trip=False)
