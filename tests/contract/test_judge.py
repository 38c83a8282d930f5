"""A judge of doubtful facts, on both databases: asked after the call, believed only where the rules
agree, and never the reason that a fact is lost.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from threading import Event

import pytest

from aftercall.app import App
from aftercall.clock import SystemClock
from aftercall.errors import ConfigError, ModelUnavailable
from aftercall.llm.model.client import Completion, Prompt
from aftercall.memory.fact_store import FactFilter
from aftercall.memory.judge import (
    CallJudge,
    Judge,
    ModelJudge,
    TimedJudge,
    load_judge,
)
from aftercall.memory.search import find_similar_facts
from aftercall.model.calls import Call
from aftercall.model.facts import MemoryKey
from aftercall.model.reading import Reading
from aftercall.postcall.runner import StepRunner, rerun
from aftercall.postcall.steps import NO_FACTS_YET, list_steps
from aftercall.postcall.store import are_finished
from aftercall.running import running
from aftercall.settings import Settings
from aftercall.settings.sections import ExtractionSettings, MemorySettings
from fact_drafts import draft, on, reader_of, say
from fakes import FakeReader
from opened_apps import OpenApp
from step_stages import run_steps

BILL = MemoryKey("main", "+15550100")
RENT, NEW_RENT = (
    "I pay seven hundred a month in rent",
    "I hand over eight hundred in rent each month",
)
Answer = Callable[[str, Mapping[str, str]], Mapping[str, str]]


class ScriptedJudge:
    """Answers as it is told, and keeps what it was asked."""

    name = "scripted"

    def __init__(self, answer: Answer) -> None:
        self.asked: list[tuple[str, dict[str, str]]] = []
        self._answer = answer

    def judge(self, new: str, known: Mapping[str, str]) -> Mapping[str, str]:
        self.asked.append((new, dict(known)))
        return self._answer(new, known)


def always(word: str) -> ScriptedJudge:
    return ScriptedJudge(lambda _new, known: dict.fromkeys(known, word))


def runner_with(app: App, judge: Judge, reader: FakeReader | None = None) -> StepRunner:
    find = partial(find_similar_facts, app.search, app.facts, app.settings)
    context = replace(
        app.step_runner.context, judging=CallJudge(judge, app.facts, find)
    )
    return StepRunner(replace(context, reader=reader or context.reader), app.archive)


def tell(app: App, judge: Judge, *said: str, day: float = 0, **fields: str) -> Call:
    """A call of that day whose facts were found and judged."""
    call = say(*said, "That is all", day=day)
    row, _ = app.journal.ingest(call)
    call = call.model_copy(update={"id": row.live.id})
    reader = reader_of(*(draft(text, **fields) for text in said))
    for name in ("facts", "judge"):
        runner_with(app, judge, reader).run(call.id, name)
    return call


def states(app: App) -> dict[str, str]:
    every = app.facts.page(FactFilter(key=BILL, include_retired=True))
    return {fact.content: fact.state for fact in every}


def test_what_a_judge_and_the_rules_agree_on_is_replaced_and_was_true_until_then(
    app: App,
) -> None:
    tell(app, always("replaces"), RENT)
    call = tell(app, always("replaces"), NEW_RENT, day=3)
    assert states(app) == {RENT: "superseded", NEW_RENT: "active"}
    old = app.facts.page(FactFilter(key=BILL, as_of=on(1)))
    assert [fact.content for fact in old] == [RENT]
    (step,) = [step for step in app.steps.of_call(call.id) if step.name == "judge"]
    assert "1 replaced, 0 disputed" in str(step.result)


def test_a_judge_is_never_asked_about_another_person(app: App) -> None:
    judge = always("replaces")
    tell(app, judge, "My sister Ann lives in Porto", "My brother is a vet")
    tell(app, judge, "My daughter has moved to Lisbon", day=3)
    assert set(states(app).values()) == {"active"}
    known = {text for _, asked in judge.asked for text in asked.values()}
    assert not {text for text in known if "sister" in text or "brother" in text}


def test_a_judge_that_contradicts_itself_makes_a_dispute_at_most(app: App) -> None:
    judge = ScriptedJudge(
        lambda new, known: dict.fromkeys(
            known, "replaces" if new == NEW_RENT else "same"
        )
    )
    tell(app, judge, RENT)
    tell(app, judge, NEW_RENT, day=3)
    assert (states(app)[RENT], states(app)[NEW_RENT]) == ("disputed", "disputed")


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"99": "replaces", "nobody": "replaces", "": "same"},
        {"1": "REPLACES!", "2": ""},
        {"1": "yes"},
    ],
)
def test_ids_and_words_that_were_not_asked_for_change_nothing(
    app: App, answer: dict[str, str]
) -> None:
    judge = ScriptedJudge(lambda _new, _known: answer)
    tell(app, judge, RENT)
    tell(app, judge, NEW_RENT, day=3)
    assert judge.asked
    assert set(states(app).values()) == {"active"}


def test_a_judge_that_lets_one_fact_replace_everything_is_not_believed(
    app: App,
) -> None:
    said = [f"I pay {number} hundred a month for {it}" for number, it in PAYMENTS]
    tell(app, always("unsure"), *said)
    tell(app, always("replaces"), "I pay nine hundred a month now", day=3)
    assert {states(app)[text] for text in said} <= {"active", "disputed"}


PAYMENTS = (("two", "rent"), ("three", "food"), ("four", "heating"), ("five", "fuel"))


def test_a_judge_never_sees_a_secret(app: App) -> None:
    judge = always("replaces")
    tell(app, judge, "I have a loan of nine thousand", visibility="secret")
    tell(app, judge, "I have a loan of four thousand", day=3, visibility="secret")
    assert not judge.asked


def test_a_judge_settles_a_dispute_for_both(app: App) -> None:
    pink, green = (
        "My daughter wants the pink cake",
        "My daughter wants the green cake instead of cream",
    )
    tell(app, always("unsure"), pink)
    tell(app, always("unsure"), green, day=1)
    before = states(app)
    assert before[pink] == before[green] == "disputed", before
    (last,) = [
        fact for fact in app.facts.page(FactFilter(key=BILL)) if fact.content == green
    ]
    call_id = app.facts.list_occurrences(last.id)[0].call_id
    runner_with(app, always("different")).run(call_id, "judge")
    assert (states(app)[pink], states(app)[green]) == ("active", "active")


def test_what_a_person_restored_is_not_judged_again(app: App) -> None:
    tell(app, always("replaces"), RENT)
    call = tell(app, always("replaces"), NEW_RENT, day=3)
    (old,) = [
        fact
        for fact in app.facts.page(FactFilter(key=BILL, include_retired=True))
        if fact.content == RENT
    ]
    app.corrections.restore(old.id, "me")
    rerun(runner_with(app, always("replaces")), call.id, "judge")
    assert states(app)[RENT] == "active"


class SilentJudge:
    """Does not answer until it is let go."""

    name = "silent"

    def __init__(self) -> None:
        self.go = Event()
        self.begun = 0

    def judge(self, new: str, known: Mapping[str, str]) -> Mapping[str, str]:
        self.begun += 1
        self.go.wait()
        return dict.fromkeys(known, "replaces")


@pytest.fixture
def silent() -> Iterator[SilentJudge]:
    judge = SilentJudge()
    yield judge
    judge.go.set()


def test_a_judge_that_gives_no_answer_is_asked_again_later_and_no_fact_is_lost(
    app: App, silent: SilentJudge
) -> None:
    tell(app, always("unsure"), RENT)
    call = say(NEW_RENT, "That is all", day=3)
    call = call.model_copy(update={"id": app.journal.ingest(call)[0].live.id})
    runner = runner_with(app, TimedJudge(silent, 0.05), reader_of(draft(NEW_RENT)))
    names = ["facts", "judge"]
    app.steps.add_waiting([call.id], names, app.clock.now())
    assert run_steps(runner, call.id, names) == {"judge": 1.0}
    assert run_steps(runner, call.id, ["judge"], 2) == {"judge": 2.0}
    assert (states(app)[NEW_RENT], silent.begun) == ("active", 1), (
        "one thread waits, not two"
    )
    silent.go.set()
    assert run_steps(runner, call.id, ["judge"], 3) == {}
    assert (states(app)[RENT], states(app)[NEW_RENT]) == ("superseded", "active")


def test_the_judge_waits_for_late_facts(app: App) -> None:
    tell(app, always("unsure"), RENT)
    call = say(NEW_RENT, "That is all", day=3)
    call = call.model_copy(update={"id": app.journal.ingest(call)[0].live.id})
    found = Reading(language="en", summary="Rent.", facts=(draft(NEW_RENT),))
    late = FakeReader(found, ModelUnavailable("the model does not answer"))
    runner = runner_with(app, always("replaces"), late)
    names = [name for name in list_steps(runner.context) if name in ("facts", "judge")]
    assert names == ["facts", "judge"]
    app.steps.add_waiting([call.id], names, app.clock.now())
    assert run_steps(runner, call.id, names) == {"facts": 1.0}
    waiting = {step.name: step.reason for step in app.steps.of_call(call.id)}
    assert waiting["judge"] == NO_FACTS_YET
    assert run_steps(runner, call.id, ["facts"], 2) == {}
    after = runner.list_late_steps(call.id, "facts")
    assert after == ["judge"]
    run_steps(runner, call.id, after, again=True)
    assert states(app)[RENT] == "superseded"


@pytest.mark.parametrize("limit", [None, 60])
async def test_the_engine_judges_after_the_facts_with_and_without_a_limit(
    settings: Settings, open_app: OpenApp, limit: int | None
) -> None:
    update: dict[str, object] = {"memory": MemorySettings(judge=JUDGE_PATH)}
    if limit:
        update["extraction"] = ExtractionSettings(max_per_minute=limit)
    live = open_app(settings.model_copy(update=update), SystemClock())
    app = replace(live, reader=reader_of(draft(RENT), draft(NEW_RENT)))
    async with running(app):
        for day, text in enumerate((RENT, NEW_RENT)):
            call = say(text, "That is all", day=day)
            await asyncio.to_thread(app.journal.ingest, call)
            while not are_finished(app.steps.of_call(call.id)):
                await app.clock.sleep(0.05)
    ends = {step.name: step.state for step in app.steps.of_call(call.id)}
    assert (ends["facts"], ends["judge"]) == ("done", "done")
    assert states(app) == {RENT: "superseded", NEW_RENT: "active"}


JUDGE_PATH = "fact_drafts:ReplacingJudge"


def test_without_a_judge_there_is_no_such_step(app: App) -> None:
    assert "judge" not in list_steps(app.step_runner.context)


class Model:
    """A client whose answers are given."""

    name = "openai-compatible:tiny"
    part_chars = 10_000

    def __init__(self, *answers: str) -> None:
        self.prompts: list[Prompt] = []
        self._answers = list(answers)

    def ask(self, prompt: Prompt) -> Completion:
        self.prompts.append(prompt)
        return Completion(self._answers.pop(0))


def test_a_model_is_asked_one_small_question_and_two_answers_to_it_are_none() -> None:
    model = Model(
        '{"judgements": [{"known": 1, "verdict": "Replaces"}, {"known": 2, "verdict": "same"},'
        ' {"known": 2, "verdict": "different"}, {"known": 7, "verdict": "same"}]}'
    )
    answers = ModelJudge(model).judge("I eat\nfish", {"1": "I am vegan", "2": "I eat"})
    assert answers == {"1": "replaces", "2": "unsure", "7": "same"}
    (prompt,) = model.prompts
    assert "new: I eat fish\nknown 1: I am vegan" in prompt.data
    assert len(prompt.instructions) + len(prompt.data) < 2_500


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("no.such.module:make", "cannot be used"),
        ("json:nothing", "cannot be used"),
        ("openai-compatible:tiny", "needs an address"),
    ],
)
def test_a_judge_that_cannot_be_used_is_refused_at_the_start(
    path: str, reason: str
) -> None:
    with pytest.raises(ConfigError, match=reason):
        load_judge(Settings(memory=MemorySettings(judge=path)))
    assert load_judge(Settings()) is None
