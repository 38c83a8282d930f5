"""From a reader's drafts to those that may enter memory: grounded, sure enough, not too many, at their right level."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from aftercall.llm.rules.secrets import Secret
from aftercall.memory.claims import Claim
from aftercall.memory.evidence import Ground, Transcript
from aftercall.memory.visibility import blot_out, classify, confide, find_confidences
from aftercall.model.calls import Call
from aftercall.model.reading import FactDraft, Visibility
from aftercall.settings import Settings

CONFIRM_BELOW = 0.7  # heard worse than this, a fact is to be read back before it is relied on


@dataclass(frozen=True)
class Sifted:
    """A draft that may enter memory."""

    draft: FactDraft
    ground: Ground
    visibility: Visibility
    context: str
    claim: Claim

    @property
    def confidence(self) -> float:
        """No fact is surer than the words it rests on were heard."""
        return min(self.draft.confidence, self.ground.heard)

    @property
    def needs_confirmation(self) -> bool:
        return self.ground.heard < CONFIRM_BELOW and not self.ground.is_confirmed


@dataclass(frozen=True)
class Sieve:
    kept: tuple[Sifted, ...]
    refused: int
    dropped: int


def sift(call: Call, drafts: Sequence[FactDraft], settings: Settings) -> Sieve:
    transcript = Transcript(call)
    found: list[tuple[FactDraft, Ground]] = []
    refused = dropped = 0
    for draft in drafts:
        if len(found) >= settings.extraction.max_facts or draft.confidence < settings.extraction.min_confidence:
            dropped += 1
        elif (ground := transcript.find(draft)) is None:
            refused += 1
        else:
            found.append((draft, ground))
    return Sieve(tuple(_level(transcript, found, find_confidences(call, drafts), settings)), refused, dropped)


def _level(
    transcript: Transcript, found: list[tuple[FactDraft, Ground]], confidences: list[Secret], settings: Settings
) -> Iterator[Sifted]:
    """What one fact makes a secret is hidden in the words around all the others."""
    levels = [classify(draft, confidences, settings.memory) for draft, _ in found]
    raised = [draft.words for (draft, _), level in zip(found, levels, strict=True) if level == "secret"]
    hidden = [*confidences, *confide(raised)]
    for (draft, ground), level in zip(found, levels, strict=True):
        context = ground.context if level == "secret" else blot_out(ground.context, hidden)
        yield Sifted(draft, ground, level, context, transcript.claim(draft.text))
