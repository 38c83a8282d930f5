"""What a person puts right stays right, on both databases: over readings, reruns and rebuilds."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from aftercall.app import App
from aftercall.briefing.render import render
from aftercall.db.corrections import CorrectedThing, Correction
from aftercall.errors import NotFound, NotWaiting, RefusedInput, WorkspaceReadOnly
from aftercall.memory.fact_store import FactFilter, correction_json
from aftercall.model.calls import Call
from aftercall.model.facts import Fact, MemoryKey
from aftercall.model.followups import FollowUp
from aftercall.model.reading import (
    Profile,
    Reading,
    Request,
    UnclearRequest,
    WithdrawnRequest,
)
from aftercall.postcall.runner import StepRunner, rerun
from aftercall.privacy.rebuild import Rebuilder
from aftercall.settings.sections import RetentionSettings
from aftercall.work.context import WorkContext
from aftercall.work.deliver import approve
from aftercall.work.store import FollowUpTransition
from aftercall.workspace import files, user_md
from aftercall.workspace.paths import Workspace
from fact_drafts import draft, reader_of, say
from fakes import FakeReader, VirtualClock, make_call
from followup_work import follow

BILL, ANNA = "+15550100", "+15550111"
ME = "me"


def ask(title: str, **fields: Any) -> Request:
    defaults: dict[str, Any] = {"kind": "issue", "turns": (2,), "words": "open a bug"}
    return Request.model_validate(defaults | {"title": title} | fields)


def maybe(title: str) -> UnclearRequest:
    return UnclearRequest(title=title, turns=(2,), words="open a bug", confidence=0.4)


def reader_asking(*requests: Request, **fields: Any) -> FakeReader:
    reading = Reading(language="en", summary="A call.", requests=requests, **fields)
    return FakeReader(reading)


def careful(app: App, reader: FakeReader) -> WorkContext:
    """Follow-up work that holds every request."""
    policy = {"unknown": "hold", "known": "hold"}
    work = app.settings.work.model_copy(update={"policy": policy})
    settings = app.settings.model_copy(update={"work": work})
    return replace(app.work, settings=settings, reader=reader)


def request_of(app: App, *requests: Request, reader: FakeReader | None = None) -> Call:
    call = make_call([("agent", "Hello!"), ("caller", "Please open a bug.")])
    app.journal.ingest(call)
    read_again(app, call, reader or reader_asking(*requests))
    return call


def read_again(app: App, call: Call, reader: FakeReader) -> list[FollowUp]:
    app.work.runs.make_due(call.conversation, app.clock.now())
    return follow(careful(app, reader), call.conversation)


def only_request(app: App, call: Call) -> FollowUp:
    (row,) = app.work.followups.of_conversation(call.conversation)
    return row


def briefing_of(app: App, caller: str = BILL) -> str:
    return render(app.composer.preview(caller, is_verified=True), app.settings.zone)


def correct(app: App, what: CorrectedThing, of: str, new: str | None) -> Correction:
    return app.corrections.correct(what, of, new, ME)


def test_a_corrected_title_is_in_the_next_briefing_and_survives_a_reading(
    app: App,
) -> None:
    call = request_of(app, ask("Open a bug about thumb nails"))
    before = only_request(app, call)
    assert "thumb nails" in briefing_of(app)
    made = correct(app, "request", before.id, "Open a bug about thumbnails")
    assert (made.old, made.new, made.who) == (
        "Open a bug about thumb nails",
        "Open a bug about thumbnails",
        ME,
    )
    assert "about thumbnails" in briefing_of(app)
    assert "thumb nails" not in briefing_of(app)
    for title in (
        "Open a bug about thumb nails",
        "Open bug: thumb nails",
        "Fix the pictures",
    ):
        (row,) = read_again(app, call, reader_asking(ask(title)))
        assert (row.id, row.title) == (before.id, "Open a bug about thumbnails")


def test_a_second_request_of_the_same_turn_is_a_row_of_its_own(app: App) -> None:
    call = request_of(app, ask("Order printer paper"))
    correct(app, "request", only_request(app, call).id, "Order blue printer paper")
    asked = (ask("Order printer paper"), ask("Water the office plants"))
    rows = read_again(app, call, reader_asking(*asked))
    assert [row.title for row in rows] == [
        "Order blue printer paper",
        "Water the office plants",
    ]


def test_a_corrected_due_day_stays_when_the_call_is_read_again(app: App) -> None:
    call = request_of(app, ask("Order paper", due="2026-02-17"))
    row = only_request(app, call)
    made = correct(app, "due", row.id, "2026-02-19")
    (again,) = read_again(
        app, call, reader_asking(ask("Order paper", due="2026-02-18"))
    )
    assert again.due == "2026-02-19"
    app.corrections.undo(made.id, ME)
    assert only_request(app, call).due == "2026-02-17"
    (again,) = read_again(
        app, call, reader_asking(ask("Order paper", due="2026-02-18"))
    )
    assert again.due == "2026-02-18"


def test_a_request_that_was_not_asked_for_is_neither_done_nor_told(app: App) -> None:
    call = request_of(app, ask("Order paper"))
    row = only_request(app, call)
    made = correct(app, "request", row.id, None)
    (again,) = read_again(app, call, reader_asking(ask("Order paper")))
    assert (again.id, again.state) == (row.id, "withdrawn")
    assert "Order paper" not in briefing_of(app)
    with pytest.raises(RefusedInput, match="was removed"):
        correct(app, "request", row.id, "Order pens")
    app.corrections.undo(made.id, ME)
    assert only_request(app, call).state == "held"
    assert "Order paper" in briefing_of(app)


def test_a_request_that_was_missed_is_held_and_is_the_one_a_later_reading_finds(
    app: App,
) -> None:
    call = request_of(app)
    made = app.corrections.add_request(
        call.id, "Open a bug about thumbnails", ME, kind="issue", turns=(2,)
    )
    row = only_request(app, call)
    assert (row.state, row.turns, row.sinks) == ("held", ((call.id, 2),), ("tasks",))
    assert "about thumbnails" in briefing_of(app)
    assert [change.who for change in app.work.followups.history(row.id)] == [ME]
    with pytest.raises(RefusedInput, match=row.id):
        app.corrections.add_request(
            call.id, "Open a bug about thumbnails", ME, kind="issue"
        )
    (again,) = read_again(app, call, reader_asking(ask("Mend the pictures")))
    assert (again.id, again.title) == (row.id, "Open a bug about thumbnails")
    app.corrections.undo(made.id, ME)
    assert only_request(app, call).state == "withdrawn"


def test_a_missed_request_names_turns_that_the_call_has(app: App) -> None:
    call = request_of(app)
    for turns in ((0,), (3,)):
        with pytest.raises(RefusedInput, match="2 turns"):
            app.corrections.add_request(call.id, "Order paper", ME, turns=turns)
    with pytest.raises(NotFound):
        app.corrections.add_request("none", "Order paper", ME)
    assert app.corrections.store.page(limit=1) == []


def test_a_corrected_kind_goes_to_its_own_sink_and_stays(app: App) -> None:
    call = request_of(app, ask("Tell Dana about the leak", kind="task"))
    row = only_request(app, call)
    made = correct(app, "kind", row.id, "note")
    correct(app, "person", row.id, "Dana")
    gone = WithdrawnRequest(title="Tell Dana about the leak", turns=(2,))
    read_again(app, call, reader_asking(withdrawn=(gone,)))
    asked = ask("Tell Dana about the leak", kind="task")
    (again,) = read_again(app, call, reader_asking(asked))
    assert (again.id, again.request_kind, again.person) == (row.id, "note", "Dana")
    assert (again.state, again.sinks) == ("held", ("people",))
    app.corrections.undo(made.id, ME)
    undone = only_request(app, call)
    assert (undone.request_kind, undone.sinks) == ("task", ("tasks",))


def test_a_request_that_was_about_to_be_done_as_another_kind_is_held(app: App) -> None:
    call = request_of(app, ask("Order paper", kind="task"))
    row = only_request(app, call)
    to_open = FollowUpTransition("open", ME)
    now = app.clock.now()
    app.work.followups.change_state(row.id, to_open, now, only_from=("held",))
    correct(app, "kind", row.id, "booking")
    assert only_request(app, call).state == "held"


def test_an_unclear_request_waits_for_a_yes_or_a_no(app: App) -> None:
    titles = ("New shoes for the donkey", "Water the plants", "Paint the fence")
    unclear = tuple(maybe(title) for title in titles)
    call = request_of(app, reader=reader_asking(unclear=unclear))
    rows = app.work.followups.of_conversation(call.conversation)
    assert [(row.title, row.state) for row in rows] == [
        (title, "unclear") for title in titles
    ]
    assert not any(title in briefing_of(app) for title in titles)
    correct(app, "request", rows[0].id, "Shoe the donkey")
    correct(app, "request", rows[1].id, None)
    sure = ask("Paint the fence", kind="task")
    read = reader_asking(sure, unclear=unclear)
    assert [(row.title, row.state) for row in read_again(app, call, read)] == [
        ("Shoe the donkey", "held"),
        ("Water the plants", "withdrawn"),
        ("Paint the fence", "held"),
    ]


def test_a_yes_that_is_undone_leaves_the_question_open_to_a_new_answer(
    app: App,
) -> None:
    call = request_of(app, reader=reader_asking(unclear=(maybe("Shoe the donkey"),)))
    row = only_request(app, call)
    with pytest.raises(NotWaiting):
        approve(app.work, row.id, ME)
    yes = correct(app, "request", row.id, row.title)
    app.corrections.undo(yes.id, ME)
    assert only_request(app, call).state == "unclear"


def test_a_caller_may_still_take_a_corrected_request_back(app: App) -> None:
    call = request_of(app, ask("Order paper for the printer"))
    row = only_request(app, call)
    correct(app, "request", row.id, "Order pens")
    gone = WithdrawnRequest(title="Order paper for the printer", turns=(2,))
    (again,) = read_again(app, call, reader_asking(withdrawn=(gone,)))
    assert (again.id, again.state) == (row.id, "withdrawn")


def test_a_plan_made_before_a_correction_is_made_anew(app: App) -> None:
    row = only_request(app, request_of(app, ask("Order paper", due="2026-02-17")))
    correct(app, "due", row.id, "2026-02-19")
    late = FollowUpTransition("held", "follow-up", values=(("due", "2026-02-18"),))
    now, followups = app.clock.now(), app.work.followups
    assert not followups.record([], [(row.id, late)], set(), now, seen=[row])
    assert followups.get(row.id).due == "2026-02-19"


def test_a_page_that_cannot_be_written_now_is_written_later(app: App) -> None:
    correct(app, "name", BILL, "Will")
    page_of(app).chmod(0o444)
    row = only_request(app, request_of(app, ask("Order paper")))
    with pytest.raises(WorkspaceReadOnly):
        correct(app, "name", BILL, "Bill")
    correct(app, "request", row.id, "Order pens")
    with pytest.raises(WorkspaceReadOnly):
        app.corrections.write_pending()
    page_of(app).chmod(0o644)
    app.corrections.write_pending()
    assert name_of(app) == "Bill"
    assert app.corrections.store.list_pending() == []


@pytest.mark.parametrize(
    ("what", "new"),
    [
        ("request", " \n "),
        ("due", "tomorrow"),
        ("due", "2026-02-31"),
        ("kind", "wish"),
        ("person", " "),
    ],
)
def test_what_is_no_title_or_no_day_is_refused_whole(
    app: App, what: CorrectedThing, new: str
) -> None:
    row = only_request(app, request_of(app, ask("Order paper")))
    with pytest.raises(RefusedInput):
        correct(app, what, row.id, new)
    assert app.work.followups.get(row.id) == row
    assert app.corrections.store.page(limit=10) == []


def test_the_newest_correction_counts_and_goes_first(app: App) -> None:
    call = request_of(app, ask("Order paper"))
    row = only_request(app, call)
    first = correct(app, "request", row.id, "Order pens")
    second = correct(app, "request", row.id, "Order ink")
    with pytest.raises(RefusedInput, match=second.id):
        app.corrections.undo(first.id, ME)
    app.corrections.undo(second.id, ME)
    assert only_request(app, call).title == "Order pens"
    app.corrections.undo(first.id, ME)
    assert only_request(app, call).title == "Order paper"
    with pytest.raises(NotFound):
        app.corrections.undo(first.id, ME)
    deeds = [(line.deed, line.subject) for line in app.audit.list_recent()][::-1]
    assert deeds == [
        ("corrected", first.id),
        ("corrected", second.id),
        ("undone", second.id),
        ("undone", first.id),
    ]


def learn(app: App, call: Call, *texts: str, **fields: Any) -> StepRunner:
    """A runner whose reader finds these facts in every call; the call is read by it."""
    drafts = [draft(text, **fields) for text in texts]
    context = replace(app.step_runner.context, reader=reader_of(*drafts))
    runner = StepRunner(context, app.archive)
    app.journal.ingest(call)
    rerun(runner, call.id, "facts")
    return runner


def believed(app: App, caller: str = BILL) -> list[str]:
    return [fact.content for fact in list_facts(app, caller)]


def list_facts(app: App, caller: str = BILL, **wanted: Any) -> list[Fact]:
    return app.facts.page(FactFilter(key=MemoryKey("main", caller), **wanted))


def pass_time(app: App, days: float = 0.1) -> None:
    assert isinstance(app.clock, VirtualClock)
    app.clock.move(timedelta(days=days).total_seconds())


def test_a_corrected_fact_survives_a_rerun_and_a_rebuild(app: App) -> None:
    call = say("I live in Port", "Yes")
    runner = learn(app, call, "I live in Port")
    pass_time(app)
    (fact,) = list_facts(app)
    made = correct(app, "fact", fact.id, "I live in Porto")
    assert "I live in Porto" in briefing_of(app)
    rerun(runner, call.id, "facts")
    assert [one.id for one in list_facts(app)] == [fact.id]
    Rebuilder(app.database, runner, app.work).rebuild()
    (rebuilt,) = list_facts(app)
    assert (rebuilt.content, rebuilt.occurrence_count) == ("I live in Porto", 1)
    assert app.facts.list_occurrences(rebuilt.id)[0].words == "I live in Port"
    app.corrections.undo(made.id, ME)
    assert believed(app) == ["I live in Port"]


def test_another_wording_of_the_wrong_fact_is_put_right_too(app: App) -> None:
    call = say("I live in Port", "Yes")
    learn(app, call, "I live in Port")
    pass_time(app)
    correct(app, "fact", list_facts(app)[0].id, "I live in Porto")
    learn(app, call, "The caller lives in Port", words="I live in Port")
    assert believed(app) == ["I live in Porto"]


def test_what_the_caller_says_after_a_correction_counts(app: App) -> None:
    learn(app, say("I live in Porto", "Yes"), "I live in Porto", category="person")
    pass_time(app)
    correct(app, "fact", list_facts(app)[0].id, "I live in Braga")
    later = say("I live in Porto", "Yes", day=10)
    learn(app, later, "I live in Porto", category="person")
    assert believed(app) == ["I live in Porto"]


def test_a_fact_that_was_missed_is_believed_and_survives_a_rebuild(app: App) -> None:
    call = say("We go over to the north office in May", "Yes")
    runner = learn(app, call)
    made = app.corrections.add_fact(
        call.id, "The caller moves to the north office", ME, turn=2, category="routine"
    )
    assert "moves to the north office" in briefing_of(app)
    (fact,) = list_facts(app)
    assert (fact.category, fact.reader) == ("routine", "a person")
    with pytest.raises(RefusedInput, match="known already"):
        app.corrections.add_fact(call.id, fact.content, ME, turn=2)
    second = correct(app, "fact", fact.id, "The caller moves to the south office")
    Rebuilder(app.database, runner, app.work).rebuild()
    (rebuilt,) = list_facts(app)
    assert (rebuilt.content, rebuilt.category) == (second.new, "routine")
    said = app.facts.list_occurrences(rebuilt.id)
    assert [one.words for one in said] == ["We go over to the north office in May"]
    app.corrections.undo(second.id, ME)
    app.corrections.undo(made.id, ME)
    assert list_facts(app, include_retired=True) == []
    assert app.corrections.store.page(limit=1) == []


def test_a_missed_fact_that_replaces_another_gives_its_place_back(app: App) -> None:
    learn(app, say("I live in Porto", "Yes"), "I live in Porto", category="person")
    later = say("Lisbon it is", "Yes", day=1)
    app.journal.ingest(later)
    made = app.corrections.add_fact(later.id, "I live in Lisbon", ME, turn=2)
    assert believed(app) == ["I live in Lisbon"]
    app.corrections.undo(made.id, ME)
    assert believed(app) == ["I live in Porto"]


def test_a_missed_secret_is_sealed_and_the_agents_words_are_no_fact(app: App) -> None:
    call = say("It is four eight two one", "Yes")
    app.journal.ingest(call)
    made = app.corrections.add_fact(call.id, "My PIN is 4821", ME, turn=2)
    (fact,) = list_facts(app)
    assert fact.is_secret
    assert not any("4821" in str(vars(one)) for one in (made, fact))
    for turn in (0, 1, 99):
        with pytest.raises(RefusedInput):
            app.corrections.add_fact(call.id, "I like tea", ME, turn=turn)


def test_a_removed_fact_held_on_no_day_and_what_it_replaced_holds_again(
    app: App,
) -> None:
    learn(app, say("I live in Porto", "Yes"), "I live in Porto", category="person")
    moved = say("I moved to Lisbon", "Yes", day=1)
    learn(app, moved, "I moved to Lisbon", category="person")
    pass_time(app, days=2)
    (fact,) = list_facts(app)
    made = correct(app, "fact", fact.id, None)
    assert believed(app) == ["I live in Porto"]
    then = moved.started_at + timedelta(hours=1)
    assert [one.content for one in list_facts(app, as_of=then)] == ["I live in Porto"]
    with pytest.raises(RefusedInput, match=made.id):
        app.corrections.restore(fact.id, "me")
    app.corrections.undo(made.id, ME)
    assert believed(app) == ["I moved to Lisbon"]
    assert [one.content for one in app.facts.get_history(fact.id)] == [
        "I live in Porto",
        "I moved to Lisbon",
    ]


def test_a_dispute_ends_with_the_fact_that_was_never_true_and_comes_back(
    app: App,
) -> None:
    pink, green = "My daughter Noor wants the pink cake", "The green cake it is"
    learn(app, say(pink, "Yes"), pink)
    changed = f"Noor changed her mind. {green}"
    learn(app, say(changed, "Yes", day=1), changed)
    pass_time(app, days=2)
    before = list_facts(app)
    assert [fact.state for fact in before] == ["disputed", "disputed"]
    for fact in before:
        made = correct(app, "fact", fact.id, None)
        (left,) = list_facts(app)
        assert (left.state, app.facts.get(fact.id).state) == ("active", "wrong")
        app.corrections.undo(made.id, ME)
        assert list_facts(app) == before


def test_a_fact_that_is_removed_from_the_middle_of_a_chain_leaves_no_gap(
    app: App,
) -> None:
    for day, place in enumerate(("Porto", "Lisbon", "Braga")):
        said = f"I live in {place}"
        learn(app, say(said, "Yes", day=day), said, category="person")
    pass_time(app, days=3)
    (newest,) = list_facts(app)
    chain = app.facts.get_history(newest.id)
    made = correct(app, "fact", chain[1].id, None)
    shorter = app.facts.get_history(newest.id)
    assert [one.content for one in shorter] == ["I live in Porto", "I live in Braga"]
    assert shorter[0].valid_until == newest.valid_from
    assert believed(app) == ["I live in Braga"]
    app.corrections.undo(made.id, ME)
    assert app.facts.get_history(newest.id) == chain


def test_a_removed_fact_stays_away_from_a_rebuilt_memory_until_it_is_put_back(
    app: App,
) -> None:
    call = say("I like tea", "Yes")
    runner = learn(app, call, "I like tea")
    pass_time(app)
    made = correct(app, "fact", list_facts(app)[0].id, None)
    rerun(runner, call.id, "facts")
    assert believed(app) == []
    Rebuilder(app.database, runner, app.work).rebuild()
    assert list_facts(app, include_retired=True) == []
    replace(app.corrections, runner=runner).undo(made.id, ME)
    assert believed(app) == ["I like tea"]


def test_the_same_words_of_another_caller_are_left_alone(app: App) -> None:
    learn(app, say("I like tea", "Yes"), "I like tea")
    other = say("I like tea", "Yes", caller=ANNA)
    runner = learn(app, other, "I like tea")
    pass_time(app)
    made = correct(app, "fact", list_facts(app)[0].id, "I like green tea")
    correct(app, "fact", list_facts(app, ANNA)[0].id, "I like black tea")
    rerun(runner, other.id, "facts")
    app.corrections.undo(made.id, ME)
    assert (believed(app), believed(app, ANNA)) == (
        ["I like tea"],
        ["I like black tea"],
    )


def test_a_fact_that_is_known_already_is_not_made_twice(app: App) -> None:
    learn(app, say("I like tea", "I drink no beer"), "I like tea")
    learn(app, say("I like tea", "I drink no beer"), "I drink no beer")
    tea, beer = list_facts(app)
    with pytest.raises(RefusedInput, match=tea.id):
        correct(app, "fact", beer.id, "I like tea")
    assert believed(app) == ["I like tea", "I drink no beer"]


def test_a_corrected_secret_is_sealed_wherever_it_is_kept(app: App) -> None:
    call = say("My PIN is 4821", "Yes")
    learn(app, call, "My PIN is 4821", visibility="secret", category="technical")
    (fact,) = list_facts(app)
    made = correct(app, "fact", fact.id, "My PIN is 4812")
    assert app.facts.reveal(app.facts.get(fact.id)).content == "My PIN is 4812"
    stored = [str(vars(one)) for one in (made, app.facts.get(fact.id))]
    assert not any(pin in row for pin in ("4821", "4812") for row in stored)
    assert correction_json(made)["new"] == "(secret)"
    app.corrections.undo(made.id, ME)
    assert app.facts.reveal(app.facts.get(fact.id)).content == "My PIN is 4821"


def page_of(app: App, caller: str = BILL) -> Path:
    person = Workspace.from_settings(app.settings).find_person(caller)
    assert person is not None
    return person.user


def name_of(app: App) -> str | None:
    return user_md.parse(files.read(page_of(app))).name


def test_a_corrected_name_is_used_at_once_and_no_call_before_brings_the_old_one_back(
    app: App,
) -> None:
    call = say("My name is Will Harker", "Yes")
    reading = Reading(
        language="en", summary="A call.", profile=Profile(name="Will Harker")
    )
    context = replace(app.step_runner.context, reader=FakeReader(reading))
    runner = StepRunner(context, app.archive)
    app.journal.ingest(call)
    rerun(runner, call.id, "profile")
    assert name_of(app) == "Will Harker"
    pass_time(app)
    made = correct(app, "name", BILL, "Bill Harker")
    assert name_of(app) == "Bill Harker"
    assert "Bill" in briefing_of(app)
    page_of(app).unlink()
    rerun(runner, call.id, "profile")
    assert name_of(app) == "Bill Harker"
    app.corrections.undo(made.id, ME)
    assert name_of(app) == "Will Harker"
    assert app.corrections.store.list_pending() == []


def test_a_name_that_is_nobodys_is_emptied_and_stays_empty(app: App) -> None:
    call = say("Carl is my brother", "Yes")
    reading = Reading(language="en", summary="A call.", profile=Profile(name="Carl"))
    context = replace(app.step_runner.context, reader=FakeReader(reading))
    runner = StepRunner(context, app.archive)
    app.journal.ingest(call)
    rerun(runner, call.id, "profile")
    pass_time(app)
    correct(app, "name", BILL, None)
    rerun(runner, call.id, "profile")
    assert name_of(app) is None


def test_undoing_a_name_leaves_what_was_typed_into_the_page_since(app: App) -> None:
    made = correct(app, "name", BILL, "Bill")
    files.edit(page_of(app), lambda text: user_md.set_field(text, "name", "Wilhelm"))
    app.corrections.undo(made.id, ME)
    assert name_of(app) == "Wilhelm"


def test_an_erased_caller_leaves_no_correction_and_an_export_has_them_all(
    app: App, tmp_path: Path
) -> None:
    call = request_of(app, ask("Order paper"))
    correct(app, "request", only_request(app, call).id, "Order pens")
    correct(app, "name", BILL, "Bill")
    correct(app, "name", ANNA, "Anna")
    app.exporter.export(BILL, tmp_path / "bill")
    exported = (tmp_path / "bill" / "corrections.json").read_text()
    assert "Order pens" in exported
    assert "Anna" not in exported
    app.eraser.erase(BILL)
    assert [one.new for one in app.corrections.store.page(limit=10)] == ["Anna"]


def test_a_correction_goes_with_the_fact_that_is_past_its_time(app: App) -> None:
    learn(app, say("I like tea", "Yes"), "I like tea")
    correct(app, "fact", list_facts(app)[0].id, "I like green tea")
    pass_time(app, days=40)
    retention = RetentionSettings(facts_days=30)
    settings = app.settings.model_copy(update={"retention": retention})
    replace(app.retention, settings=settings).apply()
    assert app.corrections.store.page(limit=10) == []


PINK = "My daughter Noor wants the pink cake"
GREEN = "Noor changed her mind, the green cake it is"


def learn_dispute(app: App) -> StepRunner:
    for day, text in enumerate((PINK, GREEN)):
        runner = learn(app, say(text, "Yes", day=day), PINK, GREEN)
    pass_time(app, days=3)
    return runner


def states(app: App) -> dict[str, str]:
    return {one.content: one.state for one in list_facts(app, include_retired=True)}


def find_fact(app: App, content: str) -> Fact:
    every = list_facts(app, include_retired=True)
    return next(one for one in every if one.content == content)


@pytest.mark.parametrize(
    ("holds", "both", "expected"),
    [
        (GREEN, False, {PINK: "superseded", GREEN: "active"}),
        (PINK, False, {PINK: "active", GREEN: "wrong"}),
        (PINK, True, {PINK: "active", GREEN: "active"}),
    ],
)
def test_a_settled_dispute_stays_settled_after_a_rebuild_until_it_is_undone(
    app: App, holds: str, both: bool, expected: dict[str, str]
) -> None:
    runner = learn_dispute(app)
    assert set(states(app).values()) == {"disputed"}
    made = app.corrections.settle(find_fact(app, holds).id, ME, both=both)
    assert states(app) == expected
    for _ in range(2):
        Rebuilder(app.database, runner, app.work).rebuild()
        assert states(app) == expected
    shown = correction_json(app.corrections.store.page(limit=1)[0])
    assert (shown["what"], shown["new"]) == ("settled", holds)
    app.corrections.undo(made.id, ME)
    assert set(states(app).values()) == {"disputed"}
    Rebuilder(app.database, runner, app.work).rebuild()
    assert set(states(app).values()) == {"disputed"}
    assert app.corrections.store.page(limit=1) == []


def test_a_restored_fact_is_believed_after_a_rebuild(app: App) -> None:
    porto, lisbon = "I live in Porto", "I live in Lisbon"
    for day, text in enumerate((porto, lisbon)):
        call = say(text, "Yes", day=day)
        runner = learn(app, call, porto, lisbon, category="person")
    pass_time(app, days=3)
    assert believed(app) == [lisbon]
    app.corrections.restore(find_fact(app, porto).id, ME)
    Rebuilder(app.database, runner, app.work).rebuild()
    assert sorted(believed(app)) == [lisbon, porto]


def test_what_is_said_after_a_dispute_was_settled_counts(app: App) -> None:
    runner = learn_dispute(app)
    app.corrections.settle(find_fact(app, PINK).id, ME)
    learn(app, say(GREEN, "Yes", day=9), GREEN)
    told = sorted((one.content, one.state) for one in list_facts(app))
    assert told == [(PINK, "disputed"), (GREEN, "disputed")]
    Rebuilder(app.database, runner, app.work).rebuild()
    assert sorted((one.content, one.state) for one in list_facts(app)) == told


def test_a_decision_goes_with_the_fact_that_it_is_for(app: App) -> None:
    learn_dispute(app)
    app.corrections.settle(find_fact(app, GREEN).id, ME)
    pass_time(app, days=40)
    retention = RetentionSettings(facts_days=30)
    settings = app.settings.model_copy(update={"retention": retention})
    replace(app.retention, settings=settings).apply()
    assert app.corrections.store.page(limit=1) == []


def test_a_retired_fact_held_until_its_day_and_stays_so_after_a_rebuild(
    app: App,
) -> None:
    porto = "I live in Porto"
    runner = learn(app, say(porto, "Yes", day=0), porto, category="person")
    pass_time(app, days=9)
    fact = find_fact(app, porto)
    with pytest.raises(RefusedInput, match="future"):
        app.corrections.retire(fact.id, ME, "2030-01-01")
    day = (app.clock.now() - timedelta(days=3)).date()
    made = app.corrections.retire(fact.id, ME, day.isoformat())
    with pytest.raises(RefusedInput, match="retired already"):
        app.corrections.retire(fact.id, ME)
    for _ in range(2):
        assert states(app) == {porto: "superseded"}
        until = find_fact(app, porto).valid_until
        assert until is not None
        assert until.astimezone(app.settings.zone).date() == day
        Rebuilder(app.database, runner, app.work).rebuild()
    assert porto not in briefing_of(app)
    shown = correction_json(app.corrections.store.page(limit=1)[0])
    assert (shown["old"], shown["new"]) == (porto, f"no longer true since {day}")
    app.corrections.undo(made.id, ME)
    assert believed(app) == [porto]
    Rebuilder(app.database, runner, app.work).rebuild()
    assert believed(app) == [porto]


def test_a_retired_fact_that_a_person_restores_holds_after_a_rebuild(app: App) -> None:
    porto = "I live in Porto"
    runner = learn(app, say(porto, "Yes", day=0), porto, category="person")
    pass_time(app, days=3)
    app.corrections.retire(find_fact(app, porto).id, ME)
    app.corrections.restore(find_fact(app, porto).id, ME)
    assert believed(app) == [porto]
    Rebuilder(app.database, runner, app.work).rebuild()
    assert believed(app) == [porto]
