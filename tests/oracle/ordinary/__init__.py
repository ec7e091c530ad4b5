"""What ordinary Python has beside: containers in containers, helpers and objects of the module, formats, counters.

Templates as grammar.py describes them, a file for each kind of thing; they are added to those of scalars.py,
containers.py and statements.py. `ll` is a list of texts in a list, `lti` a list of (str, int), `dsl` a dict of lists
of texts, `db` a dict of bools.
"""

from __future__ import annotations

from tests.oracle.ordinary import collecting, conditions, containers, deciding, numbers, tables, texts

EXPRESSIONS = {**texts.SCALARS, **numbers.SCALARS, **conditions.SCALARS, **containers.CONTAINERS}
STATEMENTS = collecting.STATEMENTS.rstrip() + "\n--- " + deciding.STATEMENTS.lstrip()
CONSTANTS, LEAVES, CONSUMERS = tables.CONSTANTS, containers.LEAVES, containers.CONSUMERS
