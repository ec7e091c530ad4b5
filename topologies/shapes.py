"""The shapes of Middleware'19 Fig. 8, as lists: for each operator behind the source those that feed it, by number.

The source has number 0, the last one is the sink. Shared by the topologies and by benchmarks with graphs of their own.
Knows nothing else.
"""

from __future__ import annotations

Shape = list[list[int]]

BUSHY_DEPTH, BUSHY_OPERATORS = 5, 82  # Middleware'19 Fig. 12, with source and sink


def pipeline(operators: int) -> Shape:
    """Source, operators, sink (Fig. 8(a)).

    >>> pipeline(2)
    [[0], [1], [2]]
    """
    return [[number] for number in range(operators + 1)]


def mixed(paths: int, operators: int) -> Shape:
    """Paths of so many operators between source and sink (Fig. 8(c)).

    >>> mixed(2, 2)
    [[0], [1], [0], [3], [2, 4]]
    """
    inner = [[number if number % operators else 0] for number in range(paths * operators)]
    return [*inner, [path * operators for path in range(1, paths + 1)]]


def data_parallel(width: int) -> Shape:
    """So many workers between source and sink (Fig. 8(b)).

    >>> data_parallel(3)
    [[0], [0], [0], [1, 2, 3]]
    """
    return mixed(width, 1)


def bushy(depth: int = BUSHY_DEPTH) -> Shape:
    """Return a tree that doubles at each level and joins again (Fig. 8(d)).

    At depth 5 there are 82 operators, as in Fig. 12: source and sink, 31 in the spreading tree and 15 in the joining
    one. The remaining 34 are in pipelines between them, which the paper's text doesn't mention.

    >>> bushy(2)
    [[0], [1], [1], [2, 3], [4]]
    >>> len(bushy()) + 1
    82
    """
    shape: Shape = []

    def add(tails: list[int]) -> int:
        shape.append(tails)
        return len(shape)

    level = [add([0])]
    for _ in range(depth - 1):
        level = [add([tail]) for tail in level for _ in range(2)]
    joining = len(level) - 1
    between = BUSHY_OPERATORS - 2 - len(shape) - joining if depth == BUSHY_DEPTH else 0
    for number in range(between):
        level[number % len(level)] = add([level[number % len(level)]])
    while len(level) > 1:
        level = [add(level[at : at + 2]) for at in range(0, len(level), 2)]
    add(level)
    return shape
