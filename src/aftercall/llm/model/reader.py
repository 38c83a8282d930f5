"""The reader by model: each question put by itself, each answer held to the call before anybody sees it."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from pydantic import BaseModel

from aftercall.llm.model import forms, ground, merge, questions
from aftercall.llm.model.answers import Answers, NoAnswers
from aftercall.llm.model.asking import Asker, Line
from aftercall.llm.model.exchange import Paid
from aftercall.llm.model.ground import Ground
from aftercall.llm.model.questions import Question
from aftercall.llm.model.secrecy import Secrecy
from aftercall.llm.model.transcript import split, tell
from aftercall.llm.rules.language import language_of
from aftercall.log import get_logger
from aftercall.model.calls import Call
from aftercall.model.generic import is_generic
from aftercall.model.reading import Answer, Asked, FactDraft, Identity, KnownFact, Profile, Reading, Summary, Trace

F = TypeVar("F", bound=BaseModel)
G = TypeVar("G", bound=BaseModel)
T = TypeVar("T")
Extra = Sequence[tuple[str, str]]

log = get_logger("model")


class ModelReader:
    def __init__(self, line: Line, answers: Answers | None = None) -> None:
        self._line = line
        self._asker = Asker(line, answers or NoAnswers())

    @property
    def name(self) -> str:
        return self._line.name

    def summarise(self, call: Call) -> Answer[Summary]:
        parts, paid = self._ask_parts(questions.SUMMARY, call)
        question: Question[forms.SummaryForm] = questions.SUMMARY
        whole = parts[0]
        if len(parts) > 1:
            question = questions.SUMMARY_OF_PARTS
            lines = [f"Part {number}: {part.model_dump_json()}" for number, part in enumerate(parts, 1)]
            whole, more = self._asker.ask(question, tell(call, lines), call.id)
            paid += more
        summary = Secrecy(call).hide_in(
            Summary.model_validate(whole.model_dump()), "text", "topics", "decisions", "actions", "facts", "context"
        )
        return Answer(summary, self._trace(question, paid))

    def find_profile(self, call: Call) -> Answer[Profile]:
        parts, paid = self._ask_parts(questions.PROFILE, call)
        found = merge.merge_profiles([ground.ground_profile(part, Ground(call)) for part in parts])
        return Answer(Secrecy(call).hide_in(found, "notes", "context"), self._trace(questions.PROFILE, paid))

    def find_identity(self, call: Call) -> Answer[Identity]:
        parts, paid = self._ask_parts(questions.IDENTITY, call)
        found = merge.merge_identities([Identity.model_validate(part.model_dump()) for part in parts])
        if is_generic(found.name or ""):
            found = found.model_copy(update={"name": None})
        return Answer(Secrecy(call).hide_in(found, "creature", "vibe"), self._trace(questions.IDENTITY, paid))

    def find_greeting(self, call: Call, name: str | None) -> Answer[str | None]:
        last = split(call, self._line.part_chars)[-1]
        form, paid = self._asker.ask(questions.GREETING, tell(call, last, [("name", name or "")]), call.id)
        sentence = form.sentence if form.sentence and not Secrecy(call).holds(form.sentence) else None
        return Answer(sentence, self._trace(questions.GREETING, paid))

    def find_facts(self, call: Call, known: Sequence[KnownFact] = ()) -> Answer[tuple[FactDraft, ...]]:
        listed = "\n".join(f"{fact.id} ({fact.category}): {' '.join(fact.text.split())}" for fact in known)
        parts, paid = self._ask_parts(questions.FACTS, call, [("known facts", listed)])
        ids, at = {fact.id for fact in known}, Ground(call)
        grounded = [_keep(part.facts, lambda form: ground.ground_fact(form, at, ids), "facts") for part in parts]
        return Answer(Secrecy(call).keep_apart(merge.merge_facts(grounded)), self._trace(questions.FACTS, paid))

    def find_asked(self, call: Call) -> Answer[Asked]:
        at, secrecy, paid = Ground(call), Secrecy(call), Paid()
        asked = Asked()
        for part in split(call, self._line.part_chars):
            still_open = "\n".join(request.title for request in asked.requests)
            form, cost = self._asker.ask(questions.ASKED, tell(call, part, [("open requests", still_open)]), call.id)
            asked, paid = merge.merge_asked([asked, _ground_asked(form, at)]), paid + cost
        hidden = Asked(
            requests=tuple(secrecy.hide_in(item, "title", "details") for item in asked.requests),
            withdrawn=tuple(secrecy.hide_in(item, "title") for item in asked.withdrawn),
            promises=tuple(secrecy.hide_in(item, "title") for item in asked.promises),
        )
        return Answer(hidden, self._trace(questions.ASKED, paid))

    def read(self, call: Call) -> Reading:
        language = language_of(turn.text for turn in call.turns)
        if not call.turns:
            return Reading(language=language, summary="")
        asked = self.find_asked(call).value
        return Reading(
            language=language,
            summary=self.summarise(call).value.text,
            profile=self.find_profile(call).value,
            identity=self.find_identity(call).value,
            requests=asked.requests,
            withdrawn=asked.withdrawn,
            promises=asked.promises,
            facts=self.find_facts(call).value,
        )

    def forget(self, call_id: str) -> None:
        """Nothing is kept here; answers that were paid for are in the database."""

    def _ask_parts(self, question: Question[F], call: Call, extra: Extra = ()) -> tuple[list[F], Paid]:
        answers = [self._asker.ask(question, tell(call, part, extra), call.id) for part in split(call, self._line.part_chars)]
        return [form for form, _ in answers], sum((paid for _, paid in answers), Paid())

    def _trace(self, question: Question[F], paid: Paid) -> Trace:
        return Trace(self.name, question.hash, paid.input_tokens, paid.output_tokens, paid.cost)


def _ground_asked(form: forms.AskedForm, at: Ground) -> Asked:
    return Asked(
        requests=_keep(form.requests, lambda item: ground.ground_request(item, at), "requests"),
        withdrawn=_keep(form.withdrawn, lambda item: ground.ground_withdrawn(item, at), "withdrawn"),
        promises=_keep(form.promises, lambda item: ground.ground_promise(item, at), "promises"),
    )


def _keep(items: Sequence[G], check: Callable[[G], T | None], kind: str) -> tuple[T, ...]:
    kept = tuple(found for item in items if (found := check(item)) is not None)
    if len(kept) < len(items):
        log.info("items without ground in the call were left out", kind=kind, count=len(items) - len(kept))
    return kept
