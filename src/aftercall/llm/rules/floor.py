"""Who wants what, turn by turn: requests are raised, filled in, corrected, accepted and called off as the call goes on."""

import re
from datetime import date

from aftercall.llm.rules import cues
from aftercall.llm.rules.additions import only_adds
from aftercall.llm.rules.asks import Ask, as_caller, tidy
from aftercall.llm.rules.corrections import REPAIRS, REPLACES, denied_words
from aftercall.llm.rules.dates import find_dates
from aftercall.llm.rules.due import Proposal, find_proposals, opening_day, takes_day
from aftercall.llm.rules.faults import is_absence, is_fault
from aftercall.llm.rules.kinds import kind_of
from aftercall.llm.rules.ledger import Ledger
from aftercall.llm.rules.promises import is_promise
from aftercall.llm.rules.sentences import Clause, split_sentences
from aftercall.llm.rules.stances import Offer, Stance, find_offer, stance
from aftercall.llm.rules.stems import share, stems
from aftercall.llm.rules.triggers import Trigger, find_trigger, is_others_wish, is_own_doing, is_unreal
from aftercall.llm.rules.withdrawals import CallOff, find_call_off, find_earlier
from aftercall.model.turns import Turn

_RUN_ON_WORDS = 30
_SAME = 0.75  # how much of an offer must be the caller's own request for a no to call that off


class Floor(Ledger):
    def __init__(self, today: date) -> None:
        super().__init__(today)
        self._offer: Offer | None = None
        self._proposals: list[Proposal] = []
        self._question = ""
        self._declined = False
        self._agent_dated = False
        self._said = ""
        self._agent_seq = 0
        self._inquiry: Clause | None = None
        self._dictated: tuple[int, int] | None = None
        self._led = ""
        self._muted: tuple[int, int] | None = None

    def hear_agent(self, turn: Turn, text: str) -> None:
        if cues.WRONG_NUMBER.search(text):
            self._forget_everything()
        self._drop_ignored_faults(text)
        self._offer = find_offer(turn, text) or self._offer
        self._agent_dated = bool(find_dates(text, self.today))
        self._question = text if "?" in text else ""
        self._said = text
        if cues.ANYTHING_ELSE.search(text):
            self._current, self._question = None, ""
        if cues.OPENS.search(text):
            self._question = ""
        self._proposals = find_proposals(turn.seq, text, self.today, self._anchor())
        self._agent_seq = turn.seq

    def hear_caller(self, clauses: list[Clause]) -> None:
        if any(cues.WRONG_NUMBER.search(clause.text) for clause in clauses):
            self._forget_everything()
        answer = stance(clauses)
        if clauses:
            self._answer_offer(answer, clauses)
            self._choose(clauses[0])
            if self._current is None and self._accepts(answer, clauses):
                self._accept_slot(clauses)
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

    def _answer_offer(self, answer: Stance | None, clauses: list[Clause]) -> None:
        offer, seq = self._offer, clauses[0].seq
        if offer is None or answer is None:
            return
        known = self._meant(offer)
        if answer == "no":
            restated = known if known and share(stems(offer.act), known.stems) >= _SAME else None
            self._declined = restated is None
            self._current = restated or self._current
        elif known:
            known.cite(offer.seq, seq)
            self._current = known
        elif stems(offer.act) and not any(find_call_off(clause.text) for clause in clauses[:3]):
            act = as_caller(offer.act)
            ask = Ask("booking" if offer.stands else kind_of(act), act, clauses[0].text, [offer.seq, seq])
            ask.due = self._first_day(offer.act)
            self._raise(ask)

    def _meant(self, offer: Offer) -> Ask | None:
        """The request that an offer takes up, if it is none of its own."""
        current = self._current
        if current and not current.is_stop:
            if cues.ANAPHOR.match(offer.act) or re.match(r"(?:\w+ ){0,3}(?:it|that|them|this)\b", offer.act, re.I):
                return current
            if current.kind == "message" and kind_of(as_caller(offer.act)) == "message" and cues.CALL_BACK.search(offer.act):
                return current
        return self._overlapping(stems(offer.act))

    def _accepts(self, answer: Stance | None, clauses: list[Clause]) -> bool:
        if answer == "no" or not (self._proposals or self._inquiry) or clauses[0].is_question:
            return False
        named = any(find_dates(clause.text, self.today) for clause in clauses[:2])
        return answer == "yes" or named or any(cues.TAKES.search(clause.text) for clause in clauses[:3])

    def _accept_slot(self, clauses: list[Clause]) -> None:
        """A slot put forward and taken is a booking though nobody said "book"; its matter is what the caller had told."""
        slot = next((proposal for proposal in reversed(self._proposals) if cues.SLOT.search(proposal.sentence)), None)
        slot = None if cues.NO_SLOT.search(self._said) or (slot and not slot.sentence.endswith("?")) else slot
        matter = self._inquiry or next((clause for clause in reversed(self._before) if len(clause.body.split()) > 3), None)
        if matter is None or not self._agent_seq or not (slot or self._inquiry):
            return
        seq = clauses[0].seq
        ask = Ask("booking", matter.body, clauses[0].text, sorted({matter.seq, self._agent_seq, seq}))
        if slot:
            ask.add_detail(slot.seq, slot.sentence)
            ask.due = slot.mention.day
        else:
            ask.due = self._first_day(matter.text)
        self._raise(ask)
        self._inquiry = None

    def _answer_proposal(self, answer: Stance | None, seq: int) -> None:
        """An accepted day is the day; a day that only fixes the weekday the caller named needs no yes."""
        for proposal in self._proposals:
            mention = proposal.mention
            ask = self._overlapping(stems(proposal.sentence), least=0.6) or self._current
            if ask is None or not takes_day(ask) or (ask.kind == "issue" and not self._question):
                continue
            fixes = ask.due is not None and ask.due.weekday() == mention.day.weekday()
            settles = ask.due is None and ask.kind == "booking"
            if answer == "yes" or (answer is None and (settles or (fixes and not mention.weekday_only))):
                if ask.due is None or not (mention.weekday_only and fixes):
                    ask.move(mention.day)
                ask.cite(proposal.seq, seq)

    def _choose(self, clause: Clause) -> None:
        """ "The later one": of two days put forward, the caller takes one by its place."""
        offered = [mention for proposal in self._proposals for mention in (*proposal.others, proposal.mention)]
        place = cues.PLACE.match(clause.body)
        if self._current and place and len(offered) == 2:
            self._current.move(offered[1 if place["second"] else 0].day)
            self._current.cite(clause.seq)
            self._proposals = []

    def _confirm(self, answer: Stance | None, seq: int) -> None:
        """What the agent asked back and the caller affirmed is part of the request."""
        ask = self._current
        asked = [sentence for sentence in split_sentences(self._question) if sentence.endswith("?")]
        if answer == "yes" and ask and not ask.is_stop and asked and stems(asked[-1]) and not cues.ASKS_FOR.search(asked[-1]):
            ask.add_detail(self._agent_seq, asked[-1])
            ask.cite(seq)

    # What the caller says.

    def _hear(self, clause: Clause, after: list[Clause]) -> None:
        if self._is_dictated(clause) or self._answers_what_to_say(clause):
            if self._current:
                self._add(self._current, clause)
            return
        if self._is_muted(clause):
            return
        if stop := cues.STOP.match(clause.body):
            self._raise(Ask("other", stop["what"], clause.text, [clause.seq], is_stop=True))
            return
        if (call_off := find_call_off(clause.text)) and self._call_off(self._aimed(call_off, clause), clause):
            return
        trigger = find_trigger(clause.text)
        if (
            self._current
            and REPLACES.search(clause.text)
            and not cues.MINE.match(clause.body)
            and (not trigger or cues.ANAPHOR.match(trigger.act))
        ):
            self._correct(self._current, clause)
        elif trigger and not any(is_own_doing(other.text) for other in after[:2]):
            self._ask(trigger, clause)
        elif self._current is None and not trigger and clause.is_question and cues.INQUIRY.search(clause.body):
            self._inquiry = clause
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
        return self._muted == place and not cues.TURNS.match(clause.text)

    def _aimed(self, call_off: CallOff, clause: Clause) -> CallOff:
        """ "The tubes I ordered, leave those off": the thing meant stands in front."""
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
        if cues.RECORDS.match(trigger.act):
            self._record(trigger, clause)
            return
        if current and only_adds(current, trigger, clause, self._said):
            self._correct(current, clause)
            if kind == "message":
                self._dictated = (clause.seq, clause.sentence)
            return
        if known := self._same(trigger, clause):
            self._add(known, clause)
            if known.kind not in ("note", "message"):
                self._move(known, clause.text)
            self._current = known
            return
        first, *others = cues.AND_ALSO.split(trigger.act) if kind == "reminder" else [trigger.act]
        ask = Ask(kind, first, trigger.words, [clause.seq])
        if cues.ANAPHOR.match(trigger.act) or cues.TELLS_ONLY.match(trigger.act):
            self._lean_back(ask, clause)
            ask.kind = kind if kind != "task" else kind_of(" ".join((trigger.act, *(text for _, text in ask.details))))
        elif self._before and self._before[-1].seq == clause.seq and cues.CONTEXT.search(self._before[-1].body):
            ask.add_detail(clause.seq, self._before[-1].text)
        ask.due = opening_day(ask, f"{self._led} {first if others else clause.text}", self.today, self._anchor(), self._before)
        self._led = ""
        if (
            ask.due is None
            and self._before
            and self._before[-1].seq == clause.seq
            and self._before[-1].is_question
            and not find_trigger(self._before[-1].text)
            and not cues.MOVES.match(first)
        ):
            ask.due = self._first_day(self._before[-1].text)
        if kind in ("message", "note"):
            self._dictated = (clause.seq, clause.sentence)
        self._raise(ask)
        for other in others:
            self._raise(Ask(kind, other, trigger.words, [clause.seq], due=self._first_day(other)))

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
        self._move(ask, clause.text)
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
        if cues.DATED_FOR.match(clause.body) and clause.seq - ask.turns[-1] <= 2:
            self._move(ask, clause.text)
        if not (same_breath or self._question or self._agent_dated):
            return
        body = clause.body
        short = len(body.split()) <= 7
        if cues.MINE.match(body) or (
            ask.kind in ("issue", "message") and not self._agent_dated and not cues.ASKS_WHEN.search(self._question)
        ):
            pass
        elif (not clause.is_question or short) and (short or cues.HEAD.match(body) or cues.ASKS_WHEN.search(self._question)):
            self._move(ask, clause.text)
        if not clause.is_question and not cues.SMALL_TALK.search(body) and not self._declined:
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
            if target and not self._declined and not call_off.cancels_standing and not self._refuses_suggestion(target):
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

    def _refuses_suggestion(self, ask: Ask) -> bool:
        """ "Don't do that" to a suggestion of the agent's own leaves the request alone."""
        last = list(split_sentences(self._said))[-1:]
        suggests = any(sentence.endswith("?") or is_promise(sentence) for sentence in last)
        return suggests and bool(stems(last[0])) and not stems(last[0]) & ask.stems and ask.turns[-1] < self._agent_seq

    def _is_dictated(self, clause: Clause) -> bool:
        if (
            self._current
            and self._current.kind in ("message", "note")
            and clause.seq == self._current.turns[-1]
            and cues.DICTATES.match(clause.body)
        ):
            self._dictated = (clause.seq, clause.sentence)
            return True
        return self._dictated == (clause.seq, clause.sentence) and not (cues.NEW_POINT.match(clause.text) and find_trigger(clause.text))

    def _answers_what_to_say(self, clause: Clause) -> bool:
        """Whatever answers "what's the message?" is the message, wishes and all."""
        ask = self._current
        asked = cues.WHAT_TO_SAY.search(self._question)
        return bool(ask and ask.kind in ("message", "note") and asked)
