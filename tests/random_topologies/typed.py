"""Programs about types: keys and values of one type each through the native operators."""

from __future__ import annotations

from typing import Any

from tests.random_topologies.base import BaseMaker, aggregates_text, keyed
from tests.random_topologies.values import KINDS, Field, Schema


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
        timed = [
            self.add("event_time", [one], '{0}.event_time("at", name="{n}", lateness=9)', lateness=9)
            for one in (left, right)
        ]
        self.outputs(timed[0], timed[1], value)

    def rows(self, schema: Schema) -> list[Any]:
        chance, at, rows = self.chance, 0, []
        key, value = schema[:2]
        for j in range(chance.randrange(25)):
            at += chance.choice([0, 1, 3])
            made = [None if f.nullable and chance.random() < 0.3 else KINDS[f.kind].make(chance) for f in (key, value)]
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
        told, late = aggregates_text(wanted), {"_late": "{n}.late()"}
        by_key, other = keyed(("k",)), keyed(("k",), "{1}")
        emit = self.chance.choice(["final", "update"])
        self.add("aggregate", [left], f'{by_key}.aggregate(name="{{n}}", emit="{emit}", {told})', emit=emit, **known)
        self.add("deduplicate", [left], f'{by_key}.deduplicate(name="{{n}}")', keys=("k",))
        emit = self.chance.choice(["final", "update"])
        text = f'{by_key}.reduce(r_newer, name="{{n}}", emit="{emit}")'
        self.add("reduce", [left], text, fn="r_newer", keys=("k",), emit=emit, uses=("r_newer",))
        frame = f'{by_key}.window(seconds=4).aggregate(name="{{n}}", {told})'
        self.add("windows", [left], frame, size=4, slide=4, lateness=0, outputs=late, **known)
        self.add(
            "sessions", [left], f'{by_key}.session(gap=2).aggregate(name="{{n}}", {told})', gap=2, outputs=late, **known
        )
        self.add(
            "gathered", [left], f'{by_key}.window(seconds=5).collect(name="{{n}}")',
            keys=("k",), how="collect", size=5, slide=5, outputs=late,
        )  # fmt: skip
        for kind, option, more in (
            ("latest", 'keep="latest"', {}), ("interval", "within=(2, 1)", {"within": (2, 1)}),
            ("window", "window=4", {"size": 4}),
        ):  # fmt: skip
            how = self.chance.choice(["inner", "left"] if kind == "latest" else ["inner", "left", "right", "full"])
            text = f'{by_key}.join({other}, name="{{n}}", {option}, how="{how}")'
            self.add("join", [left, right], text, match=kind, how=how, keys=("k",), right_keys=("k",), **more)
        self.cross(left, right)

    def cross(self, left: str, right: str) -> None:
        text = '{0}.cross_join({1}.key_by("k"), name="{n}", how="left")'
        self.add("cross", [left, right], text, how="left", right_keys=("k",))
