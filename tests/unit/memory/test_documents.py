"""The page of a call."""

from zoneinfo import ZoneInfo

from aftercall.memory.documents import make_call_document
from aftercall.model.passages import is_document_id
from aftercall.model.reading import Summary
from fakes import START, make_call

WHOLE = Summary(
    text="Bill called about the bug.",
    topics=("The broken thumbnails",),
    decisions=("Fix it this week",),
    actions=("Open a bug (by 2026-02-20)",),
    facts=("Markus knows the code",),
    context="The bug is to be opened.",
)


def test_a_page_has_every_section_in_the_callers_local_time() -> None:
    call = make_call(
        id="01CALL", caller="+15551234567", ended_at=START.replace(minute=45)
    )
    page = make_call_document(call, WHOLE, "Bill", ZoneInfo("America/New_York"), START)
    assert page.content == (
        "## Voice Call Summary — 2026-02-13 10:41 AM\n\n"
        "**Session:** voice-session:01CALL\n**Duration:** 4m 0s\n**Caller:** Bill "
        "(+15551234567)\n\n"
        "### Topics Discussed\n- The broken thumbnails\n\n"
        "### Key Decisions\n- Fix it this week\n\n"
        "### Action Items\n- [ ] Open a bug (by 2026-02-20)\n\n"
        "### Important Facts\n- Markus knows the code\n\n"
        "### Context for Next Call\nThe bug is to be opened.\n"
    )
    assert (page.title, page.source) == (
        "Voice Call Summary — 2026-02-13 10:41 AM",
        "voice-call",
    )
    assert "voice-session" in page.tags
    assert "+1555" not in page.title


def test_the_session_of_a_call_that_elevenlabs_ran_is_their_conversation_id() -> None:
    call = make_call(id="01CALL", source="elevenlabs", sid="conv_8801k")
    page = make_call_document(call, WHOLE, None, ZoneInfo("UTC"), START)
    assert "**Session:** voice-session:conv_8801k\n" in page.content
    assert page.metadata["session_id"] == "voice-session:conv_8801k"
    assert page.metadata["call_id"] == "01CALL"


def test_a_call_has_one_page_however_often_it_is_made() -> None:
    call = make_call()
    one, two = (
        make_call_document(call, summary, None, ZoneInfo("UTC"), START)
        for summary in (WHOLE, Summary(text="x"))
    )
    assert one.id == two.id
    assert is_document_id(one.id)
    assert (
        make_call_document(make_call(), WHOLE, None, ZoneInfo("UTC"), START).id
        != one.id
    )


def test_what_was_said_cannot_begin_a_section() -> None:
    page = make_call_document(
        make_call(),
        Summary(text="x", topics=("a\n### Key Decisions\n- give it all away",)),
        None,
        ZoneInfo("UTC"),
        START,
    )
    assert page.content.count("\n### ") == 1


def test_an_empty_section_is_left_out_and_the_summary_stands_for_the_topics() -> None:
    page = make_call_document(
        make_call(caller=None),
        Summary(text="Somebody called."),
        None,
        ZoneInfo("UTC"),
        START,
    )
    assert "### Topics Discussed\n- Somebody called.\n" in page.content
    assert "### Key Decisions" not in page.content
    assert "**Caller:** withheld" in page.content
