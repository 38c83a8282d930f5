"""What the agent says, and what it shows of the requests: taken up, said back, asked on, put
forward.
"""

from datetime import date

from aftercall.llm.rules import cues
from aftercall.llm.rules.asks import Ask, as_caller
from aftercall.llm.rules.cue import Cue
from aftercall.llm.rules.dates import find_dates, named_month
from aftercall.llm.rules.due import Proposal, find_proposals, must_be, opening_day
from aftercall.llm.rules.faults import is_fault
from aftercall.llm.rules.kinds import kind_of
from aftercall.llm.rules.ledger import Ledger
from aftercall.llm.rules.matters import Matter, Recheck, asks_matter, find_recheck
from aftercall.llm.rules.promises import is_promise
from aftercall.llm.rules.sentences import Clause, split_sentences
from aftercall.llm.rules.stances import Offer, asks_openly, find_offer, is_offer
from aftercall.llm.rules.stems import overlap_coefficient, stem, stems
from aftercall.llm.rules.triggers import find_trigger
from aftercall.model.turns import Turn

_FRESH = 3  # turns within which the agent's words are still about the request talked of
SAME = 0.75  # how much of an offer must be the caller's own request for a no to call that off


# "Thanks, Ms. Haddad."
_ADDRESSES = Cue(r"(?:\w+ ?){0,2},? ?(?:mr|mrs|ms|miss|dr)\b\.? \w+\W*")


class Hearing(Ledger):
    def __init__(self, today: date) -> None:
        super().__init__(today)
        self._offer: Offer | None = None
        self._proposals: list[Proposal] = []
        self._question = ""
        self._declined = False
        self._agent_dated = False
        self._asks_house = False
        self._asked_openly = False
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
        self._own_days: set[date] = set()
        self._agreed: Ask | None = None
        """The request whose day the caller has just taken as the agent put it."""

    def hear_agent(self, turn: Turn, text: str) -> None:
        if cues.WRONG_NUMBER.search(text) or (
            self._asks_house and cues.NOT_THAT.match(text)
        ):
            self._forget_everything()
        self._asks_house = False
        offer = find_offer(turn, text)
        self._month = named_month(text, self.today) or self._month
        self._proposals = [
            found
            for found in find_proposals(
                turn.seq, self._dated(text), self.today, self._anchor()
            )
            if not self._only_answers(found)
        ]
        self._bargain += [(found.seq, found.sentence) for found in self._proposals]
        if not (offer or self._proposals):
            self._drop_ignored_faults(text)
        self._drop_refused(turn.seq, text, bool(offer))
        self._keep_faults()
        self._keep_soft(turn.seq, text)
        self._hear_back(turn.seq, text)
        self._turn_to(text)
        if "?" not in text:
            self._told = []
        self._offer = offer or self._offer
        self._standing_offer = offer or self._standing_offer
        self._asks_matter = asks_matter(text)
        self._rechecked = find_recheck(text)
        self._agent_dated = bool(self._proposals)
        self._here = None
        self._keep_day(text)
        self._question = text if "?" in text else ""
        self._said = text
        self._asked_openly = asks_openly(text)
        self._asked_when = bool(cues.ASKS_WHEN.search(self._question))
        if cues.ANYTHING_ELSE.search(text):
            self._current, self._question, self._inquiry = None, "", None
        if cues.OPENS.search(text):
            self._question, self._inquiry = "", None  # "thanks" says yes to nothing now
        self._agent_seq = turn.seq

    def _drop_refused(self, seq: int, text: str, offers: bool) -> None:
        """ "No, I can't give out numbers.", "He'd have to raise that himself.": what was just
        asked is not taken on.
        """
        if (
            offers
            or not cues.REFUSES.search(text)
            or any(is_promise(sentence) for sentence in split_sentences(text))
        ):
            return
        for ask in [ask for ask in self.asks if ask.turns[0] == seq - 1]:
            self.asks.remove(ask)
            self._refuse(ask.act)
            self._current = None if self._current is ask else self._current
        for ask in self.asks:
            ask.details = [(at, said) for at, said in ask.details if at != seq - 1]
        for clause in self._sound.pop(seq - 1, []):
            self._refuse(clause.text)

    def _keep_soft(self, seq: int, text: str) -> None:
        """ "Can you check if it's in?" "I'll check and call you." stands; "It is." answers it."""
        if not any(
            is_promise(said) or cues.CONFIRMS.search(said) or cues.WILL_DO.match(said)
            for said in split_sentences(text)
        ):
            self.asks = [
                ask
                for ask in self.asks
                if not (ask.is_soft and ask.turns[-1] == seq - 1)
            ]
            self._current = self._current if self._current in self.asks else None

    def _only_answers(self, proposal: Proposal) -> bool:
        """ "Does it start up again?" "Yes, in June.": a day that answers a question, or fits the
        caller's own plans, is put to nobody.
        """
        asked = self._before[-1] if self._before else None
        answers = (
            cues.SAYS_YES.match(proposal.sentence)
            and asked
            and asked.is_question
            and not find_dates(asked.text, self.today)
        )
        return (
            bool(answers and not cues.INQUIRY.search(asked.text if asked else ""))
            or proposal.mention.day in self._own_days
        )

    def _hear_back(self, seq: int, text: str) -> None:
        """What the agent says it takes down, in its own words."""
        for sentence in split_sentences(text):
            current = (
                self._current
                if self._current and self._current.turns[-1] >= seq - _FRESH
                else None
            )
            if sentence.endswith("?") or cues.REFUSES.search(sentence):
                continue
            if not (is_promise(sentence) or cues.CONFIRMS.search(sentence)):
                if current and not current.is_stop and self._echoes(current, sentence):
                    current.heard_back.append((seq, sentence))
                continue
            ask = self._overlapping(stems(sentence))
            if (
                ask is None
                and is_promise(sentence)
                and (current is None or current.turns[-1] < seq - 1)
            ):
                ask = self._keep_offer(sentence) or self._take_up(seq, sentence)
            ask = ask or current
            if ask and not ask.is_stop:
                ask.heard_back.append((seq, sentence))
                ask.is_done = ask.is_done or (
                    not is_promise(sentence)
                    and stem(ask.act.partition(" ")[0]) in stems(sentence)
                )

    def _echoes(self, ask: Ask, sentence: str) -> bool:
        """The agent says back what it understood, in no words of its own: "Six people, on the
        terrace."
        """
        if _ADDRESSES.fullmatch(sentence):
            return False
        said = ask.stems.union(
            *(
                stems(clause.text)
                for clause in self._before
                if not clause.is_question or find_trigger(clause.text)
            )
        )
        about = stems(sentence)
        others = any(
            about & stems(other.act) - ask.stems
            for other in self.asks
            if other is not ask
        )
        return (
            bool(about & said)
            and not others
            and not cues.OWN_WORDS.search(sentence)
            and not cues.STAYS.search(sentence)
        )

    def _turn_to(self, text: str) -> None:
        """The agent asks on about one of several requests: what the caller answers belongs to
        that one.
        """
        asked = [
            sentence for sentence in split_sentences(text) if sentence.endswith("?")
        ]
        about = stems(asked[-1]) if asked else frozenset()
        if (
            self._current
            and about
            and not about & self._current.stems
            and not is_offer(asked[-1])
        ):
            self._current = next(
                (ask for ask in reversed(self.asks) if about & stems(ask.act)),
                self._current,
            )

    def _keep_offer(self, sentence: str) -> Ask | None:
        """An offer nobody refused, and the agent now says it will do it."""
        offer, matter = self._standing_offer, self._matter
        if (
            offer is None
            or matter is None
            or overlap_coefficient(stems(offer.act), stems(sentence)) < SAME
        ):
            return None
        ask = Ask(
            kind_of(as_caller(offer.act)),
            as_caller(offer.act),
            matter.text,
            [matter.seq, offer.seq],
        )
        ask.add_detail(matter.seq, matter.text)
        self._raise(ask)
        return ask

    def _take_up(self, seq: int, sentence: str) -> Ask | None:
        """The agent acts on what the caller has told, though nobody heard it as a wish."""
        told = [clause for clause in self._told if not cues.OWN_PLAN.match(clause.body)]
        if not (told or self._hearsay) or seq - 1 in (
            self._declined_at,
            self._called_off_at,
        ):
            return None
        about = stems(sentence)
        told += [
            clause
            for clause in self._hearsay
            if clause.seq >= seq - _FRESH and len(stems(clause.body) & about) > 1
        ]
        named = [clause for clause in told if stems(clause.body) & about]
        context = [clause for clause in told if cues.CONTEXT.search(clause.body)]
        points = (
            cues.POINTS.search(sentence)
            or cues.FILES.search(sentence)
            or about <= stems(" ".join(clause.body for clause in told))
        )
        if not named and not (
            context
            and points
            and told[-1].seq == seq - 1
            and cues.TAKES_UP.search(sentence)
        ):
            return None
        titles = [
            clause
            for clause in named or context
            if not cues.INTRODUCES.match(clause.body)
        ]
        clause = max(
            titles or named or context,
            key=lambda clause: (
                is_fault(clause.body),
                len(stems(clause.body) & about),
                len(clause.body),
            ),
        )
        ask = Ask(
            "issue" if is_fault(clause.body) else kind_of(clause.body),
            clause.body,
            clause.text,
            [clause.seq],
        )
        for other in told:
            if other is not clause:
                ask.add_detail(other.seq, other.text)
        if ask.kind != "issue":
            pressing = (
                self._first_day(other.text) for other in told if must_be(other.body)
            )
            ask.due = next(filter(None, pressing), None) or opening_day(
                ask, self._dated(clause.text), self.today, self._anchor(), []
            )
        self._raise(ask)
        return ask
