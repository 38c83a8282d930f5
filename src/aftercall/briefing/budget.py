"""How long a briefing may be, and what goes first when it is too long: the one place that says what matters most.

Greeting, names, the time and a dropped call's last words are always told. Then, as long as there is room:
the last call; work, the latest first; pins; the best facts; earlier calls, the latest first; the other facts; notes of the owner's page.
"""

from collections.abc import Iterable
from dataclasses import replace

from aftercall.briefing.render import DROPPED_CHARACTERS, render_fact, render_pick_up, render_pin, render_recent, render_work
from aftercall.model.briefing import Briefing

BYTES_PER_TOKEN = 4  # near enough for every model we know, and on the safe side where a letter takes several bytes
BEST_FACTS = 5
LABEL = 30  # the longest that is put before or behind a piece
DROPPED_TOKENS = DROPPED_CHARACTERS  # a letter takes four bytes at most
ALWAYS = 80  # the fence, the greeting, names and the time


def count_tokens(text: str) -> int:
    return -(-len(text.encode()) // BYTES_PER_TOKEN)


def trim(briefing: Briefing, max_tokens: int) -> Briefing:
    """The briefing with as much of it as fits; what it keeps stays in its order."""
    if _is_short(briefing, max_tokens):
        return briefing
    room = max_tokens - ALWAYS - sum(map(count_tokens, render_pick_up(briefing)))
    kept: set[tuple[str, int]] = set()
    for item, text in _by_importance(briefing):
        cost = count_tokens(text) + 1
        if cost <= room:
            room -= cost
            kept.add(item)
    return replace(
        briefing,
        recent=tuple(call for n, call in enumerate(briefing.recent) if ("recent", n) in kept),
        work=tuple(told for n, told in enumerate(briefing.work) if ("work", n) in kept),
        pins=tuple(pin for n, pin in enumerate(briefing.pins) if ("pin", n) in kept),
        facts=tuple(fact for n, fact in enumerate(briefing.facts) if ("fact", n) in kept),
        caller=replace(
            briefing.caller,
            notes=briefing.caller.notes if ("notes", 0) in kept else None,
            context=briefing.caller.context if ("context", 0) in kept else None,
        ),
    )


def _is_short(briefing: Briefing, max_tokens: int) -> bool:
    """Quickly told for nearly every call: it would fit however wordy its labels are."""
    told = [call.summary + call.context + call.whose for call in briefing.recent]
    told += [
        *briefing.work,
        *(fact.text + fact.heard_by for fact in briefing.facts),
        briefing.caller.notes or "",
        briefing.caller.context or "",
    ]
    told += [" ".join((pin.title, pin.status, *pin.open_items)) for pin in briefing.pins]
    dropped = DROPPED_TOKENS if briefing.pick_up else 0
    return count_tokens("".join(told)) + LABEL * len(told) + ALWAYS + dropped <= max_tokens


def _by_importance(briefing: Briefing) -> Iterable[tuple[tuple[str, int], str]]:
    """Calls and work stand in time order, facts with the best first."""
    calls = [(("recent", n), "\n".join(render_recent(call))) for n, call in enumerate(briefing.recent)][::-1]
    work = [(("work", n), render_work(told)) for n, told in enumerate(briefing.work)][::-1]
    facts = [(("fact", n), render_fact(fact)) for n, fact in enumerate(briefing.facts)]
    pins = [(("pin", n), render_pin(pin)) for n, pin in enumerate(briefing.pins)]
    notes = [(("notes", 0), f"Notes on the caller: {briefing.caller.notes or ''}")]
    notes += [(("context", 0), f"More on the caller: {briefing.caller.context or ''}")]
    return (*calls[:1], *work, *pins, *facts[:BEST_FACTS], *calls[1:], *facts[BEST_FACTS:], *notes)
