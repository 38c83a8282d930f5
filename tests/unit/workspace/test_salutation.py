"""How callers are spoken to: by the given name, or by title and surname; what is stored of them
stays whole.
"""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.model.briefing import Briefing, KnownCaller, ResumedCall
from aftercall.model.people import find_greeted_name, form_of_address, spoken_name
from aftercall.postcall.runner import rerun
from aftercall.settings import Settings
from aftercall.workspace.greeting import choose_greeting
from aftercall.workspace.user_md import UserProfile
from fakes import START, VirtualClock, make_call
from opened_apps import OpenApp


@pytest.mark.parametrize(
    ("name", "spoken"),
    [
        ("Bill Harker", "Bill"),
        ("Bill", "Bill"),
        ("Ludwig van Beethoven", "Ludwig"),
        ("Mary-Jane O'Neil", "Mary-Jane"),
        ("Mrs Smith", "Mrs Smith"),
        ("Dr. Jane Brown", "Dr. Brown"),
        ("Prof. Dr. Anna Weber", "Prof. Weber"),
        ("Mrs Anna van der Berg", "Mrs van der Berg"),
        ("Frau Weber", "Frau Weber"),
        ("Sir Ian McKellen", "Sir Ian"),
        ("Dr", "Dr"),
        ("J. Smith", "J. Smith"),
        ("van Helsing", "van Helsing"),
        ("Harker, Bill", "Bill"),
        ("John Smith, PhD", "John"),
        ("John Smith Jr.", "John"),
        ("Mr and Mrs Smith", "Mr and Mrs Smith"),
        ("Bill and Anna", "Bill and Anna"),
        ("王小明", "王小明"),
    ],
)
def test_the_given_name_is_said_or_title_and_surname(name: str, spoken: str) -> None:
    assert form_of_address(name) == spoken


@given(st.text(max_size=60))
def test_nothing_is_said_that_does_not_stand_in_the_name(name: str) -> None:
    said = form_of_address(name)
    assert set(said.split()) <= set(name.replace(",", " ").split())
    assert bool(said) == bool(name.replace(",", " ").split())


def test_who_said_what_to_call_them_is_called_that() -> None:
    assert spoken_name("William Harker", "Billy Bob") == "Billy Bob"
    assert spoken_name(None, None) is None
    assert (
        choose_greeting(
            None, UserProfile(name="William Harker", call_name="Billy Bob"), "Hello."
        )
        == "Hey Billy Bob!"
    )
    assert (
        choose_greeting(None, UserProfile(name="William Harker"), "Hello.")
        == "Hey William!"
    )
    assert (
        choose_greeting(None, UserProfile(name="Dr Jane Brown"), "Hello.")
        == "Hey Dr Brown!"
    )


def test_a_dropped_call_is_picked_up_by_the_given_name() -> None:
    briefing = Briefing(
        "Hello.",
        "Bill Harker",
        pick_up=ResumedCall("c", START, ()),
        caller=KnownCaller(name="Bill Harker"),
    )
    assert briefing.first_words == "Welcome back, Bill. Please go on."


def test_after_a_call_the_page_has_the_whole_name_and_the_greeting_the_given_one(
    tmp_path: Path, open_app: OpenApp
) -> None:
    clock = VirtualClock()
    app = open_app(Settings.model_validate({"home": tmp_path}), clock)
    call = make_call(
        [
            ("agent", "Hello!"),
            ("caller", "This is Bill Harker. Please call the plumber."),
        ],
        started_at=clock.now(),
    )
    app.journal.ingest(call)
    for name in ("summary", "profile", "greeting"):
        rerun(app.step_runner, call.id, name)
    clock.move(3_600)
    told = app.composer.preview("+15550100")
    assert told.greeting.startswith(
        "Hey Bill, last time you asked me to call the plumber"
    )
    assert (told.caller_name, told.caller.name) == ("Bill Harker", "Bill Harker")
    assert (
        "- **Name:** Bill Harker"
        in (tmp_path / "workspace" / "people" / "+15550100" / "USER.md").read_text()
    )


@pytest.mark.parametrize(
    ("greeting", "name"),
    [
        ("Hey Bil, last time you asked me to call.", "Bil"),
        ("Welcome back, Dr. Brown! How was it?", "Dr. Brown"),
        ("Good morning Mrs van der Berg, how are you?", "Mrs van der Berg"),
        ("Hey there, good to hear you.", None),
        ("Hey! Last time, Bil was here.", None),
        ("Welcome back, last time you asked, and I did.", None),
        ("How are things, Bil?", None),
        ("", None),
    ],
)
def test_a_greeting_shows_by_what_name_it_speaks_to_somebody(
    greeting: str, name: str | None
) -> None:
    assert find_greeted_name(greeting) == name


@pytest.mark.parametrize(
    ("profile", "spoken"),
    [
        (UserProfile(name="Will Harker"), "Hey Will, how is Bilbo?"),
        (
            UserProfile(name="Bil Harker", call_name="Mr. Harker"),
            "Hey Bil, how is Bilbo?",
        ),
        (UserProfile(), "Hey Bil, how is Bilbo?"),
    ],
)
def test_a_greeting_left_under_a_name_since_corrected_uses_the_present_one(
    profile: UserProfile, spoken: str
) -> None:
    assert choose_greeting("Hey Bil, how is Bilbo?", profile, "Hello!") == spoken
