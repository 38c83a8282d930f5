"""Search measured on a user's own questions."""

from pathlib import Path

import pytest

from aftercall.cli.search import (
    EvalQuestion,
    ExpectedPassage,
    evaluate_search,
    read_questions,
)
from aftercall.errors import RefusedInput
from aftercall.model.passages import Passage, SearchHit
from fakes import START

DENTIST = Passage(
    "turn", "main", "+15550100", "C1", "The dentist is on Monday", START, seq=3
)
MOVED = Passage("fact", "main", "+15550100", None, "Lives in Porto", START, ref="F1")


def ask(*expects: ExpectedPassage) -> EvalQuestion:
    return EvalQuestion(question="?", expects=expects)


def hits(*passages: Passage) -> list[SearchHit]:
    return [SearchHit(passage, 1.0) for passage in passages]


def test_recall_is_the_share_found_and_rank_counts_from_the_first() -> None:
    wanted = ask(ExpectedPassage(fact="F1"), ExpectedPassage(fact="F2"))
    report = evaluate_search([wanted, wanted], lambda _: hits(DENTIST, MOVED))
    counted = report.to_json()
    assert (counted["questions"], counted["recall"], counted["mrr"]) == (2, 0.5, 0.5)
    assert counted["missed_lines"] == [1, 2]


def test_a_passage_is_expected_by_fact_by_turn_by_call_or_by_words() -> None:
    assert ExpectedPassage(fact="F1").matches(MOVED)
    assert ExpectedPassage(call="C1", turn=3).matches(DENTIST)
    assert ExpectedPassage(call="C1").matches(DENTIST)
    assert ExpectedPassage(text="the dentists").matches(DENTIST)
    assert not ExpectedPassage(call="C1", turn=4).matches(DENTIST)
    assert not ExpectedPassage(text="dentist on").matches(DENTIST)


@pytest.mark.parametrize(
    "line",
    [
        "{",
        '{"question": "secretword", "expects": []}',
        '{"question": "secretword", "expects": [{}]}',
        '{"question": "secretword", "expects": [{"turn": 1}]}',
        '{"question": "secretword", "expects": [{"text": "!"}]}',
        '{"question": "secretword", "expects": [{"fact": "F1"}], "calller": "x"}',
    ],
)
def test_a_line_off_form_is_named_without_its_words(tmp_path: Path, line: str) -> None:
    path = tmp_path / "questions.jsonl"
    good = '{"question": "x", "expects": [{"fact": "F1"}]}'
    path.write_text(f"{good}\n{line}\n")
    with pytest.raises(RefusedInput, match="line 2") as refused:
        read_questions(path)
    assert "secretword" not in str(refused.value)


def test_a_file_without_questions_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none.jsonl", tmp_path):
        with pytest.raises(RefusedInput):
            read_questions(path)
    (tmp_path / "empty.jsonl").write_text("")
    with pytest.raises(RefusedInput, match="no questions"):
        read_questions(tmp_path / "empty.jsonl")
