"""`apply(state, act) -> state`: how each act of a call changes what is asked for."""

import re
from dataclasses import replace

from aftercall.english.stems import stem, stems
from aftercall.english.text import Plain
from aftercall.english.words import compile_pattern, load_patterns, vocabulary
from aftercall.llm.rules.acts import Act
from aftercall.llm.rules.due import (
    claim_pending,
    confirm_day,
    day_of_ask,
    settle,
    take_day,
)
from aftercall.llm.rules.state import (
    ACTED_ON,
    MAX_DETAILS,
    MAX_SLOTS,
    MAX_TOLD,
    NOTHING,
    PLAIN,
    TAKEN_UP,
    UNKNOWN,
    UNSURE,
    Item,
    Offer,
    RequestState,
    add,
    change_number,
    close,
    context_of,
    drop_details,
    find_match,
    find_named,
    put,
    put_right,
    touch,
)
from aftercall.llm.rules.titles import find_person, kind_of, title_of, to_caller

_CUES = load_patterns("aftercall.llm.rules", "state")
_POINTERS = frozenset(("it", "that", "this", "them", "those", "one", "all", "both"))
# Verbs that say nothing of what they are done to.
_EMPTY_VERBS = stems(
    "put add log send make do get fix open book order change move write file take note block "
    "replace bug issue ticket down assign tell give call bring cancel forget leave scratch drop"
)
# An agent that offers these asks what it can do.
_OPEN_OFFERS = _EMPTY_VERBS | stems(
    "message list something anything details information start arrange"
)
_REASONS = vocabulary(
    "because since as if i we he she they it there my our and but so till"
)
_WORDS_ONLY = ("tell", "hearsay", "hypothetical", "own", "question")
_ALONE = frozenset(
    ("cancel", "complain", "unsubscribe", "upgrade", "renew", "reschedule")
)
_OF_IT = re.compile(
    r"\S+(?: \S+){0,4} (?:it|them)\b"
    r"|\S+ (?:that|this|him|her|those)(?= (?:down|in|on|up|off|out|to|as|back|over|away)\b|$)"
)
_TO_PERSON = re.compile(
    r"(?:tell|ask|let|text|ring|call|email|message|remind|say to) (?:him|her|them)\b"
)
_REACHES = re.compile(
    r"^(?:call|ring|phone|text|email|leave|contact|use|write|come|put)\b"
)
_NO_DEED = compile_pattern(
    r"(?!ask|(?:tell|call|ring|text) (?:any|me|us))<deed>"
    r"(?: (?:it|that|this|them|him|her|those|me|anything|any|anybody|anyone))?(?: .*)?"
)
WITHDRAW_REACH = 3
STOP_REACH = 6  # turns back in which something can be called off without its name
_DICTATES = re.compile(r"^say (?!that)\S|\bquote\b|\bword for word\b")
_STOPPING = re.compile(r"\b(?:any ?more|again|any)\b")
_STOPS = ("stop", "no more", "please stop", "and stop", "and no more")
_ALL = re.compile(
    r"^(?:all of it|everything|all|both|the whole thing|the lot|all of them)\b"
)
_PROMISED = re.compile(
    r"(?:and |so )*(?:i|we|they|he|she|it|the \S+) (?:will|am going to)\b"
)
_QUESTION_LEAD = re.compile(
    r"^(?:and |so |but |ok )*(?:do (?:i|we|you)(?: guys)? (?:get|have|do)|is there|are there"
    r"|have you(?: got)?|can i have) (?:a |an |any |the )?"
)


def apply(state: RequestState, act: Act) -> RequestState:
    """The state after one more clause."""
    if act.speaker == "agent":
        return _hear_agent(state, act)
    if act.seq != state.last_seq and _goes_along(state, act):
        state = replace(settle(state, act, state.proposed), proposed=None)
    after = _hear_caller(state, act)
    days = after.days_of(act.clause.plain)
    told = after.told
    if act.kind in ("tell", "own") and not act.is_bare and _tells(act.matter):
        told = (*told, (act.seq, act.matter))[-MAX_TOLD:]
    earlier = after.last_day if after.last_seq == act.seq else None
    earlier_question = state.question if state.last_seq == act.seq else NOTHING
    is_asking = act.clause.is_question or act.kind == "question"
    return replace(
        after,
        told=told,
        last_clause=act.clause.plain,
        last_seq=act.seq,
        last_day=days[-1] if days else earlier,
        question=act.clause.plain if is_asking else earlier_question,
    )


def _tells(matter: Plain) -> bool:
    """Whether a clause says what the call is about."""
    is_matter = len(matter.words) > 1 and bool(stems(matter.text))
    return is_matter and not _CUES["introduces"].fullmatch(matter.text)


def _goes_along(state: RequestState, act: Act) -> bool:
    """Whether a caller who is offered a day only picks the hour, and so takes the day."""
    if state.proposed is None or state.open_item is None or act.kind != "tell":
        return False
    if act.answer or act.clause.is_question or len(act.clause.plain.words) > 5:
        return False
    is_pick = bool(_CUES["picks"].search(act.clause.text))
    return is_pick and not state.days_of(act.clause.plain)


# The agent


def _hear_agent(state: RequestState, act: Act) -> RequestState:
    text = act.clause.text
    if act.seq != state.last_seq:
        is_asked_back = bool(state.question.words)
        state = replace(
            state,
            offer=state.offer if is_asked_back else None,
            proposed=None,
            asks_day=False,
            asks_detail=False,
            agent_said=(),
            last_seq=act.seq,
        )
    days = state.days_of(act.clause.plain)
    is_reply = _answers(state) and not act.clause.is_question
    is_slot = not _PROMISED.match(text) and not _CUES["no_slot"].search(text)
    if days and is_slot and (act.kind == "offer" or not is_reply):
        slots = (*state.slots, *days) if state.proposed else tuple(days)
        state = replace(
            state, proposed=days[-1], proposed_seq=act.seq, slots=slots[-MAX_SLOTS:]
        )
    if act.kind == "refuse":
        return _refuse(state, act)
    if act.kind != "offer":
        state = replace(state, agent_said=(*state.agent_said, act.clause.plain))
        is_told = not _CUES["no_slot"].search(text)
        state = confirm_day(state, act, days) if is_told else state
    state = _take_up(state, act, has_day=bool(days))
    if act.kind == "offer":
        offer = Offer(act.matter, act.seq, " still " in f" {text} ")
        about = find_match(state, act.matter.text, state.current)
        return replace(state, offer=offer, current=about)
    if _CUES["new_topic"].search(text):
        return replace(state, current=-1, told=(), offer=None, proposed=None)
    if not act.clause.is_question:
        return state
    named = find_named(state, text, is_open=True)
    return replace(
        state,
        asks_day=bool(_CUES["asks_day"].search(text)),
        asks_detail=_asks_detail(state, act),
        current=named if named >= 0 else state.current,
    )


def _asks_detail(state: RequestState, act: Act) -> bool:
    """Whether an agent asks for more about the request; not by the way about something else."""
    text, item = act.clause.text, state.open_item
    is_of_it = item is not None and bool(stems(text) & item.about)
    is_open = bool(_CUES["asks_more"].match(text)) or len(act.clause.plain.words) <= 4
    return (is_of_it or is_open) and not _CUES["asks_other"].search(text)


def _answers(state: RequestState) -> bool:
    """Whether the caller just asked something else than for a free day."""
    asked = state.question
    is_of_days = bool(state.days_of(asked)) or bool(
        _CUES["asks_slot"].search(asked.text)
    )
    return bool(asked.words) and not is_of_days


def _take_up(state: RequestState, act: Act, *, has_day: bool) -> RequestState:
    """An agent that asks on, promises or proposes a day has understood a request as one."""
    item = state.open_item
    if item is None or not UNKNOWN <= item.confidence < ACTED_ON:
        return state
    goes_on = has_day or _goes_on(item, act)
    if not goes_on or item.turns[-1] != act.seq - 1:
        return state
    if not act.clause.is_question:
        item = _with_detail(item, act.clause.plain.said)
    return put(state, state.current, replace(item, confidence=TAKEN_UP))


def _goes_on(item: Item, act: Act) -> bool:
    """Whether an agent asks on about a request, or promises something of it."""
    text = act.clause.text
    if _PROMISED.match(text) or _CUES["agrees"].match(text):
        return True
    is_of_it = bool(stems(text) & stems(item.title))
    asks_on = act.clause.is_question and not _CUES["asks_other"].search(text)
    return is_of_it or (asks_on and bool(_CUES["asks_on"].match(text)))


def _refuse(state: RequestState, act: Act) -> RequestState:
    """What the agent will not do is not asked for any more; a wrong number asks for nothing."""
    about = stems(act.matter.text)
    is_wrong_number = bool(_CUES["wrong_number"].search(act.clause.text))

    def refuse(item: Item) -> Item:
        is_last = item.turns[-1] == act.seq - 1 and item.status == "open"
        is_meant = bool(about & item.topic) or act.matter.text in (
            "do that",
            "that",
            "",
        )
        is_refused = is_wrong_number or (is_last and is_meant)
        return replace(item, status="refused") if is_refused else item

    return replace(state, items=tuple(map(refuse, state.items)))


# The caller


def _hear_caller(state: RequestState, act: Act) -> RequestState:
    had_offer = state.offer is not None
    state = _answer(state, act)
    if _is_dictated(state, act):
        return _add_detail(replace(state, dictated_seq=act.seq), act)
    if state.offer and act.kind in ("withdraw", "dont"):
        state = replace(_decline(state, act), offer=None, proposed=None)
    if act.kind == "withdraw":
        return _withdraw(state, act)
    if _is_content(state, act):
        return _add_detail(state, act)
    if act.kind in ("ask", "unclear", "fault"):
        return _ask(state, act)
    if act.kind == "correct":
        return _correct(state, act)
    if act.kind == "dont":
        return _stop(state, act)
    if act.kind == "own":
        return _take_over(state, act)
    if act.kind in ("hypothetical", "ignore", "hearsay", "question"):
        return state
    if act.answer == "no" and not act.is_bare and not had_offer:
        known = _named_in(state, act)
        if known >= 0:
            return close(state, known, act)
    item = state.open_item
    if item and (changed := change_number(item, act.matter, is_contrast=True)):
        return put(state, state.current, touch(changed, act.seq))
    state = take_day(state, act)
    return state if act.is_bare else _add_detail(state, act)


def _named_in(state: RequestState, act: Act) -> int:
    """ "No taxi": the request that the few words name."""
    is_short = len(act.matter.words) <= 3 and bool(stems(act.matter.text))
    return find_match(state, act.matter.text, minimum=0.99) if is_short else -1


def _is_dictated(state: RequestState, act: Act) -> bool:
    """ "Say, …", "word for word": the rest of the turn is what to write or say."""
    if state.open_item is None:
        return False
    begins = bool(_DICTATES.search(act.clause.text)) and act.kind != "ask"
    goes_on = state.dictated_seq == act.seq
    return begins or goes_on


def _is_content(state: RequestState, act: Act) -> bool:
    """What follows "file a note" or "tell her" in the same turn is what to write or say."""
    item = state.open_item
    if item is None or not item.delivers_words or item.asked != act.seq:
        return False
    if act.kind in _WORDS_ONLY:
        return True
    is_new = bool(re.match(r"(?:remind|book|tell)\b", act.matter.text))
    return not is_new and act.kind == "ask" and act.matter.text == act.clause.text


def _answer(state: RequestState, act: Act) -> RequestState:
    """An answer closes the agent's offer or settles the day it put forward."""
    offer = state.offer
    if not act.answer:
        return state
    if act.answer == "no":
        return replace(_decline(state, act), offer=None, proposed=None)
    if offer:
        state = _accept(state, act, offer)
    if state.proposed and not state.days_of(act.clause.plain):
        state = settle(state, act, state.proposed)
    return replace(state, offer=None, proposed=None)


def _decline(state: RequestState, act: Act) -> RequestState:
    """A no to what was just asked for, or to "do you still want", calls it off."""
    offer = state.offer
    if offer is None:
        return state
    about = find_match(
        state, offer.matter.text, state.current if offer.is_still else -1
    )
    is_asked = about >= 0 and state.items[about].asked == offer.seq - 1
    if offer.is_still or is_asked:
        return replace(close(state, about, act), declined_seq=act.seq)
    refused = state.refused | stems(offer.matter.text)
    item = state.open_item
    is_of_it = item is not None and item.asked == offer.seq - 1
    return replace(state, refused=refused, declined_seq=0 if is_of_it else act.seq)


def _accept(state: RequestState, act: Act, offer: Offer) -> RequestState:
    """An offer taken up is a request, or a detail of one that was asked already."""
    known = find_match(state, offer.matter.text)
    item = state.open_item
    if known < 0 and item and _is_offered(item, offer):
        known = state.current
        item = _with_detail(item, to_caller(offer.matter.said))
        state = put(state, known, item)
    if known < 0 and _is_pointing(offer.matter):
        asked = _QUESTION_LEAD.sub("", state.question.text, count=1)
        item = state.open_item
        about = [plain for plain in state.agent_said if _is_new_matter(plain, item)]
        if about and not state.question.words:
            offer = replace(offer, matter=about[-1])
        elif stems(asked):
            start = len(state.question.text) - len(asked)
            offer = replace(offer, matter=state.question.after(start), seq=act.seq - 2)
        elif state.open_item:
            known = state.current
    if known >= 0:
        return put(state, known, touch(state.items[known], offer.seq, act.seq))
    title = to_caller(title_of(offer.matter))
    if not title or not stems(offer.matter.text) - _OPEN_OFFERS:
        return state
    days = state.days_of(offer.matter)
    item = Item(
        title=title,
        words=offer.matter.cited,
        turns=(offer.seq, act.seq),
        kind=kind_of(offer.matter.text),
        confidence=0.85 if act.answer == "yes" else 0.7,
        topic=stems(offer.matter.text),
        due=days[-1] if days else None,
        person=find_person(offer.matter),
        details=(
            *(
                plain.said
                for plain in (state.question, *state.agent_said)
                if plain.words
            ),
            *context_of(state, act.seq, 4),
        ),
    )
    return _join_fault(state, item)


def _is_new_matter(plain: Plain, item: Item | None) -> bool:
    """Whether an agent's clause, to which its offer points, is about something new."""
    about = stems(plain.text)
    return len(about) > 1 and not (item and about & item.about)


def _is_offered(item: Item, offer: Offer) -> bool:
    """Whether an offer is about a request: just asked for, being set right, or settled with it."""
    is_mended = item.is_fault and item.turns[-1] >= offer.seq - 2
    return item.asked >= offer.seq - 1 or is_mended or offer.seq in item.turns


def _ask(state: RequestState, act: Act) -> RequestState:
    matter, item = act.matter, state.open_item
    called_off = matter.text.removeprefix("cancel ")
    known = find_match(state, called_off, minimum=0.99)
    is_new = known < 0 or state.items[known].title.lower().startswith("cancel")
    if called_off != matter.text and act.kind == "ask" and not is_new:
        return close(state, known, act)
    if act.kind == "ask" and _TO_PERSON.match(matter.text):
        told = (at for at, other in enumerate(state.items) if _concerns_person(other))
        state = replace(state, current=max(told, default=state.current))
        item = state.open_item
        if item and _concerns_person(item):
            return _restate(state, act)
    is_taken = bool(act.answer) and item is not None and act.seq in item.turns
    if item and is_taken and stems(matter.text) & item.topic:
        return _restate(state, act)
    if item and _continues(state, item, act):
        return _restate(state, act)
    is_same_turn = item is not None and item.asked == act.seq
    known = find_match(state, matter.text, minimum=0.5 if is_same_turn else 0.75)
    if known >= 0:
        other = state.items[known]
        if act.kind != "ask" or other.is_fault or other.kind == kind_of(matter.text):
            return _restate(replace(state, current=known), act)
    return _ask_anew(state, act)


def _ask_anew(state: RequestState, act: Act) -> RequestState:
    matter = act.matter
    title = title_of(matter)
    if not title or (len(matter.words) == 1 and matter.text not in _ALONE):
        return state
    is_of_it = _is_pointing(matter) or _is_of_it(matter.text)
    is_of_it = is_of_it or bool(_TO_PERSON.match(matter.text))
    context = context_of(state, act.seq, 2 if act.kind == "unclear" else 0)
    is_vague = is_of_it and (not context or act.confidence < PLAIN)
    if _is_pointing(matter) and context:
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
    )
    if _DICTATES.search(act.clause.text):
        state = replace(state, dictated_seq=act.seq)
    state, day = claim_pending(state, act, day_of_ask(state, act, item))
    state = replace(state, offer=None, proposed=None)
    return _join_fault(state, replace(item, due=day))


def _continues(state: RequestState, item: Item, act: Act) -> bool:
    """Whether a new ask goes on with the current request: "and assign it to Ann"."""
    text = act.matter.text
    is_same_turn = max(item.asked, item.turns[0]) == act.seq
    if item.turns[-1] < act.seq - 2 or text.startswith("remind"):
        return False
    if act.kind != "ask":
        return is_same_turn or item.confidence < 0.7
    if _is_pointing(act.matter) or _says_again(state, item, act):
        return True
    is_of_person = bool(_CUES["of_person"].search(act.clause.text))
    if is_of_person and (item.kind == "message" or item.person):
        return True
    return _is_of_it(text)


def _concerns_person(item: Item) -> bool:
    return item.status == "open" and (item.kind == "message" or bool(item.person))


def _says_again(state: RequestState, item: Item, act: Act) -> bool:
    """ "Can somebody call me?" in one breath with the request, or its verb once more later."""
    text = act.matter.text
    is_way = bool(re.match(r"(?:call|ring|phone|text|email) (?:me|us)\b", text))
    if item.turns[-1] == act.seq and is_way and len(stems(text)) <= 1:
        return True
    is_again = stem(text.split()[0]) in item.topic and state.asks_detail
    return is_again and len(stems(text) - item.about) <= 3


def _restate(state: RequestState, act: Act) -> RequestState:
    """The same matter again: its words and its day are added to what is known."""
    item = state.open_item
    if item is None:
        return state
    days, said = state.days_of(act.clause.plain), act.clause.plain.said
    updated = replace(
        touch(item, act.seq),
        asked=act.seq,
        due=days[-1] if days else item.due,
        confidence=max(item.confidence, act.confidence),
    )
    if stems(said) - item.about:
        updated = _with_detail(updated, said)
    if item.is_fault and act.kind == "ask":
        title = f"{title_of(act.matter)}: {item.title}"
        updated = replace(
            updated,
            title=title,
            kind=kind_of(title.lower()),
            words=act.matter.cited,
            is_fault=False,
        )
    return put(state, state.current, updated)


def _join_fault(state: RequestState, item: Item) -> RequestState:
    """A fault told just before a plain request is what the request is about."""
    last = state.open_item
    if last is None or not last.is_fault or item.is_fault or len(last.turns) > 1:
        return add(state, item)
    if last.turns[-1] < item.turns[0] - 1:
        return add(state, item)
    joined = replace(
        item,
        title=item.title if ": " in item.title else f"{item.title}: {last.title}",
        turns=tuple(sorted({*last.turns, *item.turns})),
        topic=item.topic | last.topic,
        details=last.details,
        due=item.due or last.due,
    )
    return put(state, state.current, joined)


def _correct(state: RequestState, act: Act) -> RequestState:
    if state.open_item is None:
        opened = (at for at, other in enumerate(state.items) if other.status == "open")
        state = replace(state, current=max(opened, default=-1))
    item = state.open_item
    if item is None:
        return state
    days = state.days_of(act.clause.plain)
    if days:
        item = replace(touch(item, act.seq), due=days[-1])
    elif changed := change_number(item, act.matter):
        item = touch(changed, act.seq)
    return replace(put(state, state.current, item), offer=None, proposed=None)


def _with_detail(item: Item, said: str) -> Item:
    is_full = len(item.details) >= MAX_DETAILS
    return item if is_full else replace(item, details=(*item.details, said))


def _stop(state: RequestState, act: Act) -> RequestState:
    """ "Don't order it" calls off; "don't send me any more calendars" asks for an end to it."""
    text = act.matter.text
    known = find_match(state, text, minimum=0.99)
    if known >= 0 and state.items[known].turns[-1] >= act.seq - 6:
        return close(state, known, act)
    if _NO_DEED.match(text) and not stems(text) - _EMPTY_VERBS:
        return _stop_last(state, act)
    is_running = _STOPPING.search(text) or act.clause.text.startswith(_STOPS)
    is_reach = _REACHES.match(text) and not re.search(r"any ?more", text)
    if not is_running or is_reach or not stems(text):
        return state
    item = Item(
        title=title_of(act.clause.plain),
        words=act.clause.plain.cited,
        turns=(act.seq,),
        kind="other",
        confidence=act.confidence,
        topic=stems(text),
        details=context_of(state, act.seq, 0),
    )
    return add(state, item)


def _stop_last(state: RequestState, act: Act) -> RequestState:
    """ "Don't send anybody", "don't tell her": the last request with such a deed, or the last."""
    verb = stem(act.matter.text.split()[0])
    is_told = bool(_TO_PERSON.match(act.matter.text))
    near = [
        (at, item)
        for at, item in enumerate(state.items)
        if item.status == "open" and item.turns[-1] >= act.seq - STOP_REACH
    ]
    same = [
        at
        for at, item in near
        if verb in stems(item.title) or (is_told and _concerns_person(item))
    ]
    known = same or [at for at, _ in near]
    return close(state, known[-1], act) if known else state


def _take_over(state: RequestState, act: Act) -> RequestState:
    """ "That's on me": what was just taken for a request is the caller's own to do."""
    item = state.open_item
    is_pointer = bool(re.match(r"(?:so |and )?(?:that|it) is ", act.clause.text))
    if item and is_pointer and item.turns[-1] == act.seq:
        return put(state, state.current, replace(item, status="own"))
    return state


def _withdraw(state: RequestState, act: Act) -> RequestState:
    if _ALL.match(act.matter.text):
        for index, item in enumerate(state.items):
            if item.status in ("open", "refused"):
                state = close(state, index, act)
        return state
    head = _head_of(act.matter)
    if stems(head) - _EMPTY_VERBS:
        known = find_named(state, head)
        return close(state, known, act) if known >= 0 else drop_details(state, head)
    if state.declined_seq == act.seq:
        return state
    state = replace(state, told=())
    if state.last_seq == act.seq and _CUES["nouns"].match(state.last_clause.text):
        known = find_match(state, state.last_clause.text)
        if known >= 0 or stems(state.last_clause.text):
            return close(state, known, act)
    just_closed = 0 <= state.current < len(state.items) and state.open_item is None
    if just_closed and state.items[state.current].turns[-1] == act.seq:
        return state
    item = state.open_item
    reach = WITHDRAW_REACH if act.matter.words else STOP_REACH
    is_near = item is not None and item.turns[-1] >= act.seq - reach
    return close(state, state.current, act) if is_near else state


def _head_of(matter: Plain) -> str:
    """The few words that name what is meant; the reason that follows is none of them."""
    words = matter.words
    for at, word in enumerate(words, 1):
        if word.stop or at == len(words) or words[at].norm in _REASONS:
            return matter.slice(0, at).text
    return ""


def _add_detail(state: RequestState, act: Act) -> RequestState:
    """What the caller says next of a request, or in answer to a question about it."""
    item = state.open_item
    if item is None or len(item.details) >= MAX_DETAILS:
        return state
    is_same_turn = max(item.asked, item.turns[0]) == act.seq
    is_meant = is_same_turn or state.asks_detail or act.answer == "yes"
    matter = put_right(act.matter)
    about = stems(matter.text)
    is_story = bool(_CUES["story"].match(matter.text))
    if not is_meant or not about or is_story or about & state.refused:
        return state
    updated = replace(
        touch(item, act.seq),
        details=(*item.details, matter.said),
        person=item.person or find_person(matter),
    )
    return put(state, state.current, updated)


def _is_pointing(matter: Plain) -> bool:
    """Whether only "it" or "that" says what is meant."""
    points = not _POINTERS.isdisjoint(matter.vocabulary)
    return points and not stems(matter.text) - _EMPTY_VERBS


def _is_of_it(text: str) -> bool:
    return bool(_OF_IT.match(text)) and kind_of(text) not in ("message", "reminder")
