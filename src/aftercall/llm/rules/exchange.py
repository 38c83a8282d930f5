"""How the caller takes what the agent put forward: offers, slots, questions back."""

from aftercall.llm.rules import cues
from aftercall.llm.rules.agreement import OPENS, Agreement
from aftercall.llm.rules.asks import Ask, as_caller
from aftercall.llm.rules.corrections import REPAIRS
from aftercall.llm.rules.dates import find_dates
from aftercall.llm.rules.due import takes_day
from aftercall.llm.rules.hearing import SAME
from aftercall.llm.rules.kinds import kind_of
from aftercall.llm.rules.mishearing import misheard
from aftercall.llm.rules.sentences import Clause, split_sentences
from aftercall.llm.rules.stances import Offer, Stance, is_offer
from aftercall.llm.rules.stems import overlap_coefficient, stems
from aftercall.llm.rules.withdrawals import find_call_off

_BARE_OFFER = 2  # stems below which an offer says what is done, not to what


class Exchange(Agreement):
    def _mishears(self, answer: Stance | None, clauses: list[Clause]) -> None:
        """A caller who objects to what the agent said back takes it out again."""
        self.misheard += misheard(
            self._question, " ".join(clause.text for clause in clauses)
        )
        if (answer == "no" and "?" not in self._said) or any(
            REPAIRS.match(clause.text) for clause in clauses[:2]
        ):
            for ask in self.asks:
                ask.heard_back = [
                    (seq, text)
                    for seq, text in ask.heard_back
                    if seq != self._agent_seq
                ]

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
        if (
            answer is None
            and offer
            and self._names_time(clauses)
            and cues.ABOUT_TIME.search(offer.act)
        ):
            answer = "yes"
        if (
            offer is None
            or answer is None
            or (answer == "no" and offer.stated and self._asked_openly)
        ):
            return
        if answer == "yes" and (thing := self._thing_offered(offer)):
            self._raise(
                Ask(
                    kind_of(thing),
                    thing,
                    clauses[0].text,
                    [offer.seq - 1, offer.seq, seq],
                    due=self._first_day(offer.act),
                )
            )
            return
        known = None if offer.replaces else self._meant(offer)
        if (
            answer == "no"
            and self._current
            and cues.BARE_ACT.match(offer.act)
            and offer.seq - 1 in self._current.turns
        ):
            self._withdraw(self._current, seq)
            self._declined, self._declined_at, self._standing_offer = True, seq, None
            return
        if offer.replaces and answer == "yes" and self._current:
            self._supplant(self._current, offer, seq)
            return
        if answer == "no":
            replies = (
                offer.stated and known is not None and offer.seq - 1 in known.turns
            )
            restated = (
                known
                if known
                and (
                    replies
                    or overlap_coefficient(stems(offer.act), known.stems) >= SAME
                )
                else None
            )
            self._declined = restated is None
            if restated is None:
                self._refuse(offer.act)
                self._forget_prompt(offer)
            self._declined_at = seq
            self._standing_offer = None
            self._current = restated or self._current
        elif known:
            known.add_detail(offer.seq, as_caller(offer.act))
            known.cite(seq)
            if cues.ABOUT_TIME.search(offer.act):
                known.from_fault, self._asked_when = False, True
            known.due = known.due or (
                self._first_day(offer.act) if takes_day(known) else None
            )
            self._current = known
        elif (
            stems(offer.act) or kind_of(as_caller(offer.act)) in ("message", "reminder")
        ) and not any(find_call_off(clause.text) for clause in clauses[:3]):
            act = as_caller(offer.act)
            ask = Ask(
                "booking" if offer.stands else kind_of(act),
                act,
                clauses[0].text,
                [offer.seq, seq],
            )
            ask.due = self._first_day(offer.act)
            for told in self._prompts(offer):
                ask.add_detail(told.seq, told.text)
            self._proposals = []  # the yes was to the offer
            self._raise(ask)

    def _forget_prompt(self, offer: Offer) -> None:
        """ "And packing boxes, do you do those?": asked about and then declined, so no part of
        any request.
        """
        about = stems(offer.act)
        for ask in self.asks:
            ask.details = [
                (seq, text)
                for seq, text in ask.details
                if seq != offer.seq - 1 or not (stems(text) & about) - stems(ask.act)
            ]

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
        if len(stems(offer.act)) >= _BARE_OFFER:
            return told
        hearsay = [clause for clause in self._hearsay if clause.seq == offer.seq - 1]
        matter = (
            [self._matter]
            if self._matter and self._matter not in told and not hearsay
            else []
        )
        return [*matter, *hearsay, *told]

    def _names_time(self, clauses: list[Clause]) -> bool:
        first = clauses[0]
        if any(
            cues.PREFERS.search(clause.text) and find_dates(clause.text, self.today)
            for clause in clauses
        ):
            return True
        return (
            bool(cues.TIME_ONLY.match(first.body) or find_dates(first.text, self.today))
            and not first.is_question
        )

    def _accept_changed(self, offer: Offer, clause: Clause) -> None:
        """ "Shall I email you the certificate?" "Post it.": wanted, in another way."""
        act = as_caller(offer.act)
        known = self._meant(offer)
        points = cues.POINTS_IN_OFFER.match(offer.act)
        ask = (
            known
            if known
            and (points or known.act.lower().startswith(act.partition(" ")[0].lower()))
            else Ask(
                kind_of(act),
                act,
                clause.text,
                [offer.seq, clause.seq],
                due=self._first_day(offer.act),
            )
        )
        ask.add_detail(clause.seq, clause.text)
        if ask not in self.asks:
            self._raise(ask)
        self._current = ask

    def _echoes_offer(self, clauses: list[Clause]) -> bool:
        """ "We could give you the suite." "The suite.": weighed, not yet answered."""
        said = stems(" ".join(clause.body for clause in clauses))
        return bool(self._offer and said and said <= stems(self._offer.act))

    def _supplant(self, ask: Ask, offer: Offer, seq: int) -> None:
        """ "Instead of cancelling we could freeze it." "Go on then." """
        act = as_caller(offer.act)
        instead = Ask(kind_of(act), act, offer.act, [offer.seq, seq])
        instead.add_detail(ask.turns[0], ask.act)
        instead.denied += [ask.act.split(" ", 1)[0]]
        self._withdraw(ask, seq)
        self._raise(instead)

    def _thing_offered(self, offer: Offer) -> str | None:
        """ "Do you have a cot?", "Shall I add one?": the offer means what the caller asked
        after.
        """
        after = self._asked_after
        if (
            after is None
            or after.seq != offer.seq - 1
            or not cues.MEANS_IT.search(offer.act)
        ):
            return None
        thing = cues.ASKED_AFTER.sub("", after.body, count=1).strip(" ,.?")
        is_slot = (
            cues.TIME_ONLY.match(thing)
            or find_dates(thing, self.today)
            or cues.COMPARES.search(thing)
        )
        known = stems(self._current.act) if self._current else frozenset()
        return None if is_slot or not stems(thing) or stems(thing) & known else thing

    def _meant(self, offer: Offer) -> Ask | None:
        """The request that an offer takes up, if it is none of its own."""
        current = self._current
        if cues.LETS_YOU_KNOW.match(offer.act) and not (
            current and current.kind == "message"
        ):
            return None
        if current and not current.is_stop:
            if cues.ANAPHOR.match(offer.act) or cues.POINTS_IN_OFFER.match(offer.act):
                return current
            seen_to = current in self._faults or (
                current.turns[-1] == offer.seq - 1 and cues.SEES_TO.search(current.act)
            )
            if seen_to and (
                cues.SEND_SOMEONE.match(offer.act) or cues.VISITS.search(offer.act)
            ):
                return current
            call_back = kind_of(
                as_caller(offer.act)
            ) == "message" and cues.CALL_BACK.search(offer.act)
            if (
                current.kind == "message"
                and call_back
                and cues.CALL_BACK.search(current.act)
            ):
                return current
            if (
                current.is_question
                and current.turns[-1] == offer.seq - 1
                and offer.stated
            ):
                current.add_detail(offer.seq, offer.act)
                return current
        known = self._overlapping(stems(offer.act))
        return (
            None
            if known
            and known.kind != "reminder"
            and kind_of(as_caller(offer.act)) == "reminder"
            else known
        )

    def _accepts(self, answer: Stance | None, clauses: list[Clause]) -> bool:
        if not (self._proposals or self._inquiry) or clauses[0].is_question:
            return False
        if answer == "no":
            return bool(self._proposals) and any(
                cues.TIME_ONLY.match(clause.body) for clause in clauses[1:]
            )
        if self._repeats_slot(clauses):
            return True
        named = any(find_dates(clause.text, self.today) for clause in clauses[:2])
        return (
            answer == "yes"
            or named
            or any(cues.TAKES.search(clause.text) for clause in clauses[:3])
        )

    def _accept_slot(self, clauses: list[Clause]) -> None:
        """A slot put forward and taken is a booking though nobody said "book"; its matter is
        what the caller had told.
        """
        bargained = len(self._bargain) > 1
        slots = (
            put
            for put in reversed(self._proposals)
            if cues.SLOT.search(put.sentence)
            or (bargained and put.mention.start <= OPENS)
        )
        slot = next(slots, None)
        timed = self._repeats_slot(clauses)
        taken = (
            slot
            and cues.HAS_FREE.search(slot.sentence)
            and any(cues.SUITS.search(clause.text) for clause in clauses[:2])
        )
        # "Monday afternoon then."
        read_back = slot and slot.mention.start <= OPENS and bargained
        asks = slot and (
            timed
            or taken
            or read_back
            or slot.sentence.endswith("?")
            or cues.ASSENT_ASKED.search(self._said)
            or is_offer(slot.sentence)
        )
        slot = None if cues.NO_SLOT.search(self._said) or not asks else slot
        told = next(
            (
                clause
                for clause in reversed((*self._hearsay, *self._before))
                if len(clause.body.split()) > 3
            ),
            None,
        )
        matter = self._inquiry or self._topic or self._matter or told
        if matter is None or not self._agent_seq or not (slot or self._inquiry):
            return
        seq = clauses[0].seq
        ask = Ask(
            "booking",
            matter.body,
            clauses[0].text,
            sorted({matter.seq, self._agent_seq, seq}),
        )
        for told in (
            *self._told,
            *(clause for clause in self._before if clause.seq < seq),
        ):
            if (
                told is not matter
                and not told.is_question
                and len(told.body.split()) > 2
            ):
                ask.add_detail(told.seq, told.text)
        if slot:
            for at, sentence in self._bargain:
                ask.add_detail(at, sentence)
            ask.due = self._picked(slot, clauses) or slot.mention.day
        else:
            ask.due = self._first_day(matter.text)
        self._raise(ask)
        self._inquiry = self._matter = None

    def _confirm(self, answer: Stance | None, seq: int) -> None:
        """What the agent asked back and the caller affirmed is part of the request."""
        ask = self._current
        asked = [
            sentence
            for sentence in split_sentences(self._question)
            if sentence.endswith("?")
        ]
        if (
            answer == "yes"
            and ask
            and not ask.is_stop
            and asked
            and stems(asked[-1])
            and not cues.ASKS_FOR.search(asked[-1])
        ):
            ask.add_detail(self._agent_seq, asked[-1])
            ask.cite(seq)
