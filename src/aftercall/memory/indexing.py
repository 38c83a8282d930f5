"""A sealed call as passages: each turn with the secrets blotted out, and its summary."""

import re
from collections.abc import Callable, Iterable

from aftercall.db.connect import Database
from aftercall.llm.rules.secrets import find_secrets, mask
from aftercall.llm.rules.sentences import MASK
from aftercall.memory.passage_store import replace_call
from aftercall.memory.visibility import to_secrets
from aftercall.model.calls import Call
from aftercall.model.passages import Passage

REDACTED_TEXT = "•••"
"""What stands for a secret; always as long, so that its length is not told either."""
_BLOTS = re.compile(f"{MASK}[{MASK} ]*(?<! )")


def make_passages(
    call: Call, summary: str = "", secrets: Iterable[str] = (), confided: Iterable[str] = ()
) -> list[Passage]:
    """What can be found of a call.

    `secrets` are words that the settings name, `confided` those that facts told in confidence
    rest on; what our own rules know is hidden anyway.
    """
    clean = _cleaner(call, secrets, confided)
    turns = [
        Passage(
            "turn",
            call.agent_id,
            call.caller,
            call.id,
            clean(turn.text),
            turn.at,
            seq=turn.seq,
            speaker=turn.speaker,
        )
        for turn in call.turns
    ]
    return [*turns, _of_summary(call, clean(summary))] if summary else turns


def make_summary_passage(
    call: Call, summary: str, secrets: Iterable[str] = (), confided: Iterable[str] = ()
) -> Passage:
    """By itself: it may come long after the turns."""
    return _of_summary(call, _cleaner(call, secrets, confided)(summary))


def index_call(
    database: Database,
    call: Call,
    summary: str = "",
    secrets: Iterable[str] = (),
    confided: Iterable[str] = (),
) -> int:
    """Make a call findable, once however often this is done; returns how many passages it has."""
    fresh = make_passages(call, summary, secrets, confided)
    with database.write() as connection:
        replace_call(connection, call.id, fresh)
    return len(fresh)


def _of_summary(call: Call, text: str) -> Passage:
    return Passage("summary", call.agent_id, call.caller, call.id, text, call.ended_at)


def _cleaner(call: Call, secrets: Iterable[str], confided: Iterable[str]) -> Callable[[str], str]:
    found = [*find_secrets(call.turns), *to_secrets(confided)]
    hidden = _pattern(secrets)

    def clean(text: str) -> str:
        masked = mask(text, found)
        return _BLOTS.sub(REDACTED_TEXT, hidden.sub(MASK, masked) if hidden else masked)

    return clean


def _pattern(secrets: Iterable[str]) -> re.Pattern[str] | None:
    told = [
        r"\W+".join(map(re.escape, words))
        for words in (re.findall(r"\w+", secret) for secret in secrets)
        if words
    ]
    return re.compile("|".join(rf"(?<!\w){words}(?!\w)" for words in told), re.I) if told else None
