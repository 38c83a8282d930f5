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
    facts: list[FactDraft] = []
    for act in acts:
        if act.speaker != "caller" or not _may_tell(act, refused):
            continue
        found = _category(act)
        if found is None:
            continue
        category, visibility = found
        draft = _draft(act, category, visibility)
        if all(draft.words != other.words for other in facts):
            facts.append(draft)
    return facts


def _may_tell(act: Act, refused: frozenset[str]) -> bool:
    words = act.clause.plain.words
    if act.is_bare or not MIN_FACT_WORDS <= len(words) <= MAX_FACT_WORDS:
        return False
    if act.clause.is_question or act.kind in (
        "question",
        "hypothetical",
        "hearsay",
        "ignore",
    ):
        return False
    if MASK in act.clause.text or _VAGUE.fullmatch(act.matter.text):
        return False
    return not stems(act.matter.text) & refused


def _category(act: Act) -> tuple[Category, Visibility] | None:
    text, said = act.matter.text, act.clause.plain.vocabulary
    if act.kind == "own":
        return ("action_item", "private") if _is_todo(act) else None
    if act.kind in ("ask", "unclear", "fault", "withdraw"):
        return None
    if _UNREAL.search(text):
        return None
    for row in _rows():
        if "*" not in row.cues and row.cues.isdisjoint(said):
            continue
        if any(
            pattern.fullmatch(act.clause.text) or pattern.fullmatch(text)
            for pattern in row.patterns
        ):
            is_private = row.visibility == "private" or bool(_PRIVATE.search(text))
            return row.category, "private" if is_private else "shared"
    if act.answer == "no" and _CORRECTS.fullmatch(text):
        return "correction", "private"
    return None


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
