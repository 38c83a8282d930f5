"""Values from outside on their way into a page: plain text that cannot change the page around
it.
"""

import re
import unicodedata
from collections.abc import Set as AbstractSet

from aftercall.errors import RefusedInput
from aftercall.model.reading import strip_markdown

NOT_SET = "not set yet"
USER_PLACEHOLDERS = frozenset(
    {
        NOT_SET,
        "optional",
        (
            "what do they care about? what projects are they working on? what annoys them? what "
            "makes them laugh? build this over time."
        ),
    }
)
IDENTITY_PLACEHOLDERS = frozenset(
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


# Marks that turn the direction of text around can make a line read as what it is not.
_TURNING = frozenset("\ufeff\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_STRUCTURE = re.compile(r"\A(?:#+|>+|`{3,}|~{3,}|[-*+](?=\s)|\s+)+")
_DECORATION = re.compile(r"[-=*_#`~+>\s]*")
_PAIRS = ("***", "**", "*", "___", "__", "_", "`")


def one_line(text: str) -> str:
    """`text` on one line, white space collapsed, without control characters and unable to open
    a comment.
    """
    words = ("".join(mark for mark in word if _is_writable(mark)) for word in text.split())
    return " ".join(word for word in words if word).replace("<!--", "<! --")


def plain_lines(text: str) -> list[str]:
    """The lines that say something, as plain text without emphasis: none begins a heading,
    list, quotation, code block or rule.
    """
    lines = (_STRUCTURE.sub("", strip_markdown(one_line(line))) for line in text.splitlines())
    return [line for line in lines if not _DECORATION.fullmatch(line)]


def bare_value(text: str) -> str:
    """One line without emphasis or a hard break at its ends, so that it reads back as it was
    written.
    """
    return one_line(text).lstrip("*_` ").rstrip("*_`\\ ")


def strip_emphasis(value: str) -> str:
    """`*Bill*` is Bill; what only happens to begin and end with a mark, like `**a** and **b**`,
    stays.
    """
    for mark in _PAIRS:
        inner = value[len(mark) : -len(mark)]
        if inner.strip() and value == f"{mark}{inner}{mark}" and mark not in inner:
            return strip_emphasis(inner.strip())
    return value


def to_text(field: str, value: object, joint: str = ", ") -> str | None:
    """A value of a model's answer as text: a list is joined, blank is nothing, other types are
    refused.
    """
    if value is None:
        return None
    parts = value if isinstance(value, list | tuple) else (value,)
    texts = [part.strip() for part in parts if isinstance(part, str)]
    if len(texts) < len(parts):
        raise RefusedInput(field, "is neither text nor a list of texts")
    return joint.join(text for text in texts if text) or None


def replace_undecodable(text: str) -> str:
    """Text from a file on its way to a model, a database or a page: bytes that were no UTF-8
    are marked as such.
    """
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _is_writable(mark: str) -> bool:
    return mark not in _TURNING and unicodedata.category(mark) not in ("Cc", "Cs")
