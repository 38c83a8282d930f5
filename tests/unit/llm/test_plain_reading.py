"""Silence instead of nonsense: what people see of a call is whole, or is not shown."""

import pytest

from aftercall.english.clauses import stands_alone
from aftercall.english.text import normalise
from aftercall.llm.rules.reader import RulesReader
from aftercall.llm.rules.titles import (
    plain_title,
    quote_whole,
    summarise,
    take_wish,
    title_plainly,
)
from aftercall.model.reading import Reading, Request, RequestKind
from fakes import make_call
from unit.llm.calls import call_of


def _read(script: str) -> Reading:
    return RulesReader().read(call_of(script.replace(" | ", "\n")))


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


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Never call before nine.", "Never call before nine"),
        ("I get up at six every morning.", "I get up at six every morning"),
        (
            "It's Dana Fox again, and I prefer to be called in the evening.",
            "I prefer to be called in the evening",
        ),
    ],
)
def test_plain_words_are_a_fact_that_begins_where_it_is_told(
    said: str, told: str
) -> None:
    call = make_call([("agent", "Hello."), ("caller", said), ("agent", "I see.")])
    assert told in [fact.text for fact in RulesReader().find_facts(call).value]


def test_a_fact_about_somebody_says_who_it_is() -> None:
    facts = _read(
        "A: Anything else? | C: My son Bjorn is six. He is allergic to nuts. | A: Noted."
    ).facts
    told = [fact.text for fact in facts]
    assert "He is allergic to nuts" not in told
    assert any("Bjorn" in text and "allergic to nuts" in text for text in told)


def test_a_code_is_labelled_by_what_was_asked_for() -> None:
    (fact,) = _read(
        "A: I need your staff PIN, please. | C: Let me look. It's seven one four six. | A: Ok."
    ).facts
    assert fact.visibility == "secret"
    assert fact.text.lower().startswith("pin") or "PIN" in fact.text


def _request(title: str, kind: RequestKind = "task", person: str = "") -> Request:
    request = Request(
        kind=kind, title=title, person=person or None, turns=(2,), words=title
    )
    return title_plainly(request, title)


@pytest.mark.parametrize(
    ("title", "kind", "told"),
    [
        ("Book a table for four", "booking", "Book a table for four"),
        ("I need a copy of the lease", "task", "A copy of the lease"),
        ("The boiler is leaking again", "issue", "The boiler is leaking again"),
        ("New quote", "task", "New quote"),
        ("The Hollis Trust", "booking", "Booking: “The Hollis Trust”"),
        (
            "Get a table at the, not the Thief",
            "booking",
            "Booking: “Get a table at the, not the Thief”",
        ),
        ("Stop it", "other", "Request: “Stop it”"),
        ("Tell him", "message", "Message: “Tell him”"),
        ("Her to ring me about it", "message", "Call back: “Her to ring me about it”"),
        (
            "It's the boiler, not the one at home",
            "issue",
            "Fault report: “It's the boiler, not the one at home”",
        ),
    ],
)
def test_a_title_names_a_deed_or_is_its_kind_and_the_words(
    title: str, kind: RequestKind, told: str
) -> None:
    request = _request(title, kind)
    assert request.title == told
    assert title in f"{request.title} {request.words} {request.details}"


def test_a_message_with_a_plain_title_says_for_whom_it_is() -> None:
    request = _request("And one more: the oak", "message", "Lee")
    assert request.title == "Message for Lee: “And one more: the oak”"


def test_a_summary_tells_a_plainly_titled_request_in_the_callers_words() -> None:
    asked = _request("The Hollis Trust", "booking")
    reading = Reading(language="en", summary="", requests=(asked,))
    assert summarise(reading) == "The caller asked for: Booking: “The Hollis Trust”."


def test_a_detail_that_is_taken_back_at_once_is_none() -> None:
    (request,) = _read(
        "A: Hello. | C: Please book a table for Friday. A window seat. No, sorry, by the door."
        " | A: A table on Friday by the door, booked."
    ).requests
    told = f"{request.title} {request.details}"
    assert "window" not in told
    assert "door" in told


@pytest.mark.parametrize(
    ("said", "reply", "title"),
    [
        (
            "He's running out of batteries. Could you put some in the post?",
            "We'll post two packs of batteries today.",
            "Post two packs of batteries today",
        ),
        (
            "Please tell Comfort I'm allergic to fabric plasters.",
            "I'll let her know about the plasters.",
            "Tell Comfort: I'm allergic to fabric plasters",
        ),
        (
            "My husband sat on his reading glasses and the arm snapped. Can you fix that?",
            "We can look at them tomorrow.",
            "Fix that: My husband sat on his reading glasses, the arm snapped",
        ),
        (
            (
                "She had her bloods done and we've heard nothing."
                " Could one of the nurses give me a shout, please?"
            ),
            "I'll ask Nurse Farrell to phone you tomorrow with the results.",
            "Ask Nurse Farrell to phone me tomorrow with the results",
        ),
    ],
)
def test_a_title_says_what_it_points_to(said: str, reply: str, title: str) -> None:
    requests = _read(f"A: Hello. | C: {said} | A: {reply}").requests
    assert [request.title for request in requests] == [title]


def test_what_may_be_a_request_is_told_by_its_whole_sentence() -> None:
    said = "Hello there. Could we, the two of us, come and see the flat on Monday?"
    turns = make_call([("caller", said)]).turns
    whole = quote_whole("Could we", turns, frozenset())
    assert whole == "Could we, the two of us, come and see the flat on Monday"


def test_an_introduction_is_no_title_and_does_not_begin_one() -> None:
    (request,) = _read(
        "A: The Old Mill. | C: Hello there, Philippa Oyelaran, I'm calling from Strand and Keel."
        " I'd like two single rooms for the ninth of June."
        " | A: Two single rooms on the ninth of June, that's booked."
    ).requests
    assert "single rooms" in request.title
    assert "Philippa" not in request.title
    assert "Keel" not in request.title


@pytest.mark.parametrize(
    ("title", "told"),
    [
        ("Colin Arkwright I want forty metres of turf", "Forty metres of turf"),
        ("Agnieszka Nowak, I would like to cancel, please", "Cancel"),
        ("I want it stopped", "I want it stopped"),
        ("No roses", "No roses"),
    ],
)
def test_a_wish_is_titled_by_what_is_wished_for(title: str, told: str) -> None:
    assert take_wish(plain_title(title)) == told
