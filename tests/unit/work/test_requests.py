"""From what was said to drafts: passcodes taken out, the same thing once, dates that are dates,
promises matched.
"""

from datetime import UTC, date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.llm.reader import LocalReader
from aftercall.llm.rules.reader import RulesReader
from aftercall.model.followups import (
    EFFECTS,
    PERSON,
    FollowUp,
    FollowUpDraft,
    describe_state,
)
from aftercall.model.reading import RequestKind
from aftercall.settings.fields import normalise_passcode
from aftercall.who.trust import HIDDEN, PasscodeMask, PolicyRuling, find_tries
from aftercall.work.context import NEEDED_SETTINGS
from aftercall.work.plan import DraftOrigin, JudgedDraft, plan_followups
from aftercall.work.requests import (
    NO_WORK,
    ONLY_NOTED,
    is_same_title,
    join_legs,
    judge_promise,
    key_of,
    merge_duplicates,
    read_due,
    to_one_line,
)
from fakes import START, make_call

TODAY = date(2026, 2, 13)
ORIGIN = DraftOrigin("K", "C", "main", "+15550100")
TITLES = st.sampled_from(
    [
        "Call Bob",
        "Call Anna",
        "Open a bug about thumbnails",
        "Open a bug about login",
        "Water the plants",
        "Pay rent",
    ]
)
DRAFTS = st.builds(
    FollowUpDraft,
    kind=st.just("request"),
    request_kind=st.sampled_from(["issue", "task"]),
    title=TITLES,
    is_withdrawn=st.booleans(),
)


def judged(draft: FollowUpDraft) -> JudgedDraft:
    return JudgedDraft(draft, "unknown", ("tasks",), PolicyRuling("do"))


@pytest.mark.parametrize(
    "spoken",
    [
        "my passcode is 4711",
        "The pass code, um, is four seven one one, thanks",
        "It's my PIN: 4 7 1 1",
        "my code is four, seven, 1 1.",
    ],
)
def test_a_passcode_is_understood_however_it_is_spoken_and_leaves_no_trace(
    spoken: str,
) -> None:
    call = make_call([("caller", spoken)])
    assert find_tries([call], "4711", 3).correct_leg_ids == {call.id}
    masked = PasscodeMask("4711")(spoken)
    assert HIDDEN in masked
    assert "4711" not in normalise_passcode(masked)


def test_a_passcode_that_was_asked_for_needs_no_word_before_it() -> None:
    call = make_call(
        [
            ("agent", "What is your passcode?"),
            ("caller", "Blue harvest."),
            ("agent", "Thanks."),
            ("caller", "Blue harvest."),
        ]
    )
    assert find_tries([call], "blue harvest", 3) == find_tries(
        [call], "Blue Harvest!", 3
    )
    assert (
        find_tries([call], "blue harvest", 3).wrong,
        find_tries([call], "red", 3).wrong,
    ) == (
        0,
        1,
    )


def test_ordinary_numbers_are_no_try() -> None:
    call = make_call(
        [
            ("agent", "How many?"),
            ("caller", "4711 boxes."),
            ("caller", "My flight is 4711."),
        ]
    )
    assert find_tries([call], "4711", 3) == find_tries([], "4711", 3)


def test_after_too_many_wrong_tries_the_right_one_does_not_count() -> None:
    calls = [
        make_call([("caller", f"my passcode is {code}")])
        for code in ("0001", "0002", "4711")
    ]
    assert find_tries(calls, "4711", 3).correct_leg_ids == {calls[2].id}
    assert find_tries(calls, "4711", 2).correct_leg_ids == frozenset()


@given(
    st.text(max_size=40),
    st.sampled_from(["4711", "blue harvest", "open 9 sesame"]),
    st.text(max_size=40),
)
def test_the_mask_takes_the_passcode_out_of_any_text(
    before: str, passcode: str, after: str
) -> None:
    assert passcode not in PasscodeMask(passcode)(f"{before} {passcode} {after}")


def test_a_masked_reader_finds_nothing_of_what_is_hidden() -> None:
    call = make_call(
        [
            ("agent", "Hi."),
            (
                "caller",
                "My passcode is blue harvest. Please open a bug about the blue harvest page.",
            ),
        ]
    )
    reader = LocalReader(RulesReader(), UTC, PasscodeMask("blue harvest"))
    reading = reader.read(call)
    assert "harvest" not in reading.model_dump_json()
    assert len(reading.requests) == 1


@pytest.mark.parametrize(
    ("value", "due"),
    [
        (date(2026, 2, 17), "2026-02-17"),
        ("2026-02-17", "2026-02-17"),
        ("2026-02-13", "2026-02-13"),
        ("2026-02-17T09:00:00Z", "2026-02-17T09:00:00.000Z"),
        ("2026-02-31", None),
        ("2020-01-01", None),
        ("9999-12-31", None),
        ("next Tuesday", None),
        (17, None),
        ({}, None),
        (None, None),
    ],
)
def test_a_due_date_is_one_that_exists_and_has_not_passed(
    value: object, due: str | None
) -> None:
    found, note = read_due(value, TODAY)
    assert found == due
    assert bool(note) == (due is None and value is not None)


@given(st.text(), st.integers(min_value=2, max_value=50))
def test_one_line_is_one_line_and_no_longer_than_allowed(
    text: str, longest: int
) -> None:
    line = to_one_line(text, longest)
    assert len(line) <= longest
    assert len(line.splitlines()) <= 1


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        (
            "Open a bug about the broken thumbnails",
            "File a bug: broken thumbnails",
            True,
        ),
        ("Open a bug about thumbnails", "Open a bug about login", False),
        ("Remind me to call Anna", "Remind me to call Bob", False),
        ("Order paper", "order paper.", True),
        ("Order ten chairs", "Order ten tables", False),
        ("Order 2 boxes of paper", "Order three boxes of paper", False),
        ("Order two boxes of paper", "Order 2 boxes of paper", True),
        ("Order paper", "Order 3 boxes of paper", True),
        ("Order ten black office chairs", "Order ten blue office chairs", False),
        ("Send Dana the signed contract", "Send Dana the contract", True),
        ("Water the plants", "Water the plants on the balcony of the office", True),
        ("", "", True),
    ],
)
def test_titles_that_name_one_thing_are_told_from_those_that_name_two(
    first: str, second: str, same: bool
) -> None:
    assert is_same_title(first, "task", second, "task") == same


@given(st.lists(DRAFTS, max_size=8))
def test_entering_the_same_conversation_again_changes_nothing(
    drafts: list[FollowUpDraft],
) -> None:
    folded = merge_duplicates(drafts)
    first = plan_followups(folded, [], ORIGIN, judged, START)
    rows = {row.id: row for row in first.new_rows}
    assert len({row.key for row in first.new_rows}) == len(first.new_rows)
    again = plan_followups(folded, list(rows.values()), ORIGIN, judged, START)
    assert again.new_rows == []
    assert [change.state for _, change in again.changes] == []


@given(st.sampled_from(["issue", "task"]), TITLES, TITLES)
def test_a_key_is_made_of_conversation_kind_and_title_alone(
    kind: RequestKind, first: str, second: str
) -> None:
    assert (
        key_of("K", "request", kind, first)
        == key_of("K", "request", kind, f"  {second.upper()}!")
    ) == (first == second)
    assert key_of("K", "request", kind, first) != key_of("L", "request", kind, first)


def row(
    title: str,
    state: str,
    kind: str = "request",
    sink: str = "tasks",
    details: str = "",
    seq: int = 1,
) -> FollowUp:
    draft = FollowUpDraft(
        "request" if kind == "request" else "promise",
        "task",
        title,
        details,
        turn_refs=(("C", seq),),
    )
    made = plan_followups(
        [draft],
        [],
        ORIGIN,
        lambda draft: JudgedDraft(draft, "unknown", (sink,), PolicyRuling("do")),
        START,
    ).new_rows[0]
    return FollowUp(
        **{
            **made.__dict__,
            "state": state,
            "link": "there" if state == "done" else None,
        }
    )


@pytest.mark.parametrize(
    ("promise", "request_", "state"),
    [
        ("Order paper for the printer", row("Order paper", "done"), "done"),
        ("Order paper for the printer", row("Order paper", "held"), "held"),
        ("Order paper for the printer", row("Order paper", "failed"), "broken"),
        ("Order paper for the printer", row("Order paper", "withdrawn"), "withdrawn"),
        (
            "Check with the warehouse",
            row("Order paper", "done", details="I'll check with the warehouse"),
            "broken",
        ),
        ("Email you the invoice", row("Get the invoice", "done"), "broken"),
        ("Email you the invoice", row("Get the invoice", "done", sink="agent"), "done"),
        ("Get back to you tomorrow", row("Order paper", "done"), "broken"),
        ("Do that", row("Order paper", "done"), "done"),
        ("Do that", row("Order paper", "done", seq=9), "broken"),
        (
            "Flag the nut allergy on the reservation for the chef",
            row("Let the kitchen know", "done", details="She has a nut allergy"),
            "done",
        ),
        (
            "Ask the nurse to phone you with the results",
            row("Ring me", "done"),
            "broken",
        ),
        ("Send it on Wednesday", row("Send it to the office", "refused"), "withdrawn"),
        ("Put the lilies on the van", row("Bring the flowers", "withdrawn"), "broken"),
    ],
)
def test_a_promise_is_as_good_as_the_work_behind_it(
    promise: str, request_: FollowUp, state: str
) -> None:
    made = row(promise, "open", "promise", seq=2)
    assert judge_promise(made, [request_], is_late=True).state == state
    assert judge_promise(made, [request_], is_late=False).state == (
        "unknown" if state == "broken" else state
    )


def test_a_promise_tells_what_it_waits_for_or_why_nothing_is_known() -> None:
    promise = row("Put the lilies on the van", "open", "promise", seq=2)
    lilies = row("Send lilies to my wife", "open")
    told = judge_promise(promise, [lilies], is_late=False)
    assert (told.state, told.reason) == ("open", "waits for: Send lilies to my wife")
    assert judge_promise(promise, [], is_late=False).reason == NO_WORK
    promise = row("Text you when they are ready", "open", "promise", seq=2)
    noted = judge_promise(promise, [row("Text me", "done")], is_late=False)
    assert (noted.state, noted.reason) == ("unknown", ONLY_NOTED)


@pytest.mark.parametrize(
    ("sink", "kind", "standing"),
    [
        ("tasks", "task", "noted"),
        ("people", "note", "noted"),
        ("github", "issue", "done"),
        ("github", "task", "noted"),
        ("email", "task", "passed on"),
        ("tasks+webhook", "task", "passed on"),
        ("tasks+agent", "task", "done"),
        ("a sink of earlier days", "task", "passed on"),
        ("", "task", "done"),
    ],
)
def test_done_is_told_as_what_the_furthest_sink_made_of_it(
    sink: str, kind: RequestKind, standing: str
) -> None:
    assert describe_state("done", "request", kind, sink) == standing
    assert describe_state("held", "request", kind, sink) == "held"


def test_of_every_sink_it_is_known_what_its_work_is_worth() -> None:
    assert set(EFFECTS) == {"tasks", "people", PERSON, *NEEDED_SETTINGS}


def test_legs_that_two_processes_recorded_are_told_in_the_order_of_time() -> None:
    first = make_call([("caller", "One."), ("caller", "Three.")])
    second = make_call(
        [("caller", "Two."), ("caller", "Four.")],
        started_at=first.started_at + timedelta(seconds=0.5),
        conversation=first.id,
        resumes=first.id,
    )
    joined = join_legs(first.id, [first, second])
    told = [turn.text for turn in joined.merged_call.turns]
    assert told == ["One.", "Two.", "Three.", "Four."]
    assert joined.to_spots([2, 3]) == ((second.id, 1), (first.id, 2))


def test_legs_are_one_transcript_and_every_turn_knows_where_it_was_said() -> None:
    first = make_call([("agent", "Hello."), ("caller", "One.")])
    second = make_call(
        [("caller", "Two."), ("caller", "Three.")], conversation=first.id
    )
    joined = join_legs(first.id, [first, second])
    assert [(turn.seq, turn.text) for turn in joined.merged_call.turns] == [
        (1, "Hello."),
        (2, "One."),
        (3, "Two."),
        (4, "Three."),
    ]
    assert joined.to_spots((2, 3, 4, 99)) == (
        (first.id, 2),
        (second.id, 1),
        (second.id, 2),
    )
