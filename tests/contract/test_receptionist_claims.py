"""What the receptionist tells a caller is so: after the call, the ledger holds what it said it
took down.
"""

from collections.abc import Sequence

import pytest

from aftercall.app import App
from aftercall.model.followups import FollowUp
from fakes import FakePhone
from followup_work import follow


async def ring(app: App, *said: str) -> tuple[list[str], Sequence[FollowUp]]:
    """What the caller heard, and the requests that are stored afterwards."""
    call, heard = await FakePhone(app.phone.turn_parts).ring(*said)
    rows = follow(app.work, call.call.conversation)
    return heard, [row for row in rows if row.kind == "request"]


def titles(rows: Sequence[FollowUp]) -> list[tuple[str, str]]:
    return [(row.title, row.state) for row in rows]


async def test_a_question_it_says_it_took_down_is_a_request_that_a_person_sees(
    app: App,
) -> None:
    heard, rows = await ring(app, "What are your opening hours?", "Thanks, bye.")
    assert "I have taken your question down." in heard[1]
    assert titles(rows) == [("Question: What are your opening hours?", "done")]
    (task,) = (app.settings.home / "workspace" / "tasks").glob("*.md")
    assert "What are your opening hours?" in task.read_text()


async def test_a_question_with_a_secret_is_taken_down_without_its_words(
    app: App,
) -> None:
    heard, rows = await ring(app, "My door code is 4711, is that still right?", "Bye.")
    assert "I have taken your question down." in heard[1]
    assert titles(rows) == [("Answer a question of the caller", "done")]
    assert not any(
        "4711" in path.read_text()
        for path in (app.settings.home / "workspace").rglob("*.md")
    )


async def test_what_it_says_it_took_down_is_stored(app: App) -> None:
    heard, rows = await ring(app, "Please order ten chairs for the hall.", "Bye.")
    assert "I have taken down: order ten chairs for the hall." in heard[1]
    assert titles(rows) == [("Order ten chairs for the hall", "done")]


@pytest.mark.parametrize(
    "change",
    [
        "Make that twelve.",
        "Actually, make it twelve.",
        "Could you make that twelve chairs?",
    ],
)
async def test_a_number_it_says_it_changed_is_changed(app: App, change: str) -> None:
    heard, rows = await ring(
        app, "Please order ten chairs for the hall.", change, "Bye."
    )
    assert "I have changed that: order twelve chairs for the hall." in heard[2]
    assert titles(rows) == [("Order twelve chairs for the hall", "done")]
    assert "ten" not in f"{rows[0].details} {rows[0].words}".split()


@pytest.mark.parametrize(
    ("request_", "change"),
    [
        ("Please order ten chairs and four tables.", "Make that twelve."),
        ("Please book a table for ten people tomorrow at seven.", "Make it eight."),
        ("Tell Dana the invoice is paid.", "Oh, make that the second invoice."),
    ],
)
async def test_what_it_could_not_change_it_says_so_and_leaves(
    app: App, request_: str, change: str
) -> None:
    heard, rows = await ring(app, request_, change, "Bye.")
    assert "I could not change that." in heard[2]
    assert len(rows) == 1
    assert heard[1].lower().startswith(f"i have taken down: {rows[0].title.lower()}")


async def test_what_it_says_it_crossed_out_is_not_done(app: App) -> None:
    heard, rows = await ring(
        app, "Please order ten chairs.", "Scratch the chairs.", "Bye."
    )
    assert "I have crossed out: order ten chairs." in heard[2]
    assert titles(rows) == [("Order ten chairs", "withdrawn")]


async def test_it_does_not_claim_to_cross_out_what_nobody_asked_for(app: App) -> None:
    heard, rows = await ring(
        app, "Please order ten chairs.", "Never mind the taxi.", "Bye."
    )
    assert "nothing like that to cross out" in heard[2]
    assert titles(rows) == [("Order ten chairs", "done")]


async def test_what_it_says_it_took_down_with_a_request_stands_there(app: App) -> None:
    heard, rows = await ring(
        app, "Please order ten chairs.", "As I said, please order ten chairs.", "Bye."
    )
    assert "I have taken that down: order ten chairs." in heard[2]
    assert titles(rows) == [("Order ten chairs", "done")]


@pytest.mark.parametrize(
    "said",
    [
        "I'm just calling to say thanks.",
        "My flight was late.",
        "It's raining here.",
        "I'm sick.",
    ],
)
async def test_a_plain_statement_is_neither_claimed_nor_stored(
    app: App, said: str
) -> None:
    heard, rows = await ring(app, said, "Bye.")
    assert "down" not in heard[1]
    assert rows == []
