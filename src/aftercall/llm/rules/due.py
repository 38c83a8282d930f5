"""Which day a request is due: the caller's words for it, and the days an agent puts forward."""

from dataclasses import dataclass
from datetime import date, timedelta

from aftercall.llm.rules import cues
from aftercall.llm.rules.asks import Ask
from aftercall.llm.rules.corrections import REPLACES, settle_repairs
from aftercall.llm.rules.dates import Mention, find_dates
from aftercall.llm.rules.promises import is_promise
from aftercall.llm.rules.sentences import Clause, split_sentences


@dataclass(frozen=True, slots=True)
class Proposal:
    seq: int
    sentence: str
    mention: Mention
    others: tuple[Mention, ...] = ()


def find_proposals(seq: int, text: str, today: date, anchor: date | None) -> list[Proposal]:
    """The last day of each of an agent's sentences, promises left out: a day promised is not a day agreed."""
    return [
        Proposal(seq, sentence, mentions[-1], tuple(mentions[:-1]))
        for sentence in split_sentences(text)
        if (sentence.endswith("?") or not is_promise(sentence)) and (mentions := find_dates(sentence, today, anchor))
    ]


def takes_day(ask: Ask) -> bool:
    """Whether a day beside the request says when it is due; that of a note or of an ending belongs to its matter."""
    return ask.kind != "note" and not ask.is_stop and not ask.from_fault and not cues.ENDS.match(ask.act)


def opening_day(ask: Ask, text: str, today: date, anchor: date | None, before: list[Clause]) -> date | None:
    """The day in the words that raise a request."""
    if not takes_day(ask) or cues.CONTENT_DATED.match(ask.act):
        return None
    text = settle_repairs(text)
    mentions = find_dates(text, today, anchor)
    if cues.MOVES.match(ask.act):
        mentions = [mention for mention in mentions if cues.MOVED_TO.search(text[: mention.start])][-1:]
    if mentions:
        return mentions[0].day
    earlier = [mention.day for clause in before[-2:] for mention in find_dates(clause.text, today)]
    then = cues.THEN.search(text)
    return earlier[0] - timedelta(days=then.group().lower().startswith("before")) if then and earlier else None


def later_day(ask: Ask, text: str, today: date, anchor: date | None) -> date | None:
    """The day in words that fill in or correct a request."""
    if not takes_day(ask) or cues.CONTENT_DATED.match(ask.act):
        return None
    text = settle_repairs(text)
    mentions = find_dates(text, today, anchor)
    if not mentions:
        return None
    return (mentions[-1] if REPLACES.search(text) else mentions[0]).day
