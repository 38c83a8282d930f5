"""What the agent puts forward and how the caller takes it: offers, slots, questions back, and what the agent takes up."""

import re
from datetime import date

from aftercall.llm.rules import cues
from aftercall.llm.rules.asks import Ask, as_caller
from aftercall.llm.rules.corrections import REPAIRS
from aftercall.llm.rules.dates import find_dates
from aftercall.llm.rules.due import Proposal, find_proposals, takes_day
from aftercall.llm.rules.faults import is_fault
from aftercall.llm.rules.kinds import kind_of
from aftercall.llm.rules.ledger import Ledger
from aftercall.llm.rules.matters import Matter, Recheck, asks_matter, find_recheck
from aftercall.llm.rules.promises import is_promise
from aftercall.llm.rules.sentences import Clause, split_sentences
from aftercall.llm.rules.stances import Offer, Stance, find_offer, is_offer
from aftercall.llm.rules.stems import share, stems
from aftercall.llm.rules.withdrawals import find_call_off
from aftercall.model.turns import Turn

_BARE_OFFER = 2  # stems below which an offer says what is done, not to what
_FRESH = 3  # turns within which the agent's words are still about the request talked of
_SAME = 0.75  # how much of an offer must be the caller's own request for a no to call that off


class Exchange(Ledger):
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
        self._dictates_on = 0
        self._led = ""
        self._muted: tuple[int, int] | None = None
        self._asked_after: Clause | None = None
        self._asks_matter: Matter | None = None
        self._rechecked: Recheck | None = None
        self._declined_at = 0
        self._standing_offer: Offer | None = None

    def hear_agent(self, turn: Turn, text: str) -> None:
        if cues.WRONG_NUMBER.search(text):
            self._forget_everything()
        offer = find_offer(turn, text)
        self._proposals = find_proposals(turn.seq, text, self.today, self._anchor())
        if not (offer or self._proposals):
            self._drop_ignored_faults(text)
        self._keep_faults()
        self._hear_back(turn.seq, text)
        self._turn_to(text)
        self._offer = offer or self._offer
        self._standing_offer = offer or self._standing_offer
        self._asks_matter = asks_matter(text)
        self._rechecked = find_recheck(text)
        self._agent_dated = bool(find_dates(text, self.today))
        self._question = text if "?" in text else ""
        self._said = text
        if cues.ANYTHING_ELSE.search(text):
            self._current, self._question = None, ""
        if cues.OPENS.search(text):
            self._question = ""
        self._agent_seq = turn.seq

    def _hear_back(self, seq: int, text: str) -> None:
        """What the agent says it takes down, in its own words."""
        for sentence in split_sentences(text):
            current = self._current if self._current and self._current.turns[-1] >= seq - _FRESH else None
            if sentence.endswith("?"):
                continue
            if not (is_promise(sentence) or cues.CONFIRMS.search(sentence)):
                if current and not current.is_stop and self._echoes(current, sentence):
                    current.heard_back.append((seq, sentence))
                continue
            ask = self._overlapping(stems(sentence)) or current
            if ask is None and is_promise(sentence):
                ask = self._keep_offer(sentence) or self._take_up(seq, sentence)
            if ask and not ask.is_stop:
                ask.heard_back.append((seq, sentence))

    def _echoes(self, ask: Ask, sentence: str) -> bool:
        """The agent says back what it understood, in no words of its own: "Six people, on the terrace." """
        said = ask.stems.union(*(stems(clause.text) for clause in self._before))
        about = stems(sentence)
        others = any(about & stems(other.act) - ask.stems for other in self.asks if other is not ask)
        return bool(about & said) and not others and not cues.OWN_WORDS.search(sentence)

    def _turn_to(self, text: str) -> None:
        """The agent asks on about one of several requests: what the caller answers belongs to that one."""
        asked = [sentence for sentence in split_sentences(text) if sentence.endswith("?")]
        about = stems(asked[-1]) if asked else frozenset()
        if self._current and about and not about & self._current.stems and not is_offer(asked[-1]):
            self._current = next((ask for ask in reversed(self.asks) if about & stems(ask.act)), self._current)

    def _keep_offer(self, sentence: str) -> Ask | None:
        """An offer nobody refused, and the agent now says it will do it."""
        offer, matter = self._standing_offer, self._matter
        if offer is None or matter is None or share(stems(offer.act), stems(sentence)) < _SAME:
            return None
        ask = Ask(kind_of(as_caller(offer.act)), as_caller(offer.act), matter.text, [matter.seq, offer.seq])
        ask.add_detail(matter.seq, matter.text)
        self._raise(ask)
        return ask

    def _take_up(self, seq: int, sentence: str) -> Ask | None:
        """The agent undertakes to act on what the caller has just told, though nobody heard it as a wish."""
        told = [
            clause
            for clause in self._before
            if clause.seq == seq - 1
            and len(clause.body.split()) > 2
            and stems(clause.body)
            and (cues.CONTEXT.search(clause.body) or stems(clause.body) & stems(sentence))
            and not cues.OWN_PLAN.match(clause.body)
        ]
        if not told or seq - 1 in (self._declined_at, self._called_off_at):
            return None
        about = stems(sentence)
        clause = max(told, key=lambda clause: (len(stems(clause.body) & about), len(clause.body)))
        if not (stems(clause.body) & about or cues.TAKES_UP.search(sentence)) or cues.SMALL_TALK.search(clause.body):
            return None
        ask = Ask("issue" if is_fault(clause.body) else kind_of(clause.body), clause.body, clause.text, [clause.seq])
        self._raise(ask)
        return ask

    def _mishears(self, answer: Stance | None, clauses: list[Clause]) -> None:
        """A caller who objects to what the agent said back takes it out again."""
        if answer == "no" or any(REPAIRS.match(clause.text) for clause in clauses[:2]):
            for ask in self.asks:
                ask.heard_back = [(seq, text) for seq, text in ask.heard_back if seq != self._agent_seq]

    def _answer_recheck(self, answer: Stance | None, seq: int) -> None:
        """ "Do you still want the taxi?", "No." """
        recheck = self._rechecked
        if recheck is None or (answer != "no" and not recheck.negative):
            return
        ask = self._overlapping(recheck.about) if recheck.about else self._current
        if ask and (not recheck.negative or stems(ask.act) <= recheck.about):
            self._withdraw(ask, seq)
            self._declined = True
        elif ask:
            ask.denied += recheck.words

    def _answer_offer(self, answer: Stance | None, clauses: list[Clause]) -> None:
        offer, seq = self._offer, clauses[0].seq
        if answer is None and offer and self._names_time(clauses) and cues.ABOUT_TIME.search(offer.act):
            answer = "yes"
        if offer is None or answer is None:
            return
        if answer == "yes" and (thing := self._thing_offered(offer)):
            self._raise(Ask(kind_of(thing), thing, clauses[0].text, [offer.seq - 1, offer.seq, seq], due=self._first_day(offer.act)))
            return
        known = None if offer.replaces else self._meant(offer)
        if offer.replaces and answer == "yes" and self._current:
            self._supplant(self._current, offer, seq)
            return
        if answer == "no":
            restated = known if known and share(stems(offer.act), known.stems) >= _SAME else None
            self._declined = restated is None
            self._declined_at = seq
            self._standing_offer = None
            self._current = restated or self._current
        elif known:
            known.cite(offer.seq, seq)
            self._current = known
        elif stems(offer.act) and not any(find_call_off(clause.text) for clause in clauses[:3]):
            act = as_caller(offer.act)
            ask = Ask("booking" if offer.stands else kind_of(act), act, clauses[0].text, [offer.seq, seq])
            ask.due = self._first_day(offer.act)
            for told in self._prompts(offer):
                ask.add_detail(told.seq, told.text)
            self._raise(ask)

    def _prompts(self, offer: Offer) -> list[Clause]:
        """What the caller said that the offer answers, as far as no request holds it yet."""
        told = [
            clause
            for clause in self._before
            if clause.seq == offer.seq - 1
            and len(clause.body.split()) > 2
            and not cues.SMALL_TALK.search(clause.body)
            and not any(clause.seq in ask.turns for ask in self.asks)
        ]
        bare = self._matter and len(stems(offer.act)) < _BARE_OFFER and self._matter not in told
        return [self._matter, *told] if bare and self._matter else told

    def _names_time(self, clauses: list[Clause]) -> bool:
        first = clauses[0]
        return bool(cues.TIME_ONLY.match(first.body) or find_dates(first.text, self.today)) and not first.is_question

    def _supplant(self, ask: Ask, offer: Offer, seq: int) -> None:
        """ "Instead of cancelling we could freeze it." "Go on then." """
        act = as_caller(offer.act)
        instead = Ask(kind_of(act), act, offer.act, [offer.seq, seq])
        instead.add_detail(ask.turns[0], ask.act)
        instead.denied += [ask.act.split(" ", 1)[0]]
        self._withdraw(ask, seq)
        self._raise(instead)

    def _thing_offered(self, offer: Offer) -> str | None:
        """ "Do you have a cot?", "Shall I add one?": the offer means what the caller asked after."""
        after = self._asked_after
        if after is None or self._current is None or after.seq != offer.seq - 1 or not cues.MEANS_IT.search(offer.act):
            return None
        thing = cues.ASKED_AFTER.sub("", after.body, count=1).strip(" ,.?")
        is_slot = cues.TIME_ONLY.match(thing) or find_dates(thing, self.today) or cues.COMPARES.search(thing)
        return None if is_slot or not stems(thing) or stems(thing) & stems(self._current.act) else thing

    def _meant(self, offer: Offer) -> Ask | None:
        """The request that an offer takes up, if it is none of its own."""
        current = self._current
        if current and not current.is_stop:
            if cues.ANAPHOR.match(offer.act) or re.match(r"(?:\w+ ){0,3}(?:it|that|them|this)\b", offer.act, re.I):
                return current
            if current in self._faults and (cues.SEND_SOMEONE.match(offer.act) or cues.VISITS.search(offer.act)):
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
        asks = slot and (slot.sentence.endswith("?") or cues.ASSENT_ASKED.search(self._said) or is_offer(slot.sentence))
        slot = None if cues.NO_SLOT.search(self._said) or not asks else slot
        matter = self._inquiry or self._matter or next((clause for clause in reversed(self._before) if len(clause.body.split()) > 3), None)
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
        self._inquiry = self._matter = None

    def _repeats_slot(self, clauses: list[Clause]) -> bool:
        """ "I have Thursday at nine." "Nine." """
        days = {mention.day for proposal in self._proposals for mention in (proposal.mention, *proposal.others)}
        said = [clause for clause in clauses[:3] if not clause.is_question]
        return bool(days) and any(
            cues.TIME_ONLY.match(clause.body) or any(mention.day in days for mention in find_dates(clause.text, self.today))
            for clause in said
        )

    def _answer_proposal(self, answer: Stance | None, clauses: list[Clause]) -> None:
        """An accepted day is the day; a day that only fixes the weekday the caller named needs no yes."""
        seq = clauses[0].seq
        demurs = any(clause.is_question or cues.DEMURS.search(clause.text) for clause in clauses[:2])
        if answer is None and not demurs and self._repeats_slot(clauses):
            answer = "yes"
        for proposal in self._proposals:
            mention = proposal.mention
            ask = self._dated_by(proposal)
            if ask is None or not takes_day(ask) or cues.NOT_FREE.search(proposal.sentence):
                continue
            if ask.kind == "issue" and not (self._question or cues.SLOT.search(proposal.sentence)):
                continue
            fixes = ask.due is not None and ask.due.weekday() == mention.day.weekday()
            settles = ask.due is None and ask.kind == "booking" and not demurs
            if answer == "yes" or (answer is None and (settles or (fixes and not mention.weekday_only))):
                if ask.due is None or not (mention.weekday_only and fixes):
                    ask.move(mention.day)
                if answer == "yes" and ask.kind == "task" and cues.HOUR.search(proposal.sentence) and not cues.ORDERS.search(ask.act):
                    ask.kind = "booking"
                ask.cite(proposal.seq, seq)

    def _dated_by(self, proposal: Proposal) -> Ask | None:
        """The request a day is put forward for: the one named before it, or the only one it can be."""
        before, about = stems(proposal.sentence[: proposal.mention.start]), stems(proposal.sentence)
        named = [ask for ask in self.asks if stems(ask.act) & before] or [ask for ask in self.asks if stems(ask.act) & about]
        if self._current in named or not named:
            return self._overlapping(about, least=0.6) or self._current
        return named[-1] if len(named) == 1 else None

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
