"""Who wants what, turn by turn: requests are raised, filled in, corrected, accepted and called off as the call goes on."""

import re
from datetime import date

from aftercall.llm.rules.asks import Ask, tidy
from aftercall.llm.rules.corrections import REPAIRS, REPLACES, denied_words, settle_repairs
from aftercall.llm.rules.dates import Mention, find_dates
from aftercall.llm.rules.faults import TAKEN_UP, is_absence, is_fault
from aftercall.llm.rules.kinds import kind_of
from aftercall.llm.rules.promises import is_promise
from aftercall.llm.rules.sentences import Clause, split_sentences
from aftercall.llm.rules.stances import Offer, Stance, find_offer, stance
from aftercall.llm.rules.stems import share, stems
from aftercall.llm.rules.triggers import Trigger, find_trigger, is_others_wish, is_own_doing, is_unreal
from aftercall.llm.rules.withdrawals import CallOff, find_call_off, find_earlier
from aftercall.model.turns import Turn

_ANAPHOR = re.compile(r"^(?:tell|ask|let|call|ring|text|email|give|warn) (?:him|her)\b|^(?:put|seat|sit) (?:us|me) (?:near|by|at|in|next|outside|inside|under|on)\b|^(?:[\w-]+ ){1,2}?(?:it|that|them|this|those|these|one)(?:['’]s)?\b(?! (?:\w+ )?(?:day|week|month|morning|afternoon|evening|weekend|coming|monday|tuesday|wednesday|thursday|friday|saturday|sunday)\b)|^(?:it|that|them|this|one)\b", re.I)
_RECORDS = re.compile(r"^(?:log|file|put|note|write|report|record|mark|flag|add|jot|raise|get)\b (?:that|this|it|those)\b.*\b(?:down|as|up|(?:to|on|in|into) (?:the|my|our|a))\b", re.I)
_TELLS_ONLY = re.compile(r"^(?:tell|let|inform|notify|warn|ask)\b(?: (?:the|my|your|his|her))? ?\w+(?: \w+)?(?: know)?\W*$", re.I)
_MOVES = re.compile(r"^(?:move|reschedule|change|push|switch|shift|postpone|rebook|bump|bring forward)\b", re.I)
_ENDS = re.compile(r"^(?:cancel|stop|skip)\b", re.I)
_MOVED_TO = re.compile(r"\b(?:to|for|until|till|instead)\b[^,]{0,20}$", re.I)
_THEN = re.compile(r"\b(?:by|for|before) (?:then|that (?:day|date))\b|\bthat (?:day|morning|afternoon|evening)\b", re.I)
_AND_ALSO = re.compile(r",? and (?=(?:on |in |the |next |this |tomorrow|tonight|by )[\w ]{0,25}?\bto \w+)", re.I)
_INSTRUCTS = re.compile(r"^(?:ring|press|use|knock|leave|deliver|wrap|charge|include|put|write|make|park|ask for|come|mention)\b", re.I)
_REMEDY = re.compile(r"^(?:a |an |my |the |get a |have a |to get a |full )*(?:full |partial )?(?:refund|replacement|exchange|credit|money back|new one)\b", re.I)
_MINE = re.compile(r"^i(?:['’]ll| will|['’]m going to) (?!take|come|be there|pick|need|have|go (?:for|with))", re.I)
_CONTENT_DATED = re.compile(r"^(?:tell|let \w+ know|say|inform|note|file a note|make a note|take a note|send (?:a )?message|send \w+ a (?:message|text)|leave (?:a )?message|pass|write)\b", re.I)
_STOP = re.compile(
    r"^(?:(?:can|could|would) you (?:please |just )?|i(?:['’]d like| want| need) you to |i(?:['’]d like| want) to )?(?P<what>(?:please )?(?:don['’]?t|do not) (?:send|mail|call|ring|email|text|remind|bother|charge|contact|phone|post|deliver)\b.*\b(?:any ?more|any longer|again|ever)\b.*|(?:please )?stop (?:sending|calling|emailing|texting|charging|mailing|ringing|reminding|the|my|delivering|billing)\b.*|"
    r"no more \w+.*|take (?:me|us|my (?:name|number|address)) off\b.*|unsubscribe\b.*|remove (?:me|us) from\b.*|(?:don['’]?t|do not) want any ?more\b.*|i (?:don['’]?t|no longer) want to (?:get|receive|be on)\b.*)",
    re.I,
)
_ASKS_WHEN = re.compile(r"\b(?:when|what (?:day|date|time)|which (?:day|date|one)|how soon|by when|what works|suits?|does that work|is that (?:ok|okay|fine|good))\b", re.I)
_HEAD = re.compile(r"^(?:by|on|for|from|at|before|it['’]s|so|the|this|next|tomorrow|today|any ?time|sometime|maybe|say|preferably|ideally|around|in|ready)\b", re.I)
_ANYTHING_ELSE = re.compile(r"\b(?:anything|something|what) else\b|\bhow (?:else )?(?:can|may) i help\b", re.I)
_OPENS = re.compile(r"\bwhat(?:['’]s (?:on your mind|up)| can i do| do you need| would you like me to do)\b|\bready when you are\b", re.I)
_WRONG_NUMBER = re.compile(r"\bwrong (?:number|place|person)\b", re.I)
_DICTATES = re.compile(r"^(?:(?:write|put)[,:]|(?:say|saying|just say|just put|just write|it should say|the message is)\b)", re.I)
_NEW_POINT = re.compile(r"^(?:and|also|then|oh|plus|okay|so)\b", re.I)
_CALL_BACK = re.compile(r"\b(?:call|ring|phone|speak|talk|human|call ?back|go through|contact)\b", re.I)
_STARTS_NEW = re.compile(r"^(?:and|also|oh|then|plus|can|could|would)\b|^(?:yes|yeah|okay|no)[, ]+(?:and|can|could)\b", re.I)
_WISH = re.compile(r"^(?:i(?:['’]d)? (?:like|want|need|prefer)|(?:can|could|may) (?:i|we) (?:have|get))\b", re.I)
_ASKS_FOR = re.compile(r"\b(?:what|which|who|where|when|why|how|name|number|address|spell|anything|or)\b", re.I)
_REACHES = re.compile(r"\b(?:call|ring|phone|text|email|contact|touch|message|write)\b", re.I)
_SEND_SOMEONE = re.compile(r"^(?:send (?:someone|somebody|a |an )|come (?:out|and|over|round|by|have)|have (?:someone|somebody|a )|look|fix|sort|get (?:someone|somebody|it|that|this|a )|help|take a look|do something|arrange|open|raise|log|report|file|put in)\b", re.I)
_SMALL_TALK = re.compile(r"^\W*(?:\w+\W+){0,2}$|\b(?:thank|thanks|bye|goodbye|cheers|how are you|you['’]re a star|have a (?:good|nice)|hello\?|are you there|can you hear)\b", re.I)
_TURNS = re.compile(r"^(?:but|so|and (?:i|can|could|please))\b", re.I)
_RUN_ON_WORDS = 30
_MAX_DETAILS = 8


class Floor:
    def __init__(self, today: date) -> None:
        self.today = today
        self.asks: list[Ask] = []
        self.withdrawn: list[Ask] = []
        self._current: Ask | None = None
        self._offer: Offer | None = None
        self._proposals: list[tuple[int, str, Mention]] = []
        self._question = ""
        self._declined = False
        self._agent_dated = False
        self._said = ""
        self._before: list[Clause] = []
        self._dictated: tuple[int, int] | None = None
        self._faults: list[Ask] = []
        self._led = ""
        self._called_off_at = 0
        self._muted: tuple[int, int] | None = None

    def hear_agent(self, turn: Turn, text: str) -> None:
        if _WRONG_NUMBER.search(text):
            self._forget_everything()
        self._drop_ignored_faults(text)
        self._offer = find_offer(turn, text) or self._offer
        self._agent_dated = bool(find_dates(text, self.today))
        self._question = text if "?" in text else ""
        self._said = text
        if _ANYTHING_ELSE.search(text):
            self._current, self._question = None, ""
        if _OPENS.search(text):
            self._question = ""
        self._proposals = self._proposed(turn.seq, text)

    def hear_caller(self, clauses: list[Clause]) -> None:
        if any(_WRONG_NUMBER.search(clause.text) for clause in clauses):
            self._forget_everything()
        answer = stance(clauses)
        if clauses:
            self._answer_offer(answer, clauses)
            self._answer_proposal(answer, clauses[0].seq)
            self._confirm(answer, clauses[0].seq)
        for index, clause in enumerate(clauses):
            self._hear(clause, clauses[index + 1 :])
            if not is_unreal(clause.text) and not is_others_wish(clause.text):
                self._before = [*self._before[-3:], clause]
        keeps_open = answer is None and bool(clauses) and clauses[-1].is_question
        self._offer = self._offer if keeps_open else None
        self._proposals, self._question, self._declined, self._agent_dated = [], "", False, False

    # What the agent put forward.

    def _proposed(self, seq: int, text: str) -> list[tuple[int, str, Mention]]:
        """The last day of each sentence other than a promise."""
        return [
            (seq, sentence, mentions[-1])
            for sentence in split_sentences(text)
            if (sentence.endswith("?") or not is_promise(sentence)) and (mentions := find_dates(sentence, self.today, self._anchor()))
        ]

    def _answer_offer(self, answer: Stance | None, clauses: list[Clause]) -> None:
        offer, seq = self._offer, clauses[0].seq
        if offer is None or answer is None:
            return
        known = self._meant(offer)
        if answer == "no":
            self._declined = known is None
            self._current = known or self._current
        elif known:
            known.cite(offer.seq, seq)
            self._current = known
        elif stems(offer.act) and not any(find_call_off(clause.text) for clause in clauses[:3]):
            act = _as_caller(offer.act)
            ask = Ask("booking" if offer.stands else kind_of(act), act, clauses[0].text, [offer.seq, seq])
            ask.due = self._first_day(offer.act)
            self._raise(ask)

    def _meant(self, offer: Offer) -> Ask | None:
        """The request that an offer takes up, if it is none of its own."""
        current = self._current
        if current and not current.is_stop:
            if _ANAPHOR.match(offer.act) or re.match(r"(?:\w+ ){0,3}(?:it|that|them|this)\b", offer.act, re.I):
                return current
            if current.kind == "message" and kind_of(_as_caller(offer.act)) == "message" and _CALL_BACK.search(offer.act):
                return current
        return self._overlapping(stems(offer.act))

    def _answer_proposal(self, answer: Stance | None, seq: int) -> None:
        """An accepted day is the day; a day that only fixes the weekday the caller named needs no yes."""
        for proposed_at, sentence, mention in self._proposals:
            ask = self._overlapping(stems(sentence), least=0.6) or self._current
            if ask is None or ask.kind == "note" or ask.is_stop or _ENDS.match(ask.act) or (ask.kind == "issue" and not self._question):
                continue
            fixes = ask.due is not None and ask.due.weekday() == mention.day.weekday()
            if answer == "yes" or (answer is None and fixes and not mention.weekday_only):
                if ask.due is None or not (mention.weekday_only and fixes):
                    ask.move(mention.day)
                ask.cite(proposed_at, seq)

    def _confirm(self, answer: Stance | None, seq: int) -> None:
        """What the agent asked back and the caller affirmed is part of the request."""
        ask = self._current
        asked = [sentence for sentence in split_sentences(self._question) if sentence.endswith("?")]
        if answer == "yes" and ask and not ask.is_stop and asked and stems(asked[-1]) and not _ASKS_FOR.search(asked[-1]):
            ask.add_detail(seq - 1, asked[-1])
            ask.cite(seq)

    # What the caller says.

    def _hear(self, clause: Clause, after: list[Clause]) -> None:
        if self._is_dictated(clause):
            if self._current:
                self._add(self._current, clause)
            return
        if self._is_muted(clause):
            return
        if stop := _STOP.match(clause.body):
            self._raise(Ask("other", stop["what"], clause.text, [clause.seq], is_stop=True))
            return
        if (call_off := find_call_off(clause.text)) and self._call_off(self._aimed(call_off, clause), clause):
            return
        trigger = find_trigger(clause.text)
        if self._current and REPLACES.search(clause.text) and not _MINE.match(clause.body) and (not trigger or _ANAPHOR.match(trigger.act)):
            self._correct(self._current, clause)
        elif trigger and not any(is_own_doing(other.text) for other in after[:2]):
            self._ask(trigger, clause)
        elif not trigger and (is_fault(clause.body) or is_absence(clause.body, self._said)) and not clause.is_question:
            self._report(clause)
        else:
            self._fill_in(clause, after)

    def _is_muted(self, clause: Clause) -> bool:
        """What others wish and what is only supposed colours the rest of its sentence."""
        place = (clause.seq, clause.sentence)
        if is_unreal(clause.text) or is_others_wish(clause.text):
            self._muted = place if len(clause.whole.split()) <= _RUN_ON_WORDS else None
            return True
        return self._muted == place and not _TURNS.match(clause.text)

    def _aimed(self, call_off: CallOff, clause: Clause) -> CallOff:
        """ "The wreath I asked for, leave that off": the thing meant stands in front."""
        if call_off.scope != "last" or not self._before:
            return call_off
        before = self._before[-1]
        if (before.seq, before.sentence) != (clause.seq, clause.sentence) or find_trigger(before.text):
            return call_off
        earlier = find_earlier(before.text)
        if earlier or self._overlapping(stems(before.text)):
            return CallOff("named", stems(before.text), tidy(before.text), earlier, call_off.cancels_standing)
        return call_off

    def _ask(self, trigger: Trigger, clause: Clause) -> None:
        kind = kind_of(trigger.act)
        current = self._current
        if _RECORDS.match(trigger.act):
            self._record(trigger, clause)
            return
        if current and self._only_adds(trigger, clause, current):
            self._correct(current, clause)
            if kind == "message":
                self._dictated = (clause.seq, clause.sentence)
            return
        if known := self._same(trigger, clause):
            self._add(known, clause)
            self._set_day(known, clause.text)
            self._current = known
            return
        first, *others = _AND_ALSO.split(trigger.act) if kind == "reminder" else [trigger.act]
        ask = Ask(kind, first, trigger.words, [clause.seq])
        if _ANAPHOR.match(trigger.act) or _TELLS_ONLY.match(trigger.act):
            self._lean_back(ask, clause)
            ask.kind = kind if kind != "task" else kind_of(" ".join((trigger.act, *(text for _, text in ask.details))))
        self._set_day(ask, f"{self._led} {first if others else clause.text}", opening=True)
        self._led = ""
        if ask.due is None and self._before and self._before[-1].seq == clause.seq and self._before[-1].is_question and not find_trigger(self._before[-1].text) and not _MOVES.match(first):
            ask.due = self._first_day(self._before[-1].text)
        if kind in ("message", "note"):
            self._dictated = (clause.seq, clause.sentence)
        self._raise(ask)
        for other in others:
            self._raise(Ask(kind, other, trigger.words, [clause.seq], due=self._first_day(other)))

    def _only_adds(self, trigger: Trigger, clause: Clause, current: Ask) -> bool:
        """Whether the words ask for nothing new but fill in what is being talked about."""
        if current.is_stop or clause.seq - current.turns[-1] > 4:
            return False
        answers = self._question and _WISH.match(clause.body) and re.match(r"(?:the|an?|it|that|one|two|three|some)\b", trigger.act, re.I)
        reached = is_promise(self._said) and _REACHES.search(self._said) and re.match(r"(?:call|ring|text|email|phone|use|try) (?:me|my|the|it)\b", trigger.act, re.I)
        if (answers and not _STARTS_NEW.match(clause.text)) or reached:
            return True
        instructs = self._question and _INSTRUCTS.match(trigger.act) and trigger.is_order
        return bool(_ANAPHOR.match(trigger.act) or (trigger.is_fragment and self._question) or (instructs and not _STARTS_NEW.match(clause.text)))

    def _record(self, trigger: Trigger, clause: Clause) -> None:
        """ "Log that as a bug": the matter is in the words before."""
        kind = kind_of(trigger.act)
        current = self._current
        if current and current.turns[-1] == clause.seq and current in self._faults:
            current.kind = kind if kind != "task" or re.search(r"to[- ]?do|task", trigger.act, re.I) else current.kind
            current.from_fault = False
            return
        if current and current.turns[-1] >= clause.seq - 2 and (not self._before or self._before[-1].seq != clause.seq):
            self._correct(current, clause)
            return
        if current and self._before and current.turns[-1] == clause.seq and find_trigger(self._before[-1].text):
            current.kind = kind
            return
        ask = Ask(kind, trigger.act, trigger.words, [clause.seq])
        self._lean_back(ask, clause)
        self._raise(ask)

    def _report(self, clause: Clause) -> None:
        """A fault stands until the agent shows that nobody here takes it up."""
        known = next((ask for ask in self._faults if ask in self.asks and clause.seq - ask.turns[-1] <= 4), None)
        about = stems(clause.body)
        if known or (known := self._overlapping(about, least=0.5)):
            self._add(known, clause)
            return
        ask = Ask("issue" if is_fault(clause.body) else "note", clause.body, clause.body, [clause.seq], from_fault=True)
        if re.match(r"(?:it|she|he|they|that|this)\b", clause.body, re.I):
            self._lean_back(ask, clause)
        self._faults.append(ask)
        self._raise(ask)

    def _correct(self, ask: Ask, clause: Clause) -> None:
        if REPAIRS.match(clause.text):
            ask.drop_details(clause.seq)
        ask.denied += denied_words(clause.text)
        self._set_day(ask, clause.text, moves=True)
        self._add(ask, clause)
        self._current = ask

    def _fill_in(self, clause: Clause, after: list[Clause]) -> None:
        """Answers to what the agent asked, and what follows a request in the same breath."""
        ask = self._current
        if ask is None or ask.is_stop or self._leads_on(clause, after):
            return
        if REPAIRS.match(clause.text):
            ask.drop_details(clause.seq)
        ask.denied += denied_words(clause.text)
        same_breath = ask.turns[-1] == clause.seq
        if not (same_breath or self._question or self._agent_dated):
            return
        body = clause.body
        short = len(body.split()) <= 7
        if _MINE.match(body) or (ask.kind in ("issue", "message") and not self._agent_dated and not _ASKS_WHEN.search(self._question)):
            pass
        elif (not clause.is_question or short) and (short or _HEAD.match(body) or _ASKS_WHEN.search(self._question)):
            self._set_day(ask, clause.text, moves=True)
        if not clause.is_question and not _SMALL_TALK.search(body) and not self._declined:
            self._add(ask, clause)

    def _leads_on(self, clause: Clause, after: list[Clause]) -> bool:
        """ "In two weeks, remind me": the day belongs to what comes next in the sentence."""
        rest = [other for other in after if other.sentence == clause.sentence]
        dated = len(clause.text.split()) <= 6 and bool(self._first_day(clause.text))
        leads = any(find_trigger(other.text) for other in (rest if dated else rest[:1]))
        if leads and dated:
            self._led = f"{self._led} {clause.text}"
        return leads

    def _call_off(self, call_off: CallOff, clause: Clause) -> bool:
        """Whether the words called something off, or at least ask for nothing."""
        standing = [ask for ask in self.asks if not ask.is_stop]
        if call_off.scope == "all":
            for ask in standing:
                self._withdraw(ask, clause.seq)
            return bool(standing)
        if call_off.scope == "last" and self._called_off_at == clause.seq:
            return True
        if call_off.scope == "last":
            target = self._current if self._current in standing else (standing[-1] if standing else None)
            if target and not self._declined and not call_off.cancels_standing:
                self._withdraw(target, clause.seq)
            return not call_off.cancels_standing
        named = [ask for ask in standing if stems(ask.act) & call_off.stems]
        if named:
            self._withdraw(max(named, key=lambda ask: (len(stems(ask.act) & call_off.stems), ask.turns[-1])), clause.seq)
            return True
        if call_off.names_earlier:
            self._withdraw(Ask("other", call_off.what, call_off.what, [clause.seq]), clause.seq)
            return True
        for ask in standing:
            ask.details = [(seq, text) for seq, text in ask.details if not stems(text) & call_off.stems]
        return find_trigger(clause.text) is None or clause.body.lower().startswith(("forget", "scratch", "never", "skip", "don"))

    def _withdraw(self, ask: Ask, seq: int) -> None:
        ask.cite(seq)
        self._called_off_at = seq
        self.asks = [other for other in self.asks if other is not ask]
        self.withdrawn.append(ask)
        self._current = None

    # Small steps.

    def _raise(self, ask: Ask) -> None:
        self.asks.append(ask)
        self._current = ask

    def _add(self, ask: Ask, clause: Clause) -> None:
        if len(ask.details) < _MAX_DETAILS and len(clause.body.split()) > 1:
            ask.add_detail(clause.seq, clause.text)
        else:
            ask.cite(clause.seq)

    def _lean_back(self, ask: Ask, clause: Clause) -> None:
        """An act that only points ("move it") takes its matter from what the caller said before."""
        matter = [other for other in self._before if other.seq == clause.seq and not find_trigger(other.text)][-2:] or self._before[-1:]
        for other in matter:
            ask.add_detail(other.seq, other.text)
        if not _TELLS_ONLY.match(ask.act) and ask.due is None and _RECORDS.match(ask.act):
            ask.due = next((day for other in matter if (day := self._first_day(other.text))), None)

    def _set_day(self, ask: Ask, text: str, *, opening: bool = False, moves: bool = False) -> None:
        if ask.is_stop or (ask.kind in ("note", "message") and (_CONTENT_DATED.match(ask.act) or not opening and not moves)):
            return
        text = settle_repairs(text)
        mentions = find_dates(text, self.today, self._anchor(ask))
        if opening and _MOVES.match(ask.act):
            mentions = [mention for mention in mentions if _MOVED_TO.search(text[: mention.start])][-1:]
        if not mentions and _THEN.search(text):
            mentions = [mention for other in self._before[-2:] for mention in find_dates(other.text, self.today)]
        if not mentions or ask.from_fault or _ENDS.match(ask.act):
            return
        day = (mentions[-1] if moves and REPLACES.search(text) else mentions[0]).day
        ask.move(day)

    def _first_day(self, text: str) -> date | None:
        mentions = find_dates(text, self.today, self._anchor())
        return mentions[0].day if mentions else None

    def _anchor(self, apart: Ask | None = None) -> date | None:
        """The day that "the day before" looks at: that of the latest booking, or of anything with a day."""
        dated = [ask for ask in self.asks if ask.due]
        bookings = [ask for ask in dated if ask.kind == "booking"] or dated
        if apart and apart.due:
            return apart.due
        return bookings[-1].due if bookings else None

    def _overlapping(self, about: frozenset[str], least: float = 0.5) -> Ask | None:
        fits = [(share(about, ask.stems), ask.turns[-1], index) for index, ask in enumerate(self.asks) if share(about, ask.stems) >= least]
        return self.asks[max(fits)[2]] if fits else None

    def _same(self, trigger: Trigger, clause: Clause) -> Ask | None:
        """The request this trigger asks for once more, if it does."""
        kind, about = kind_of(trigger.act), stems(trigger.act)
        current = self._current
        if current and current.turns[-1] >= clause.seq - 2:
            if current in self._faults and (_SEND_SOMEONE.match(trigger.act) or kind == "issue") and kind != "message":
                return current
            if current in self._faults and _REMEDY.match(trigger.act):
                current.kind = "task"
                return current
            if kind == current.kind == "message" and _CALL_BACK.search(current.act) and _CALL_BACK.search(trigger.act):
                return current
            if not about and kind == "reminder" and current.turns[-1] == clause.seq and current.kind == "task":
                current.kind = "reminder"
                return current
            if not about and kind != "reminder":
                return current
        return next((ask for ask in reversed(self.asks) if ask.kind == kind and share(about, stems(ask.act)) >= 0.5 and kind != "reminder"), None)

    def _is_dictated(self, clause: Clause) -> bool:
        if self._current and self._current.kind in ("message", "note") and clause.seq == self._current.turns[-1] and _DICTATES.match(clause.body):
            self._dictated = (clause.seq, clause.sentence)
            return True
        return self._dictated == (clause.seq, clause.sentence) and not (_NEW_POINT.match(clause.text) and find_trigger(clause.text))

    def _drop_ignored_faults(self, text: str) -> None:
        for fault in self._faults:
            if fault.from_fault and fault in self.asks and not TAKEN_UP.search(text) and "?" not in text and not is_promise(text):
                self.asks.remove(fault)
        self._faults = [fault for fault in self._faults if fault in self.asks]
        for fault in self._faults:
            fault.from_fault = False

    def _forget_everything(self) -> None:
        self.asks.clear()
        self._current = None
        self._before = []


def _as_caller(act: str) -> str:
    """An offer in the mouth of the one who accepts it."""
    return re.sub(r"\byour\b", "my", re.sub(r"\byou\b", "me", act, flags=re.I), flags=re.I)


def is_worth_keeping(ask: Ask) -> bool:
    return bool(tidy(ask.act)) and (bool(ask.stems) or ask.kind in ("message", "reminder"))
