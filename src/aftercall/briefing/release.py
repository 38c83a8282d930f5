"""What of a briefing this caller may hear. Applied when it is used: what is prepared holds more than everybody may know."""

from collections.abc import Iterable
from dataclasses import replace

from aftercall.llm.rules.sentences import split_sentences
from aftercall.memory.visibility import carries, releasable
from aftercall.model.briefing import Acquaintance, Briefing, RecentCall, ToldFact
from aftercall.model.followups import Trust
from aftercall.settings import Settings


def release(briefing: Briefing, trust: Trust, settings: Settings) -> Briefing:
    """The briefing without facts above the caller's trust, and without sentences that would give one of them away."""
    told = releasable(briefing.facts, trust, settings.memory)
    withheld = [fact for fact in briefing.facts if fact not in told]
    name = briefing.spoken_name
    plain = f"Hey {name}!" if name else settings.receptionist.greeting
    return replace(
        briefing,
        greeting=plain if _gives_away(briefing.greeting, withheld) else briefing.greeting,
        recent=tuple(_cut(call, withheld) for call in briefing.recent) if withheld else briefing.recent,
        work=tuple(line for line in briefing.work if not _gives_away(line, withheld)),
        pins=tuple(pin for pin in briefing.pins if not _gives_away(" ".join((pin.title, pin.status, *pin.open_items)), withheld)),
        facts=tuple(told[: settings.briefing.facts]),
        caller=_cut_page(briefing.caller, withheld) if withheld else briefing.caller,
    )


def _cut(call: RecentCall, withheld: list[ToldFact]) -> RecentCall:
    return replace(call, summary=_spare(call.summary, withheld), context=_spare(call.context, withheld))


def _cut_page(page: Acquaintance, withheld: list[ToldFact]) -> Acquaintance:
    """What the owner's page says of them may tell the same."""
    return replace(page, notes=_spare(page.notes or "", withheld) or None, context=_spare(page.context or "", withheld) or None)


def _spare(text: str, withheld: list[ToldFact]) -> str:
    return " ".join(sentence for sentence in split_sentences(text) if not _gives_away(sentence, withheld))


def _gives_away(text: str, withheld: Iterable[ToldFact]) -> bool:
    return any(carries(text, fact.text) for fact in withheld)
