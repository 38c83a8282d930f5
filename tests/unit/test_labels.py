"""Labelled calls in each form they come in, and what is refused of them."""

import json
from pathlib import Path
from typing import Any

import pytest

from aftercall.errors import AftercallError, RefusedInput
from aftercall.labels import choose_words, parse_label, read_labels
from aftercall.model.calls import encode_call
from fakes import make_call

SAID = [("agent", "Hello"), ("caller", "hi my name is mary brown i need new checks")]


def label(gold: Any) -> str:
    return json.dumps({"call": json.loads(encode_call(make_call(SAID))), "gold": gold})


def test_files_lines_and_folders_are_read_in_order(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(label({"requests": []}))
    (tmp_path / "b.jsonl").write_text(f"{label({})}\n\n{label({})}\n")
    (tmp_path / "NOTES.md").write_text("not a label")
    names = [item.name for item in read_labels([str(tmp_path)])]
    assert names == [
        str(tmp_path / "a.json"),
        f"{tmp_path / 'b.jsonl'}:1",
        f"{tmp_path / 'b.jsonl'}:3",
    ]


def test_a_path_without_labels_is_refused_not_read_well(tmp_path: Path) -> None:
    for path in (str(tmp_path), str(tmp_path / "none.json")):
        with pytest.raises(AftercallError):
            list(read_labels([path]))


@pytest.mark.parametrize(
    ("task", "wanted"), [("order checks", ["check"]), ("check balance", None)]
)
def test_a_bank_call_is_a_task_and_a_name_that_was_said(
    task: str, wanted: list[str] | None
) -> None:
    gold = {"name": "Mary Brown", "agent": "Jennifer", "task": {"task_type": task}}
    found = parse_label("x", label(gold)).gold
    assert [item["words"] for item in found["requests"]] == ([wanted] if wanted else [])
    assert found["profile"] == {"name": "Mary Brown"}
    other = parse_label("x", label(gold | {"name": "Elizabeth Davis"})).gold
    assert other["profile"] == {}


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        ("{", "x"),
        ("[]", "x"),
        ('{"call": {}, "gold": {}}', "x: "),
        (label({"requests": [{"words": [], "turns": [2]}]}), "gold.requests"),
        (label({"facts": [{"words": ["x"], "turns": [2]}]}), "gold.facts"),
        (label({"requests": [{"words": [""], "turns": [2]}]}), "gold.requests"),
        (label({"requestz": []}), "gold.requestz"),
        (label({"name": 3, "task": "order checks"}), "gold"),
        (label([]), "gold"),
    ],
)
def test_a_label_that_does_not_fit_is_refused_with_its_field(
    raw: str, field: str
) -> None:
    with pytest.raises(RefusedInput, match="x") as refused:
        parse_label("x", raw)
    assert field in refused.value.field


def test_words_are_those_that_were_said() -> None:
    said = "could you order some printing paper please"
    assert choose_words("Order printer paper", said) == ["print", "order", "paper"]
    assert choose_words("Fix the thumbnails", "the pictures are broken") == [
        "thumbnails"
    ]
