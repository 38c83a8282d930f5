"""A pattern is asked only where one of its own words was said; that must never hide a match."""

import importlib
import pkgutil
import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.llm import rules
from aftercall.llm.rules.cue import Caseless, Cue, Table
from aftercall.llm.rules.needs import needed_words
from unit.llm.dialogues import DIALOGUES


def _cues() -> Iterator[Cue]:
    """Every cue that a module of the rules holds by name."""
    for module in pkgutil.iter_modules(rules.__path__):
        for value in vars(importlib.import_module(f"{rules.__name__}.{module.name}")).values():
            held = [entry[0] for entry in value.of(EVERYTHING)] if isinstance(value, Table) else value
            yield from (cue for cue in (held if isinstance(held, (tuple, list)) else (held,)) if isinstance(cue, Cue))


LINES = sorted({line.partition(":")[2].strip() for dialogue in DIALOGUES for line in dialogue.script.strip().splitlines()})
EVERYTHING = " ".join(LINES)
CUES = list({cue.pattern: cue for cue in _cues()}.values())


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        (r"\bcalls? me\b", {"call", "calls"}),
        (r"\b(?:can|could) you please\b", {"please"}),
        (r"\b(?:don['’]?t|do not) need\b", {"need"}),
        (r"\ballerg\w+", {"alle*"}),
        (r"call|ring", None),
        (r"\w+", None),
        (r"\b(?:maybe )?\d+\b", None),
        (r"^(?:oh|no)[, ]+forget (?:it|that)", {"forget"}),
    ],
)
def test_the_words_of_a_pattern_are_those_it_cannot_match_without(pattern: str, words: set[str] | None) -> None:
    found = needed_words(pattern)
    assert (None if found is None else set(found)) == words


def test_no_pattern_of_the_rules_loses_a_match_to_its_words() -> None:
    assert len(CUES) > 150
    assert len(LINES) > 300
    for cue in CUES:
        plain = re.compile(cue.pattern, cue.flags)
        for line in LINES:
            assert (cue.search(line) is None) == (plain.search(line) is None), (cue.pattern, line)
            assert (cue.match(line) is None) == (plain.match(line) is None), (cue.pattern, line)


@given(
    st.lists(st.sampled_from(["no", "wait", "call", "calls", "me", "don't", "need", "a", "table", "Friday's", "um,", "ring"]), max_size=8)
)
def test_words_in_any_order_find_what_plain_search_finds(words: list[str]) -> None:
    text = " ".join(words)
    for pattern in (r"\bcalls? me\b", r"\b(?:no,? wait|wait,? no)\b", r"(?:a|the) table", r"\bdon['’]?t (?:call|ring)\b", r"friday\b"):
        assert (Cue(pattern).search(text) is None) == (re.search(pattern, text, re.I) is None)
        assert Caseless(pattern).occurs(text) == (re.search(pattern, text.lower()) is not None)


def test_a_table_gives_the_patterns_that_may_match_in_their_order() -> None:
    table = Table([(Cue(r"\bring\b"), 1), (Cue(r"\d"), 2), (Cue(r"\bcall\b"), 3), (Cue(r"\b(?:call|ring) back\b"), 4)])
    assert [number for _, number in table.of("please ring back")] == [1, 2, 4]
    assert [number for _, number in table.of("nothing here")] == [2]
