"""Steps of programs by event time. Each adds an operator, and says whether the stream was fit for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.random_topologies.base import BaseMaker, aggregates_text, key_types, keyed
from tests.random_topologies.functions import ASSIGNERS, BASE, FOLDS, PATTERNS, REDUCES
from tests.random_topologies.naive import event_time
from tests.random_topologies.program import Node
from tests.random_topologies.values import Field


class TimedSteps(BaseMaker):
    """Event time, windows, timers, patterns and joins."""

    def event_time(self, stream: str) -> bool:
        flow = self.flows[stream]
        lateness = self.chance.choice([0, 0, 3, 9, 20])
        times = flow.times()
        if any(at < 0 for at in times):
            return False
        if not flow.ordered and not self.is_punctual_by_split(stream, lateness):
            lateness = max(times, default=0) - min(times, default=0)
        text = f'{{0}}.event_time("at", name="{{n}}", lateness={lateness})'
        name = self.add("event_time", [stream], text, lateness=lateness)
        if self.chance.random() < 0.4:
            self.window(name)
        return True

    def is_punctual_by_split(self, stream: str, lateness: int) -> bool:
        """Whether no tuple is behind the watermark of the input of a union that it came by, if that is known."""
        flow = self.flows[stream]
        if flow.splits is None or not self.keeps_splits(stream) or not self.has_own_sources(stream):
            return False
        timed = event_time(Node("", "", "", (), {"lateness": lateness}), [flow], {})
        return timed.is_punctual

    def keeps_splits(self, stream: str) -> bool:
        """Whether the engine knows by which input of a union each tuple came."""
        node = next(one for one in self.nodes if stream == one.name or stream in one.outputs)
        if node.kind in ("union", "map", "filter", "flat_map", "split"):
            return all(map(self.keeps_splits, node.inputs))
        return self.flows[stream].ordered

    def has_own_sources(self, stream: str) -> bool:
        """Whether the inputs of each union upstream come from sources of their own."""
        node = next(one for one in self.nodes if stream == one.name or stream in one.outputs)
        of_inputs = [source for one in node.inputs for source in self.sources_of(one)]
        mixed = node.kind == "union" and len(of_inputs) != len(set(of_inputs))
        return not mixed and all(map(self.has_own_sources, node.inputs))

    def sources_of(self, stream: str) -> set[str]:
        node = next(one for one in self.nodes if stream == one.name or stream in one.outputs)
        return {node.name} if node.kind == "source" else {s for one in node.inputs for s in self.sources_of(one)}

    def merge(self, stream: str) -> bool:
        others = [name for name, flow in self.flows.items() if name != stream and flow.schema == BASE]
        others = [name for name in others if self.flows[name].is_punctual and len(self.origins(name)) == 1]
        if not others or not self.flows[stream].is_punctual or len(self.origins(stream)) > 1:
            return False
        outputs = {"_late": "{n}.late()"}
        self.add("merge", [stream, self.chance.choice(others)], '{0}.merge_by_time({1}, name="{n}")', outputs=outputs)
        return True

    def window(self, stream: str) -> bool:
        flow = self.flows[stream]
        if not flow.is_timed or not (flow.ordered or flow.is_punctual):
            return False
        keys, lateness = self.chance.choice([(), self.keys(), self.keys()]), self.chance.choice([0, 0, 5, 12, 30])
        times = flow.times()  # which of two panes or sessions came first isn't remembered
        wanted = self.wanted(flow if times == sorted(times) else replace(flow, ordered=False))
        late = f", lateness={lateness}" if lateness else ""
        known: dict[str, Any] = {"keys": keys, "lateness": lateness, "aggregates": wanted}
        uses: tuple[str, ...] = ()
        if flow.schema == BASE and self.chance.random() < 0.25:
            known["assign"] = self.chance.choice(list(ASSIGNERS))
            frame, kind, uses = f"window(assign={known['assign']}{late})", "windows", (known["assign"],)
        elif self.chance.random() < 0.4:
            gap = self.chance.choice([1, 3, 6])
            frame, kind, known["gap"] = f"session(gap={gap}{late})", "sessions", gap
        else:
            size = self.chance.choice([4, 10])
            slide = self.chance.choice([size, size, 2, 3, size + 3])
            frame, kind = f"window(seconds={size}, slide={slide}{late})", "windows"
            known |= {"size": size, "slide": slide}
        text = f'{keyed(keys)}.{frame}.aggregate(name="{{n}}", {aggregates_text(wanted)})'
        self.add(kind, [stream], text, outputs={"_late": "{n}.late()"}, uses=uses, **known)
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
                call = f'w_ends, schema={{{{{key_types(keys)}, "start": int, "j": int, "last": int, "n": int}}}}'
                uses = ("w_ends",)
            case _:
                known["value"] = Field("value", "int")
                call, uses = "Range, lane=LANE", ("Range",)
        text = f'{keyed(keys)}.{frame}.{how}({call}{", " if call else ""}name="{{n}}")'
        self.add("gathered", [stream], text, outputs={"_late": "{n}.late()"}, uses=uses, **known)
        return True

    def process(self, stream: str) -> bool:
        flow = self.flows[stream]
        if not flow.is_timed or not flow.ordered:
            return False
        keys, cls = self.keys(), self.chance.choice(["Quiet", "Reminded"])
        state, lane = ("Seen", "LANE") if cls == "Quiet" else ("dict", '"python"')
        text = (
            f'{keyed(keys)}.process({cls}, name="{{n}}", state={state}, lane={lane}, '
            f'schema={{{{{key_types(keys)}, "j": int, "at": int, "n": int}}}})'
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
        text = f'{keyed(keys)}.match({PATTERNS[pattern][0]}, name="{{n}}", how="{how}", lane=LANE)'
        self.add(
            "match", [stream], text, keys=keys, pattern=pattern, how=how, outputs={"_late": "{n}.late()"},
            uses=("s_small", "s_large", "s_none"),
        )  # fmt: skip
        return True

    def join(self, stream: str) -> bool:
        left = self.flows[stream]
        others = [name for name, flow in self.flows.items() if flow.schema == BASE and name != stream]
        if self.chance.random() < 0.25 and self.is_timeless(stream):
            others = [name for name in others if self.is_timeless(name)]
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
            text = f'{{0}}.cross_join({keyed(right_keys, "{1}")}, name="{{n}}", how="{how}")'
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
        text = f'{keyed(keys)}.join({keyed(keys, "{1}")}, name="{{n}}", {option}, how="{how}")'
        self.add("join", [stream, right], text, match=kind, how=how, keys=keys, right_keys=keys, **known)
        return True

    def pairs(self, stream: str, right: str) -> bool:
        keys = self.chance.choice([("k", "g"), ("s", "g")])
        how = self.chance.choice(["inner", "left", "right", "full"])
        option = f'how="{how}"'
        text = f'{keyed(keys)}.join({keyed(keys, "{1}")}, name="{{n}}", {option})'
        self.add("join", [stream, right], text, match="pairs", how=how, keys=keys, right_keys=keys)
        return True

    def is_timeless(self, stream: str) -> bool:
        """Whether it has no event time, and nothing upstream has one."""
        node = next(one for one in self.nodes if stream == one.name or stream in one.outputs)
        return node.kind != "event_time" and all(map(self.is_timeless, node.inputs))
