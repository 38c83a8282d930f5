"""The plain form of a sentence is the same whether its patterns are asked or passed over."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aftercall.memory import words as wording
from aftercall.memory.words import plain

PAIRS = json.loads(
    (Path(__file__).parents[3] / "bench" / "facts" / "tuned.json").read_text()
)
SENTENCES = sorted({pair[side] for pair in PAIRS for side in ("new", "known")})
WORDS = sorted({word for sentence in SENTENCES for word in sentence.split()})
HUMS = [
    "um",
    "ummm",
    "uh,",
    "erm",
    "hmm",
    "ahh",
    "you know,",
    "by the way",
    "At the moment",
    "oh",
    "oh 5",
    "well_",
    "still water",
    "well done",
    "two",
]


class _Always(frozenset[str]):
    def isdisjoint(self, _other: object) -> bool:
        return False


def plain_the_long_way(text: str, patch: pytest.MonkeyPatch) -> str:
    with patch.context() as every:
        for name in ("SPEAKERS", "COUNTED"):
            every.setattr(wording, name, _Always())
        return plain(text)


def test_no_labelled_sentence_is_passed_over_wrongly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert len(SENTENCES) > 100
    assert [plain(text) for text in SENTENCES] == [
        plain_the_long_way(text, monkeypatch) for text in SENTENCES
    ]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(said=st.lists(st.sampled_from(WORDS + HUMS), min_size=1, max_size=12))
def test_no_words_put_together_are_passed_over_wrongly(
    monkeypatch: pytest.MonkeyPatch, said: list[str]
) -> None:
    text = " ".join(said)
    assert plain(text) == plain_the_long_way(text, monkeypatch)
