"""Programs by their numbers."""

from __future__ import annotations

import random

from tests.oracle_io.csv_programs import csv_program
from tests.oracle_io.json_programs import json_program
from tests.oracle_io.program import Program
from tests.oracle_io.table_programs import table_program
from tests.oracle_io.text_programs import text_program
from tests.oracle_io.writer_programs import writer_program

MAKERS = [csv_program] * 4 + [json_program] * 4 + [table_program] * 3 + [text_program] + [writer_program] * 3
ENGINE = 8  # one of so many programs is read and written by a job, too
SMALL = 4  # one of so many reads small blocks


def program(seed: int, number: int) -> tuple[Program, bool, int | None]:
    """A program, whether a job reads it, and the size of blocks."""
    chance = random.Random(f"{seed}:{number}")
    made = chance.choice(MAKERS)(chance)
    return made, chance.randrange(ENGINE) == 0, chance.choice([40, 120, 300]) if chance.randrange(SMALL) == 0 else None
