"""What has been asked for so far in a call: one frozen state, and `apply(state, act) -> state`."""

import re
from dataclasses import dataclass, field, replace
from datetime import date

from aftercall.english.dates import DateMention, find_dates
from aftercall.english.stems import overlap_coefficient, stem, stems
from aftercall.english.text import Plain
from aftercall.english.words import load_patterns, vocabulary
from aftercall.llm.rules.acts import Act
from aftercall.llm.rules.titles import find_person, kind_of, title_of, to_caller
from aftercall.model.reading import RequestKind

_PATTERNS = load_patterns("aftercall.llm.rules", "state")

NOTHING = Plain("", ())
UNKNOWN = 0.4  # confidence of an ask that does not say for what
UNSURE = 0.5  # confidence of what may be a request
TAKEN_UP = 0.65  # and of one that the agent went on with
ACTED_ON = 0.6  # confidence from which a request is one
MAX_DETAILS = 8
MIN_SAME_MATTER = 0.5

_POINTS = _PATTERNS["points"]
_POINTER = vocabulary(
    """
    it that this them those one ones new another same all both everything
    """
)
_DUE_CUE = _PATTERNS["due_cue"]
_ASKS_DAY = _PATTERNS["asks_day"]
_ASKS_NEED = _PATTERNS["asks_need"]
_ASKS_WORDS = _PATTERNS["asks_words"]
_PROMISED = re.compile(
    r"(?:and |so )*(?:i|we|they|he|she|it|the \S+|our \S+) (?:will|am going to)\b"
)
_ASKS_NAME = re.compile(
    r"\b(?:name|spell|birth|anything else|something else|help you)\b"
)
_STILL = re.compile(r"\bstill (?:want|need|like)\b")
_STOPPING = re.compile(r"\b(?:any ?more|anymore|again|ever again|any)\b")
_REACHES = re.compile(
    r"^(?:call|ring|phone|text|email|leave|contact|use|write|come|knock|put)\b"
)
_DELIVERS_WORDS = re.compile(
    r"^(?:tell|let|inform|notify|say|pass|ask|note|(?:put|file|make|leave|add) (?:a|another) (?:\w+ )?(?:note|message)|write|log a note)\b"
)
_ALL = re.compile(
    r"^(?:all of it|everything|all|both|the whole thing|the lot|all of them)\b"
)
_WRONG_NUMBER = re.compile(r"wrong number")


@dataclass(frozen=True, slots=True)
class Item:
    """Something asked for, as far as it is known."""

    title: str
    words: str
    turns: tuple[int, ...]
    kind: RequestKind
    confidence: float
    topic: frozenset[str]
    due: date | None = None
    person: str | None = None
    details: tuple[str, ...] = ()
    status: str = "open"
    asked: int = 0
    """The turn in which the caller last asked for it."""
    is_fault: bool = False

    @property
    def about(self) -> frozenset[str]:
        """Stems of the title and of all that was said with it."""
        return self.topic | stems(" ".join(self.details))


@dataclass(frozen=True, slots=True)
class Offer:
    """What the agent offered to do, until the caller answers."""

    matter: Plain
    seq: int
    is_still: bool = False


@dataclass(frozen=True, slots=True)
class PendingDay:
    """A day said alone: it may belong to what is asked next in the same sentence."""

    seq: int
    sentence: int
    day: date
    index: int
    before: date | None


@dataclass(frozen=True, slots=True)
class RequestState:
    today: date
    items: tuple[Item, ...] = ()
    current: int = -1
    offer: Offer | None = None
    proposed: date | None = None
    proposed_seq: int = 0
    asks_day: bool = False
    asks_detail: bool = False
    last_clause: Plain = NOTHING
    last_seq: int = 0
    asked_by_caller: Plain = NOTHING
    told: tuple[tuple[int, Plain], ...] = ()
    asks_need: bool = False
    pending: PendingDay | None = None
    refused: frozenset[str] = field(default_factory=frozenset)
    is_dictating: bool = False
    dictated_from: int = 0
    last_sentence: int = -1
    last_day: date | None = None

    @property
    def current_item(self) -> Item | None:
        return self.items[self.current] if 0 <= self.current < len(self.items) else None

    @property
    def anchor(self) -> date | None:
        """The day talked of."""
        item = self.current_item
        if self.last_day:
            return self.last_day
        if item and item.due:
            return item.due
        dues = [
            other.due for other in self.items if other.due and other.status == "open"
        ]
        return self.proposed or (dues[-1] if dues else None)


def apply(state: RequestState, act: Act) -> RequestState:
    """The state after one more clause."""
    if act.speaker == "agent":
        return _hear_agent(state, act)
    is_first = act.seq != state.last_seq
    if is_first and state.dictated_from not in (0, act.seq - 1):
        state = replace(state, is_dictating=False, dictated_from=0)
    if is_first and _goes_along(state, act):
        state = replace(
            _settle(state, act, state.proposed or state.today), proposed=None
        )
    after = _hear_caller(state, act)
    is_asking = act.clause.is_question or act.kind == "question"
    days = find_dates(act.clause.plain, after.today, after.anchor)
    told = after.told
    if act.kind in ("tell", "own") and not act.is_bare and _tells(act.matter):
        told = (*told, (act.seq, act.matter))[-MAX_TOLD:]
    return replace(
        after,
        told=told,
        last_clause=act.clause.plain if act.kind != "hypothetical" else NOTHING,
        last_seq=act.seq,
        last_sentence=act.clause.sentence,
        last_day=days[-1].day
        if days
        else after.last_day
        if after.last_seq == act.seq
        else None,
        asked_by_caller=act.clause.plain if is_asking else NOTHING,
    )


_PICKS = re.compile(
    r"\b(?:\d\S*|half|noon|morning|afternoon|evening|either|first|later|earlier|works|better)\b"
)


def _goes_along(state: RequestState, act: Act) -> bool:
    """Whether a caller who is offered a day only picks the hour, and so takes the day."""
    item = state.current_item
    if (
        state.proposed is None
        or item is None
        or item.status != "open"
        or act.answer
        or act.clause.is_question
    ):
        return False
    is_short = len(act.clause.plain.words) <= 5
    return (
        act.kind == "tell"
        and is_short
        and bool(_PICKS.search(act.clause.text))
        and not _names_day(state, act)
    )


_INTRODUCES = _PATTERNS["introduces"]
MAX_TOLD = 8
MAX_RECENT = 12  # requests that later words may be about


def _tells(matter: Plain) -> bool:
    """Whether a clause says what the call is about."""
    return (
        len(stems(matter.text)) > 0
        and len(matter.words) > 1
        and not _INTRODUCES.fullmatch(matter.text)
    )


def _context(state: RequestState, seq: int, reach: int) -> tuple[str, ...]:
    """What the caller told just before, for a request that names little itself."""
    used = {detail for item in state.items for detail in item.details}
    near = [plain.said for turn, plain in state.told if turn >= seq - reach]
    return tuple(said for said in near if said not in used)[-3:]


# The agent


def _hear_agent(state: RequestState, act: Act) -> RequestState:
    text = act.clause.text
    if act.seq != state.last_seq:
        state = replace(
            state,
            offer=None,
            proposed=None,
            asks_day=False,
            asks_detail=False,
            asks_need=False,
            last_seq=act.seq,
        )
    days = find_dates(act.clause.plain, state.today, state.anchor)
    is_told = (
        bool(state.asked_by_caller.words)
        and not act.clause.is_question
        and act.kind != "offer"
    )
    if days and _puts_forward(act, text) and not is_told:
        state = replace(state, proposed=days[-1].day, proposed_seq=act.seq)
    if act.kind == "refuse":
        return _refuse(state, act)
    state = _take_up(state, act, has_day=bool(days))
    if act.kind == "offer":
        offer = Offer(act.matter, act.seq, bool(_STILL.search(text)))
        state = replace(
            state, offer=offer, current=_match(state, act.matter.text, state.current)
        )
    elif act.clause.is_question:
        about = (
            _match(state, text, state.current)
            if len(act.clause.plain.words) <= 5
            else -1
        )
        state = replace(
            state,
            asks_day=bool(_ASKS_DAY.search(text)),
            asks_detail=not _ASKS_NAME.search(text),
            asks_need=bool(_ASKS_NEED.search(text)),
            is_dictating=bool(_ASKS_WORDS.search(text)),
            dictated_from=act.seq,
            current=about if about >= 0 else state.current,
        )
    return state


_NO_SLOT = re.compile(
    r"^(?:see you|thank)|\b(?:closed|shut|deadline|fee|charges?|charged|expires?|due back|is fine|already)\b"
)


def _puts_forward(act: Act, text: str) -> bool:
    """Whether an agent proposes a day, and does not merely mention or promise one."""
    return not _PROMISED.match(text) and not _NO_SLOT.search(text)


def _take_up(state: RequestState, act: Act, *, has_day: bool) -> RequestState:
    """An agent that asks on, promises or proposes a day has understood a request as one."""
    item = state.current_item
    if (
        item is None
        or item.status != "open"
        or not UNSURE <= item.confidence < ACTED_ON
    ):
        return state
    text = act.clause.text
    asks_on = act.clause.is_question and not re.search(r"\b(?:else|name|help)\b", text)
    if item.turns[-1] == act.seq - 1 and (has_day or asks_on or _PROMISED.match(text)):
        return _put(state, state.current, replace(item, confidence=TAKEN_UP))
    return state


def _refuse(state: RequestState, act: Act) -> RequestState:
    """What the agent will not do is not asked for any more; a wrong number asks for nothing."""
    if _WRONG_NUMBER.search(act.clause.text):
        return replace(
            state, items=tuple(replace(item, status="refused") for item in state.items)
        )
    about = stems(act.matter.text)
    items = list(state.items)
    for index, item in enumerate(items):
        is_last = bool(item.turns) and item.turns[-1] == act.seq - 1
        is_meant = bool(about & item.topic) or act.matter.text in (
            "do that",
            "that",
            "",
        )
        if is_last and is_meant and item.status == "open":
            items[index] = replace(item, status="refused")
    return replace(state, items=tuple(items))


# The caller

_QUESTION_LEAD = re.compile(
    r"^(?:and |so |but |ok )*(?:do (?:i|we|you)(?: guys)? (?:get|have|do)|is there|are there|have you(?: got)?|can i have) (?:a |an |any |the )?"
)


def _hear_caller(state: RequestState, act: Act) -> RequestState:
    if state.is_dictating:
        return _add_detail(state, act)
    had_offer = state.offer is not None
    state = _answer(state, act)
    if act.kind == "withdraw":
        return _withdraw(state, act)
    if act.kind in (
        "tell",
        "hearsay",
        "hypothetical",
        "own",
        "question",
    ) and _is_content(state, act):
        return _add_detail(state, act)
    if act.kind in ("ask", "unclear", "fault"):
        return _add_detail(state, act) if _is_dictated(state, act) else _ask(state, act)
    if act.kind == "correct":
        return _correct(state, act)
    if act.kind == "dont":
        return _stop(state, act)
    if act.kind == "own":
        return _take_over(state, act)
    if act.kind in ("hypothetical", "ignore"):
        return state
    if act.kind == "tell" and act.answer == "no" and not act.is_bare and not had_offer:
        dropped = _drop_named(state, act)
        if dropped is not None:
            return dropped
    item = state.current_item
    if act.kind == "hearsay":
        is_told = (
            item and item.kind in ("note", "message") and item.turns[-1] == act.seq
        )
        return _add_detail(state, act) if is_told else state
    if act.answer == "no" or act.clause.text.startswith(
        ("wait", "actually", "hang on", "hold on")
    ):
        state = _drop_detail(state, act)
    if state.asks_need and act.kind == "tell" and _is_need(state, act):
        return _need(state, act)
    if act.kind != "question":
        state = _take_day(state, act)
    return _add_detail(state, act) if act.kind == "tell" and not act.is_bare else state


def _is_content(state: RequestState, act: Act) -> bool:
    """What follows "file a note" or "tell her" in the same turn is what to write or say."""
    item = state.current_item
    if item is None or item.status != "open" or item.kind not in ("note", "message"):
        return False
    return max(item.asked, item.turns[0]) == act.seq and bool(
        _DELIVERS_WORDS.match(item.title.lower())
    )


def _is_dictated(state: RequestState, act: Act) -> bool:
    """ "Tell Graham the deck is on me, send me your numbers": all of it is for Graham."""
    item = state.current_item
    if item is None or item.kind != "message" or item.turns[-1] != act.seq:
        return False
    is_order = act.matter.text == act.clause.text or act.clause.text.startswith("and ")
    is_told = bool(_DELIVERS_WORDS.match(item.title.lower()))
    return (
        is_told
        and is_order
        and act.clause.sentence == state.last_sentence
        and act.kind == "ask"
        and (
            not re.match(
                r"(?:and )?(?:can|could|would|please|i|we|remind|book|tell)\b",
                act.clause.text,
            )
        )
    )


def _answer(state: RequestState, act: Act) -> RequestState:
    """An answer closes the agent's offer or settles the day it put forward."""
    if not act.answer:
        return state
    if act.answer == "no":
        offer = state.offer
        if offer and offer.is_still:
            state = _close(state, _match(state, offer.matter.text, state.current), act)
        elif offer:
            state = replace(state, refused=state.refused | stems(offer.matter.text))
        return replace(state, offer=None, proposed=None)
    if state.offer:
        state = _accept(state, act, state.offer)
    item = state.current_item
    if state.proposed and not _names_day(state, act):
        state = _settle(state, act, state.proposed)
    return replace(state, offer=None, proposed=None)


def _settle(state: RequestState, act: Act, day: date) -> RequestState:
    """A day that the agent put forward and the caller takes is the day of the current request.

    Where nothing is asked for yet, taking it is the request.
    """
    item = state.current_item
    if item and item.status == "open":
        if not _has_day(item):
            return state
        turns = _sorted((*item.turns, state.proposed_seq, act.seq))
        return _put(state, state.current, replace(item, due=day, turns=turns))
    told = [(seq, plain) for seq, plain in state.told if seq >= act.seq - 8]
    is_known = any(item.due == day for item in state.items)
    if not told or is_known:
        return state
    first_seq, first = max(told, key=lambda pair: len(stems(pair[1].text)))
    booked = Item(
        title=_as_title(title_of(first)),
        words=first.cited,
        turns=_sorted((first_seq, state.proposed_seq, act.seq)),
        kind="booking",
        confidence=0.7,
        topic=stems(" ".join(plain.text for _, plain in told)),
        due=day,
        details=tuple(plain.said for _, plain in told if plain is not first),
    )
    return _add(state, booked)


def _has_day(item: Item) -> bool:
    """Notes and messages hold words; the days in them are not theirs."""
    return item.kind != "note" and not (
        item.kind == "message" and _DELIVERS_WORDS.match(item.title.lower())
    )


def _as_title(said: str) -> str:
    return said[:1].upper() + said[1:]


def _names_day(state: RequestState, act: Act) -> bool:
    return bool(find_dates(act.clause.plain, state.today, state.anchor))


def _accept(state: RequestState, act: Act, offer: Offer) -> RequestState:
    """An offer taken up is a request, or a detail of one that was asked already."""
    known = _match(state, offer.matter.text, -1)
    if known < 0 and _is_pointing(offer.matter):
        asked = _QUESTION_LEAD.sub("", state.asked_by_caller.text, count=1)
        if stems(asked):
            offer = replace(
                offer,
                matter=state.asked_by_caller.after(
                    len(state.asked_by_caller.text) - len(asked)
                ),
                seq=act.seq - 2,
            )
        elif state.current_item and state.current_item.status == "open":
            known = state.current
    if known >= 0:
        item = state.items[known]
        turns = _sorted((*item.turns, offer.seq, act.seq))
        return replace(_put(state, known, replace(item, turns=turns)), current=known)
    title = to_caller(title_of(offer.matter))
    if not title or not stems(offer.matter.text):
        return state
    item = Item(
        title=title,
        words=offer.matter.cited,
        turns=(offer.seq, act.seq),
        kind=kind_of(offer.matter.text),
        confidence=0.85 if act.answer == "yes" else 0.7,
        topic=stems(offer.matter.text),
        due=_last_day(offer.matter, state, state.anchor),
        person=find_person(offer.matter),
        details=_context(state, act.seq, 4),
    )
    return _merge_fault(state, item)


def _ask(state: RequestState, act: Act) -> RequestState:
    matter = act.matter
    if act.kind == "ask" and matter.text.startswith("cancel"):
        known = _match(state, matter.text.removeprefix("cancel"), -1, minimum=0.99)
        if known >= 0 and not state.items[known].title.lower().startswith("cancel"):
            return _close(state, known, act)
    is_pointing = _is_pointing(matter)
    named = _new_matter(state, act) if is_pointing else None
    if named:
        return _ask_of(state, act, named)
    item = state.current_item
    if (
        item
        and item.status == "open"
        and _continues(item, act, state.told, is_pointing=is_pointing)
    ):
        return _restate(state, act)
    known = _match(state, matter.text, -1, minimum=0.75)
    if known >= 0 and (act.kind != "ask" or state.items[known].is_fault):
        return _restate(replace(state, current=known), act)
    if known >= 0 and state.items[known].kind == kind_of(matter.text):
        return _restate(replace(state, current=known), act)
    if item and item.status == "open" and _adds_to(item, act):
        return _restate(state, act)
    title = title_of(matter)
    before = state.last_clause if state.last_seq == act.seq else NOTHING
    if not title:
        return state
    is_of_it = is_pointing or (
        bool(_OF_IT.match(matter.text))
        and kind_of(matter.text) not in ("message", "reminder")
    )
    context = _context(state, act.seq, 8 if is_of_it else 0)
    confidence = act.confidence
    if is_of_it and not context:
        confidence = min(confidence, UNKNOWN)
    if is_pointing and context:
        title = f"{title}: {context[0]}"
    if len(matter.words) == 1 and matter.text not in _ALONE:
        return state
    item = Item(
        title=title,
        words=matter.cited,
        details=context,
        turns=(act.seq,),
        kind=kind_of(title.lower(), is_fault=act.kind == "fault"),
        confidence=confidence,
        topic=stems(title),
        person=find_person(matter),
        is_fault=act.kind == "fault",
    )
    day = _due_of_ask(state, act, item)
    if is_pointing and not day:
        day = _last_day(before, state, None)
    state, day = _claim_pending(state, act, day)
    item = replace(item, due=day)
    state = _merge_fault(state, item)
    return replace(
        state, is_dictating=item.kind == "message" and matter.text.startswith("say")
    )


_ALONE = vocabulary("cancel complain unsubscribe upgrade renew reschedule rebook")
_PERSONS = re.compile(r"\b(?:her|him|them)\b")


def _told_since(act: Act, told: tuple[tuple[int, Plain], ...]) -> bool:
    """Whether the caller has told something new in this turn that "it" may stand for."""
    return any(seq == act.seq for seq, _ in told)


def _continues(
    item: Item, act: Act, told: tuple[tuple[int, Plain], ...], *, is_pointing: bool
) -> bool:
    """Whether a new ask goes on with the current request: "and assign it to Ann"."""
    is_near = item.turns[-1] >= act.seq - 2
    text = act.matter.text
    if not is_near or text.startswith("remind"):
        return False
    if is_pointing:
        return True
    if item.kind == "message" and item.turns[-1] >= act.seq - 2:
        if _DELIVERS_WORDS.match(text) and _PERSONS.search(text):
            return True
        if re.match(r"(?:and )?(?:can|could|would) (?:she|he|they)\b", act.clause.text):
            return True
    if (
        item.turns[-1] == act.seq
        and _REACHES.match(item.title.lower())
        and _DELIVERS_WORDS.match(text)
    ):
        return True
    if act.kind == "ask" and item.turns[-1] >= act.seq - 2 and item.turns[0] < act.seq:
        first = stem(text.split()[0])
        if first in item.topic and (
            len(stems(text) - item.about) <= 3 and act.seq - item.turns[0] > 1
        ):
            return True
    is_way = bool(re.match(r"(?:call|ring|phone|text|email) (?:me|us)\b", text))
    if is_way and item.turns[-1] == act.seq and len(stems(text)) <= 1:
        return True
    if _told_since(act, told):
        return False
    return bool(_OF_IT.match(text)) and kind_of(text) not in ("message", "reminder")


_OF_IT = re.compile(
    r"\S+(?: \S+){0,4} (?:it|them)\b|\S+ that (?:down|in|on|up|to|as)\b"
)


def _adds_to(item: Item, act: Act) -> bool:
    """Whether words that alone would only hint at a request go on about the current one."""
    if act.kind == "fault":
        return item.turns[-1] == act.seq or (
            item.confidence < 0.7 and item.turns[-1] >= act.seq - 2
        )
    is_near = item.turns[-1] >= act.seq - (2 if item.confidence < 0.7 else 0)
    return act.kind == "unclear" and is_near


def _claim_pending(
    state: RequestState, act: Act, day: date | None
) -> tuple[RequestState, date | None]:
    """ "And in two weeks, remind me …": the day said before the ask is its day."""
    pending = state.pending
    if (
        day
        or pending is None
        or (pending.seq, pending.sentence) != (act.seq, act.clause.sentence)
    ):
        return state, day
    if pending.index < 0:
        return replace(state, pending=None), pending.day
    item = state.items[pending.index]
    current = state.current
    state = replace(
        _put(state, pending.index, replace(item, due=pending.before)), current=current
    )
    return replace(state, pending=None), pending.day


def _due_of_ask(state: RequestState, act: Act, item: Item) -> date | None:
    """The day that the request itself names; a day inside a message or note is not it."""
    if item.is_fault and item.kind != "task":
        return None
    days = find_dates(act.clause.plain, state.today, state.anchor)
    if item.kind == "note":
        return None
    if item.kind == "message" and _DELIVERS_WORDS.match(act.matter.text):
        head = " ".join(act.matter.text.split()[:3])
        first = act.clause.text.find(head)
        days = [day for day in days if day.start <= first + len(head)]
    return days[-1].day if days else None


def _merge_fault(state: RequestState, item: Item) -> RequestState:
    """A fault told just before a plain request is what the request is about."""
    last = state.current_item
    is_near = (
        bool(last) and last.is_fault and last.turns[-1] >= item.turns[0] - 1
        if last
        else False
    )
    if (
        last
        and is_near
        and last.status == "open"
        and not item.is_fault
        and len(last.turns) == 1
    ):
        joined = replace(
            item,
            title=item.title if ": " in item.title else f"{item.title}: {last.title}",
            turns=_sorted((*last.turns, *item.turns)),
            topic=item.topic | last.topic,
            details=last.details,
            due=item.due or last.due,
        )
        return _put(state, state.current, joined)
    return _add(state, item)


def _restate(state: RequestState, act: Act) -> RequestState:
    """The same matter again: its words and its day are added to what is known."""
    item = state.current_item
    if item is None or item.status != "open":
        return state
    day = _last_day(act.clause.plain, state, item.due)
    said = act.clause.plain.said
    updated = replace(
        item,
        turns=_sorted((*item.turns, act.seq)),
        asked=act.seq,
        due=day or item.due,
        confidence=max(item.confidence, act.confidence),
        details=(*item.details, said)[:MAX_DETAILS]
        if stems(said) - item.about
        else item.details,
    )
    if item.is_fault and act.kind == "ask":
        title = title_of(act.matter)
        updated = replace(
            updated,
            title=f"{title}: {item.title}",
            kind=kind_of(title.lower() + " " + item.title.lower()),
            words=act.clause.plain.cited,
            is_fault=False,
        )
    return _put(state, state.current, updated)


def _new_matter(state: RequestState, act: Act) -> Plain | None:
    """What "it" stands for where the caller named something new just before in the same turn."""
    told = [plain for seq, plain in state.told if seq == act.seq]
    item = state.current_item
    named = next((plain for plain in told if _NAMED.fullmatch(plain.text)), None)
    if named is None or (
        item and item.turns[-1] == act.seq and item.turns[0] == act.seq
    ):
        return None
    if item and item.status == "open" and stems(named.text) & item.about:
        return None
    return named


def _ask_of(state: RequestState, act: Act, named: Plain) -> RequestState:
    """ "And the newsletter, stop sending that": a request about what was named."""
    item = Item(
        title=f"{title_of(act.matter)}: {named.said}",
        words=named.cited,
        turns=(act.seq,),
        kind=kind_of(f"{act.matter.text} {named.text}"),
        confidence=0.7,
        topic=stems(named.text),
        due=_last_day(act.clause.plain, state, state.anchor),
    )
    return _add(state, item)


def _correct(state: RequestState, act: Act) -> RequestState:
    named = _new_matter(state, act)
    is_of_named = re.match(
        r"(?:can|could|would) (?:we|you|i) \S+ (?:it|that|them)\b", act.clause.text
    )
    if named and is_of_named and not act.answer:
        return _ask_of(state, replace(act, matter=act.clause.plain), named)
    item = state.current_item
    if item is None or item.status != "open":
        return state
    day = _last_day(act.clause.plain, state, state.anchor)
    updated = replace(item, turns=_sorted((*item.turns, act.seq)), due=day or item.due)
    if not day and act.matter.words and not act.clause.text.startswith("not "):
        updated = replace(
            updated, details=(*item.details, act.clause.plain.said)[:MAX_DETAILS]
        )
    return replace(_put(state, state.current, updated), offer=None, proposed=None)


def _stop(state: RequestState, act: Act) -> RequestState:
    """ "Don't order it" calls off; "don't send me any more calendars" asks for an end to it."""
    text = act.matter.text
    named = _new_matter(state, act) if _is_pointing(act.matter) else None
    if named and act.clause.text.startswith(("stop", "and stop", "please stop")):
        return _ask_of(state, replace(act, matter=act.clause.plain), named)
    known = _match(state, text, -1, minimum=0.99)
    if known >= 0 and state.items[known].turns[-1] >= act.seq - 6:
        return _close(state, known, act)
    head = re.match(r"(\S+) (?:it|that|them)\b", text)
    verb = stem(head[1]) if head else ""
    named_by_verb = [
        at
        for at, item in enumerate(state.items)
        if item.status == "open" and verb in item.topic
    ]
    if verb and named_by_verb:
        return _close(state, named_by_verb[-1], act)
    if _is_pointing(act.matter) and state.current_item and state.last_seq == act.seq:
        return _close(state, state.current, act)
    is_running = _STOPPING.search(text) or act.clause.text.startswith(
        ("stop", "no more", "please stop")
    )
    if (
        not is_running
        or not stems(text)
        or (_REACHES.match(text) and not re.search(r"any ?more", text))
    ):
        return state
    item = Item(
        title=title_of(act.clause.plain),
        words=act.clause.plain.cited,
        turns=(act.seq,),
        kind="other",
        confidence=act.confidence,
        topic=stems(text),
    )
    return _add(state, item)


def _take_over(state: RequestState, act: Act) -> RequestState:
    """ "That's on me": what was just taken for a request is the caller's own to do."""
    item = state.current_item
    is_pointer = bool(re.match(r"(?:so |and )?(?:that|it) is ", act.clause.text))
    if is_pointer and item and item.turns[-1] == act.seq and item.status == "open":
        return _put(state, state.current, replace(item, status="own"))
    return state


def _withdraw(state: RequestState, act: Act) -> RequestState:
    if _ALL.match(act.matter.text):
        items = tuple(
            replace(item, status="withdrawn", turns=_sorted((*item.turns, act.seq)))
            if item.status in ("open", "refused")
            else item
            for item in state.items
        )
        return replace(state, items=items, offer=None)
    is_pointing = not stems(act.matter.text) or _is_pointing(act.matter)
    item = state.current_item
    if (
        is_pointing
        and item
        and item.status == "withdrawn"
        and item.turns[-1] == act.seq
    ):
        return state
    if (
        is_pointing
        and state.last_seq == act.seq
        and _NOUNS.match(state.last_clause.text)
    ):
        known = _match(state, state.last_clause.text, -1)
        if known >= 0:
            return _close(state, known, act)
    if is_pointing:
        return _close(replace(state, told=()), state.current, act)
    known = _match(state, act.matter.text, -1, any_status=True)
    return _close(state, known, act) if known >= 0 else state


def _drop_named(state: RequestState, act: Act) -> RequestState | None:
    """ "No taxi": what it names is called off."""
    if len(act.matter.words) > 3 or not stems(act.matter.text):
        return None
    known = _match(state, act.matter.text, -1, minimum=0.99)
    return _close(state, known, act) if known >= 0 else None


def _close(state: RequestState, index: int, act: Act) -> RequestState:
    if not 0 <= index < len(state.items) or state.items[index].status == "withdrawn":
        return state
    item = state.items[index]
    closed = replace(item, status="withdrawn", turns=_sorted((*item.turns, act.seq)))
    return replace(_put(state, index, closed), offer=None)


def _take_day(state: RequestState, act: Act) -> RequestState:
    """A day said around a request is its day where a day was asked for, or the words say so."""
    item = state.current_item
    days = find_dates(act.clause.plain, state.today, state.anchor)
    if not days:
        return state
    if state.proposed and (item is None or item.status != "open"):
        return replace(_settle(state, act, days[-1].day), proposed=None)
    if item is None or item.status != "open" or not _has_day(item):
        pending = PendingDay(act.seq, act.clause.sentence, days[-1].day, -1, None)
        return replace(state, pending=pending)
    said = len(act.matter.words)
    named = len(act.clause.text[days[-1].start : days[-1].end].split())
    is_alone = said - named <= 2
    is_asked = state.asks_day or state.proposed is not None
    if not (is_alone or is_asked or _DUE_CUE.search(act.clause.text)) or _is_of_other(
        act
    ):
        return state
    updated = replace(
        item, due=_meant_day(act, days), turns=_sorted((*item.turns, act.seq))
    )
    earlier = state.pending
    is_same = earlier and (earlier.seq, earlier.sentence) == (
        act.seq,
        act.clause.sentence,
    )
    before = earlier.before if earlier and is_same else item.due
    pending = PendingDay(
        act.seq, act.clause.sentence, days[-1].day, state.current, before
    )
    return replace(_put(state, state.current, updated), proposed=None, pending=pending)


def _meant_day(act: Act, days: list[DateMention]) -> date:
    """The last day named, but not one that only gives the reason."""
    reason = re.search(r"\b(?:because|since|as)\b", act.clause.text)
    before = [item.day for item in days if reason and item.end <= reason.start()]
    return before[-1] if before else days[-1].day


_OTHER_DAY = _PATTERNS["other_day"]


def _is_of_other(act: Act) -> bool:
    return bool(_OTHER_DAY.match(act.matter.text))


_NAMED = re.compile(
    r"(?:(?:the|my|our|that|those|this) (?!\S+'s )(?!.*\b(?:is|are|was|will|has|have|can|i)\b)\S+(?: (?!\S+ing\b)\S+){0,3}"
    r"|i have(?: got)? (?:an?|the) \S+(?: \S+){0,2}(?: (?:on|for|at) .*)?)"
)
_NOUNS = re.compile(
    r"(?:an?|the|some|my|two|three|\d+|one|another|only|just)? ?(?!i |we |it |he |she |they |you |that |this |there |what |is |are )"
    r"(?!.*\b(?:is|are|was|were|will|has|have|had|can|could|do|does|did|am|said|says)\b)[a-z].*"
)


def _is_need(state: RequestState, act: Act) -> bool:
    item = state.current_item
    is_free = item is None or item.status != "open" or item.turns[-1] < act.seq - 2
    return (
        is_free and bool(_NOUNS.match(act.matter.text)) and not _names_day(state, act)
    )


def _need(state: RequestState, act: Act) -> RequestState:
    """The answer to "what do you need?" is a request even without a verb."""
    item = Item(
        title=title_of(act.matter),
        words=act.matter.cited,
        turns=(act.seq,),
        kind=kind_of(act.matter.text),
        confidence=0.65,
        topic=stems(act.matter.text),
        due=_last_day(act.matter, state, None),
    )
    return replace(_add(state, item), asks_need=False)


def _drop_detail(state: RequestState, act: Act) -> RequestState:
    """ "The Walgreens. No wait, …": what was said right before is taken back."""
    item = state.current_item
    if (
        item
        and item.details
        and item.turns[-1] == act.seq
        and state.last_seq == act.seq
    ):
        if item.details[-1] == state.last_clause.said:
            return _put(state, state.current, replace(item, details=item.details[:-1]))
    return state


def _add_detail(state: RequestState, act: Act) -> RequestState:
    """What the caller says next of a request, or in answer to a question about it."""
    item = state.current_item
    if item is None or item.status != "open" or len(item.details) >= MAX_DETAILS:
        return state
    is_same_turn = max(item.asked, item.turns[0]) == act.seq
    is_meant = (
        is_same_turn or state.asks_detail or state.is_dictating or act.answer == "yes"
    )
    if not is_meant or not stems(act.matter.text):
        return state
    if stems(act.matter.text) & state.refused:
        return state
    updated = replace(
        item,
        details=(*item.details, act.matter.said),
        turns=_sorted((*item.turns, act.seq)),
        person=item.person or find_person(act.matter),
    )
    return _put(state, state.current, updated)


# Small things


def _add(state: RequestState, item: Item) -> RequestState:
    """The state with one more request; what was told so far belongs to it."""
    return replace(state, items=(*state.items, item), current=len(state.items), told=())


def _put(state: RequestState, index: int, item: Item) -> RequestState:
    items = (*state.items[:index], item, *state.items[index + 1 :])
    return replace(state, items=items, current=index)


def _match(
    state: RequestState,
    text: str,
    otherwise: int,
    *,
    minimum: float = MIN_SAME_MATTER,
    any_status: bool = False,
) -> int:
    """The request that a text is about: the latest of those with the most in common."""
    about = stems(text)
    best, found = 0.0, otherwise
    recent = list(enumerate(state.items))[-MAX_RECENT:]
    for index, item in recent:
        if item.status != "open" and not any_status:
            continue
        shared = overlap_coefficient(about, item.topic)
        if shared >= max(minimum, best) and about & item.topic:
            best, found = shared, index
    if found == otherwise and about:
        for index, item in recent:
            if (item.status == "open" or any_status) and about <= item.about:
                found = index
    return found


def _is_pointing(matter: Plain) -> bool:
    """Whether only "it" or "that" says what is meant."""
    words = matter.text.split()
    return not _POINTER.isdisjoint(words) and len(stems(matter.text) - _VERB_STEMS) == 0


_VERB_STEMS = stems(
    "put add log send make do get fix open book order change move write file take note block replace bug "
    "issue ticket down order assign tell give call bring cancel forget leave scratch drop"
)


def _last_day(plain: Plain, state: RequestState, anchor: date | None) -> date | None:
    days = find_dates(plain, state.today, anchor)
    return days[-1].day if days else None


def _sorted(turns: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(set(turns)))
