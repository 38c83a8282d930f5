"""Telling what a template left for somebody to fill in from what somebody wrote."""

import re
from collections.abc import Set as AbstractSet

NOT_SET = "not set yet"
USER = frozenset(
    {
        NOT_SET,
        "optional",
        "what do they care about? what projects are they working on? what annoys them? what makes them laugh? build this over time.",
    }
)
IDENTITY = frozenset(
    {
        NOT_SET,
        "pick something you like",
        "ai? robot? familiar? ghost in the machine? something weirder?",
        "how do you come across? sharp? warm? chaotic? calm?",
        "your signature - pick one that feels right",
        "workspace-relative path, http(s) url, or data uri",
    }
)
_DASHES = re.compile("[–—]")


def is_placeholder(value: str, known: AbstractSet[str]) -> bool:
    """Whether `value` says nothing: blank, or one of `known` in whatever dress."""
    bare = _fold(value)
    return not bare or bare in known


def _fold(value: str) -> str:
    bare = value.strip().strip("*_`").strip()
    if bare.startswith("(") and bare.endswith(")"):
        bare = bare[1:-1]
    return " ".join(_DASHES.sub("-", bare).split()).lower()
