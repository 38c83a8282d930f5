"""From a reader's drafts to those that may enter memory: grounded, sure enough, not too many, at their right level."""

from collections.abc import Sequence
from dataclasses import dataclass

from aftercall.llm.rules.secrets import Secret
from aftercall.memory.claims import Claim
from aftercall.memory.evidence import Ground, Transcript
from aftercall.memory.visibility import blot_out, classify, find_confidences
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
    confidences = find_confidences(call, drafts)
    kept: list[Sifted] = []
    refused = dropped = 0
    for draft in drafts:
        if len(kept) >= settings.extraction.max_facts or draft.confidence < settings.extraction.min_confidence:
            dropped += 1
        elif (ground := transcript.find(draft)) is None:
            refused += 1
        else:
            kept.append(_level(transcript, draft, ground, confidences, settings))
    return Sieve(tuple(kept), refused, dropped)


def _level(transcript: Transcript, draft: FactDraft, ground: Ground, confidences: list[Secret], settings: Settings) -> Sifted:
    visibility = classify(draft, confidences, settings.memory)
    context = ground.context if visibility == "secret" else blot_out(ground.context, confidences)
    return Sifted(draft, ground, visibility, context, transcript.claim(draft.text))
