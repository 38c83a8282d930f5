"""What the agent puts forward and how the caller takes it: offers, slots, questions back, and what the agent takes up."""

import re
from datetime import date

from aftercall.llm.rules import cues
from aftercall.llm.rules.asks import Ask, as_caller
from aftercall.llm.rules.dates import find_dates
from aftercall.llm.rules.due import Proposal, find_proposals, takes_day
from aftercall.llm.rules.kinds import kind_of
from aftercall.llm.rules.ledger import Ledger
from aftercall.llm.rules.sentences import Clause, split_sentences
from aftercall.llm.rules.stances import Offer, Stance, find_offer
from aftercall.llm.rules.stems import share, stems
from aftercall.llm.rules.withdrawals import find_call_off
from aftercall.model.turns import Turn

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
