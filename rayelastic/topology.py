"""`rel.Topology`: the graph's topology, with a compiler for Python functions and the planner."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from rayelastic.compile.compiler import Compiler
from rayelastic.errors import DeclarationError
from rayelastic.fluent.topology import Topology as GraphTopology
from rayelastic.plan.config import JobConfig
from rayelastic.plan.explain import explain
from rayelastic.plan.fusion import plan_topology
from rayelastic.plan.plan_svg import OperatorNote, plan_svg

if TYPE_CHECKING:
    from rayelastic.plan.exec_plan import ExecPlan


class Topology(GraphTopology):
    """Streams and operators, with no degree of parallelism anywhere.

    Args:
        name: of the topology, and of its jobs by default.

    Raises:
        GraphError: the name is empty or has characters that a name can't have.

    >>> import rayelastic as rel
    >>> topology = rel.Topology("word_count")
    >>> lines = topology.source(rel.rows([("to be or not to be",)], schema={"line": str}))
    >>> def words(t):
    ...     for word in t.line.split():
    ...         yield (word,)
    >>> counts = lines.flat_map(words, schema={"word": str}).key_by("word").aggregate(n=rel.count())
    >>> counts.sink(rel.list(), name="out")
    <sink out>
    >>> sorted(tuple(t) for t in rel.run(topology)["out"])
    [('be', 2), ('not', 1), ('or', 1), ('to', 2)]
    """

    def __init__(self, name: str) -> None:
        super().__init__(name, compiler=Compiler())

    def plan(self, config: JobConfig | None = None) -> ExecPlan:
        """Plan the regions, and which operators go into which PE; starts nothing.

        Args:
            config: `JobConfig()` by default.

        Raises:
            GraphError: the topology can't run as a whole.
            ConfigError: the configuration doesn't fit the topology.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("numbers")
        >>> topology.source(rel.sequence(3), name="numbers").sink(rel.list(), name="out")
        <sink out>
        >>> topology.plan().pes
        {'pe0': ('numbers', 'out')}
        """
        self.validate(shipped=False)
        return plan_topology(self, config or JobConfig())

    def explain(self, config: JobConfig | None = None) -> str:
        """Regions, operators, and for each its lane and why; text for people, starts nothing.

        Args:
            config: as of `plan`.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("numbers")
        >>> topology.source(rel.sequence(3), name="numbers").sink(rel.list(), name="out")
        <sink out>
        >>> print(topology.explain())
        topology 'numbers': 2 operators in 2 regions in 1 PE
        <BLANKLINE>
        r0  source: a source stands alone; in pe0
            numbers  source  built-in  native counter
        <BLANKLINE>
        r1  pipeline: can be split into pipelines; in pe0
            out      sink    built-in  native conversion to Arrow batches, tuples when
                                       they are asked for
        <BLANKLINE>
        """
        return explain(self, self.plan(config))

    def _repr_html_(self) -> str:
        """How notebooks show it: the graph with regions and lanes; why not, as long as it can't run as a whole."""
        try:
            plan = self.plan()
        except DeclarationError as error:
            return f"<p>{escape(repr(self))}: {escape(str(error))}</p>"
        notes = {name: OperatorNote(spec.lane.value, text=spec.kind) for name, spec in self.operators.items()}
        return (
            f'<div style="overflow:auto">{plan_svg(plan, notes)}'
            f"<details><pre>{escape(self.explain())}</pre></details></div>"
        )
