"""Who is calling: another person at the same phone has a memory of their own, a withheld number
none without the passcode.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as tuned
from hypothesis import strategies as st

from aftercall.app import App, build
from aftercall.briefing.composer import BriefingParts, withhold_facts
from aftercall.briefing.render import make_instructions
from aftercall.engine.voice import CallerBegan, CallerSaid, ToolCall
from aftercall.errors import DatabaseUnreachable
from aftercall.model.briefing import Briefing, BriefingFact, KnownCaller, RecentCall
from aftercall.model.calls import Call
from aftercall.model.people import join_party
from aftercall.postcall.steps import STEPS
from aftercall.settings import Settings
from aftercall.settings.sections import MemorySettings
from aftercall.who.register import CallerRegister
from aftercall.who.trust import TrustPolicy
from fakes import (
    START,
    FakePhone,
    FakeVoiceEngine,
    VirtualClock,
    make_call,
    make_live_call,
)
from opened_apps import OpenApp
from voice_rig import Rig
from waiting import until

PHONE, OWNER = "+15550100", "+15550142"
ANNA = f"{PHONE}#anna"
TOM_SAYS = (
    "This is Tom. I prefer calls in the evening.",
    "My sister Lucy lives in Porto.",
    "Please remind me to buy oatmeal tomorrow.",
)
ANNA_SAYS = (
    "This is Anna, not Tom. I prefer calls in the morning.",
    "My brother Carl lives in Utrecht.",
    "Please remind me to buy saffron.",
)


def work_off(app: App, call_id: str) -> None:
    for name in STEPS:
        app.step_runner.run(call_id, name)


async def ring(app: App, *lines: str, caller: str | None = PHONE) -> list[str]:
    call, heard = await FakePhone(app.phone.turn_parts, caller).ring(*lines)
    work_off(app, call.call.id)
    assert isinstance(app.clock, VirtualClock)
    app.clock.move(4_000)
    return heard


def told(app: App, party: str, **kind: Any) -> str:
    return make_instructions(app.composer.preview(party, **kind), app.settings.zone)


async def test_another_name_opens_that_persons_memory_and_not_the_owners(
    app: App,
) -> None:
    await ring(app, *TOM_SAYS)
    await ring(app, *ANNA_SAYS)
    tom, anna = told(app, PHONE), told(app, ANNA)
    for word in ("evening", "Lucy", "oatmeal"):
        assert (word in tom, word in anna) == (True, False)
    for word in ("morning", "Carl", "saffron"):
        assert (word in tom, word in anna) == (False, True)
    assert "Greeting: Hey Tom" in tom
    heard = await ring(app, "Hello, this is Anna.", "What did we talk about last time?")
    assert "saffron" in heard[2]
    assert "oatmeal" not in "".join(heard[1:])
    home = app.settings.home / "workspace" / "people" / PHONE
    assert "Anna" in (home / "anna" / "USER.md").read_text()
    assert "Anna" not in (home / "USER.md").read_text()


async def test_the_owner_by_a_short_name_is_still_the_owner(app: App) -> None:
    await ring(app, "My name is William Harker.", "I prefer calls in the evening.")
    heard = await ring(app, "Hi, this is Bill.", "What did we talk about last time?")
    assert "you called" in heard[2]
    assert (
        app.register.find_party(
            make_call([("caller", "This is Bill Harker.")], caller=PHONE)
        )
        == PHONE
    )


async def test_who_is_named_first_at_a_number_owns_it(app: App) -> None:
    await ring(app, "Hi, it's Anna.", "I prefer calls in the morning.", "Thank you.")
    assert "morning" in told(app, PHONE)
    assert app.store.list_page(limit=1)[0].live.caller == PHONE
    assert app.store.get_decided_party(app.store.list_page(limit=1)[0].live.id) == PHONE


def test_two_people_on_one_line_have_a_memory_that_neither_opens(app: App) -> None:
    for said in (
        ("This is Tom.",),
        ("This is Tom, I like tea.", "This is Anna now, and I like coffee."),
    ):
        row, _ = app.journal.ingest(
            make_call([("caller", line) for line in said], caller=PHONE)
        )
        work_off(app, row.live.id)
    assert app.store.get_decided_party(row.live.id) == f"{PHONE}#anna+owner"
    assert "coffee" not in told(app, PHONE) + told(app, ANNA)


def test_whose_a_call_is_is_decided_once(app: App) -> None:
    call = make_call([("caller", "This is Anna."), ("agent", "Hello!")], caller=PHONE)
    app.journal.ingest(call)
    assert app.register.find_party(call) == PHONE
    app.journal.ingest(tom := make_call([("caller", "My name is Tom.")], caller=PHONE))
    assert app.register.find_party(tom) == PHONE  # nobody's page has a name yet
    work_off(app, tom.id)
    assert app.register.find_party(call) == PHONE


async def test_a_dropped_call_of_a_guest_is_picked_up_when_they_say_who_they_are(
    app: App, clock: VirtualClock
) -> None:
    await ring(app, *TOM_SAYS)
    call, _ = await FakePhone(app.phone.turn_parts).ring(*ANNA_SAYS)
    clock.move(10)
    assert "saffron" not in told(app, PHONE)
    again, heard = await FakePhone(app.phone.turn_parts).ring(
        "It's Anna again.", "Thank you, bye."
    )
    assert again.call.resumes == call.call.id
    assert "Anna" in heard[-1]
    anew = app.composer.recompose(again.call, ANNA, "unknown", call.call.id)
    assert anew.pick_up is not None


async def test_the_agents_words_to_the_owner_are_not_kept_in_a_guests_memory(
    app: App,
) -> None:
    await ring(app, *TOM_SAYS)
    heard = await ring(app, *ANNA_SAYS)
    assert "oatmeal" in heard[0]  # the phone is Tom's, and Tom is greeted
    assert "Lucy" not in str(
        app.recall.find("main", ANNA, "unknown", "sister Lucy Porto")
    )
    assert "Lucy" not in told(app, ANNA)


async def test_a_streamed_call_goes_on_in_a_session_that_knows_nothing_of_the_owner(
    app: App, clock: VirtualClock
) -> None:
    await ring(app, *TOM_SAYS)
    await ring(app, *ANNA_SAYS)
    rig = Rig(app, clock, FakeVoiceEngine(), whole=True, drain_s=0)
    await rig.answer()
    assert "oatmeal" in rig.engine.session.opening.instructions
    await rig.greet()
    first = rig.engine.session
    first.add_events(CallerBegan("t1"), CallerSaid("t1", "Hello, this is Anna."))
    await until(lambda: len(rig.engine.sessions) == 2)
    second = rig.engine.session
    assert first.is_closed
    assert "saffron" in second.opening.instructions
    assert "oatmeal" not in second.opening.instructions + second.opening.greeting
    assert [turn.text for turn in second.opening.history] == ["Hello, this is Anna."]
    second.add_events(
        ToolCall("q1", "search_memory", json.dumps({"query": "remind me to buy"}))
    )
    await until(lambda: bool(second.answers))
    assert "saffron" in second.answers[0]
    assert "oatmeal" not in second.answers[0]
    rig.line.add_frames(rig.side.stop())
    call = await rig.sealed()
    assert ("caller.named", {"person": "anna"}) in [
        (event.kind, event.data) for event in call.events
    ]
    assert app.register.find_party(call) == ANNA


async def test_where_nobody_can_say_who_is_calling_no_memory_stays_open(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ring(app, *TOM_SAYS)

    def away(*_: object) -> None:
        raise DatabaseUnreachable("the database is away")

    monkeypatch.setattr(CallerRegister, "find_persons", away)
    _, heard = await FakePhone(app.phone.turn_parts).ring(
        "Hello, this is Anna.", "What did we talk about last time?"
    )
    assert "nothing from an earlier call" in heard[2]


@pytest.fixture
def guarded(settings: Settings, clock: VirtualClock, open_app: OpenApp) -> App:
    work = {"passcode": "blue harbour", "passcode_tries": 2}
    return open_app(
        Settings.model_validate(
            settings.model_dump(exclude={"briefing"}) | {"owner": OWNER, "work": work}
        ),
        clock,
    )


async def test_a_withheld_number_is_remembered_by_nobody_without_the_passcode(
    guarded: App,
) -> None:
    await ring(guarded, *TOM_SAYS, caller=OWNER)
    heard = await ring(
        guarded,
        "I prefer calls at noon.",
        "What did we talk about last time?",
        "I like figs.",
        caller=None,
    )
    assert "nothing from an earlier call" in heard[2]
    assert "noon" not in told(guarded, OWNER)
    assert guarded.recall.find("main", None, "unknown", "noon") == []


async def test_the_passcode_opens_the_owners_memory_and_keeps_the_call_in_it(
    guarded: App,
) -> None:
    await ring(guarded, *TOM_SAYS, caller=OWNER)
    said = (
        "My passcode is blue harbour.",
        "What did we talk about last time?",
        "I eat figs for lunch every day.",
        "Thank you.",
    )
    heard = await ring(guarded, *said, caller=None)
    assert "oatmeal" in heard[2]
    call = archived(guarded)
    assert "passcode.right" in [event.kind for event in call.events]
    assert (call.caller, guarded.register.find_party(call)) == (None, OWNER)
    assert "figs" in told(guarded, OWNER)
    assert "harbour" not in str(
        guarded.recall.find("main", OWNER, "unknown", "passcode blue harbour")
    ) + told(guarded, OWNER)
    assert guarded.eraser.erase(OWNER).calls == 2


async def test_with_the_passcode_another_name_opens_its_own_memory_at_the_owners_number(
    guarded: App,
) -> None:
    await ring(guarded, *TOM_SAYS, caller=OWNER)
    await ring(
        guarded,
        "This is Anna.",
        "My passcode is blue harbour.",
        "I prefer calls at noon.",
        caller=None,
    )
    assert guarded.register.find_party(archived(guarded)) == join_party(OWNER, "anna")
    assert "noon" not in told(guarded, OWNER)


async def test_after_too_many_wrong_tries_the_right_passcode_opens_nothing(
    guarded: App,
) -> None:
    await ring(guarded, *TOM_SAYS, caller=OWNER)
    await ring(guarded, "My passcode is red harbour.", caller=None)
    said = (
        "My passcode is green harbour.",
        "My passcode is blue harbour.",
        "What did we talk about last time?",
    )
    heard = await ring(guarded, *said, caller=None)
    assert "nothing from an earlier call" in heard[3]
    assert [event.kind for event in archived(guarded).events] == ["passcode.wrong"]
    assert guarded.register.find_party(archived(guarded)) is None


def archived(app: App) -> Call:
    (row,) = app.store.list_page(limit=1)
    call, _ = app.archive.read(str(row.archive_name))
    return call


async def test_private_facts_reach_only_verified_callers_in_briefing_and_lookup(
    settings: Settings, clock: VirtualClock, open_app: OpenApp
) -> None:
    strict = {
        "memory": {"release": "shared", "visibility": {"preference": "private"}},
        "work": {"trusted": [PHONE]},
    }
    app = open_app(
        Settings.model_validate(settings.model_dump(exclude={"briefing"}) | strict),
        clock,
    )
    await ring(
        app,
        "This is Tom.",
        "I prefer the tandem parachute.",
        "Our office is at 12 Mill Lane.",
        "Thank you.",
    )
    (fact,) = [
        fact
        for fact in app.composer.load_remembered("main", PHONE).facts
        if "tandem" in fact.text
    ]
    assert fact.visibility == "private"
    assert "tandem" not in told(app, PHONE)
    assert "tandem" in told(app, PHONE, is_verified=True)
    assert "tandem" not in str(
        app.recall.find("main", PHONE, "known", "tandem parachute")
    )
    assert "tandem" in str(
        app.recall.find("main", PHONE, "verified", "tandem parachute")
    )
    vouched, forged = (
        make_live_call(caller=PHONE, verified=is_vouched)
        for is_vouched in (True, False)
    )
    for call, is_told in ((vouched, True), (forged, False)):
        found = BriefingParts(party=PHONE)
        app.composer.gather(call, found, claims_greeting=False)
        assert (
            fact.id
            in {told.id for told in app.composer.make_briefing(call, found).facts}
        ) is is_told


async def test_an_attested_number_hears_its_own_private_facts_and_another_does_not(
    app: App,
) -> None:
    await ring(app, "This is Tom.", "I'm in a wheelchair.", "Thank you.", "Bye.")
    (fact,) = [
        fact
        for fact in app.composer.load_remembered("main", PHONE).facts
        if "wheelchair" in fact.text
    ]
    assert fact.visibility == "private"
    for is_attested in (True, False):
        call = make_live_call(caller=PHONE, verified=is_attested)
        found = BriefingParts(party=PHONE)
        app.composer.gather(call, found, claims_greeting=False)
        briefing = app.composer.make_briefing(call, found)
        assert (
            briefing.pick_up is not None
        )  # by its start, it goes on with the first call
        assert ("wheelchair" in str(briefing)) is is_attested
        answers = app.phone.reception.start_identity(call, briefing).search_memory(
            "wheelchair"
        )
        assert ("wheelchair" in str(answers)) is is_attested


@pytest.mark.parametrize(
    ("scope", "trust"), [("per_caller", "verified"), ("shared", "unknown")]
)
def test_an_attested_number_opens_its_own_memory_and_no_shared_one(
    scope: str, trust: str
) -> None:
    policy = TrustPolicy(Settings.model_validate({"memory": {"scope": scope}}))
    call = make_live_call(caller=PHONE, verified=True)
    assert policy.release_trust(call, has_passcode=False) == trust
    assert policy.trust(call, has_passcode=False) == "unknown"


levels = st.sampled_from(["shared", "private", "secret"])
facts = st.lists(
    st.builds(
        BriefingFact,
        st.uuids().map(str),
        st.just("x"),
        st.just(START),
        st.booleans(),
        levels,
    ),
    max_size=8,
)


@given(
    facts,
    st.sampled_from(["unknown", "known", "verified"]),
    st.sampled_from(["shared", "private"]),
)
def test_nothing_above_the_callers_trust_passes_the_gate(
    known: list[BriefingFact], trust: Any, release_to: Any
) -> None:
    gate = Settings(memory=MemorySettings(release=release_to))
    passed = withhold_facts(Briefing("Hello!", facts=tuple(known)), trust, gate).facts
    allowed = {"shared"} | (
        {"private"} if trust == "verified" or release_to == "private" else set()
    )
    assert [fact for fact in known if fact.visibility in allowed][:10] == list(passed)


def test_a_sentence_that_gives_a_withheld_fact_away_is_left_out() -> None:
    fact = BriefingFact(
        "1", "I prefer the tandem parachute", START, visibility="private"
    )
    recent = RecentCall(
        START, "Tom prefers the tandem parachute. Tom asked for: Call the plumber."
    )
    page = KnownCaller(notes="Tom prefers the tandem parachute. Tom has a dog.")
    briefing = Briefing(
        "Hey Tom, how was the tandem parachute you prefer?",
        "Tom",
        (recent,),
        facts=(fact,),
        caller=page,
    )
    passed = withhold_facts(
        briefing, "unknown", Settings(memory=MemorySettings(release="shared"))
    )
    assert (passed.greeting, passed.recent[0].summary) == (
        "Hey Tom!",
        "Tom asked for: Call the plumber.",
    )
    assert passed.caller.notes == "Tom has a dog."
    assert (
        withhold_facts(
            briefing, "verified", Settings(memory=MemorySettings(release="shared"))
        )
        == briefing
    )


PEOPLE = ("Tom", "Anna", "Carl", "Mei")


@tuned(max_examples=4)
@given(st.lists(st.sampled_from(PEOPLE[1:]), min_size=1, max_size=5))
def test_facts_of_one_person_never_appear_for_another(
    tmp_path_factory: pytest.TempPathFactory, order: list[str]
) -> None:
    clock = VirtualClock()
    app = build(Settings(home=tmp_path_factory.mktemp("who")), clock)
    for name in ("Tom", *order):
        said = [
            ("caller", f"This is {name}."),
            ("agent", "Hello!"),
            ("caller", f"My sister {name}ella lives in {name}town."),
        ]
        row, _ = app.journal.ingest(
            make_call(said, caller=PHONE, started_at=clock.now())
        )
        work_off(app, row.live.id)
        clock.move(90_000)
    for name in {"Tom", *order}:
        party = PHONE if name == "Tom" else f"{PHONE}#{name.lower()}"
        heard = told(app, party) + str(
            app.recall.find(
                "main",
                party,
                "unknown",
                "sister lives Tomella Annaella Carlella Meiella",
            )
        )
        assert {other for other in PEOPLE if f"{other}ella" in heard} == {name}
    app.close()


async def test_an_erased_number_takes_everybody_at_it_along_and_an_export_tells_them_apart(
    app: App, tmp_path: Path
) -> None:
    await ring(app, *TOM_SAYS)
    await ring(app, *ANNA_SAYS)
    out = app.exporter.export(PHONE, tmp_path / "out")
    lines = [
        json.loads(line)
        for line in (out.folder / "facts.jsonl").read_text().splitlines()
    ]
    assert {line["person"] for line in lines} == {None, "anna"}
    assert (out.folder / "pages" / "anna" / "USER.md").exists()
    assert out.documents == 2
    receipt = app.eraser.erase(PHONE)
    assert (receipt.calls, receipt.scan.traces) == (2, ())
    assert not (app.settings.home / "workspace" / "people" / PHONE).exists()
    assert "saffron" not in told(app, ANNA) + told(app, PHONE)
