"""Labels by a model that is loaded once in each process, for whole runs of tuples at a time.

After the digit_predict example of streamsx and the batch inference of Ray Data's guide, with a model that needs no
file. `python examples/ported/labelled_by_model.py`
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import rayelastic as rel

CENTRES = {"short and light": (10.0, 1.0), "long and light": (90.0, 2.0), "heavy": (40.0, 50.0)}


class Parcel(NamedTuple):
    """What has been measured."""

    number: int
    length: float
    weight: float


class Nearest:
    """The label of the nearest centre."""

    def initialize(self) -> None:
        """Load the model."""
        self.labels = np.array(list(CENTRES))
        self.centres = np.array(list(CENTRES.values()))

    def __call__(self, run: np.ndarray) -> dict[str, np.ndarray]:
        """Labels a run."""
        measured = np.stack([run["length"], run["weight"]], axis=1)
        distances = np.linalg.norm(measured[:, None, :] - self.centres[None, :, :], axis=2)
        return {"number": run["number"], "label": self.labels[distances.argmin(axis=1)]}


def build(rows: list[Parcel]) -> rel.Topology:
    """Return the topology."""
    topology = rel.Topology("labelled_by_model")
    parcels = topology.source(rel.rows(rows), name="parcels")
    parcels.map(Nearest(), name="labelled", schema={"number": int, "label": str}).sink(rel.list(), name="out")
    return topology


if __name__ == "__main__":
    for one in rel.run(build([Parcel(1, 12, 2), Parcel(2, 80, 1), Parcel(3, 30, 60)]))["out"]:
        print(one)
