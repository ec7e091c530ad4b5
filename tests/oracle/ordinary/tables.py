"""Helpers, rules and tables that stand outside the function."""

from __future__ import annotations

CONSTANTS = {
    "clamp": "def clamp(v, low=0, high=100):\n    return max(low, min(v, high))\n",
    "first_word": (
        "def first_word(text, default=''):\n    for word in text.split():\n        return word\n    return default\n"
    ),
    "parsed": ("def parsed(text):\n    try:\n        return int(text)\n    except ValueError:\n        return None\n"),
    "ratio": "def ratio(a, b):\n    return a / b if b else 0.0\n",
    "pair_of": "def pair_of(text):\n    head, _, tail = text.partition('=')\n    return head.strip(), tail.strip()\n",
    "grade": (
        "def grade(v):\n    if v < 0:\n        return 'none'\n    if v < 10:\n        return 'low'\n"
        "    elif v < 100:\n        return 'mid'\n    return 'high'\n"
    ),
    "RULES": 'RULES = [("GET", 1), ("the", 2), ("ä", -3)]',
    "LIMITS": 'LIMITS = {"GET": (0, 10), "POST": (5, 7)}',
    "TAGS": 'TAGS = {"GET": ["read", "cheap"], "a": []}',
    "WEEK": 'WEEK = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")',
}
