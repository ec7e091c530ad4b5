"""The functions that rewritten user functions call, under their names there."""

from __future__ import annotations

from typing import Any

from rayelastic.compile.lowering.base.raised import caught, is_a, raise_again
from rayelastic.compile.lowering.base.refusal import holds
from rayelastic.compile.lowering.containers.lists import (
    arranged,
    backwards,
    in_order,
    listed,
    no_items,
    remove,
    unordered,
    words,
)
from rayelastic.compile.lowering.text.format import formatted
from rayelastic.compile.lowering.times import timers

PROVIDED: dict[str, Any] = {
    "rel_formatted": formatted,
    "rel_listed": listed,
    "rel_words": words,
    "rel_backwards": backwards,
    "rel_arranged": arranged,
    "rel_in_order": in_order,
    "rel_no_items": no_items,
    "rel_remove": remove,
    "rel_unordered": unordered,
    "rel_caught": caught,
    "rel_is_a": is_a,
    "rel_holds": holds,
    "rel_raise_again": raise_again,
    "rel_timer_at": timers.timer_at,
    "rel_timer_after": timers.timer_after,
    "rel_timer_cancel": timers.timer_cancel,
    "rel_timer_forget": timers.timer_forget,
    "rel_timer_now": timers.timer_now,
    "rel_timer_ended": timers.timer_ended,
}
