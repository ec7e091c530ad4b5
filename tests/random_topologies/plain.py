"""Steps of programs without event time. Each adds an operator, and says whether the stream was fit for it."""

from __future__ import annotations

from tests.random_topologies.base import BaseMaker, aggregates_text, keyed
from tests.random_topologies.functions import BASE, FILTERS, FLAT_MAPS, FOLDS, MAPS, REDUCES, STATEFUL_MAPS
from tests.random_topologies.values import Field


class PlainSteps(BaseMaker):
    """Operators of functions, aggregates, unions, splits, stages and tables."""

    def filter(self, stream: str) -> bool:
        fn = self.chance.choice(list(FILTERS))
        self.add("filter", [stream], f'{{0}}.filter({fn}, name="{{n}}", lane=LANE)', fn=fn, uses=(fn,))
        return True

    def map(self, stream: str) -> bool:
        fn = self.chance.choice(list(MAPS))
        self.add("map", [stream], f'{{0}}.map({fn}, name="{{n}}", schema=BASE, lane=LANE)', fn=fn, uses=("BASE", fn))
        return True

    def flat_map(self, stream: str) -> bool:
        fn = self.chance.choice(list(FLAT_MAPS))
        text = f'{{0}}.flat_map({fn}, name="{{n}}", schema=BASE, lane=LANE)'
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
        text = f'{keyed(keys)}.{how}({fn}, name="{{n}}", state={state}{schema}, lane={lane})'
        uses = ("BASE", fn) if state == "dict" else ("BASE", "State", fn)
        self.add("stateful", [stream], text, fn=fn, how=how, state=state, keys=keys, uses=uses)
        return True

    def scan(self, stream: str) -> bool:
        if not self.flows[stream].ordered:
            return False
        fn, keys, final = self.chance.choice(list(FOLDS)), self.keys(), self.chance.random() < 0.6
        text = f'{keyed(keys)}.{"fold" if final else "scan"}({fn}, {FOLDS[fn][1]}, name="{{n}}", schema={FOLDS[fn][2]})'
        text = text.replace(FOLDS[fn][2], "{" + FOLDS[fn][2] + "}")
        self.add(
            "scan", [stream], text, fn=fn, keys=keys, final=final, uses=(fn,),
            start="" if fn == "f_text" else int(FOLDS[fn][1]), value=self.value(fn),
        )  # fmt: skip
        return True

    def reduce(self, stream: str) -> bool:
        if not self.flows[stream].ordered:
            return False
        fn, keys, emit = self.chance.choice(list(REDUCES)), self.keys(), self.chance.choice(["final", "update"])
        text = f'{keyed(keys)}.reduce({fn}, name="{{n}}", emit="{emit}")'
        self.add("reduce", [stream], text, fn=fn, keys=keys, emit=emit, uses=(fn,))
        return True

    def combine(self, stream: str) -> bool:
        keys, emit = self.keys(), self.chance.choice(["final", "update"])
        if emit == "update" and not self.flows[stream].ordered:
            return False
        text = f'{keyed(keys)}.combine(Range, name="{{n}}", emit="{emit}", lane=LANE)'
        self.add("combine", [stream], text, keys=keys, emit=emit, uses=("Range",))
        return True

    def aggregate(self, stream: str) -> bool:
        flow = self.flows[stream]
        keys, emit = self.chance.choice([(), self.keys()]), self.chance.choice(["final", "final", "update"])
        if emit == "update" and not flow.ordered:
            return False
        wanted = self.wanted(flow)
        text = f'{keyed(keys)}.aggregate(name="{{n}}", emit="{emit}", {aggregates_text(wanted)})'
        self.add("aggregate", [stream], text, keys=keys, emit=emit, aggregates=wanted)
        return True

    def deduplicate(self, stream: str) -> bool:
        if not self.flows[stream].ordered:
            return False
        keys = self.keys()
        self.add("deduplicate", [stream], f'{keyed(keys)}.deduplicate(name="{{n}}")', keys=keys)
        return True

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

    def split(self, stream: str) -> bool:
        if self.chance.random() < 0.4:
            if any(not 0 <= g <= 2 for g in self.flows[stream].column("g")):
                return False
            outputs = {f"_{i}": f"{{n}}[{i}]" for i in range(3)}
            text = '{0}.split(3, name="{n}", by=s_number, lane=LANE)'
            known = {"by": "s_number", "ways": ["0", "1", "2"], "uses": ("s_number",), "own": False}
            self.add("split", [stream], text, outputs=outputs, **known)
            return True
        outputs = {f"_{way}": f"{{n}}.{way}" for way in ("small", "large", "rest")}
        self.add(
            "split", [stream], '{0}.split(name="{n}", small=s_small, large=s_large, lane=LANE)', outputs=outputs,
            own=False,
            predicates=["s_small", "s_large"], ways=["small", "large", "rest"], uses=("s_small", "s_large"),
        )  # fmt: skip
        return True

    def stage(self, stream: str) -> bool:
        order, fn = self.chance.random() < 0.6, self.chance.choice(list(MAPS))
        body = f'lambda s: s.map({fn}, name="body", schema=BASE, lane=LANE)'
        if self.chance.random() < 0.5:
            text = f'{{0}}.parallel({self.chance.choice([2, 3])}, {body}, name="{{n}}", order={order})'
        else:
            text = f'{{0}}.elastic({body}, name="{{n}}", most=3, start={self.chance.choice([1, 2, 3])}, order={order})'
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
        text = f'{keyed(keys)}.window(count={count}, slide={slide}, rest={rest}).aggregate(name="{{n}}", '
        wanted = self.wanted(flow)
        shown = slide >= count if rest is None else rest
        self.add(
            "count", [stream], text + aggregates_text(wanted) + ")", keys=keys, count=count, slide=slide, rest=shown,
            aggregates=wanted,
        )  # fmt: skip
        return True

    def enrich(self, stream: str) -> bool:
        how = self.chance.choice(["inner", "left"])
        text = f'{keyed(("k",))}.enrich({{{{"a": 7, "longer than twelve": -1}}}}, name="{{n}}", how="{how}")'
        table = {"a": 7, "longer than twelve": -1}
        self.add("enrich", [stream], text, how=how, keys=("k",), table=table, value=Field("value", "int"))
        return True
