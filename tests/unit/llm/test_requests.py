"""What is a request, what may be one, and what is none. All on Tuesday, 3 March 2026."""

import json
from pathlib import Path

import pytest

from aftercall.llm.rules.reader import RulesReader
from aftercall.model.calls import parse_call
from aftercall.model.reading import Reading
from unit.llm.calls import call_of


def _read(script: str) -> Reading:
    return RulesReader().read(call_of(script.replace(" | ", "\n")))


def _titles(script: str) -> list[str]:
    return [request.title for request in _read(script).requests]


@pytest.mark.parametrize(
    ("said", "kind", "title"),
    [
        (
            "Can you open a bug about the login page?",
            "issue",
            "Open a bug about the login page",
        ),
        ("I'd like to pay a bill.", "task", "Pay a bill"),
        (
            "i would like to schedule an appointment",
            "booking",
            "Schedule an appointment",
        ),
        (
            "Please tell Rosa the train is late.",
            "message",
            "Tell Rosa the train is late",
        ),
        ("Remind me to call the bank.", "reminder", "Remind me to call the bank"),
        ("Cancel my membership.", "other", "Cancel my membership"),
    ],
)
def test_what_is_plainly_asked_is_a_request(said: str, kind: str, title: str) -> None:
    (request,) = _read(f"A: Hello? | C: {said} | A: Okay.").requests
    assert (request.kind, request.title) == (kind, title)


@pytest.mark.parametrize(
    "said",
    [
        "My neighbour's fence fell over.",
        "If I won the lottery I'd have you book me a box.",
        "My sister says you should open on Sundays.",
        "What are the branch hours?",
        "I need to check my account balance.",
        "I'll tell her myself.",
        "Call me Will.",
        "My sister Lucy lives in Porto.",
    ],
)
def test_what_nobody_asks_for_is_none(said: str) -> None:
    reading = _read(f"A: Hello? | C: {said} | A: I see.")
    assert not reading.requests
    assert not reading.unclear


def test_what_is_not_said_plainly_is_unclear_and_not_a_request() -> None:
    reading = _read("A: Hello? | C: My donkey needs new shoes. | A: Aha.")
    assert not reading.requests
    (unclear,) = reading.unclear
    assert unclear.words == "My donkey needs new shoes"
    assert "May be a request: My donkey needs new shoes." in reading.summary


def test_a_need_that_is_not_asked_for_plainly_is_shown_and_not_acted_on() -> None:
    reading = _read(
        "A: Hi. | C: My donkey needs new shoes. | A: Can he come on Friday?"
    )
    assert not reading.requests
    assert [item.words for item in reading.unclear] == ["My donkey needs new shoes"]


def test_what_only_says_more_of_a_request_is_part_of_it() -> None:
    (request,) = _read(
        "A: Hi. | C: Please book a table for Friday. Put us by the window. | A: By the window, yes."
    ).requests
    assert "window" in request.details


def test_two_requests_in_one_sentence_are_two() -> None:
    titles = _titles(
        "A: Hi. | C: Book me a table for Friday and remind me to call Ann."
    )
    assert titles == ["Book me a table for Friday", "Remind me to call Ann"]


@pytest.mark.parametrize(
    ("more", "titles"),
    [
        (
            "Please order three boxes of paper.",
            ["Order two boxes of paper", "Order three boxes of paper"],
        ),
        ("Sorry, please order three boxes of paper.", ["Order three boxes of paper"]),
        ("Actually, make that three boxes.", ["Order three boxes of paper"]),
        ("Please order the paper.", ["Order two boxes of paper"]),
    ],
)
def test_another_amount_is_another_request_or_puts_it_right(
    more: str, titles: list[str]
) -> None:
    asked = "A: Hello? | C: Please order two boxes of paper. | A: Noted."
    assert _titles(f"{asked} | C: {more} | A: Okay.") == titles


def test_a_lost_thing_and_its_replacement_are_one_request() -> None:
    script = (
        "A: Hi. | C: i lost my credit card can you send me a new one"
        " | A: I'll have a new card sent to you."
    )
    (request,) = _read(script).requests
    assert "credit card" in f"{request.words} {request.details}"


@pytest.mark.parametrize(
    ("answer", "count"), [("Yes please.", 1), ("No thanks.", 0), ("Not now.", 0)]
)
def test_an_offer_is_a_request_only_if_it_is_taken(answer: str, count: int) -> None:
    script = f"A: Hi. | C: My dog is limping. | A: Shall I book a visit? | C: {answer}"
    assert len(_titles(script)) == count


@pytest.mark.parametrize(
    ("change", "due"),
    [
        ("Actually, make it Thursday.", "2026-03-05"),
        ("Can we change that to Wednesday?", "2026-03-04"),
        ("No wait, Friday.", "2026-03-06"),
    ],
)
def test_a_changed_day_is_no_new_request(change: str, due: str) -> None:
    reading = _read(
        f"A: Hi. | C: Please book me a table for Monday. | A: Monday. | C: {change}"
    )
    assert [str(request.due) for request in reading.requests] == [due]


@pytest.mark.parametrize(
    "change",
    ["Forget the taxi.", "No taxi, thanks.", "Cancel the taxi.", "Never mind."],
)
def test_what_is_called_off_is_not_done(change: str) -> None:
    reading = _read(f"A: Hi. | C: Could you order me a taxi? | A: Sure. | C: {change}")
    assert not reading.requests
    assert len(reading.withdrawn) == 1


@pytest.mark.parametrize("sid", ["AM26", "AO07", "U06", "Y08"])
def test_what_was_not_named_stands_where_something_else_was_called_off(
    sid: str,
) -> None:
    file = Path(__file__).parents[3] / "bench" / "calls" / f"{sid}.json"
    labelled = json.loads(file.read_text("utf-8"))
    off = RulesReader().read(parse_call(labelled["call"])).withdrawn
    called_off = " ".join(item.title.lower() for item in off)
    asked = [word for item in labelled["gold"]["requests"] for word in item["words"]]
    assert not [word for word in asked if word.lower() in called_off]


@pytest.mark.parametrize(
    "said", ["No roses, hey.", "It is for all of us, not just for me."]
)
def test_what_is_not_wanted_is_not_turned_round(said: str) -> None:
    (request,) = _read(
        f"A: Hello? | C: Please send lilies to my wife. {said} | A: Lilies."
    ).requests
    assert said.rstrip(".") in request.details


def test_the_day_agreed_last_is_due() -> None:
    reading = _read(
        "A: Hello? | C: I'd like to book a haircut, please. | A: I have Thursday at two. | "
        "C: No, on Thursday I'm away. | A: Then Friday the sixth at ten? | "
        "C: Friday is fine. | A: I'll book you in for Friday the sixth at ten. | C: Thanks, bye."
    )
    assert [str(request.due) for request in reading.requests] == ["2026-03-06"]


def test_each_request_has_its_own_day() -> None:
    reading = _read(
        "A: Hello? | C: Please order two bags of flour by Friday. | "
        "A: Two bags of flour by Friday. | C: And remind me on Monday to pay the gas bill. | "
        "A: I'll remind you on Monday."
    )
    assert {request.kind: str(request.due) for request in reading.requests} == {
        "task": "2026-03-06",
        "reminder": "2026-03-09",
    }


def test_what_the_agent_refuses_is_no_request() -> None:
    script = "A: Hi. | C: Can I get a large pizza? | A: You have the wrong number."
    assert not _titles(script)


@pytest.mark.parametrize(
    ("said", "day"),
    [
        ("We need it by the twentieth.", "2026-03-20"),
        ("It has to be Thursday at the latest.", "2026-03-05"),
        ("My sister flies in on the twentieth.", "None"),
        ("I'm away on Thursday.", "None"),
    ],
)
def test_a_day_is_due_only_where_it_is_meant(said: str, day: str) -> None:
    reading = _read(f"A: Hi. | C: I need a cake. | A: How big? | C: Large. {said}")
    assert [str(request.due) for request in reading.requests] == [day]


def test_a_promise_has_a_deed_in_it() -> None:
    script = (
        "A: I'll be right with you. | C: Hi. | A: I'll send the form. I'll check that."
    )
    assert [promise.title for promise in _read(script).promises] == ["Send the form"]


@pytest.mark.parametrize(
    ("said", "category"),
    [
        ("We decided to keep the piano.", "decision"),
        ("The board decided that we stay.", "decision"),
        ("I prefer calls in the evening.", "preference"),
        ("My sister Lucy lives in Porto.", "person"),
        ("I swim every morning.", "routine"),
        ("I'm allergic to peanuts.", "preference"),
    ],
)
def test_what_is_told_plainly_is_a_fact(said: str, category: str) -> None:
    facts = _read(f"A: Hi. | C: {said} | A: I see.").facts
    assert [fact.category for fact in facts] == [category]


def test_context_is_what_the_caller_does_and_cares_about() -> None:
    reading = _read("A: Hi. | C: I'm a tomato grower. I'm working on a greenhouse.")
    assert (
        reading.profile.context == "I'm a tomato grower. I'm working on a greenhouse."
    )


@pytest.mark.parametrize(
    "said", ["My API token is sk-4f9a7c.", "the api key is sk-live-12345"]
)
def test_a_key_is_a_secret(said: str) -> None:
    reading = _read(f"A: Hi. | C: {said} | A: Thanks.")
    assert {fact.visibility for fact in reading.facts} == {"secret"}
    assert "sk-" not in reading.summary


def test_a_request_holds_how_the_agent_said_it_back() -> None:
    (request,) = _read(
        "A: Hi. | C: I've a letter about my parking permit. Please change it."
        " | A: I'll move the permit to the new car for you."
    ).requests
    assert "new car" in f"{request.title} {request.details}"


def test_what_the_agent_misheard_is_no_detail() -> None:
    (request,) = _read(
        "A: Hi. | C: Please book a table. | A: A cable, then. | C: No, a table! | A: Okay."
    ).requests
    assert "cable" not in request.details


@pytest.mark.parametrize(
    "said",
    [
        "Ring after six.",
        "Call my mobile, not the landline.",
        "Please write to me always in English.",
        "Just come round the back.",
    ],
)
def test_how_to_be_reached_is_no_request(said: str) -> None:
    assert _titles(f"A: Hi. | C: {said} | A: Okay.") == []


@pytest.mark.parametrize(
    "said",
    [
        "Forget the cake.",
        "Actually, no cake.",
        "On second thoughts, skip the cake.",
        "No, not the cake.",
        "I don't think we'll need the cake.",
        "Don't bother with the cake, Dom has found one.",
        "The cake can wait.",
        "I'll get the cake myself.",
    ],
)
def test_what_is_named_is_called_off(said: str) -> None:
    script = (
        "A: Hi. | C: Please order a cake. And please ring Ann Lee. | A: Cake and Ann. "
        f"| C: {said} | A: All right."
    )
    assert _titles(script) == ["Ring Ann Lee"]


def test_a_no_to_an_offer_calls_nothing_else_off() -> None:
    script = (
        "A: Hi. | C: Please send a card to Ann. | A: A card. Shall I move your call on Monday? "
        "| C: No, leave it, I'll sort them out myself. | A: Okay."
    )
    assert _titles(script) == ["Send a card to Ann"]


@pytest.mark.parametrize(
    ("said", "day"),
    [
        ("Friday would be better.", "2026-03-20"),
        ("The Tuesday, please.", "2026-03-17"),
        ("The twentieth.", "2026-03-20"),
    ],
)
def test_a_weekday_is_the_one_that_was_offered(said: str, day: str) -> None:
    (request,) = _read(
        "A: Hi. | C: I'd like to move my appointment. Is there anything the week after next? "
        f"| A: I've Tuesday the seventeenth or Friday the twentieth. | C: {said} | A: Done."
    ).requests
    assert str(request.due) == day


def test_a_day_in_the_answer_to_a_request_is_its_day() -> None:
    (request,) = _read(
        "A: Hi. | C: Could you text me the day before? | A: I'll text you on Monday. "
        "| C: Great, thanks."
    ).requests
    assert str(request.due) == "2026-03-09"


def test_a_prank_asks_for_nothing() -> None:
    script = "A: Lanes. | C: I'd like to reserve all the lanes. | A: All? | C: We're just kidding."
    assert _titles(script) == []


@pytest.mark.parametrize(
    "said", ["It's Geoff, and Pat's on the other extension.", "It's Ann and Bob Hale."]
)
def test_two_people_on_one_phone_have_no_name(said: str) -> None:
    assert _read(f"A: Hi. | C: {said} | A: Hello both.").profile.name is None


@pytest.mark.parametrize(
    "said",
    [
        "Quayle. Leonard Quayle.",
        "It's Mr Quayle here, Leonard Quayle.",
        "Leonard Quayle is my name.",
        "I'm her son, Leonard Quayle.",
    ],
)
def test_a_part_and_then_the_whole_is_the_callers_name(said: str) -> None:
    assert _read(f"A: Hi. | C: {said} | A: Hello.").profile.name == "Leonard Quayle"


@pytest.mark.parametrize(
    "said",
    [
        "Could you ask Priya to call me on Thursday, about the lining?",
        "Could somebody ring me on Thursday to remind me about the car?",
    ],
)
def test_a_call_back_and_a_reminder_by_a_call_have_their_day(said: str) -> None:
    reading = RulesReader().read(call_of(f"A: Hello?\nC: {said}\nA: Of course."))
    assert "2026-03-05" in [str(request.due) for request in reading.requests]


def test_a_message_is_due_when_the_caller_says_so_if_asked() -> None:
    script = (
        "A: Kev's on a job, I'm his assistant.\nC: Please tell Kev to text me about the fuse box."
        "\nA: By when?\nC: By Thursday."
    )
    reading = RulesReader().read(call_of(script))
    assert [str(request.due) for request in reading.requests] == ["2026-03-05"]


def test_a_deed_that_the_caller_forbids_is_called_off() -> None:
    reading = _read(
        "A: Hello. | C: I'd like to cancel my membership. | A: We could freeze it. | "
        "C: That's better, don't cancel it."
    )
    assert [item.title for item in reading.withdrawn] == ["Cancel my membership"]
    assert not any("ancel" in request.title for request in reading.requests)


@pytest.mark.parametrize(
    "change", ["Make that twelve.", "Sorry, make it twelve boxes."]
)
def test_a_number_is_put_right_in_the_request(change: str) -> None:
    script = (
        "A: Hi. | C: Please order ten boxes of paper. | A: Ten boxes. | "
        f"C: {change} | A: Twelve boxes, noted. | C: Thanks."
    )
    assert _titles(script) == ["Order twelve boxes of paper"]


def test_the_last_number_of_people_is_the_one_that_is_told() -> None:
    script = (
        "A: Hi. | C: I'd like a table for tomorrow night, six people. | A: Tomorrow at seven? | "
        "C: Yes. Oh, and actually it is seven people, my sister is coming. | A: Seven, noted."
    )
    (request,) = _read(script).requests
    told = f"{request.title}. {request.details}"
    assert "seven people" in told
    assert "six people" not in told


def test_an_hour_that_the_agent_offers_is_no_number_of_things() -> None:
    script = (
        "A: Hello. | C: I'm after a set of four tyres for the van. | "
        "A: Thursday then, at eight or at one? | C: Eight. | A: Four tyres, Thursday at eight."
    )
    (request,) = _read(script).requests
    assert "eight tyres" not in f"{request.title}. {request.details}".lower()


def test_a_limit_is_the_next_such_day_though_a_later_one_was_agreed_on() -> None:
    script = (
        "A: Hello. | C: Could you book my watch in for a battery on Wednesday the eleventh? | "
        "A: Wednesday the eleventh, that's booked. | C: And could Anton ring me about the strap? | "
        "A: I'll have Anton ring you by Wednesday. | C: Thank you, bye."
    )
    days = [str(request.due) for request in _read(script).requests]
    assert days == ["2026-03-11", "2026-03-04"]


def test_what_was_called_off_is_titled_as_it_was_asked_for() -> None:
    reading = _read(
        "A: Hi. | C: Please book a table for Saturday. And a high chair. No wait, scrub the high "
        "chair. | A: No high chair then. | C: My mother is allergic to nuts. | "
        "A: I'll make a note for the chef about the nut allergy."
    )
    assert not any("nut" in item.title for item in reading.withdrawn)


@pytest.mark.parametrize(
    ("sid", "title"),
    [
        ("AG17", "Set the redelivery for Monday"),
        (
            "AL18",
            "Put Imani in the Tuesday Pre-Ballet trial on the eighth at four fifteen",
        ),
    ],
)
def test_a_day_agreed_on_without_an_ask_is_titled_by_what_the_agent_promised(
    sid: str, title: str
) -> None:
    file = Path(__file__).parents[3] / "bench" / "calls" / f"{sid}.json"
    call = parse_call(json.loads(file.read_text("utf-8"))["call"])
    assert title in [request.title for request in RulesReader().read(call).requests]
