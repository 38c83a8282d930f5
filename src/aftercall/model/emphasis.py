"""Markdown emphasis in text that is to be plain."""

import re

_PAIR = re.compile(r"(?<!\w)(\*{1,3}|_{1,3}|`+|~~)(?=\S)([^\n]{1,500}?)(?<=\S)\1(?!\w)")
_DEPTH = 3  # `**_a_**` is two deep


def strip_marks(text: str) -> str:
    """`a **bold** word` is `a bold word`; `snake_case` and `2*3*4` stay."""
    for _ in range(_DEPTH):
        text = _PAIR.sub(r"\2", text)
    return text
