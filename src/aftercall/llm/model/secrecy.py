"""The second guard of secrets: what our own rules take for a secret is blotted out of a model's answer, whatever the model thought."""

import re
from collections.abc import Sequence
from typing import TypeVar

from pydantic import BaseModel

from aftercall.llm.rules.memo import forget
from aftercall.llm.rules.secrets import Secret, find_secrets, mask, secret_facts
from aftercall.llm.rules.sentences import MASK
from aftercall.model.calls import Call
from aftercall.model.reading import FactDraft

HIDDEN = "(secret)"
_BLOTS = re.compile(rf"{re.escape(MASK)}[{re.escape(MASK)}\s]*")
M = TypeVar("M", bound=BaseModel)


class Secrecy:
    def __init__(self, call: Call) -> None:
        try:
            self._secrets: list[Secret] = find_secrets(call.turns)
        finally:
            forget()

    def hide(self, text: str) -> str:
        masked = mask(text, self._secrets)
        return text if masked == text else _BLOTS.sub(HIDDEN, masked).strip()

    def holds(self, text: str) -> bool:
        return mask(text, self._secrets) != text

    def hide_in(self, item: M, *fields: str) -> M:
        hidden: dict[str, object] = {}
        for name in fields:
            value = getattr(item, name)
            if isinstance(value, str):
                hidden[name] = self.hide(value)
            elif isinstance(value, Sequence):
                hidden[name] = tuple(self.hide(text) for text in value)
        return item.model_copy(update=hidden)

    def keep_apart(self, facts: Sequence[FactDraft]) -> tuple[FactDraft, ...]:
        """Facts that tell a secret are marked so; secrets that the model overlooked are added."""
        marked = [
            fact.model_copy(update={"visibility": "secret"}) if self.holds(f"{fact.text} {fact.summary} {fact.words}") else fact
            for fact in facts
        ]
        told = [fact for fact in marked if fact.visibility == "secret"]
        missed = [fact for fact in secret_facts(self._secrets) if not any(_overlap(fact, other) for other in told)]
        return (*marked, *missed)


def _overlap(one: FactDraft, other: FactDraft) -> bool:
    return bool(set(one.turns) & set(other.turns)) and (one.words in other.words or other.words in one.words or one.text in other.text)
