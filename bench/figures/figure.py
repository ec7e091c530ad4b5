"""What a figure gives: rows for a CSV, and claims of a paper beside what was found here.

Every claim says whether it was measured on this machine, simulated, or fitted; the CSV's `class` column says what the
figure is.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from enum import Enum
from pathlib import Path

from bench.provenance import stamp

Row = Mapping[str, float | int | str]


class Kind(Enum):
    """Where a number comes from."""

    SIMULATED = "simulated"  # on a model of the paper's machine and engine
    FITTED = "fitted"  # likewise, but a constant of the model was chosen so that this very claim comes out
    MEASURED = "measured"  # on this machine


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of a paper, and ours beside it.

    Args:
        id: as in the checklist, such as C000-3.
        claim: what the paper says.
        ours: what was found here.
        holds: whether it was reproduced as it is worded, in trend and figure, or beaten where that is the aim.
        kind: measured, simulated, or fitted.
        remark: why it differs.
    """

    id: str
    claim: str
    ours: str
    holds: bool
    kind: Kind = Kind.SIMULATED
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """A reproduced figure.

    Args:
        name: of its files.
        rows: of its CSV; all with the same columns.
        claims: what it shows.
        kind: measured or simulated.
    """

    name: str
    rows: Sequence[Row]
    claims: Sequence[Claim]
    kind: Kind = Kind.SIMULATED

    def save(self, folder: Path) -> None:
        """Write the CSV and the claims."""
        folder.mkdir(parents=True, exist_ok=True)
        write_claims(self.claims, folder / f"{self.name}.claims.csv")
        with (folder / f"{self.name}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, ["class", *self.rows[0]])
            writer.writeheader()
            writer.writerows({"class": self.kind.value} | dict(row) for row in self.rows)


def unexplained(claims: Sequence[Claim]) -> list[str]:
    """Return the ids of claims that aren't reproduced, and nobody says why."""
    return [claim.id for claim in claims if not claim.holds and not claim.remark]


def write_claims(claims: Sequence[Claim], path: Path) -> None:
    """Write claims as CSV, with date, commit and machine."""
    made = stamp()
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [*(f.name for f in fields(Claim)), *made])
        writer.writeheader()
        writer.writerows(_texts(claim) | made for claim in claims)


def write_table(claims: Sequence[Claim], folder: Path) -> None:
    """Write the table of claims as CSV and Markdown."""
    names = [f.name for f in fields(Claim)]
    write_claims(claims, folder / "claims.csv")
    lines = [f"| {' | '.join(names)} |", f"|{'---|' * len(names)}"]
    lines += [f"| {' | '.join(_texts(claim).values())} |" for claim in claims]
    (folder / "claims.md").write_text("\n".join(lines) + "\n")


def _texts(claim: Claim) -> dict[str, str]:
    texts = {name: str(value) for name, value in asdict(claim).items()}
    return texts | {"holds": "yes" if claim.holds else "NO", "kind": claim.kind.value}
