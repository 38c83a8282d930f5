"""JSON from outside: parsed within limits, and cleaned of what not every store can hold.

Python's parser lets no other thread run until it is done. A long text takes it milliseconds; many
small values take it seconds and gigabytes. So values are counted before they are parsed.
"""

import json
import re
from math import isfinite
from typing import Any

from aftercall.errors import RefusedInput

MAX_VALUES = 300_000  # ten times a call of two hours
MAX_DEPTH = 64
_PIECE_BYTES = 1024 * 1024
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def parse_json(raw: bytes, name: str = "body") -> Any:
    """Takes bytes that are no UTF-8, too: a sender may have cut a text inside an emoji."""
    refuse_many_values(raw, name)
    try:
        return clean_json(json.loads(raw.decode("utf-8", "replace")))
    except (json.JSONDecodeError, RecursionError):
        raise RefusedInput(name, "is not valid JSON") from None
    except ValueError as error:
        raise RefusedInput(name, str(error)) from None


def refuse_many_values(raw: bytes, name: str) -> None:
    """Counts commas and opening brackets: together nearly as many as there are values, or more.

    Piece by piece, so that other threads run in between.
    """
    count = 0
    for start in range(0, len(raw), _PIECE_BYTES):
        piece = raw[start : start + _PIECE_BYTES]
        count += sum(piece.count(mark) for mark in (b",", b"[", b"{"))
        if count > MAX_VALUES:
            raise RefusedInput(name, f"holds more than {MAX_VALUES:,} values")


def clean_json(value: Any, depth: int = 0) -> Any:
    """A copy with clean texts. Raises ValueError if it is nested too deeply or not finite."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, float) and not isfinite(value):
        raise ValueError("holds a number that is not finite")
    if not isinstance(value, dict | list):
        return value
    if depth >= MAX_DEPTH:
        raise ValueError(f"is nested more than {MAX_DEPTH} deep")
    if isinstance(value, list):
        return [clean_json(item, depth + 1) for item in value]
    return {
        clean_json(name, depth): clean_json(item, depth + 1)
        for name, item in value.items()
    }


def clean_text(text: str) -> str:
    """Replaces NUL and lone surrogates."""
    if text.isascii() and "\0" not in text:  # quick, for megabytes of audio in base64
        return text
    return _UNSTORABLE.sub("\ufffd", text)
