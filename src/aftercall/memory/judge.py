"""The judge of doubtful facts: a model is asked, after the call, which known facts a new one
replaces.

Its word alone retires nothing. It is asked both ways round, and the rules' reading of who and what
is spoken of has a veto. Where they do not agree, the facts are disputed.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime
from threading import Lock, Thread
from typing import Literal, Protocol, cast, get_args

from aftercall.errors import ModelUnavailable
from aftercall.llm.model.client import (
    CompletionClient,
    ModelClient,
    ask_question,
    choose_model,
)
from aftercall.llm.model.questions import JUDGE, fence
from aftercall.log import get_logger
from aftercall.memory.claims import read_claim
from aftercall.memory.dedupe import SubjectMatch, contradicts, match_subjects
from aftercall.memory.embedding import load_factory
from aftercall.memory.fact_corrections import is_decided
from aftercall.memory.fact_store import FactFilter, FactStore
from aftercall.memory.ledger import FactLedger
from aftercall.model.calls import Call
from aftercall.model.facts import Fact
from aftercall.settings import Settings

PROVIDERS = ("anthropic", "openai", "xai", "openai-compatible")
MAX_FACTS = 40  # of one call that are judged
MAX_CANDIDATES = 6  # known facts in one question
MAX_REPLACED = 2  # a judge that lets one fact replace more of them is not believed
MAX_STEP_S = 300.0  # then the rest of the call's facts stay as the rules left them

Judgement = Literal["same", "replaces", "different", "unsure"]
Settlement = Literal["replaced", "disputed", "both"]
_JUDGEMENTS = get_args(Judgement)

log = get_logger("judge")


class Judge(Protocol):
    name: str

    def judge(self, new: str, known: Mapping[str, str]) -> Mapping[str, str]:
        """For each known fact by its number: same, replaces, different or unsure.

        What is missing, unknown or not asked for counts as unsure. May raise an AftercallError: the
        step is then tried again if the error is retryable.
        """
        ...


class ModelJudge:
    """Asks a configured model one question for each new fact."""

    def __init__(self, client: CompletionClient) -> None:
        self._client = client
        self.name = client.name

    def judge(self, new: str, known: Mapping[str, str]) -> dict[str, str]:
        lines = [f"new: {_one_line(new)}"]
        lines += [
            f"known {number}: {_one_line(text)}" for number, text in known.items()
        ]
        form, _ = ask_question(self._client, JUDGE, fence("facts", "\n".join(lines)))
        answers: dict[str, str] = {}
        for item in form.judgements:
            number = str(item.known)
            verdict = item.verdict.strip().lower()
            # Two answers to one question: neither counts.
            is_twice = answers.setdefault(number, verdict) != verdict
            answers[number] = "unsure" if is_twice else verdict
        return answers

    def close(self) -> None:
        if isinstance(self._client, ModelClient):
            self._client.close()


class TimedJudge:
    """A judge from a factory, one question at a time, each within a time limit.

    One that never answers keeps a single thread, however often the step is tried again.
    """

    def __init__(self, judge: Judge, timeout_s: float) -> None:
        self.name = judge.name
        self._judge = judge
        self._timeout_s = timeout_s
        self._lock = Lock()

    def judge(self, new: str, known: Mapping[str, str]) -> Mapping[str, str]:
        answer: Future[Mapping[str, str]] = Future()
        if not self._lock.acquire(timeout=self._timeout_s):
            raise self._late()
        Thread(target=self._run, args=(answer, new, known), daemon=True).start()
        try:
            return answer.result(self._timeout_s)
        except TimeoutError:
            raise self._late() from None

    def _run(
        self, answer: Future[Mapping[str, str]], new: str, known: Mapping[str, str]
    ) -> None:
        try:
            answer.set_result(self._judge.judge(new, known))
        except Exception as error:  # noqa: BLE001 - raised again where the answer is awaited
            answer.set_exception(error)
        finally:
            self._lock.release()

    def _late(self) -> ModelUnavailable:
        return ModelUnavailable(
            f"{self.name}: gave no judgement in time (reading.timeout_s)"
        )


def load_judge(settings: Settings) -> Judge | None:
    """From `provider:MODEL` or `module:factory`; None if none is configured."""
    path = settings.memory.judge
    if not path:
        return None
    module, _, factory = path.partition(":")
    if module in PROVIDERS and factory:
        choice = choose_model(settings.model_copy(update={"model": path}))
        return ModelJudge(ModelClient(choice)) if choice else None
    made: Judge = load_factory("memory.judge", path)
    return TimedJudge(made, settings.reading.timeout_s)


def ask_judge(judge: Judge, new: str, known: Mapping[str, str]) -> dict[str, Judgement]:
    """The judge's answers about the facts that it was given, each one of the four."""
    answers = judge.judge(new, known)
    return {
        number: cast("Judgement", said)
        if (said := answers.get(number)) in _JUDGEMENTS
        else "unsure"
        for number in known
    }


def weigh(
    judge: Judge,
    new: str,
    known: Mapping[str, str],
    matches: Mapping[str, SubjectMatch],
) -> dict[str, Settlement]:
    """What is done with each known fact; nothing for those that are left as they are.

    `matches` is the rules' reading. A judge that answers otherwise when it is asked the other way
    round contradicts itself.
    """
    asked = {
        number: text for number, text in known.items() if matches[number] != "other"
    }
    answers = ask_judge(judge, new, asked) if asked else {}
    if list(answers.values()).count("replaces") > MAX_REPLACED:
        log.warning("a judge lets one fact replace too many", judge=judge.name)
        return {}
    settled: dict[str, Settlement] = {}
    for number, answer in answers.items():
        if answer == "unsure":
            continue
        (back,) = ask_judge(judge, known[number], {number: new}).values()
        if answer == "replaces":
            is_sure = back == answer and matches[number] == "same"
            settled[number] = "replaced" if is_sure else "disputed"
        elif back == answer and not (answer == "same" and _clash(new, known[number])):
            settled[number] = "both"
    return settled


def _clash(new: str, known: str) -> bool:
    return contradicts(read_claim(new), read_claim(known))


def carry_out(
    ledger: FactLedger, fact_id: str, wanted: Mapping[str, Settlement]
) -> list[Settlement]:
    """Returns what was done: facts may have been retired, settled or erased meanwhile."""
    # What is sure comes first: a dispute with others would keep it from being settled.
    surest_first = sorted(wanted.items(), key=lambda pair: pair[1] == "disputed")
    done = [_carry_out_one(ledger, fact_id, *pair) for pair in surest_first]
    return [settlement for settlement in done if settlement]


def _carry_out_one(
    ledger: FactLedger, fact_id: str, known_id: str, how: Settlement
) -> Settlement | None:
    """A dispute that others are part of too is left to a person."""
    fact = ledger.known.find(fact_id)
    known = ledger.known.find(known_id)
    if not (fact and known and fact.is_active and known.is_active):
        return None
    if is_decided(ledger, fact, known):
        return None
    is_new = not fact.dispute and not known.dispute
    if is_new and how == "both":
        return None
    if is_new:
        ledger.dispute(known_id, fact_id)
    elif ledger.known.disputes[str(fact.dispute)] != {fact_id, known_id}:
        return None
    if how == "disputed" or (how == "replaced" and fact.needs_confirmation):
        return "disputed" if is_new else None
    ledger.settle(fact_id, keep_all=how == "both")
    return how


@dataclass(frozen=True)
class CallJudgement:
    """What the judge did with the facts of one call."""

    facts: int
    judged: int
    replaced: int
    disputed: int
    took_s: float

    def __str__(self) -> str:
        told = f"{self.judged} of {self.facts} facts judged in {self.took_s:.1f} s"
        return f"{told}: {self.replaced} replaced, {self.disputed} disputed"


@dataclass(frozen=True)
class CallJudge:
    """Judges the facts that one call brought. No lock is held while the judge thinks."""

    judge: Judge
    store: FactStore
    find_similar: Callable[[Fact], Sequence[Fact]]
    """Facts of any memory that share words or meaning with a fact, the likest first."""

    def judge_call(self, call: Call) -> CallJudgement:
        begun = time.monotonic()
        fresh = list(self._list_fresh(call))[:MAX_FACTS]
        judged = 0
        done = list[Settlement]()
        for fact in fresh:
            if time.monotonic() - begun > MAX_STEP_S:
                break
            done += self._judge_fact(fact, call.started_at)
            judged += 1
        took_s = time.monotonic() - begun
        replaced = done.count("replaced")
        disputed = done.count("disputed")
        return CallJudgement(len(fresh), judged, replaced, disputed, took_s)

    def close(self) -> None:
        if isinstance(self.judge, ModelJudge):
            self.judge.close()

    def _list_fresh(self, call: Call) -> Iterator[Fact]:
        """Facts that were said first in this call; never a secret."""
        for fact_id in self.store.list_ids_of_call(call.id):
            fact = self.store.get(fact_id)
            is_first = fact.first_seen_at >= call.started_at
            if fact.is_active and is_first and not fact.is_secret:
                yield fact

    def _judge_fact(self, fact: Fact, begun_at: datetime) -> list[Settlement]:
        claim = read_claim(fact.content)
        matched = (
            (known, match_subjects(claim, read_claim(known.content), fact.category))
            for known in self._list_known(fact)
            if known.first_seen_at
            < begun_at  # a reader has the last word within a call
        )
        near = [(known, match) for known, match in matched if match != "other"]
        asked = {str(at): pair for at, pair in enumerate(near[:MAX_CANDIDATES], 1)}
        settled = weigh(
            self.judge,
            fact.content,
            {number: known.content for number, (known, _) in asked.items()},
            {number: match for number, (_, match) in asked.items()},
        )
        wanted = {asked[number][0].id: how for number, how in settled.items()}
        if not wanted:
            return []
        return self.store.update(
            fact.key, lambda ledger: carry_out(ledger, fact.id, wanted)
        )

    def _list_known(self, fact: Fact) -> Iterator[Fact]:
        """Earlier facts of the same memory: disputed with it, like it, of the same category."""
        recent = self.store.page(FactFilter(key=fact.key, category=fact.category))
        recent.sort(key=lambda known: known.last_seen_at, reverse=True)
        seen = {fact.id}
        for known in (
            *self.store.list_dispute(fact),
            *self.find_similar(fact),
            *recent,
        ):
            is_usable = (
                known.key == fact.key and known.is_active and not known.is_secret
            )
            is_earlier = known.valid_from <= fact.valid_from
            if is_usable and is_earlier and known.id not in seen:
                seen.add(known.id)
                yield known


def _one_line(text: str) -> str:
    return " ".join(text.split())
