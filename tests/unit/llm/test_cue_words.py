"""A pattern is asked only where one of its own words was said; that must never hide a match."""

import importlib
import pkgutil
import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.llm import rules
from aftercall.llm.rules.cue import Caseless, Cue, Table, words_of
from aftercall.llm.rules.needs import needed_words
from aftercall.llm.rules.syntax import Unreadable, read_pattern
from unit.llm.dialogues import DIALOGUES


def _cues() -> Iterator[Cue]:
    """Every cue that a module of the rules holds by name."""
    for module in pkgutil.iter_modules(rules.__path__):
        for value in vars(
            importlib.import_module(f"{rules.__name__}.{module.name}")
        ).values():
            held = (
                [entry[0] for entry in value.of(EVERYTHING)]
                if isinstance(value, Table)
                else value
            )
            yield from (
                cue
                for cue in (held if isinstance(held, (tuple, list)) else (held,))
                if isinstance(cue, Cue)
            )


LINES = sorted(
    {
        line.partition(":")[2].strip()
        for dialogue in DIALOGUES
        for line in dialogue.script.strip().splitlines()
    }
)
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
def test_the_words_of_a_pattern_are_those_it_cannot_match_without(
    pattern: str, words: set[str] | None
) -> None:
    found = needed_words(pattern)
    assert (None if found is None else set(found)) == words


def test_no_pattern_of_the_rules_loses_a_match_to_its_words() -> None:
    assert len(CUES) > 150
    assert len(LINES) > 300
    for cue in CUES:
        plain = re.compile(cue.pattern, cue.flags)
        for line in LINES:
            assert (cue.search(line) is None) == (plain.search(line) is None), (
                cue.pattern,
                line,
            )
            assert (cue.match(line) is None) == (plain.match(line) is None), (
                cue.pattern,
                line,
            )


@given(
    st.lists(
        st.sampled_from(
            [
                "no",
                "wait",
                "call",
                "calls",
                "me",
                "don't",
                "need",
                "a",
                "table",
                "Friday's",
                "um,",
                "ring",
            ]
        ),
        max_size=8,
    )
)
def test_words_in_any_order_find_what_plain_search_finds(words: list[str]) -> None:
    text = " ".join(words)
    for pattern in (
        r"\bcalls? me\b",
        r"\b(?:no,? wait|wait,? no)\b",
        r"(?:a|the) table",
        r"\bdon['’]?t (?:call|ring)\b",
        r"friday\b",
    ):
        assert (Cue(pattern).search(text) is None) == (
            re.search(pattern, text, re.I) is None
        )
        assert Caseless(pattern).occurs(text) == (
            re.search(pattern, text.lower()) is not None
        )


PIECES = [
    *("call", "ring", "a", "Friday", "no", " ", ", ", "'", "-", "_", "7"),
    *(
        r"\b",
        r"\B",
        r"\w",
        r"\w+",
        r"\s",
        r"\s*",
        r"\d",
        r"\W",
        ".",
        "^",
        "$",
        r"\.",
        r"\x41",
        r"\n",
    ),
    *(
        "[ae]",
        "[^,.]",
        "[a-f]",
        "[ ,]",
        r"[\s,]",
        "[]x]",
        "[-x]",
        "[abcdef]",
        r"[\w']",
        "[é]",
        "é",
    ),
    *(
        "(?=call)",
        "(?=[ ,])",
        r"(?=,|$)",
        "(?!ring)",
        "(?<=a)",
        "(?<!no )",
        "(?i:Me)",
        "(?#aside)",
        "x{2}",
        "y{,2}",
        "a{2,}",
    ),
]


def _wrapped(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """What may come any number of times stands within nothing that may: searching that can take
    for ever.
    """
    joined = st.lists(inner, min_size=1, max_size=4).map("".join)
    either = st.lists(inner, min_size=2, max_size=3).map(
        lambda branches: f"(?:{'|'.join(branches)})"
    )
    counted = st.tuples(inner, st.sampled_from(["?", "{2}", "{0,1}", "??"])).map(
        lambda both: f"(?:{both[0]}){both[1]}"
    )
    return joined | either | counted


_many = st.tuples(
    st.sampled_from(["call", "a ", " ", r"\b", "[ae]", "."]),
    st.sampled_from(["*", "+", "*?", "++"]),
)
_leaves = st.sampled_from(PIECES) | _many.map(lambda both: f"(?:{both[0]}){both[1]}")
patterns = st.recursive(_leaves, _wrapped, max_leaves=6)


def assert_never_hides(pattern: str, text: str) -> None:
    cue, plain = Cue(pattern), re.compile(pattern, re.I)
    for way in ("search", "match", "fullmatch"):
        assert (getattr(cue, way)(text) is None) == (
            getattr(plain, way)(text) is None
        ), way
    if pattern == pattern.lower():
        assert Caseless(pattern).occurs(text) == (
            re.search(pattern, text.lower()) is not None
        )


@given(st.data(), patterns)
def test_no_pattern_whatever_loses_a_text_that_it_matches(
    data: st.DataObject, pattern: str
) -> None:
    text = data.draw(
        st.text("calring Fdyo,.'-_7éAxſıİK\n", max_size=20)
        | st.from_regex(re.compile(pattern, re.I))
    )
    assert_never_hides(pattern, text)


@given(st.data(), st.sampled_from(CUES))
def test_no_pattern_of_the_rules_loses_a_text_made_after_it(
    data: st.DataObject, cue: Cue
) -> None:
    text = data.draw(st.from_regex(re.compile(cue.pattern, cue.flags)))
    assert cue.search(text) is not None


def test_every_pattern_of_the_rules_can_be_read() -> None:
    for cue in CUES:
        assert read_pattern(cue.pattern), cue.pattern


@pytest.mark.parametrize(
    "pattern",
    [
        "(?x) call ",
        "(a)?(?(1)call|ring)",
        r"\N{DIGIT ONE}call",
        r"\061call",
        "call)",
        "(call",
        "[call",
        "*",
    ],
)
def test_of_a_pattern_written_otherwise_no_words_are_claimed(pattern: str) -> None:
    with pytest.raises(Unreadable):
        read_pattern(pattern)
    assert needed_words(pattern) is None


@pytest.mark.parametrize(
    "pattern",
    [
        r"cat\Balog",
        r"\bcat[_-]fish\b",
        "(?P<a>call) (?P=a)",
        r"(call) \1",
        "set",
        "(?P<who>me|you) call",
    ],
)
@pytest.mark.parametrize(
    "text",
    [
        "catalog",
        "cat_fish",
        "cat-fish",
        "call call",
        "ſet",
        "SET",
        "me call",
        "you CALL",
        "ring",
    ],
)
def test_odd_ends_of_words_hide_nothing(pattern: str, text: str) -> None:
    assert_never_hides(pattern, text)


def test_every_letter_that_a_pattern_takes_for_a_plain_one_is_counted_as_that() -> None:
    everything = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x110000)]))
    odd = [
        letter
        for letter in re.findall("[a-z]", everything, re.I)
        if not letter.isascii()
    ]
    assert odd
    for letter in odd:
        assert any(
            re.fullmatch(plain, letter, re.I) and plain in words_of(letter)
            for plain in "abcdefghijklmnopqrstuvwxyz"
        ), letter


def test_a_table_gives_the_patterns_that_may_match_in_their_order() -> None:
    table = Table(
        [
            (Cue(r"\bring\b"), 1),
            (Cue(r"\d"), 2),
            (Cue(r"\bcall\b"), 3),
            (Cue(r"\b(?:call|ring) back\b"), 4),
        ]
    )
    assert [number for _, number in table.of("please ring back")] == [1, 2, 4]
    assert [number for _, number in table.of("nothing here")] == [2]
