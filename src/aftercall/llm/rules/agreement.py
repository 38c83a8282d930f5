"""The days an agent puts forward: for which request, and whether the caller takes them."""

from datetime import date

from aftercall.llm.rules import cues
from aftercall.llm.rules.asks import Ask
from aftercall.llm.rules.dates import find_dates
from aftercall.llm.rules.due import Proposal, takes_day
from aftercall.llm.rules.hearing import Hearing
from aftercall.llm.rules.reckoning import Mention
from aftercall.llm.rules.sentences import Clause
from aftercall.llm.rules.stances import Stance
from aftercall.llm.rules.stems import stems

OPENS = 4  # characters before a day that opens a sentence: "On "


class Agreement(Hearing):
    def _answer_proposal(self, answer: Stance | None, clauses: list[Clause]) -> None:
        """A day put forward is the day unless the caller says something against it or names
        another.
        """
        seq = clauses[0].seq
        demurs = any(
            clause.is_question or cues.DEMURS.search(clause.text)
            for clause in clauses[:2]
        )
        if answer is None and not demurs and self._repeats_slot(clauses):
            answer = "yes"
        for proposal in self._proposals:
            ask = self._dated_by(proposal)
            if (
                ask is None
                or not self._is_for(proposal, ask)
                or not self._is_taken(proposal, ask, answer, clauses, demurs=demurs)
            ):
                continue
            day = self._picked(proposal, clauses) or proposal.mention.day
            if ask.due is None or not _says_again(proposal.mention, ask.due):
                ask.move(day)
            self._agreed = ask
            if (
                answer == "yes"
                and ask.kind == "task"
                and cues.HOUR.search(proposal.sentence)
                and not cues.ORDERS.search(ask.act)
            ):
                ask.kind = "booking"
            goes_on = answer is None and cues.GOES_ON.match(clauses[0].text)
            ask.cite(proposal.seq, *([] if goes_on else [seq]))

    def _is_for(self, proposal: Proposal, ask: Ask) -> bool:
        if not takes_day(ask) or cues.CONTENT_DATED.match(ask.act):
            return False
        if cues.NOT_FREE.search(proposal.sentence) and not proposal.sentence.endswith(
            "?"
        ):
            return False
        return ask.kind != "issue" or bool(
            self._question or cues.SLOT.search(proposal.sentence)
        )

    def _is_taken(
        self,
        proposal: Proposal,
        ask: Ask,
        answer: Stance | None,
        clauses: list[Clause],
        *,
        demurs: bool,
    ) -> bool:
        if answer is not None:
            return answer == "yes"
        day = proposal.mention.day
        if (
            ask.due is not None
            and ask.due.weekday() == day.weekday()
            and not proposal.mention.weekday_only
        ):
            return True  # it only fixes the weekday the caller named
        if demurs:
            return False
        echoes = len(stems(proposal.sentence) & ask.stems) > 1 and ask.kind in (
            "task",
            "booking",
            "other",
        )
        if ask.due is None and (ask.kind == "booking" or echoes):
            return True
        is_slot = cues.SLOT.search(proposal.sentence) or proposal.mention.start <= OPENS
        put = (
            ask.kind in ("booking", "task", "issue")
            and is_slot
            and not cues.NO_SLOT.search(proposal.sentence)
        )
        return bool(put) and not any(
            mention.day != day
            for clause in clauses
            for mention in self._days_in(clause)
        )

    def _picked(self, proposal: Proposal, clauses: list[Clause]) -> date | None:
        """The one of several days put forward that the caller's first words name, be it by its
        number or weekday alone.
        """
        offered = [mention.day for mention in (proposal.mention, *proposal.others)]
        for said in (
            mention for clause in clauses[:2] for mention in self._days_in(clause)
        ):
            for day in offered:
                if (
                    said.day == day
                    or said.day.day == day.day
                    or (said.weekday_only and said.day.weekday() == day.weekday())
                ):
                    return day
        return None

    def _days_in(self, clause: Clause) -> list[Mention]:
        return find_dates(self._dated(clause.text), self.today, self._anchor())

    def settle_days(self) -> None:
        """The agent's last words may fix the day of the month of a weekday agreed before:
        "Thursday the twelfth, then."
        """
        for proposal in self._proposals:
            ask, day = self._dated_by(proposal), proposal.mention.day
            if (
                ask
                and ask.due
                and takes_day(ask)
                and not proposal.mention.weekday_only
                and ask.due.weekday() == day.weekday()
            ):
                ask.move(day)

    def _dated_by(self, proposal: Proposal) -> Ask | None:
        """The request a day is put forward for: the one named before it, or the only one it can
        be.
        """
        before, about = (
            stems(proposal.sentence[: proposal.mention.start]),
            stems(proposal.sentence),
        )
        named = [ask for ask in self.asks if stems(ask.act) & before] or [
            ask for ask in self.asks if stems(ask.act) & about
        ]
        if self._current in named or not named:
            return self._overlapping(about, least=0.6) or self._current
        return named[-1] if len(named) == 1 else None

    def _choose(self, clause: Clause) -> None:
        """ "The later one": of two days put forward, the caller takes one by its place."""
        offered = [
            mention
            for proposal in self._proposals
            for mention in (*proposal.others, proposal.mention)
        ]
        place = cues.PLACE.match(clause.body)
        if self._current and place and len(offered) == 2:
            self._current.move(offered[1 if place["second"] else 0].day)
            self._current.cite(clause.seq)
            self._proposals = []

    @property
    def _offered_days(self) -> set[date]:
        return {
            mention.day
            for proposal in self._proposals
            for mention in (proposal.mention, *proposal.others)
        }

    def _repeats_slot(self, clauses: list[Clause]) -> bool:
        """ "I have Thursday at nine." "Nine." """
        days = self._offered_days
        said = [clause for clause in clauses[:4] if not clause.is_question]
        return bool(days) and any(
            cues.TIME_ONLY.match(clause.body)
            or any(
                mention.day in days for mention in find_dates(clause.text, self.today)
            )
            for clause in said
        )


def _says_again(mention: Mention, due: date) -> bool:
    """A weekday or a number of the month alone may well be the day agreed, however far ahead
    that is.
    """
    return (
        mention.weekday_only and mention.day.weekday() == due.weekday()
    ) or mention.day.day == due.day
