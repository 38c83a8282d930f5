"""Facts that a caller plainly tells, from one table of patterns."""

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from aftercall.english.stems import stems
from aftercall.english.text import MASK
from aftercall.english.words import compile_pattern, load_patterns
from aftercall.llm.rules.acts import Act
from aftercall.model.reading import Category, FactDraft, Sentiment, Visibility

_PATTERNS = load_patterns("aftercall.llm.rules", "facts")

MAX_SUMMARY_CHARS = 100
_TELLING = ("tell", "own", "dont", "correct")
MIN_FACT_WORDS = 3
MAX_FACT_WORDS = 30
_PRIVATE = _PATTERNS["private"]
_VAGUE = _PATTERNS["vague"]
_UNREAL = _PATTERNS["unreal"]
_DONE = _PATTERNS["done"]
_MINE = _PATTERNS["mine"]
_CORRECTS = _PATTERNS["corrects"]


@dataclass(frozen=True, slots=True)
class _Row:
    category: Category
    visibility: Visibility
    cues: frozenset[str]
    patterns: tuple[re.Pattern[str], ...]


@cache
def _rows() -> tuple[_Row, ...]:
    text = files(__package__).joinpath("facts.toml").read_text("utf-8")
    return tuple(
        _Row(
            row["category"],
            row["visibility"],
            frozenset(row["cues"].split()),
            tuple(compile_pattern(pattern) for pattern in row["patterns"]),
        )
        for row in tomllib.loads(text)["fact"]
    )


def find_facts(acts: Iterable[Act], refused: frozenset[str]) -> list[FactDraft]:
    """From the caller's clauses; nothing that is asked, supposed, hearsay or refused."""
    telling = (act for act in acts if _may_tell(act, refused))
    drafts = (_draft(act, *found) for act in telling if (found := _category(act)))
    return list({draft.words: draft for draft in drafts}.values())


def _may_tell(act: Act, refused: frozenset[str]) -> bool:
    if act.speaker != "caller" or act.is_bare or act.clause.is_question:
        return False
    if not MIN_FACT_WORDS <= len(act.clause.plain.words) <= MAX_FACT_WORDS:
        return False
    is_empty = MASK in act.clause.text or bool(_VAGUE.fullmatch(act.matter.text))
    return (
        act.kind in _TELLING and not is_empty and not stems(act.matter.text) & refused
    )


def _category(act: Act) -> tuple[Category, Visibility] | None:
    text = act.matter.text
    if act.kind == "own":
        return ("action_item", "private") if _is_todo(act) else None
    if _UNREAL.search(text):
        return None
    row = next((row for row in _rows() if _fits(row, act)), None)
    if row:
        is_private = row.visibility == "private" or bool(_PRIVATE.search(text))
        return row.category, "private" if is_private else "shared"
    is_correction = act.answer == "no" and _CORRECTS.fullmatch(text)
    return ("correction", "private") if is_correction else None


def _fits(row: _Row, act: Act) -> bool:
    if row.cues.isdisjoint(act.clause.plain.vocabulary) and "*" not in row.cues:
        return False
    texts = (act.clause.text, act.matter.text)
    return any(pattern.fullmatch(text) for pattern in row.patterns for text in texts)


def _is_todo(act: Act) -> bool:
    return bool(
        _DONE.fullmatch(act.clause.text) or _DONE.fullmatch(f"i will {act.matter.text}")
    )


def _draft(act: Act, category: Category, visibility: Visibility) -> FactDraft:
    text = act.clause.plain.said.strip(" ,")
    text = text[:1].upper() + text[1:]
    mood: Sentiment = "negative" if category == "emotional" else "neutral"
    return FactDraft(
        category=category,
        text=text,
        summary=text[:MAX_SUMMARY_CHARS],
        visibility=visibility,
        confidence=0.8,
        sentiment=mood,
        turns=(act.seq,),
        words=act.clause.plain.cited,
    )
