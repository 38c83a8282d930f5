import os
import re
import threading
import unicodedata
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.workspace import files, user_md
from aftercall.workspace.greeting import (
    MAX_GREETING_CHARS,
    choose_greeting,
    claim_greeting,
    clean_greeting,
    save_greeting,
)
from aftercall.workspace.paths import Workspace, WorkspacePerson
from aftercall.workspace.user_md import UserProfile

NOW = datetime(2026, 2, 13, 15, 45, tzinfo=UTC)
FALLBACK = "Hello, how can I help?"


@pytest.fixture
def person(tmp_path: Path) -> WorkspacePerson:
    return WorkspacePerson(tmp_path / "people" / "+15551234567")


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ('"Hey Bill, how was the soup?"', "Hey Bill, how was the soup?"),
        ("“Welcome back!” 🎉", "Welcome back!"),
        (
            "Hey Bill! How did the soup turn out? Tell me.",
            "Hey Bill, how did the soup turn out?",
        ),
        ("Hi there. Anna said you'd call.", "Hi there, Anna said you'd call."),
        ("Good to hear you again. I have news.", "Good to hear you again."),
        ("Hey Dr. Brown, is it 20° yet? Yes.", "Hey Dr. Brown, is it 20° yet?"),
        (
            "Shall we speak at 3 p.m. tomorrow? Or not?",
            "Shall we speak at 3 p.m. tomorrow?",
        ),
        ("It's the 'big day' 👩🏽‍🚀 today", "It's the big day today"),
        ("**Hello**", "Hello"),
        ("# Hello\n\nthere", "Hello there"),
        ("お帰りなさい。元気ですか？", "お帰りなさい。"),
    ],
)
def test_a_greeting_is_one_sentence_that_can_be_spoken(text: str, clean: str) -> None:
    assert clean_greeting(text) == clean


@pytest.mark.parametrize("text", ["", " \n", "🎉", '""', "...", "—"])
def test_nothing_to_say_is_no_greeting(text: str) -> None:
    assert clean_greeting(text) is None


def test_a_long_greeting_is_cut_between_words() -> None:
    clean = clean_greeting("soup, " * 100)
    assert clean is not None
    assert len(clean) <= MAX_GREETING_CHARS
    assert clean.endswith("soup")
    assert clean_greeting("x" * 300) == "x" * MAX_GREETING_CHARS


@given(st.text(st.characters(codec=None) | st.sampled_from("\"'“”.!? 👍🏽❤️\u200d\n")))
def test_a_clean_greeting_always_obeys_its_rules(text: str) -> None:
    clean = clean_greeting(text)
    if clean is None:
        return
    assert len(clean) <= MAX_GREETING_CHARS
    assert clean == " ".join(clean.split())
    assert not set(clean) & set('"“”„«»`')
    assert not re.search(r"(^|\W)['’]|['’](\W|$)", clean)
    assert not any(
        unicodedata.category(mark) in ("So", "Cc", "Cs") and mark != "°"
        for mark in clean
    )
    assert not re.search("[\U0001f000-\U0001faff\ufe0f\u200d]", clean)


@given(
    st.lists(st.sampled_from(["hey", "Bill", "soup", "how", "we", "ate"]), min_size=1),
    st.lists(st.sampled_from(".!?…"), min_size=1),
)
def test_a_clean_greeting_is_never_two_sentences(
    words: list[str], ends: list[str]
) -> None:
    text = " ".join(
        word + ends[at % len(ends)] if at % 3 == 2 else word
        for at, word in enumerate(words)
    )
    assert not re.search(r"[.!?…]\s+\S", clean_greeting(text) or "")


def test_a_greeting_is_used_once_and_gone(person: WorkspacePerson) -> None:
    assert (
        save_greeting(person, "Hey Bill, how was the soup?", NOW)
        == "Hey Bill, how was the soup?"
    )
    assert person.greeting.read_text() == "Hey Bill, how was the soup?\n"
    assert claim_greeting(person, NOW) == "Hey Bill, how was the soup?"
    assert claim_greeting(person, NOW) is None
    assert [path.name for path in person.folder.iterdir()] == [".aftercall"]


def test_nothing_is_left_where_nothing_is_to_be_said(person: WorkspacePerson) -> None:
    assert save_greeting(person, "🎉", NOW) is None
    assert not person.folder.exists()
    assert claim_greeting(person, NOW) is None
    assert not person.folder.exists()


def test_a_newer_greeting_takes_the_place_of_one_never_used(
    person: WorkspacePerson,
) -> None:
    save_greeting(person, "Old one.", NOW)
    save_greeting(person, "New one.", NOW)
    assert claim_greeting(person, NOW) == "New one."


def test_a_greeting_expires_after_thirty_days_and_is_removed(
    person: WorkspacePerson,
) -> None:
    save_greeting(person, "Still fresh.", NOW)
    assert claim_greeting(person, NOW + timedelta(days=30)) == "Still fresh."
    save_greeting(person, "Stale.", NOW)
    assert claim_greeting(person, NOW + timedelta(days=30, seconds=1)) is None
    assert not person.greeting.exists()


def test_leaving_the_same_greeting_again_renews_it(person: WorkspacePerson) -> None:
    save_greeting(person, "Same words.", NOW - timedelta(days=40))
    save_greeting(person, "Same words.", NOW)
    assert claim_greeting(person, NOW) == "Same words."


def test_a_greeting_that_a_person_wrote_is_cleaned_too(person: WorkspacePerson) -> None:
    person.folder.mkdir(parents=True)
    person.greeting.write_bytes(b'\xef\xbb\xbf"Good caf\xe9. And more."\r\n')
    os.utime(person.greeting, (NOW.timestamp(), NOW.timestamp()))
    assert claim_greeting(person, NOW) == "Good caf."


def test_of_many_calls_at_once_one_takes_the_greeting(person: WorkspacePerson) -> None:
    save_greeting(person, "Only once.", NOW)
    start = threading.Barrier(8)
    taken: list[str | None] = []

    def call() -> None:
        start.wait()
        taken.append(claim_greeting(person, NOW))

    calls = [threading.Thread(target=call) for _ in range(8)]
    for each in calls:
        each.start()
    for each in calls:
        each.join()
    assert sorted(taken, key=str) == [None] * 7 + ["Only once."]


def test_the_order_is_what_was_left_then_the_name_then_the_configured_line() -> None:
    profile = UserProfile(name="William", call_name="Bill")
    assert choose_greeting("Left for you.", profile, FALLBACK) == "Left for you."
    assert choose_greeting(None, profile, FALLBACK) == "Hey Bill!"
    nameless = "Welcome back, last time you asked me to call."
    named = choose_greeting(nameless, profile, FALLBACK)
    assert named == "Hey Bill, last time you asked me to call."
    assert choose_greeting(nameless, UserProfile(), FALLBACK) == nameless
    assert (
        choose_greeting(None, UserProfile(name="William"), FALLBACK) == "Hey William!"
    )
    assert choose_greeting(None, UserProfile(), FALLBACK) == FALLBACK
    assert choose_greeting(None, UserProfile(name="🎉"), FALLBACK) == FALLBACK


def test_a_hello_by_name_is_speakable_and_short() -> None:
    assert (
        choose_greeting(None, UserProfile(call_name='"Bill" 🎉.'), FALLBACK)
        == "Hey Bill!"
    )
    assert (
        len(choose_greeting(None, UserProfile(name="Bill " * 99), FALLBACK))
        <= MAX_GREETING_CHARS
    )


def test_a_call_opens_with_the_callers_own_greeting_and_nobody_elses(
    tmp_path: Path,
) -> None:
    workspace = Workspace(tmp_path)
    bill, anna = workspace.find_person("+15550100"), workspace.find_person("+15550101")
    assert bill is not None
    assert anna is not None
    save_greeting(bill, "For Bill.", NOW)
    bill.user.write_text("- **Name:** Bill\n")
    profile = user_md.parse(files.read(bill.user))
    assert claim_greeting(anna, NOW) is None
    assert choose_greeting(claim_greeting(bill, NOW), profile, FALLBACK) == "For Bill."
    assert choose_greeting(claim_greeting(bill, NOW), profile, FALLBACK) == "Hey Bill!"
