"""The reader by model: one question at a time, each answer checked against the call."""

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from pydantic import BaseModel

from aftercall.english.language import detect_language
from aftercall.english.secrets import Secret, find_secrets, mask, secret_facts
from aftercall.english.text import MASK
from aftercall.english.words import clear_caches
from aftercall.llm.long_calls import (
    merge_asked,
    merge_facts,
    merge_identities,
    merge_profiles,
)
from aftercall.llm.model import questions
from aftercall.llm.model.client import (
    AnswerCache,
    CompletionClient,
    NullAnswerCache,
    QuestionAsker,
    Usage,
)
from aftercall.llm.model.questions import (
    Grounding,
    Question,
    format_call_data,
    split_transcript,
)
from aftercall.log import get_logger
from aftercall.model.calls import Call
from aftercall.model.people import is_generic_name
from aftercall.model.reading import (
    FactDraft,
    Identity,
    KnownFact,
    Profile,
    Reading,
    ReadingResult,
    ReadingTrace,
    RequestsReading,
    Summary,
)

HIDDEN = "(secret)"
_BLOTS = re.compile(rf"{re.escape(MASK)}[{re.escape(MASK)}\s]*")
M = TypeVar("M", bound=BaseModel)


class SecretMask:
    """Hides the secrets of one call in what the model wrote about it."""

    def __init__(self, call: Call) -> None:
        try:
            self._secrets: list[Secret] = find_secrets(call.turns)
        finally:
            clear_caches()

    def mask_text(self, text: str) -> str:
        masked = mask(text, self._secrets)
        return text if masked == text else _BLOTS.sub(HIDDEN, masked).strip()

    def has_secret(self, text: str) -> bool:
        return mask(text, self._secrets) != text

    def mask_fields(self, item: M, *fields: str) -> M:
        hidden: dict[str, object] = {}
        for name in fields:
            value = getattr(item, name)
            if isinstance(value, str):
                hidden[name] = self.mask_text(value)
            elif isinstance(value, Sequence):
                hidden[name] = tuple(self.mask_text(text) for text in value)
        return item.model_copy(update=hidden)

    def mark_secret_facts(self, facts: Sequence[FactDraft]) -> tuple[FactDraft, ...]:
        """Marks facts that hold a secret; adds secrets that the model missed."""
        marked = [
            fact.model_copy(update={"visibility": "secret"})
            if self.has_secret(f"{fact.text} {fact.summary} {fact.words}")
            else fact
            for fact in facts
        ]
        found = [fact for fact in marked if fact.visibility == "secret"]
        missed = [
            fact
            for fact in secret_facts(self._secrets)
            if not any(_overlap(fact, other) for other in found)
        ]
        return (*marked, *missed)


def _overlap(one: FactDraft, other: FactDraft) -> bool:
    return bool(set(one.turns) & set(other.turns)) and (
        one.words in other.words or other.words in one.words or one.text in other.text
    )


F = TypeVar("F", bound=BaseModel)
G = TypeVar("G", bound=BaseModel)
T = TypeVar("T")
Extra = Sequence[tuple[str, str]]

log = get_logger("model")


class ModelReader:
    """A reader that asks a language model, and checks its answers against the words said."""

    def __init__(
        self, client: CompletionClient, answers: AnswerCache | None = None
    ) -> None:
        self._client = client
        self._asker = QuestionAsker(client, answers or NullAnswerCache())

    @property
    def name(self) -> str:
        return self._client.name

    def summarise(self, call: Call) -> ReadingResult[Summary]:
        """Of a long call: its parts first, then the summary of their summaries."""
        question: Question[questions.SummaryForm] = questions.SUMMARY
        parts, usage = self._ask_parts(question, call)
        whole = parts[0]
        if len(parts) > 1:
            question = questions.SUMMARY_OF_PARTS
            lines = [
                f"Part {number}: {part.model_dump_json()}"
                for number, part in enumerate(parts, 1)
            ]
            whole, more = self._asker.ask(
                question, format_call_data(call, lines), call.id
            )
            usage += more
        summary = Summary.model_validate(whole.model_dump())
        masked = SecretMask(call).mask_fields(summary, *Summary.model_fields)
        return ReadingResult(masked, self._trace(question, usage))

    def find_profile(self, call: Call) -> ReadingResult[Profile]:
        parts, usage = self._ask_parts(questions.PROFILE, call)
        ground = Grounding(call)
        found = merge_profiles(
            [questions.ground_profile(part, ground) for part in parts]
        )
        masked = SecretMask(call).mask_fields(found, "notes", "context")
        return ReadingResult(masked, self._trace(questions.PROFILE, usage))

    def find_identity(self, call: Call) -> ReadingResult[Identity]:
        parts, usage = self._ask_parts(questions.IDENTITY, call)
        found = merge_identities(
            [Identity.model_validate(part.model_dump()) for part in parts]
        )
        if is_generic_name(found.name or ""):
            found = found.model_copy(update={"name": None})
        masked = SecretMask(call).mask_fields(found, "creature", "vibe")
        return ReadingResult(masked, self._trace(questions.IDENTITY, usage))

    def find_greeting(self, call: Call, name: str | None) -> ReadingResult[str | None]:
        last = split_transcript(call, self._client.part_chars)[-1]
        data = format_call_data(call, last, [("name", name or "")])
        form, usage = self._asker.ask(questions.GREETING, data, call.id)
        sentence = form.sentence or None
        if sentence and SecretMask(call).has_secret(sentence):
            sentence = None
        return ReadingResult(sentence, self._trace(questions.GREETING, usage))

    def find_facts(
        self, call: Call, known: Sequence[KnownFact] = ()
    ) -> ReadingResult[tuple[FactDraft, ...]]:
        """Facts in the words of the call. The model is told the known ones, by id."""
        listed = "\n".join(
            f"{fact.id} ({fact.category}): {' '.join(fact.text.split())}"
            for fact in known
        )
        parts, usage = self._ask_parts(questions.FACTS, call, [("known facts", listed)])
        ids, ground = {fact.id for fact in known}, Grounding(call)
        ground_fact = partial(questions.ground_fact, ground=ground, known=ids)
        grounded = [
            _drop_ungrounded(part.facts, ground_fact, "facts") for part in parts
        ]
        facts = SecretMask(call).mark_secret_facts(merge_facts(grounded))
        return ReadingResult(facts, self._trace(questions.FACTS, usage))

    def find_requests(self, call: Call) -> ReadingResult[RequestsReading]:
        ground, mask, usage = Grounding(call), SecretMask(call), Usage()
        asked = RequestsReading()
        for part in split_transcript(call, self._client.part_chars):
            still_open = "\n".join(request.title for request in asked.requests)
            data = format_call_data(call, part, [("open requests", still_open)])
            form, cost = self._asker.ask(questions.ASKED, data, call.id)
            asked = merge_asked([asked, _ground_asked(form, ground)])
            usage += cost
        masked = RequestsReading(
            requests=tuple(
                mask.mask_fields(item, "title", "details") for item in asked.requests
            ),
            withdrawn=tuple(
                mask.mask_fields(item, "title") for item in asked.withdrawn
            ),
            promises=tuple(mask.mask_fields(item, "title") for item in asked.promises),
        )
        return ReadingResult(masked, self._trace(questions.ASKED, usage))

    def read(self, call: Call) -> Reading:
        language = detect_language(turn.text for turn in call.turns)
        if not call.turns:
            return Reading(language=language, summary="")
        asked = self.find_requests(call).value
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
        """Nothing is cached here; paid answers are in the database."""

    def _ask_parts(
        self, question: Question[F], call: Call, extra: Extra = ()
    ) -> tuple[list[F], Usage]:
        answers = [
            self._asker.ask(question, format_call_data(call, part, extra), call.id)
            for part in split_transcript(call, self._client.part_chars)
        ]
        return [form for form, _ in answers], sum(
            (usage for _, usage in answers), Usage()
        )

    def _trace(self, question: Question[F], usage: Usage) -> ReadingTrace:
        return ReadingTrace(
            self.name,
            question.hash,
            usage.input_tokens,
            usage.output_tokens,
            usage.cost,
        )


def _ground_asked(form: questions.AskedForm, ground: Grounding) -> RequestsReading:
    return RequestsReading(
        requests=_drop_ungrounded(
            form.requests, partial(questions.ground_request, ground=ground), "requests"
        ),
        withdrawn=_drop_ungrounded(
            form.withdrawn,
            partial(questions.ground_withdrawn, ground=ground),
            "withdrawn",
        ),
        promises=_drop_ungrounded(
            form.promises, partial(questions.ground_promise, ground=ground), "promises"
        ),
    )


def _drop_ungrounded(
    items: Sequence[G], check: Callable[[G], T | None], kind: str
) -> tuple[T, ...]:
    kept = tuple(found for item in items if (found := check(item)) is not None)
    if len(kept) < len(items):
        log.info(
            "items without evidence in the call were dropped",
            kind=kind,
            count=len(items) - len(kept),
        )
    return kept
