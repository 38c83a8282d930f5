"""Extracts facts from one finished call: read, filter, compare with known facts, write, log."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from aftercall.clock import Clock
from aftercall.english.secrets import Secret
from aftercall.errors import AftercallError
from aftercall.faults import fault_point
from aftercall.llm.reader import Reader
from aftercall.memory.claims import Claim, Word, content_words, look_up, read_plain
from aftercall.memory.fact_store import FactStore
from aftercall.memory.ledger import AcceptedDraft, Evidence, FactLedger
from aftercall.memory.visibility import (
    classify,
    find_call_secrets,
    mask_secrets,
    memory_key,
    to_secrets,
)
from aftercall.memory.wording import plain
from aftercall.model.calls import Call
from aftercall.model.facts import Extraction, MemoryKey
from aftercall.model.reading import FactDraft, ReadingTrace
from aftercall.model.turns import BRIEFED_EVENT
from aftercall.settings import Settings

NO_MEMORY_REASON = "this caller has no memory"
MAX_CONTEXT_CHARS = 600
_AGREES = re.compile(
    r"\W*(?:(?:oh|um|uh|well|ah),? )*(?:yes|yeah|yep|yup|correct|right|exactly|sure|indeed"
    "|uh-huh|mm-?hm+|"
    r"that['’]?s (?:right|correct|it|true)|"
    r"of course|still (?:is|am|do|are)|it is|i am|i do|absolutely|definitely|sí|ja|oui)\b",
    re.I,
)
_TAKES_BACK = re.compile(
    r"\b(?:no|not|but|except|wrong|actually|anymore|any more|used to)\b", re.I
)


@dataclass(frozen=True)
class FilteredDrafts:
    accepted: tuple[AcceptedDraft, ...]
    refused: int
    dropped: int


@dataclass(frozen=True)
class Extractor:
    settings: Settings
    store: FactStore
    clock: Clock

    def extract(
        self, call: Call, reader: Reader
    ) -> tuple[Extraction, ReadingTrace | None]:
        """Logs an error of the reader and raises it again."""
        key = memory_key(self.settings, call.agent_id, call.caller)
        if key is None:
            return self._skip(call, reader, NO_MEMORY_REASON)
        limits = self.settings.extraction
        if len(call.turns) < limits.min_turns:
            return self._skip(call, reader, f"fewer than {limits.min_turns} turns")
        try:
            answer = reader.find_facts(
                call, self.store.list_known(key, limits.known_facts)
            )
        except AftercallError as error:
            entry = Extraction(call.id, self.clock.now(), reader.name, error=error.code)
            self.store.save_extraction(entry)
            raise
        fault_point("facts.after_read")
        drafts = filter_drafts(call, answer.value, self.settings)
        return self._write(key, call, drafts, answer.trace), answer.trace

    def _write(
        self, key: MemoryKey, call: Call, drafts: FilteredDrafts, trace: ReadingTrace
    ) -> Extraction:
        now = self.clock.now()

        def record(ledger: FactLedger) -> Extraction:
            ledger.briefed_fact_ids = list_briefed_facts(call)
            ledger.prefetch(drafts.accepted)
            outcomes = Counter(
                ledger.record(draft, call.id, trace) for draft in drafts.accepted
            )
            return Extraction(
                call_id=call.id,
                extracted_at=now,
                reader=trace.reader,
                prompt_hash=trace.prompt,
                facts_extracted=outcomes["new"],
                facts_updated=outcomes["update"],
                facts_deduplicated=outcomes["again"],
                facts_refused=drafts.refused,
                facts_dropped=drafts.dropped,
            )

        return self.store.update(key, record, log=lambda entry: entry)

    def _skip(self, call: Call, reader: Reader, reason: str) -> tuple[Extraction, None]:
        entry = Extraction(call.id, self.clock.now(), reader.name, reason=reason)
        self.store.save_extraction(entry)
        return entry, None


def limit_per_minute(settings: Settings, reader: Reader) -> int | None:
    """How many calls a minute are searched for facts; None for no limit.

    The rules cost nothing and are limited only if the setting is given.
    """
    is_given = "max_per_minute" in settings.extraction.model_fields_set
    return (
        settings.extraction.max_per_minute
        if is_given or reader.name != "rules"
        else None
    )


def list_briefed_facts(call: Call) -> frozenset[str]:
    """Ids of the facts that the agent was briefed with."""
    fact_ids: set[str] = set()
    for event in call.events:
        if event.kind == BRIEFED_EVENT:
            fact_ids.update(map(str, event.data.get("facts", ())))
    return frozenset(fact_ids)


class EvidenceFinder:
    """Finds drafts in one call. Its caches go with the call: it may hold secrets."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self._normalised: dict[str, str] = {}
        self._content_words: dict[int, frozenset[str]] = {}
        self._plain: dict[str, str] = {}
        self._words: dict[str, Word] = {}

    def find(self, draft: FactDraft) -> Evidence | None:
        """None if the words were not said, only the agent said them, or they do not support the
        fact.
        """
        words = self._normalise_words(draft.words)
        if not words:
            return None
        order = self._order_turns(draft)
        for at in order:
            if self._has_words(words, at) and (
                evidence := self._make_evidence(at, at, draft)
            ):
                return evidence
        for at in order:
            last = self._find_continuation(at, words)
            if last and (evidence := self._make_evidence(at, last, draft)):
                return evidence
        return None

    def _order_turns(self, draft: FactDraft) -> list[int]:
        """The turns that the draft names come first: the words are mostly there."""
        count = len(self.call.turns)
        named = [seq - 1 for seq in draft.turns if 0 < seq <= count]
        return [*named, *(at for at in range(count) if at not in named)]

    def _normalise_words(self, text: str) -> str:
        if text not in self._normalised:
            self._normalised[text] = normalise_words(text)
        return self._normalised[text]

    def _has_words(self, words: str, *turns: int) -> bool:
        said = " ".join(self._normalise_words(self.call.turns[at].text) for at in turns)
        return f" {words} " in f" {said} "

    def _find_continuation(self, at: int, words: str) -> int | None:
        """Words may run over two turns of one speaker, with one turn of the other between them."""
        turns = self.call.turns
        for following in range(at + 1, min(at + 3, len(turns))):
            if turns[following].speaker == turns[at].speaker:
                return following if self._has_words(words, at, following) else None
        return None

    def _make_evidence(
        self, first: int, last: int, draft: FactDraft
    ) -> Evidence | None:
        turns = self.call.turns
        is_confirmed = False
        if turns[first].speaker == "agent":
            answer = self._find_confirmation(last)
            if answer is None:
                return None
            last, is_confirmed = answer, True
        elif _is_bare_yes(draft.words):
            if first == 0 or turns[first - 1].speaker != "agent":
                return None
            first, is_confirmed = first - 1, True
        if not self._supports(first, last, draft):
            return None
        said = [turn for turn in turns[first : last + 1] if turn.speaker == "caller"]
        confidences = [turn.confidence for turn in said if turn.confidence is not None]
        return Evidence(
            first_turn=turns[first].seq,
            last_turn=turns[last].seq,
            at=said[0].at,
            context=self._make_context(first, last),
            transcript_confidence=min(confidences, default=1.0),
            is_confirmed=is_confirmed,
        )

    def _find_confirmation(self, at: int) -> int | None:
        """The caller's next turn, if it agrees and takes nothing back."""
        answer = at + 1
        if (
            answer >= len(self.call.turns)
            or self.call.turns[answer].speaker != "caller"
        ):
            return None
        said = self.call.turns[answer].text
        agrees = _AGREES.match(said)
        return (
            answer if agrees and not _TAKES_BACK.search(said[agrees.end() :]) else None
        )

    def _supports(self, first: int, last: int, draft: FactDraft) -> bool:
        """Some content word of the fact was said there, or in the question before."""
        if first == last and self._has_words(self._normalise_words(draft.text), first):
            return True
        words = content_words(self._make_plain(draft.text), self._look_up)
        turns = range(max(0, first - 1), last + 1)
        return not words or any(words & self._get_content_words(at) for at in turns)

    def parse_claim(self, text: str) -> Claim:
        return read_plain(text, self._make_plain(text), self._look_up)

    def _make_plain(self, text: str) -> str:
        if text not in self._plain:
            self._plain[text] = plain(text)
        return self._plain[text]

    def _look_up(self, word: str) -> Word:
        if word not in self._words:
            self._words[word] = look_up(word)
        return self._words[word]

    def _get_content_words(self, at: int) -> frozenset[str]:
        if at not in self._content_words:
            plain_text = self._make_plain(self.call.turns[at].text)
            self._content_words[at] = content_words(plain_text, self._look_up)
        return self._content_words[at]

    def _make_context(self, first: int, last: int) -> str:
        turns = self.call.turns[max(0, first - 1) : last + 2]
        return _clip(
            "\n".join(f"{turn.speaker} ({turn.seq}): {turn.text}" for turn in turns)
        )


def normalise_words(text: str) -> str:
    """Letters and figures only, for comparing a draft with what was said."""
    return " ".join(
        re.findall(r"[^\W_]+", text.casefold().replace("’", "").replace("'", ""))
    )


def _clip(text: str) -> str:
    return (
        text if len(text) <= MAX_CONTEXT_CHARS else text[: MAX_CONTEXT_CHARS - 1] + "…"
    )


def _is_bare_yes(words: str) -> bool:
    agrees = _AGREES.match(words)
    return agrees is not None and len(words[agrees.end() :].split()) < 2


def filter_drafts(
    call: Call, drafts: Sequence[FactDraft], settings: Settings
) -> FilteredDrafts:
    finder = EvidenceFinder(call)
    found: list[tuple[FactDraft, Evidence]] = []
    refused = dropped = 0
    limits = settings.extraction
    for draft in drafts:
        if len(found) >= limits.max_facts or draft.confidence < limits.min_confidence:
            dropped += 1
        elif (evidence := finder.find(draft)) is None:
            refused += 1
        else:
            found.append((draft, evidence))
    accepted = _accept(finder, found, find_call_secrets(call, drafts), settings)
    return FilteredDrafts(tuple(accepted), refused, dropped)


def _accept(
    finder: EvidenceFinder,
    found: list[tuple[FactDraft, Evidence]],
    secrets: list[Secret],
    settings: Settings,
) -> list[AcceptedDraft]:
    """A draft that is secret is masked in the context of all the others."""
    levels = [classify(draft, secrets, settings.memory) for draft, _ in found]
    secret_words = []
    for (draft, _), level in zip(found, levels, strict=True):
        if level == "secret":
            secret_words.append(draft.words)
    masked = [*secrets, *to_secrets(secret_words)]
    accepted = []
    for (draft, evidence), level in zip(found, levels, strict=True):
        context = evidence.context
        if level != "secret":
            context = mask_secrets(context, masked)
        claim = finder.parse_claim(draft.text)
        accepted.append(AcceptedDraft(draft, evidence, level, context, claim))
    return accepted
