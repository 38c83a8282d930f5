"""Recorded words for when no engine can speak: 8 kHz μ-law, made once with espeak-ng and shipped with the package."""

from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Clip:
    text: str
    audio: bytes = field(repr=False)


_TEXTS = {
    "apology": "I'm sorry, something is wrong on my side. What you told me is written down. Please call again later. Goodbye.",
    "one_moment": "One moment, please.",
}


@cache
def clip(name: str) -> Clip:
    return Clip(_TEXTS[name], (files("aftercall.bridge") / "clips" / f"{name}.ulaw").read_bytes())
