"""A request: asked for, asked for again in other words, and told to who does the work.

While the talk is followed, `ask` and `restate` make requests of what is said, and `gather_details`
takes the clauses around them. When the whole call is known, `tell_items` gives each request the
title and the details that people see: the model `request_clauses` of `judgement.py` tells which
clauses say what is wanted.
"""

import re
from typing import NamedTuple

from aftercall.english.text import MASK, Plain, is_other_amount, normalise
from aftercall.english.words import load_patterns, stems
from aftercall.llm.rules.acts import Act
from aftercall.llm.rules.agreements import AGREED, title_agreed
from aftercall.llm.rules.judgement import RequestClauses, WeighedClause
from aftercall.llm.rules.state import (
    MAY_BE,
    PLAIN,
    TO_PERSON,
    UNKNOWN,
    Item,
    RequestState,
    RequestTalk,
    add,
    asked_in,
    close,
    context_of,
    day_of_ask,
    find_match,
    is_pointing,
    put,
    put_right,
    touch,
    with_detail,
)
from aftercall.llm.rules.titles import (
    MIN_TOLD,
    LastCounts,
    drop_other_days,
    find_person,
    introduces,
    is_deed,
    is_pointing_title,
    kind_of,
    names_caller,
    names_deed,
    names_other_day,
    plain_title,
    says_enough,
    title_of,
    title_of_promise,
    to_caller,
    told_in,
)

ALL_OF_IT = 0.99  # "the delta list" is not "the kappa list"
_ALONE = frozenset(
    ("cancel", "complain", "unsubscribe", "upgrade", "renew", "reschedule")
)
_OF_IT = re.compile(
    r"\S+(?: \S+){0,4} (?:it|them)\b(?! is)"
    r"|\S+ (?:that|this|him|her|those)(?= (?:down|in|on|up|off|out|to|as|back|over|away)\b|$)"
)
_CALLS_OFF = re.compile(
    r"(?:cancel|remove|delete|take) (?P<what>.+?)(?: (?:off|out)(?: .*)?| again| then)?"
)


_REPAIRS = re.compile(r"\b(?:actually|sorry|instead|rather|make (?:it|that)|i mean)\b")


def ask(state: RequestState, act: Act) -> RequestState:
    """A new request, or more about one that is known; or "cancel it", which calls one off."""
    off = _find_called_off(state, act) if act.kind == "ask" else -1
    if off >= 0:
        return close(state, off, act)
    known = _find_meant(state, act)
    if known < 0:
        return _ask_anew(state, act)
    return restate(state._replace(current=known), act)


def _find_called_off(state: RequestState, act: Act) -> int:
    """ "Cancel the cake", "take the cake off again": the request for it."""
    match = _CALLS_OFF.fullmatch(act.matter.text)
    if match is None:
        return -1
    known = find_match(state, match["what"], minimum=0.99)
    is_new = known < 0 or state.items[known].title.lower().startswith("cancel")
    return -1 if is_new else known


def _find_meant(state: RequestState, act: Act) -> int:
    """The known request that an ask goes on with or says again; -1 for none."""
    item = state.open_item
    text = act.matter.text
    if item and _continues(item, act):
        return state.current
    is_same_turn = item is not None and item.asked == act.seq
    known = find_match(state, text, minimum=0.5 if is_same_turn else ALL_OF_IT)
    if known < 0 or act.kind != "ask":
        return known
    other = state.items[known]
    is_same = other.is_fault or other.kind == kind_of(text)
    said = act.clause.text
    if state.last_seq == act.seq:
        said = f"{state.last_clause.text} {said}"
    is_more = is_other_amount(text, other.title) and not _REPAIRS.search(said)
    return known if is_same and not is_more else -1


def _ask_anew(state: RequestState, act: Act) -> RequestState:
    """A new request, with the words before it where it only points ("send that over").

    One that points to nothing known may be a request, no more.
    """
    matter = act.matter
    title = title_of(matter)
    if not title or (len(matter.words) == 1 and matter.text not in _ALONE):
        return state
    names_nothing = is_pointing(matter) or _is_of_it(matter.text)
    names_nothing = names_nothing or bool(TO_PERSON.match(matter.text))
    is_open = names_nothing or act.kind == "unclear"
    context = context_of(state, act.seq, 2 if is_open else 0)
    is_vague = names_nothing and (not context or act.confidence < PLAIN)
    if is_pointing(matter) and context:
        title = f"{title}: {context[0]}"
    item = Item(
        title=title,
        words=matter.cited,
        turns=(act.seq,),
        kind=kind_of(title.lower(), is_fault=act.kind == "fault"),
        confidence=min(act.confidence, UNKNOWN if is_vague else 1),
        topic=stems(title),
        person=find_person(matter),
        details=context,
        asked=act.seq,
        is_fault=act.kind == "fault",
        plainness=0.0 if is_vague else act.plainness,
    )
    state = state._replace(offer=None, proposed=None)
    return join_fault(state, item._replace(due=day_of_ask(state, act, item)))


def _continues(item: Item, act: Act) -> bool:
    """Whether a new ask goes on with the current request: "and assign it to Ann"."""
    text = act.matter.text
    is_same_turn = max(item.asked, item.turns[0]) == act.seq
    if item.turns[-1] < act.seq - 2:
        return False
    if act.kind != "ask":
        about = stems(text)
        return is_same_turn or not about or bool(about & item.about)
    return is_pointing(act.matter) or _is_of_it(text)


def restate(state: RequestState, act: Act) -> RequestState:
    """The same matter again: its words and its day are added to what is known."""
    item = state.open_item
    if item is None:
        return state
    days = state.days_of(act.clause.plain)
    said = act.clause.plain.said
    updated = touch(item, act.seq)._replace(
        asked=act.seq,
        due=item.due or (days[-1] if days else None),
        confidence=max(item.confidence, act.confidence),
        plainness=max(item.plainness, act.plainness),
    )
    if stems(said) - item.about:
        updated = with_detail(updated, said)
    if item.is_fault and act.kind == "ask":
        title = title_of(act.matter)
        updated = updated._replace(
            title=title,
            details=(*updated.details, item.title),
            kind=kind_of(title.lower()),
            words=act.matter.cited,
            is_fault=False,
        )
    return put(state, state.current, updated)


def join_fault(state: RequestState, item: Item) -> RequestState:
    """A fault told just before a plain request is what the request is about."""
    last = state.open_item
    if last is None or not last.is_fault or item.is_fault or len(last.turns) > 1:
        return add(state, item)
    if last.turns[-1] < item.turns[0] - 1:
        return add(state, item)
    joined = item._replace(
        turns=tuple(sorted({*last.turns, *item.turns})),
        topic=item.topic | last.topic,
        details=(last.title, *last.details),
        due=item.due or last.due,
    )
    return put(state, state.current, joined)


def _is_of_it(text: str) -> bool:
    return bool(_OF_IT.match(text)) and kind_of(text) not in ("message", "reminder")


MAX_GATHERED = 14  # clauses of one request
FEW_STEMS = 2  # a request that names less is told by what was said before it
BELONGS = 0.8
_CUES = load_patterns("aftercall.llm.rules", "state")
_INTRODUCES = _CUES["introduces"]
# What who does the work must know: it may harm somebody, or decides how much is needed.
_CARE = _CUES["care"]
_STATED = ("tell", "own", "fault")
_OTHERS = ("hypothetical", "hearsay", "withdraw")
_TAKES_BACK = re.compile(
    r"(?:oh |or |but |wait )*(?:no|nope|sorry|i mean|i meant|actually|rather|scratch|hang on"
    r"|hold on|i tell a lie|forgive me|my mistake|not)\b"
)
_CIVIL = re.compile(
    r"(?:hi|hello|hey|morning|good \w+|yes|no|ok|thanks?|thank you|cheers|bye|right|well|so|oh"
    r"|listen|look|sorry|please|anyway)(?: (?:there|you|then|so much|very much|love|dear|mate))*"
)


def gather_details(state: RequestState, acts: list[Act]) -> RequestState:
    """The state with the clauses that tell more of each open request."""
    told = [act for act in acts if act.speaker == "caller"]
    taken_back = {
        put_right(plain).said
        for at, act in enumerate(told, 1)
        if is_taken_back(act, told[at : at + 1])
        for plain in (act.clause.plain, act.matter)
    }
    said = [act for act in told if _tells(act)]
    said = [act for act in said if put_right(act.clause.plain).said not in taken_back]
    items = [
        item._replace(
            details=tuple(words for words in item.details if words not in taken_back)
        )
        for item in state.items
    ]
    detailed = [
        _with_details(tuple(items), index, said) if _takes_details(item) else item
        for index, item in enumerate(items)
    ]
    return state._replace(items=tuple(detailed))


def _takes_details(item: Item) -> bool:
    """Not a message: its words are told as they are."""
    return item.status == "open" and not item.delivers_words


def add_care(state: RequestState, acts: list[Act]) -> RequestState:
    """An allergy, a medicine or a number of people goes with the request it was told after."""
    told = [act for act in acts if act.speaker == "caller"]
    for at, act in enumerate(told, 1):
        is_stated = act.kind in _STATED and not act.clause.is_question
        is_care = is_stated and _CARE.search(act.clause.text) is not None
        if is_care and not is_taken_back(act, told[at : at + 1]):
            meant = _find_asked_before(state, act)
            said = put_right(act.clause.plain).said
            state = _put_first(state, meant, said) if meant >= 0 else state
    return state


def _find_asked_before(state: RequestState, act: Act) -> int:
    """The request asked for last before a clause; else the first one after it."""
    taking = [at for at, item in enumerate(state.items) if _takes_details(item)]
    asked = [at for at in taking if asked_in(state.items[at]) <= act.seq]
    first = taking[0] if taking else -1
    return max(asked, key=lambda at: asked_in(state.items[at]), default=first)


def _put_first(state: RequestState, at: int, said: str) -> RequestState:
    """Adds what must not be overlooked before all other details, once."""
    item = state.items[at]
    others = tuple(detail for detail in item.details if detail not in said)
    return put(state, at, item._replace(details=(said, *others)))


def is_taken_back(act: Act, after: list[Act]) -> bool:
    """ "Navy. No, black.": whether the next words of the turn take a clause back."""
    if not after or after[0].seq != act.seq:
        return False
    taken = _TAKES_BACK.match(after[0].clause.text)
    return after[0].answer == "no" or taken is not None


def _tells(act: Act) -> bool:
    """Whether a clause says something beyond thanks and greetings."""
    return bool(stems(act.clause.text)) and not _CIVIL.fullmatch(act.clause.text)


def _with_details(items: tuple[Item, ...], index: int, said: list[Act]) -> Item:
    """A request with what was said of it: after the ask, and before a vague one.

    What another request holds already is not told twice.
    """
    item = items[index]
    first = asked_in(item)
    others = [
        other
        for at, other in enumerate(items)
        if at != index and other.status == "open"
    ]
    theirs = " ".join(" ".join((*other.details, other.words)) for other in others)
    said = [act for act in said if act.clause.plain.said not in theirs]
    after = [act for act in said if act.seq in item.turns and act.seq >= first]
    after = [act for act in after if _is_of(act, first, others)]
    is_vague = index == 0 or len(item.topic) < FEW_STEMS
    before = [act for act in said if is_vague and act.seq <= first and _leads_up(act)]
    told = [*(act for act in before if act not in after), *after]
    new = [put_right(act.clause.plain).said for act in told]
    details = tuple(dict.fromkeys((*item.details, *new)))
    return item._replace(details=details[:MAX_GATHERED])


def _is_of(act: Act, first: int, others: list[Item]) -> bool:
    """Whether a clause belongs to the request asked for in a turn, and to no later one."""
    asked = [asked_in(other) for other in others]
    is_other = act.kind in _OTHERS or (act.kind == "ask" and act.seq > first)
    if is_other or any(first < seq <= act.seq for seq in asked):
        return False
    is_of_turn = act.seq == first and act.kind == "tell" and first not in asked
    return is_of_turn or act.belongs > BELONGS


def _leads_up(act: Act) -> bool:
    """Whether it may be what a later request is about."""
    is_told = act.kind in ("tell", "fault") and not act.clause.is_question
    return is_told and not _INTRODUCES.fullmatch(act.matter.text)


TOLD = 0.3  # how likely a clause may be of something else and is told with a request
FOLLOWED = 0.65  # … where who followed the talk clause by clause took it for a detail
TITLED = 0.3  # how likely the agent's promise must name what is wanted to be the title
TITLED_UNASKED = 0.1  # … where a day was agreed on, and nothing asked for
BESIDE = 0.02  # … what the caller said of it
MAX_BESIDE = 90  # characters of a sentence that is put beside a title
MAX_TOLD = 14  # clauses that are told with a request


class ToldRequest(NamedTuple):
    """A request with the title and the details that people see."""

    item: Item
    quoted: str
    """The words whose sentence is quoted where the title names no deed."""
    is_whole: bool = False
    """The title is as the agent said it back."""


def tell_items(talk: RequestTalk) -> list[ToldRequest]:
    """Each request with a title that says what is wanted, and with what was said of it."""
    return [_tell(talk, index) for index in range(len(talk.state.items))]


def _tell(talk: RequestTalk, index: int) -> ToldRequest:
    """Without clauses about what was called off or declined, another day, or a secret.

    A fault is told by the whole clause: what a pattern finds in it may begin too late.
    """
    item = talk.state.items[index]
    state = talk.state
    if item.confidence < MAY_BE or item.status == "withdrawn":
        return ToldRequest(item, item.words)
    refused = state.refused_beside(item)

    near = list(RequestClauses(talk, index).weigh())
    counts = LastCounts((one.act.seq, one.plain) for one in near if _counts(one))

    def is_wanted(plain: Plain, seq: int = 0) -> bool:
        is_refused = MASK in plain.text or bool(stems(plain.text) & refused)
        is_old = names_other_day(plain, item.due, state.today)
        return not (is_refused or is_old or counts.is_outdated(seq, plain))

    told = [each for each in near if each.is_ask or is_wanted(each.plain, each.act.seq)]
    head = item.title.partition(": ")[0]
    asked = [each.said for each in told if each.is_ask and item.is_fault]
    head = drop_other_days(asked[0] if asked else head, item.due, state.today)
    item = item._replace(title=plain_title(head))
    is_told = says_enough(item.title, item.kind, item.person)
    is_agreed = item.kind == "booking" or not is_told
    agreed, seq = title_agreed(talk, index) if is_agreed else ("", item.asked)
    named = (
        ToldRequest(item._replace(title=agreed), item.words, is_whole=True)
        if agreed
        else _entitle(item, told)
    )
    details = [normalise(said) for said in item.details]
    care = [plain for plain in details if _CARE.search(plain.text)]
    care_said = [plain.source for plain in care if is_wanted(plain)]
    title = counts.update(seq, named.item.title)
    chosen = _choose_details(care_said, told, title.lower())
    return named._replace(item=named.item._replace(title=title, details=chosen))


def _counts(each: WeighedClause) -> bool:
    """Whether the clause tells how many are wanted: not what is asked, supposed or offered."""
    act = each.act
    is_asked = act.clause.is_question and act.kind not in ("ask", "correct")
    is_said = act.speaker == "caller" or act.belongs >= AGREED
    is_other = act.kind in _OTHERS or each.is_theirs or each.other > FOLLOWED
    return is_said and not is_asked and not is_other


def _choose_details(
    care: list[str], told: list[WeighedClause], title: str
) -> tuple[str, ...]:
    """What is likely said of the request; what may harm somebody comes first.

    Who calls is told elsewhere, and what the title says is not told twice.
    """
    likely = [
        each.said
        for each in told
        if each.other <= (FOLLOWED if each.is_followed else TOLD)
        and not each.is_ask
        and not names_caller(each.act.clause.plain)
    ]
    said = [one for one in dict.fromkeys((*care, *likely)) if one.lower() not in title]
    said = [one for one in said if title not in to_caller(one).lower()]
    whole = [one for one in said if not any(one in two for two in said if one != two)]
    return tuple(whole[:MAX_TOLD])


def _entitle(item: Item, told: list[WeighedClause]) -> ToldRequest:
    """The title as it was asked for, where that says what is wanted.

    Else what the agent promised to do: a promise names things by their nouns. One that is made
    while another request is talked of is not taken, nor one that leaves out what the title names.
    Else the title with the words that say the most beside it.
    """
    asked = next((each.act.matter.cited for each in told if each.is_ask), item.words)
    is_note = item.kind == "note" and names_deed(item.title, item.kind)
    if is_note or says_enough(item.title, item.kind, item.person):
        return ToldRequest(item, asked)
    is_open = item.kind == "message" or is_pointing_title(item.title)
    is_open = is_open or not names_deed(item.title, item.kind)
    promised = _list_promised(item, told, is_open=is_open)
    if promised:
        return ToldRequest(item._replace(title=max(promised)[1]), asked)
    return _add_beside(item, told, asked)


def _list_promised(
    item: Item, told: list[WeighedClause], *, is_open: bool
) -> list[tuple[float, str]]:
    """The agent's promises that may be its title, with how likely each says what is wanted."""
    known = told_in(item.title)
    is_asked = any(each.is_ask and each.act.kind != "tell" for each in told)
    least = TITLED if is_asked else TITLED_UNASKED
    return [
        (each.names, title)
        for each in told
        if each.act.speaker == "agent" and each.names >= least and each.is_own
        if (title := title_of_promise(each.act.clause.plain))
        and says_enough(title, item.kind, item.person)
        and (is_open or told_in(title) > known)
    ]


def _add_beside(item: Item, told: list[WeighedClause], asked: str) -> ToldRequest:
    """The title with the caller's words that likeliest name what is wanted.

    "Fix that" says it with the sentence before: "Fix that: he sat on his reading glasses". A title
    that names something needs words that are likelier, and one without a deed is no title: then
    the words are quoted instead of it.
    """
    known = told_in(item.title)
    is_open = is_pointing_title(item.title) or known <= stems(item.person or "")
    least = BESIDE if is_open else TITLED
    person = stems(item.person or "")
    likely = [each for each in told if each.names >= least and _says_more(each)]
    fresh = [each for each in likely if told_in(each.said) - known]
    fresh = [each for each in fresh if not stems(each.said) & person] or fresh
    best = max(fresh, key=lambda each: each.names, default=None)
    if best is None:
        return ToldRequest(item, asked)
    if is_deed(item.title):
        whole = ", ".join(each.said for each in fresh if _are_beside(each, best))
        beside = whole if len(whole) <= MAX_BESIDE else best.said
        title = f"{item.title}: {beside}"
        return ToldRequest(item._replace(title=title), asked)
    is_empty = len(known) < MIN_TOLD <= len(told_in(best.said))
    return ToldRequest(item, best.act.clause.plain.cited if is_empty else asked)


def _says_more(each: WeighedClause) -> bool:
    """Whether the caller tells something with a clause, and asks for nothing with it."""
    act = each.act
    is_asking = each.is_ask or each.is_theirs or each.other > FOLLOWED
    is_empty = act.is_bare or introduces(act.matter)
    return act.speaker == "caller" and not is_asking and not is_empty


def _are_beside(one: WeighedClause, two: WeighedClause) -> bool:
    """Whether two clauses are of one sentence."""
    first, second = one.act.clause, two.act.clause
    return (first.seq, first.sentence) == (second.seq, second.sentence)
