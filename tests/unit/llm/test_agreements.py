"""What the agent says back, and the caller lets stand, is a request."""

from aftercall.llm.rules.reader import RulesReader
from aftercall.model.reading import Reading
from unit.llm.calls import call_of


def _read(text: str) -> Reading:
    return RulesReader().read(call_of(text.replace(" | ", "\n")))


HINTED = (
    "A: Lakeside Dental, how can I help? | C: Hi, it's Mona Berg. I'm overdue for a check-up."
    " | A: Tuesday at nine? | C: I teach on Tuesdays. | A: Then Wednesday the eleventh at four?"
    " | C: Wednesday at four works. | A: So that's a check-up on Wednesday the eleventh at four."
)


def test_an_appointment_that_the_caller_only_hinted_at_is_a_booking_on_its_day() -> (
    None
):
    (request,) = _read(f"{HINTED} | C: Lovely, thanks.").requests
    assert (request.kind, str(request.due)) == ("booking", "2026-03-11")


def test_a_booking_is_titled_as_the_agent_said_it_back() -> None:
    (request,) = _read(f"{HINTED} | C: Lovely, thanks.").requests
    assert request.title == "A check-up on Wednesday the eleventh at four"


def test_what_was_said_back_and_then_called_off_is_not_done() -> None:
    reading = _read(
        f"{HINTED} | C: Oh, wait, no. Forget it, cancel that, I can't make it at all."
        " | A: No problem, nothing booked then."
    )
    assert not reading.requests


def test_two_things_in_one_reading_back_are_two_requests() -> None:
    reading = _read(
        "A: Orchard Garage. | C: Could Dan ring me about the invoice? | A: He'll ring you tomorrow."
        " | C: And I need new tyres. | A: Friday at ten? | C: Friday's good."
        " | A: So Dan rings you tomorrow about the invoice, and new tyres on Friday at ten."
        " | C: That's it, bye."
    )
    titles = " / ".join(request.title.lower() for request in reading.requests)
    assert len(reading.requests) == 2
    assert "tyres" in titles
