"""Makes programs at random. Each operator is interpreted as it is added, so that what follows depends only on what the guide promises."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import rayelastic as rel
from tests.random_topologies.flow import QUIRKS, Flow
from tests.random_topologies.functions import (
    BASE,
    FILTERS,
    FLAT_MAPS,
    FOLDS,
    FUNCTIONS,
    MAPS,
    PATTERNS,
    REDUCES,
    STATEFUL_MAPS,
    adapter,
)
from tests.random_topologies.naive import result_of
from tests.random_topologies.program import Node, Program, source_text
from tests.random_topologies.values import CLASSES, IMPORTS, KINDS, Field, Schema, schema_text

TYPED = 5  # one program in so many is about types
BY_ARRIVAL = "by" in inspect.signature(rel.KeyedStream.join).parameters if hasattr(rel, "KeyedStream") else False
AGGREGATES: list[dict[str, tuple[str, str | None]]] = [
    {"n": ("count", None)},
    {"n": ("count", "x"), "total": ("sum", "x"), "low": ("min", "x"), "high": ("max", "x")},
    {"mean": ("mean", "y"), "u": ("distinct", "s")},
    {"lo": ("min", "s"), "hi": ("max", "s"), "sy": ("sum", "y")},
    {"f": ("first", "s"), "l": ("last", "x"), "n": ("count", None)},
]


class Names(Mapping[str, Any]):
    """All functions, executed when they are asked for."""

    def __init__(self) -> None:
        self._names: dict[str, Any] = {}
        exec(IMPORTS + CLASSES, self._names)

    def __getitem__(self, name: str) -> Any:
        if name not in self._names:
            for text in FUNCTIONS.values():
                if f" {name}(" in text or f"class {name}" in text:
                    exec(text, self._names)
        return self._names[name]

    def __iter__(self) -> Any:
        return iter(FUNCTIONS)

    def __len__(self) -> int:
        return len(FUNCTIONS)


NAMES = Names()


def program(seed: int, number: int) -> Program:
    """The program of a number."""
    assert not QUIRKS
    chance = random.Random(f"{seed}:{number}")
    maker = TypedMaker(chance) if number % TYPED == 0 else Maker(chance)
    maker.make()
    return Program(tuple(maker.nodes))


class BaseMaker:
    """Nodes, and the tuples that the interpreter has of them so far."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.nodes: list[Node] = []
        self.flows: dict[str, Flow] = {}

    def add(self, kind: str, inputs: Sequence[str], text: str, **known: Any) -> str:
        """Declare an operator; `{n}` in its text is its name, `{0}`, `{1}`, ... are its inputs."""
        name = f"{'s' if kind == 'source' else 'o'}{len(self.nodes)}"
        outputs = {name + key: value.format(n=name) for key, value in known.pop("outputs", {}).items()}
        uses, own = tuple(known.pop("uses", ())), known.pop("own", True)
        written = f"{name} = " + text.format(*inputs, n=name)
        node = Node(name, kind, written, tuple(inputs), known, uses, outputs, own)
        self.nodes.append(node)
        self.flows.update(result_of(node, [self.flows[one] for one in inputs], NAMES))
        return name

    def source(self, schema: Schema, rows: list[Any]) -> str:
        name = f"s{len(self.nodes)}"
        text = source_text(name, schema)
        self.nodes.append(Node(name, "source", text, (), {"schema": schema, "rows": rows}))
        self.flows.update(result_of(self.nodes[-1], [], NAMES))
        return name


def _aggregates(wanted: Mapping[str, tuple[str, str | None]]) -> str:
    made = [f"{name}=rel.{fn}({'' if of is None else repr(of)})" for name, (fn, of) in wanted.items()]
    return ", ".join(made)


def _keyed(keys: Sequence[str], stream: str = "{0}") -> str:
    return f"{stream}.key_by({', '.join(map(repr, keys))})" if keys else stream


class Maker(BaseMaker):
    """Graphs of all operators over tuples of one schema."""

    def make(self) -> None:
        for _ in range(self.chance.choice([1, 1, 2, 2, 3])):
            self.source(BASE, self.rows())
        for _ in range(self.chance.randint(3, 9)):
            self.step()

    def rows(self) -> list[Any]:
        chance = self.chance
        at, disorder = chance.randrange(5), chance.choice([0, 0, 3, 9, 20])
        rows = []
        for j in range(chance.choice([0, 1, chance.randrange(12), chance.randrange(81), chance.randrange(81)])):
            at += chance.choice([0, 0, 1, 1, 2, 7])
            rows.append((
                chance.choice(["a", "b", "c", "longer than twelve", None]), chance.randrange(3), j,
                chance.choice([None, -3, 0, 1, 2, 4, 9]), chance.choice([None, -1.5, 0.0, 0.5, 4.0]),
                chance.choice([None, "", "a", "b", "twelve bytes", "more than twelve bytes"]),
                max(0, at - chance.randrange(disorder + 1)),
            ))  # fmt: skip
        return rows

    def step(self) -> None:
        """Add one operator that some stream is fit for."""
        for _ in range(40):
            stream = self.chance.choice(list(self.flows)[-6:] + list(self.flows)[:2])
            if self.flows[stream].schema != BASE:
                if self.chance.random() < 0.5 and len(self.flows[stream].schema) > 0:
                    self.adapt(stream)
                    return
                continue
            if self.chance.choice(STEPS)(self, stream):
                return

    def keys(self) -> tuple[str, ...]:
        return self.chance.choice([("k",), ("k",), ("g",), ("k", "g"), ("s",)])

    def wanted(self, flow: Flow) -> dict[str, tuple[str, str | None]]:
        return self.chance.choice(AGGREGATES if flow.ordered else AGGREGATES[:-1])

    def adapt(self, stream: str) -> None:
        name = adapter(self.flows[stream].schema)
        self.add("map", [stream], f'{{0}}.map("{{n}}", {name}, schema=BASE, lane=LANE)', fn=name, uses=("BASE", name))

    # each: whether the stream is fit for it
    def filter(self, stream: str) -> bool:
        fn = self.chance.choice(list(FILTERS))
        self.add("filter", [stream], f'{{0}}.filter("{{n}}", {fn}, lane=LANE)', fn=fn, uses=(fn,))
        return True

    def map(self, stream: str) -> bool:
        fn = self.chance.choice(list(MAPS))
        self.add("map", [stream], f'{{0}}.map("{{n}}", {fn}, schema=BASE, lane=LANE)', fn=fn, uses=("BASE", fn))
        return True

    def flat_map(self, stream: str) -> bool:
        fn = self.chance.choice(list(FLAT_MAPS))
        text = f'{{0}}.flat_map("{{n}}", {fn}, schema=BASE, lane=LANE)'
        self.add("flat_map", [stream], text, fn=fn, uses=("BASE", fn))
        return True

    def stateful(self, stream: str) -> bool:
        if not self.flows[stream].ordered:
            return False
        fn = self.chance.choice([*STATEFUL_MAPS, "c_odd", "c_pairs", "d_count"])
        how = {"c_odd": "filter", "c_pairs": "flat_map"}.get(fn, "map")
        state, lane = ("dict", '"python"') if fn == "d_count" else ("State", "LANE")
        keys = self.keys()
        schema = "" if how == "filter" else ", schema=BASE"
        text = f'{_keyed(keys)}.{how}("{{n}}", {fn}, state={state}{schema}, lane={lane})'
        uses = ("BASE", fn) if state == "dict" else ("BASE", "State", fn)
        self.add("stateful", [stream], text, fn=fn, how=how, state=state, keys=keys, uses=uses)
        return True

    def scan(self, stream: str) -> bool:
        if not self.flows[stream].ordered:
            return False
        fn, keys, final = self.chance.choice(list(FOLDS)), self.keys(), self.chance.random() < 0.6
        text = f'{_keyed(keys)}.{"fold" if final else "scan"}("{{n}}", {fn}, {FOLDS[fn][1]}, schema={FOLDS[fn][2]})'
        text = text.replace(FOLDS[fn][2], "{" + FOLDS[fn][2] + "}")
        self.add(
            "scan", [stream], text, fn=fn, keys=keys, final=final, uses=(fn,),
            start="" if fn == "f_text" else int(FOLDS[fn][1]), value=self.value(fn),
        )  # fmt: skip
        return True

    def value(self, fn: str) -> Field:
        return Field("v", "str" if fn == "f_text" else "int", nullable=fn == "f_latest")

    def reduce(self, stream: str) -> bool:
        if not self.flows[stream].ordered:
            return False
        fn, keys, emit = self.chance.choice(list(REDUCES)), self.keys(), self.chance.choice(["final", "update"])
        text = f'{_keyed(keys)}.reduce("{{n}}", {fn}, emit="{emit}")'
        self.add("reduce", [stream], text, fn=fn, keys=keys, emit=emit, uses=(fn,))
        return True

    def combine(self, stream: str) -> bool:
        keys, emit = self.keys(), self.chance.choice(["final", "update"])
        if emit == "update" and not self.flows[stream].ordered:
            return False
        text = f'{_keyed(keys)}.combine("{{n}}", Range, emit="{emit}", lane=LANE)'
        self.add("combine", [stream], text, keys=keys, emit=emit, uses=("Range",))
        return True

    def aggregate(self, stream: str) -> bool:
        flow = self.flows[stream]
        keys, emit = self.chance.choice([(), self.keys()]), self.chance.choice(["final", "final", "update"])
        if emit == "update" and not flow.ordered:
            return False
        wanted = self.wanted(flow)
        text = f'{_keyed(keys)}.aggregate("{{n}}", emit="{emit}", {_aggregates(wanted)})'
        self.add("aggregate", [stream], text, keys=keys, emit=emit, aggregates=wanted)
        return True

    def deduplicate(self, stream: str) -> bool:
        if not self.flows[stream].ordered:
            return False
        keys = self.keys()
        self.add("deduplicate", [stream], f'{_keyed(keys)}.deduplicate("{{n}}")', keys=keys)
        return True

    def event_time(self, stream: str) -> bool:
        flow = self.flows[stream]
        lateness = self.chance.choice([0, 0, 3, 9, 20])
        times = flow.times()
        if any(at < 0 for at in times):
            return False
        if not flow.ordered:
            lateness = max(times, default=0) - min(times, default=0)
        self.add("event_time", [stream], f'{{0}}.event_time("{{n}}", "at", lateness={lateness})', lateness=lateness)
        return True

    def timed(self, stream: str) -> bool:
        return self.flows[stream].is_timed

    def union(self, stream: str) -> bool:
        others = [name for name, flow in self.flows.items() if name != stream and flow.schema == BASE]
        others = [name for name in others if self.flows[name].is_timed == self.flows[stream].is_timed]
        if self.flows[stream].is_timed:
            others = [name for name in others if self.flows[name].is_punctual]
            if not self.flows[stream].is_punctual:
                return False
        chosen = self.chance.sample(others, min(len(others), self.chance.choice([1, 1, 2])))
        origins = [one for name in (stream, *chosen) for one in self.origins(name)]
        if not chosen or len(set(origins)) != len(origins):
            return False
        rest = ", ".join(f"{{{i + 1}}}" for i in range(len(chosen)))
        self.add("union", [stream, *chosen], f"{{0}}.union({rest})")
        return True

    def origins(self, stream: str) -> list[str]:
        """What a union is made of."""
        node = next((one for one in self.nodes if one.name == stream), None)
        if node is None or node.kind != "union":
            return [stream]
        return [one for name in node.inputs for one in self.origins(name)]

    def merge(self, stream: str) -> bool:
        others = [name for name, flow in self.flows.items() if name != stream and flow.schema == BASE]
        others = [name for name in others if self.flows[name].is_punctual and len(self.origins(name)) == 1]
        if not others or not self.flows[stream].is_punctual or len(self.origins(stream)) > 1:
            return False
        outputs = {"_late": "{n}.late()"}
        self.add("merge", [stream, self.chance.choice(others)], '{0}.merge_by_time("{n}", {1})', outputs=outputs)
        return True

    def split(self, stream: str) -> bool:
        if self.chance.random() < 0.4:
            if any(not 0 <= g <= 2 for g in self.flows[stream].column("g")):
                return False
            outputs = {f"_{i}": f"{{n}}[{i}]" for i in range(3)}
            text = '{0}.split("{n}", 3, by=s_number, lane=LANE)'
            self.add(
                "split", [stream], text, by="s_number", ways=["0", "1", "2"], outputs=outputs, uses=("s_number",), own=False
            )
            return True
        outputs = {f"_{way}": f"{{n}}.{way}" for way in ("small", "large", "rest")}
        self.add(
            "split", [stream], '{0}.split("{n}", small=s_small, large=s_large, lane=LANE)', outputs=outputs, own=False,
            predicates=["s_small", "s_large"], ways=["small", "large", "rest"], uses=("s_small", "s_large"),
        )  # fmt: skip
        return True

    def stage(self, stream: str) -> bool:
        order, fn = self.chance.random() < 0.6, self.chance.choice(list(MAPS))
        body = f'lambda s: s.map("body", {fn}, schema=BASE, lane=LANE)'
        if self.chance.random() < 0.5:
            text = f'{{0}}.parallel("{{n}}", {self.chance.choice([2, 3])}, {body}, order={order})'
        else:
            text = f'{{0}}.elastic("{{n}}", {body}, most=3, start={self.chance.choice([1, 2, 3])}, order={order})'
        if self.flows[stream].is_timed:
            return False
        self.add("stage", [stream], text, fn=fn, order=order, uses=("BASE", fn))
        return True

    def count(self, stream: str) -> bool:
        flow = self.flows[stream]
        if not flow.ordered:
            return False
        keys, count = self.chance.choice([(), self.keys()]), self.chance.choice([1, 2, 3, 5])
        slide = self.chance.choice([count, count, max(1, count - 1), count + 1])
        rest = self.chance.choice([None, True, False])
        text = f'{_keyed(keys)}.window(count={count}, slide={slide}, rest={rest}).aggregate("{{n}}", '
        wanted = self.wanted(flow)
        shown = slide >= count if rest is None else rest
        self.add(
            "count", [stream], text + _aggregates(wanted) + ")", keys=keys, count=count, slide=slide, rest=shown,
            aggregates=wanted,
        )  # fmt: skip
        return True

    def window(self, stream: str) -> bool:
        flow = self.flows[stream]
        if not flow.is_timed or not (flow.ordered or flow.is_punctual):
            return False
        keys, lateness = self.chance.choice([(), self.keys(), self.keys()]), self.chance.choice([0, 0, 5, 12, 30])
        wanted = self.wanted(flow)
        late = f", lateness={lateness}" if lateness else ""
        known: dict[str, Any] = {"keys": keys, "lateness": lateness, "aggregates": wanted}
        if self.chance.random() < 0.4:
            gap = self.chance.choice([1, 3, 6])
            frame, kind, known["gap"] = f"session(gap={gap}{late})", "sessions", gap
        else:
            size = self.chance.choice([4, 10])
            slide = self.chance.choice([size, size, 2, 3, size + 3])
            frame, kind = f"window(seconds={size}, slide={slide}{late})", "windows"
            known |= {"size": size, "slide": slide}
        text = f'{_keyed(keys)}.{frame}.aggregate("{{n}}", {_aggregates(wanted)})'
        self.add(kind, [stream], text, outputs={"_late": "{n}.late()"}, **known)
        return True

    def gather(self, stream: str) -> bool:
        flow = self.flows[stream]
        if not flow.is_timed or not flow.ordered:
            return False
        how = self.chance.choice(["fold", "reduce", "top", "collect", "process", "combine"])
        if how == "combine" and not flow.is_punctual:
            return False
        keys = self.keys()
        known: dict[str, Any] = {"keys": keys, "how": how}
        if self.chance.random() < 0.4:
            known["gap"] = self.chance.choice([1, 3, 6])
            frame = f"session(gap={known['gap']})"
        else:
            size = self.chance.choice([4, 10])
            slide = self.chance.choice([size, size, 3])
            frame = f"window(seconds={size}, slide={slide})"
            known |= {"size": size, "slide": slide}
        uses: tuple[str, ...] = ()
        match how:
            case "fold":
                fn = self.chance.choice(list(FOLDS))
                start, schema = FOLDS[fn][1:]
                known |= {"fn": fn, "start": "" if fn == "f_text" else int(start), "value": self.value(fn)}
                call, uses = f"{fn}, {start}, schema={{{schema}}}", (fn,)
            case "reduce":
                known["fn"] = self.chance.choice(list(REDUCES))
                call, uses = known["fn"], (known["fn"],)
            case "top":
                known |= {"k": self.chance.choice([1, 2]), "by": "x"}
                call = f'{known["k"]}, "x"'
            case "collect":
                call = ""
            case "process":
                fields = ", ".join(f.name and f'"{f.name}": {f.annotation}' for f in BASE if f.name in keys)
                fields = ", ".join(f'"{k}": {next(f.annotation for f in BASE if f.name == k)}' for k in keys)
                call = f'w_ends, schema={{{{{fields}, "start": int, "j": int, "last": int, "n": int}}}}'
                uses = ("w_ends",)
            case _:
                known["value"] = Field("value", "int")
                call, uses = "Range, lane=LANE", ("Range",)
        text = f'{_keyed(keys)}.{frame}.{how}("{{n}}"{", " if call else ""}{call})'
        self.add("gathered", [stream], text, outputs={"_late": "{n}.late()"}, uses=uses, **known)
        return True

    def process(self, stream: str) -> bool:
        flow = self.flows[stream]
        if not flow.is_timed or not flow.ordered:
            return False
        keys, cls = self.keys(), self.chance.choice(["Quiet", "Reminded"])
        state, lane = ("Seen", "LANE") if cls == "Quiet" else ("dict", '"python"')
        fields = ", ".join(f'"{k}": {next(f.annotation for f in BASE if f.name == k)}' for k in keys)
        text = (
            f'{_keyed(keys)}.process("{{n}}", {cls}, schema={{{{{fields}, "j": int, "at": int, "n": int}}}}, '
            f"state={state}, lane={lane})"
        )
        outputs = {"_late": "{n}.late()"}
        self.add("process", [stream], text, keys=keys, cls=cls, state=state, uses=(cls,), outputs=outputs)
        return True

    def match(self, stream: str) -> bool:
        flow = self.flows[stream]
        if not flow.is_timed or not flow.ordered:
            return False
        keys, pattern = self.chance.choice([("k",), ("s",)]), self.chance.choice(list(PATTERNS))
        how = self.chance.choice(["inner", "left"])
        text = f'{_keyed(keys)}.match("{{n}}", {PATTERNS[pattern][0]}, how="{how}", lane=LANE)'
        self.add(
            "match", [stream], text, keys=keys, pattern=pattern, how=how, outputs={"_late": "{n}.late()"},
            uses=("s_small", "s_large", "s_none"),
        )  # fmt: skip
        return True

    def join(self, stream: str) -> bool:
        left = self.flows[stream]
        others = [name for name, flow in self.flows.items() if flow.schema == BASE and name != stream]
        if self.chance.random() < 0.25 and not left.is_timed:
            others = [name for name in others if not self.flows[name].is_timed]
            return bool(others) and self.pairs(stream, self.chance.choice(others))
        others = [name for name in others if self.flows[name].is_punctual]
        if not others or not left.is_punctual:
            return False
        right = self.chance.choice(others)
        kind = self.chance.choice(["latest", "first", "all", "interval", "window", "cross"])
        if kind in ("latest", "first", "cross") and not self.flows[right].ordered:
            return False
        return self.timed_join(stream, right, kind)

    def timed_join(self, stream: str, right: str, kind: str) -> bool:
        chance, known = self.chance, dict[str, Any]()
        if kind == "cross":
            how, right_keys = chance.choice(["inner", "left"]), chance.choice([(), ("k",)])
            text = f'{{0}}.cross_join("{{n}}", {_keyed(right_keys, "{1}")}, how="{how}")'
            self.add("cross", [stream, right], text, how=how, right_keys=right_keys)
            return True
        keys = chance.choice([("k",), ("g",), ("k", "g")])
        bounded = kind in ("interval", "window")
        how = chance.choice(["inner", "left", "right", "full"] if bounded else ["inner", "left"])
        if kind == "interval":
            known["within"] = chance.choice([(3, 0), (2, 2), (0, 4)])
            option = f"within={known['within']}"
        elif kind == "window":
            known["size"] = chance.choice([4, 10])
            option = f"window={known['size']}"
        else:
            option = f'keep="{kind}"'
        text = f'{_keyed(keys)}.join("{{n}}", {_keyed(keys, "{1}")}, {option}, how="{how}")'
        self.add("join", [stream, right], text, match=kind, how=how, keys=keys, right_keys=keys, **known)
        return True

    def pairs(self, stream: str, right: str) -> bool:
        keys = self.chance.choice([("k", "g"), ("s", "g")])
        how = self.chance.choice(["inner", "left", "right", "full"]) if BY_ARRIVAL else "inner"
        option = f'how="{how}"' if BY_ARRIVAL else 'symmetric=True, keep="all"'
        text = f'{_keyed(keys)}.join("{{n}}", {_keyed(keys, "{1}")}, {option})'
        self.add("join", [stream, right], text, match="pairs", how=how, keys=keys, right_keys=keys)
        return True

    def enrich(self, stream: str) -> bool:
        how = self.chance.choice(["inner", "left"])
        text = f'{_keyed(("k",))}.enrich("{{n}}", {{{{"a": 7, "longer than twelve": -1}}}}, how="{how}")'
        table = {"a": 7, "longer than twelve": -1}
        self.add("enrich", [stream], text, how=how, keys=("k",), table=table, value=Field("value", "int"))
        return True


STEPS: list[Callable[[Maker, str], bool]] = [
    Maker.filter, Maker.map, Maker.flat_map, Maker.stateful, Maker.scan, Maker.reduce, Maker.reduce, Maker.combine,
    Maker.aggregate, Maker.aggregate, Maker.deduplicate, *[Maker.event_time] * 8, Maker.union, Maker.union, Maker.merge,
    Maker.merge, Maker.split, Maker.stage, Maker.count, Maker.window, Maker.window, Maker.window, Maker.window,
    Maker.gather, Maker.gather, Maker.gather, Maker.process, Maker.process, Maker.match, Maker.match, *[Maker.join] * 6,
    Maker.enrich,
]  # fmt: skip


class TypedMaker(BaseMaker):
    """Keys and values of one type each through the native operators."""

    def make(self) -> None:
        chance = self.chance
        key = Field("k", chance.choice([name for name, kind in KINDS.items() if kind.is_key]), chance.random() < 0.5)
        value = Field("v", chance.choice(list(KINDS)), chance.random() < 0.5)
        schema = (key, value, Field("j", "int"), Field("at", "int"))
        likes = KINDS[key.kind].like and chance.random() < 0.5
        other = (Field("k", key.kind, key.nullable, like=bool(likes)), *schema[1:])
        left, right = self.source(schema, self.rows(schema)), self.source(other, self.rows(schema))
        timed = [self.add("event_time", [one], '{0}.event_time("{n}", "at", lateness=9)', lateness=9) for one in (left, right)]
        self.outputs(timed[0], timed[1], value)

    def rows(self, schema: Schema) -> list[Any]:
        chance, at, rows = self.chance, 0, []
        key, value = schema[:2]
        for j in range(chance.randrange(25)):
            at += chance.choice([0, 1, 3])
            made = [
                None if f.nullable and chance.random() < 0.3 else KINDS[f.kind].make(chance) for f in (key, value)
            ]
            rows.append((*made, j, at))
        return rows

    def outputs(self, left: str, right: str, value: Field) -> None:
        wanted: dict[str, tuple[str, str | None]] = {
            "n": ("count", "v"), "f": ("first", "v"), "l": ("last", "v"), "top": ("max", "j"),
        }  # fmt: skip
        if KINDS[value.kind].is_ordered:
            wanted |= {"lo": ("min", "v"), "hi": ("max", "v")}
        if KINDS[value.kind].is_key:
            wanted["u"] = ("distinct", "v")
        known: dict[str, Any] = {"keys": ("k",), "aggregates": wanted}
        told, late = _aggregates(wanted), {"_late": "{n}.late()"}
        keyed, other = _keyed(("k",)), _keyed(("k",), "{1}")
        emit = self.chance.choice(["final", "update"])
        self.add("aggregate", [left], f'{keyed}.aggregate("{{n}}", emit="{emit}", {told})', emit=emit, **known)
        self.add("deduplicate", [left], f'{keyed}.deduplicate("{{n}}")', keys=("k",))
        emit = self.chance.choice(["final", "update"])
        text = f'{keyed}.reduce("{{n}}", r_newer, emit="{emit}")'
        self.add("reduce", [left], text, fn="r_newer", keys=("k",), emit=emit, uses=("r_newer",))
        frame = f'{keyed}.window(seconds=4).aggregate("{{n}}", {told})'
        self.add("windows", [left], frame, size=4, slide=4, lateness=0, outputs=late, **known)
        self.add("sessions", [left], f'{keyed}.session(gap=2).aggregate("{{n}}", {told})', gap=2, outputs=late, **known)
        self.add(
            "gathered", [left], f'{keyed}.window(seconds=5).collect("{{n}}")', keys=("k",), how="collect", size=5, slide=5,
            outputs=late,
        )  # fmt: skip
        for kind, option, more in (
            ("latest", 'keep="latest"', {}), ("interval", "within=(2, 1)", {"within": (2, 1)}),
            ("window", "window=4", {"size": 4}),
        ):  # fmt: skip
            how = self.chance.choice(["inner", "left"] if kind == "latest" else ["inner", "left", "right", "full"])
            text = f'{keyed}.join("{{n}}", {other}, {option}, how="{how}")'
            self.add("join", [left, right], text, match=kind, how=how, keys=("k",), right_keys=("k",), **more)
        self.cross(left, right)

    def cross(self, left: str, right: str) -> None:
        text = '{0}.cross_join("{n}", {1}.key_by("k"), how="left")'
        self.add("cross", [left, right], text, how="left", right_keys=("k",))


__all__ = ["Maker", "program"]
