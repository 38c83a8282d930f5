"""A reading against its labels: what counts, what does not, and how sure the figures are."""

import math
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from aftercall.errors import ModelUnavailable, RefusedInput
from aftercall.evaluation import (
    ReaderResult,
    Score,
    compare_readers,
    evaluate_reader,
    parse_results,
)
from aftercall.labels import LabelledCall, parse_label
from aftercall.llm.rules.reader import RulesReader
from aftercall.model.reading import FactDraft, Profile, Reading, ReadingTrace, Request
from fakes import FakeReader, make_call

PAPER = Request(
    kind="task",
    title="Order paper",
    due=date(2026, 2, 17),
    turns=(2,),
    words="order paper",
)
GOLD: dict[str, Any] = {
    "profile": {"name": "Bill", "call_name": None},
    "requests": [
        {"kind": "task", "words": ["paper"], "due": "2026-02-17", "turns": [2]}
    ],
    "withdrawn": [{"words": ["pens"], "turns": [4]}],
    "promises": [],
    "facts": [{"words": ["pin"], "visibility": "secret", "turns": [6]}],
    "not": ["Marcus"],
}
REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "labels.md"


def reading(**fields: Any) -> Reading:
    return Reading(language="en", summary="", **fields)


def shares(gold: dict[str, Any], found: Reading) -> dict[str, float]:
    score = Score()
    score.add(gold, found)
    return {
        figure.name: figure.share
        for figure in score.figures
        if math.isfinite(figure.share)
    }


def fact(text: str, visibility: str, turn: int) -> FactDraft:
    return FactDraft.model_validate(
        {
            "category": "technical",
            "text": text,
            "summary": text,
            "visibility": visibility,
            "confidence": 0.9,
            "turns": (turn,),
            "words": text,
        }
    )


def test_a_reading_that_finds_all_and_no_more_is_right_throughout() -> None:
    found = reading(
        profile=Profile(name="bill"),
        requests=(PAPER,),
        facts=(fact("My PIN is 1", "secret", 6),),
    )
    assert set(shares(GOLD, found).values()) == {1.0}


def test_the_example_of_the_reference_is_a_labelled_call_and_read_rightly() -> None:
    example = REFERENCE.read_text().split("```json\n")[1].split("```")[0]
    labelled = parse_label("example", example)
    found = RulesReader().read(labelled.call)
    assert set(shares(labelled.gold, found).values()) == {1.0}


def test_every_kind_of_mistake_lowers_its_own_figure() -> None:
    pens = PAPER.model_copy(update={"title": "Order pens for Marcus", "words": "pens"})
    late = PAPER.model_copy(update={"due": date(2026, 2, 18), "kind": "note"})
    found = reading(
        profile=Profile(name="Will"),
        requests=(late, pens),
        facts=(fact("My PIN is 1", "shared", 6), fact("It rains", "shared", 9)),
    )
    assert shares(GOLD, found) == {
        "requests, precision": 0.5,
        "requests, recall": 1.0,
        "kind right": 0.0,
        "due day right": 0.0,
        "called off and left out": 0.0,
        "facts, precision": 0.5,
        "facts, recall": 1.0,
        "secrets marked secret": 0.0,
        "profile, precision": 0.0,
        "profile, recall": 0.0,
        "forbidden strings left out": 0.0,
        "forbidden strings told to nobody": 0.0,
    }


def test_a_forbidden_string_in_a_secret_fact_only_is_told_to_nobody() -> None:
    gold = {"not": ["four two"], "facts": []}
    figures = shares(gold, reading(facts=(fact("The gate is four two", "secret", 6),)))
    assert figures["forbidden strings left out"] == 1.0
    assert figures["forbidden strings told to nobody"] == 1.0
    figures = shares(gold, reading(facts=(fact("The gate is four two", "shared", 6),)))
    assert figures["forbidden strings left out"] == 0.0
    assert figures["forbidden strings told to nobody"] == 0.0


def test_what_is_not_labelled_is_not_counted() -> None:
    gold = {"requests": [{"words": ["paper"], "turns": []}]}
    found = reading(
        profile=Profile(name="Bill"),
        requests=(PAPER,),
        facts=(fact("It rains", "shared", 9),),
    )
    assert shares(gold, found) == {"requests, precision": 1.0, "requests, recall": 1.0}


def test_an_interval_is_wide_on_few_calls_and_narrow_on_many() -> None:
    few, many = Score(), Score()
    few.add(GOLD, reading(requests=(PAPER,)))
    for _ in range(100):
        many.add(GOLD, reading(requests=(PAPER,)))
    (few_low, _), (many_low, many_high) = (
        score.figures[1].interval for score in (few, many)
    )
    assert few_low < 0.3
    assert (many_low > 0.95, many_high) == (True, 1.0)


def labelled(count: int) -> list[LabelledCall]:
    return [
        LabelledCall(f"{number}", make_call(sid=f"{number}"), GOLD)
        for number in range(count)
    ]


def test_two_readers_are_compared_call_by_call_over_a_file() -> None:
    good = evaluate_reader(FakeReader(reading(requests=(PAPER,))), labelled(40))
    bad = evaluate_reader(FakeReader(reading()), labelled(40))
    (a, b) = parse_results("x", {"readers": [bad.to_json(), good.to_json()]})
    recall = compare_readers(a, b)[1]
    assert (recall.name, recall.pairs, recall.a, recall.b) == (
        "requests, recall",
        40,
        0.0,
        1.0,
    )
    assert recall.is_sure
    assert recall.low > 0.8
    same = compare_readers(a, a)[1]
    assert not same.is_sure


def test_a_file_that_holds_no_result_is_refused() -> None:
    wrong: list[Any] = [[], {}, {"readers": [{}]}, {"readers": 3}]
    for data in wrong:
        with pytest.raises(RefusedInput, match="eval reading --json"):
            parse_results("x", data)


class AwayReader(FakeReader):
    """A model that is away."""

    def find_requests(self, call: Any) -> Any:
        raise ModelUnavailable("the model is away")


def test_a_call_that_cannot_be_read_is_named_and_in_no_figure() -> None:
    result = evaluate_reader(AwayReader(reading()), labelled(2))
    assert (result.calls, len(result.failed)) == (0, 2)
    assert all(not figure.items for figure in result.figures)


def test_a_cost_is_known_only_if_every_answer_names_its_own() -> None:
    result = ReaderResult("x")
    result.add_trace(ReadingTrace("x", input_tokens=10, cost=0.5))
    result.add_trace(ReadingTrace("rules"))
    known = result.cost
    result.add_trace(ReadingTrace("x", input_tokens=10))
    result.add_trace(ReadingTrace("x", input_tokens=10, cost=0.5))
    assert (known, result.cost, result.input_tokens) == (0.5, None, 30)
