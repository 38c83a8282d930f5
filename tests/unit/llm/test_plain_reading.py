"""Silence instead of nonsense: what people see of a call is whole, or is not shown."""

import pytest

from aftercall.english.clauses import stands_alone
from aftercall.english.text import normalise
from aftercall.llm.rules.reader import RulesReader
from aftercall.llm.rules.titles import choose_details, choose_title, names_deed
from aftercall.model.reading import Reading
from unit.llm.calls import call_of


def _read(script: str) -> Reading:
    return RulesReader().read(call_of(script.replace(" | ", "\n")))


@pytest.mark.parametrize(
    "title",
    [
        "Freeze my membership",
        "Remind me to call the bank",
        "Could Mrs Sethi give me a ring",
        "I need a flight home to Christchurch",
        "Somebody to look at the oven",
        "Table for our anniversary",
        "Our boiler is leaking",
        "Have him ring me",
    ],
)
def test_a_title_with_a_deed_or_a_fault_stays_as_it_was_said(title: str) -> None:
    assert names_deed(title)
    assert choose_title(title, "task", None, []) == title


@pytest.mark.parametrize(
    "title",
    [
        "I'm sorry, Mr Beach",
        "The Hollis Trust",
        "Put on there",
        "Email's fine",
        "I need to",
        "Book the room for, what was it, the",
    ],
)
def test_a_title_without_a_deed_gives_way_to_the_kind_of_request(title: str) -> None:
    assert not names_deed(title)
    assert choose_title(title, "task", None, []).startswith("Request")
    assert choose_title(title, "message", "Ann", []).startswith("Message for Ann")


def test_words_that_stand_alone_are_quoted_behind_the_kind() -> None:
    title = choose_title("I had a letter about my blood pressure", "booking", None, [])
    assert title == "Booking: “I had a letter about my blood pressure”"


def test_a_detail_with_a_deed_is_the_title_where_the_title_has_none() -> None:
    details = ["It was in black", "Send me a return label by email"]
    assert choose_title("Make that", "task", None, details) == details[1]


def test_details_are_few_clauses_that_say_something_new() -> None:
    said = [
        "and a table by the window",
        "P, E, double L",
        "my name is Ann Pell",
        "A table by the window",
        *(f"guest {name} eats fish" for name in ("Ada", "Ben", "Cy", "Dot", "Eve")),
        *(f"guest {name} eats meat" for name in ("Fay", "Gus", "Hal", "Ida", "Jo")),
    ]
    details = choose_details("Book a table", said)
    assert details[:2] == ["A table by the window", "Guest Ada eats fish"]
    assert len(details) == 7


@pytest.mark.parametrize(
    ("said", "is_whole"),
    [
        ("I work nights at the hospital", True),
        ("my sister is allergic to nuts", True),
        ("please always use the side door", True),
        ("It's eleven foot four", False),
        ("also the bell", False),
        ("he has got the key", False),
        ("I can't remember and I suppose", False),
        ("I'll pick it up", False),
    ],
)
def test_a_fact_has_a_subject_a_verb_and_a_value(said: str, is_whole: bool) -> None:
    assert stands_alone(normalise(said).text) is is_whole


def test_a_fact_about_somebody_says_who_it_is() -> None:
    facts = _read(
        "A: Anything else? | C: My son Bjorn is six. He is allergic to nuts. | A: Noted."
    ).facts
    told = [fact.text for fact in facts]
    assert "He is allergic to nuts" not in told
    assert any("Bjorn" in text and "allergic to nuts" in text for text in told)


def test_a_promise_that_names_nothing_is_not_told() -> None:
    script = "A: Hi. | C: On paper. | A: {} | C: Thanks."
    assert not _read(script.format("Got it. I'll give her that this evening.")).promises
    (kept,) = _read(script.format("I'll send the quote to Moira.")).promises
    assert kept.title == "Send the quote to Moira"


def test_a_summary_holds_no_fragments() -> None:
    summary = _read(
        "A: Hi. | C: Ten pence. Piano hinges. I've got a jar full of coins. | A: I see."
    ).summary
    assert "jar full of coins" in summary
    assert "Ten pence" not in summary
    assert "Piano hinges" not in summary


def test_a_code_is_labelled_by_what_was_asked_for() -> None:
    (fact,) = _read(
        "A: I need your staff PIN, please. | C: Let me look. It's seven one four six. | A: Ok."
    ).facts
    assert fact.visibility == "secret"
    assert fact.text.lower().startswith("pin") or "PIN" in fact.text
