"""The requests of one call as they stand: raised, filled in, dated, recognised again, withdrawn."""

import re
from datetime import date

from aftercall.llm.rules import cues
from aftercall.llm.rules.asks import Ask
from aftercall.llm.rules.dates import find_dates, in_month
from aftercall.llm.rules.due import later_day, takes_day
from aftercall.llm.rules.faults import TAKEN_UP
from aftercall.llm.rules.kinds import kind_of
from aftercall.llm.rules.promises import is_promise
from aftercall.llm.rules.sentences import Clause, split_sentences
from aftercall.llm.rules.stems import overlap_coefficient, stems
from aftercall.llm.rules.triggers import Trigger, find_trigger
from aftercall.model.reading import RequestKind

_MAX_DETAILS = 16
_NAME = re.compile(r"\b[A-Z][\w'’-]*")
_CHANNELS = stems(
    "email text phone letter post message voicemail number mobile cell landline name card address"
)
# What a matter is put into: two bugs are not one because both are bugs.
_CONTAINERS = stems(
    "bug ticket issue fault complaint note request message appointment booking report case "
    "job file list open raise log put"
)
# kinds that a request may be taken for before it is clear
_OF_WORK = {
    "issue",
    "task",
    "booking",
    "other",
}
_TELLING = 3  # stems without which words only point to something said before


class Ledger:
    def __init__(self, today: date) -> None:
        self.today = today
        self.asks: list[Ask] = []
        self.withdrawn: list[Ask] = []
        self._current: Ask | None = None
        self._before: list[Clause] = []
        self._matter: Clause | None = None
        """What the caller came with, as far as no request has said it."""
        self._bargain: list[tuple[int, str]] = []
        """The agent's sentences that put days forward since the last request."""
        self._said = ""
        self._agent_seq = 0
        self._topic: Clause | None = None
        """What the caller went on to last, before asking for anything about it."""
        self._told: list[Clause] = []
        """What the caller has told since the last request and that none of them holds."""
        self._used = False
        self._sound: dict[int, list[Clause]] = {}
        """By turn, what the caller said and meant: nothing supposed, refused, wished by others
        or taken back.
        """
        self._refused: set[str] = set()
        """Stems of what was offered and declined, only supposed, or wished by others."""
        self._faults: list[Ask] = []
        self._called_off_at = 0
        self._month: str | None = None
        self._asked_when = False
        self.misheard: list[str] = []
        """Words of the agent's that the caller put right: wrong wherever they stand."""
        self._here: date | None = None
        """The last day named in this turn."""
        self._lately: date | None = None
        """The last day anybody named."""
        self._hearsay: list[Clause] = []
        """What others want, as the caller tells it: a request once the agent says it will see
        to it.
        """

    def _withdraw(self, ask: Ask, seq: int) -> None:
        ask.cite(seq)
        self._used = True
        self._called_off_at = seq
        self.asks = [other for other in self.asks if other is not ask]
        self.withdrawn.append(ask)
        self._current = None

    def _raise(self, ask: Ask) -> None:
        self._used = True
        self._told, self._topic, self._bargain = [], None, []
        self.asks.append(ask)
        self._current = ask

    def _add(self, ask: Ask, clause: Clause) -> None:
        self._used = True
        if len(ask.details) < _MAX_DETAILS and (
            len(clause.body.split()) > 1 or stems(clause.body)
        ):
            ask.add_detail(clause.seq, clause.text)
        else:
            ask.cite(clause.seq)

    def fill_up(self) -> None:
        """Each request is told in full: what was said beside it in a turn that is about nothing
        else belongs to it.
        """
        refused = self.refused
        for ask in self.asks:
            ask.denied += self.misheard
            alone = [
                seq
                for seq in ask.turns
                if not any(
                    seq in other.turns
                    for other in (*self.asks, *self.withdrawn)
                    if other is not ask
                )
            ]
            for clause in (
                clause for seq in alone for clause in self._sound.get(seq, [])
            ):
                if (
                    len(ask.details) < _MAX_DETAILS
                    and ask.words not in clause.text
                    and not stems(clause.text) & refused
                ):
                    ask.add_detail(clause.seq, clause.text)

    @property
    def refused(self) -> frozenset[str]:
        """What nobody wants, as far as no request that stands has the same word for it."""
        wanted = frozenset().union(*(stems(ask.act) for ask in self.asks))
        dropped = frozenset().union(*(stems(ask.act) for ask in self.withdrawn))
        return (frozenset(self._refused) | dropped) - wanted - _CHANNELS

    def _refuse(self, text: str) -> None:
        """Names are left out: who is spoken of in one breath may be in any other."""
        self._refused |= stems(_NAME.sub(" ", text))

    def _lean_back(self, ask: Ask, clause: Clause) -> None:
        """An act that only points ("move it") takes its matter from what the caller said before."""
        told = [
            other
            for other in self._before
            if not find_trigger(other.text)
            and stems(other.body)
            and len(other.body.split()) > 1
        ]
        here = [other for other in told if other.seq == clause.seq][-2:]
        if not here and (named := self._put_up()):
            ask.heard_back.append(named)
        matter = here or told[-1:]
        first = self._topic or self._matter
        if (
            first
            and first not in matter
            and len(stems(" ".join(other.body for other in matter))) < _TELLING
        ):
            matter = [first, *matter]
        # the first request takes all that was told up to it
        for other in (*matter, *(() if self.asks else self._told)):
            ask.add_detail(other.seq, other.text)
        if (
            not cues.TELLS_ONLY.match(ask.act)
            and ask.due is None
            and ask.kind != "message"
            and takes_day(ask)
        ):
            ask.due = next(
                (day for other in matter if (day := self._first_day(other.text))), None
            )

    def _put_up(self) -> tuple[int, str] | None:
        """What the agent has just named without asking: "it" may well be that."""
        said = [
            said
            for said in split_sentences(self._said)
            if stems(said) and not said.endswith("?") and not is_promise(said)
        ]
        return (self._agent_seq, said[-1]) if said else None

    def _move(self, ask: Ask, text: str) -> None:
        if day := later_day(
            ask,
            self._dated(text),
            self.today,
            self._anchor(ask),
            asked=self._asked_when,
        ):
            ask.move(day)

    def _dated(self, text: str) -> str:
        """The text with the month put to days that go without one."""
        return in_month(text, self._month) if self._month else text

    def _first_day(self, text: str) -> date | None:
        mentions = find_dates(self._dated(text), self.today, self._anchor())
        return mentions[0].day if mentions else None

    def _anchor(self, apart: Ask | None = None) -> date | None:
        """The day that "the day before" looks at: one just named, that of the latest booking,
        of anything dated, or the last talked of.
        """
        dated = [ask for ask in self.asks if ask.due]
        bookings = [ask for ask in dated if ask.kind == "booking"] or dated
        return (
            self._here
            or (apart and apart.due)
            or (bookings[-1].due if bookings else self._lately)
        )

    def _keep_day(self, text: str) -> date | None:
        """The day these words name; a bare weekday that fits the day talked of is that day."""
        known = self._anchor()
        named = find_dates(self._dated(text), self.today, known)
        if not named:
            return None
        fits = (
            named[-1].weekday_only
            and known
            and known.weekday() == named[-1].day.weekday()
        )
        self._lately = known if fits else named[-1].day
        return self._lately

    def _day_of_occasion(self, clause: Clause) -> date | None:
        """ "It's her birthday on Sunday, order her something nice." """
        told = [
            other
            for other in self._before
            if other.seq == clause.seq and cues.OCCASION.search(other.text)
        ]
        return self._first_day(told[-1].text) if told else None

    def _brought_up(self, clause: Clause, ask: Ask) -> list[Clause]:
        """ "I had a cleaning in April.

        Could you move that?": what the turn brought up before these words and that is not the
        request.
        """
        return [
            other
            for other in self._before
            if other.seq == clause.seq > ask.told_at
            and other is not clause
            and cues.STATES.match(other.body)
            and stems(other.body)
            and not stems(other.body) & ask.stems
            and not find_trigger(other.text)
        ]

    def _overlapping(self, about: frozenset[str], least: float = 0.5) -> Ask | None:
        fits = [
            (overlap_coefficient(about, ask.stems), ask.turns[-1], index)
            for index, ask in enumerate(self.asks)
            if overlap_coefficient(about, ask.stems) >= least
        ]
        return self.asks[max(fits)[2]] if fits else None

    def _same(self, trigger: Trigger, clause: Clause) -> Ask | None:
        """The request this trigger asks for once more, if it does."""
        kind, about = kind_of(trigger.act), stems(trigger.act)
        thing = stems(trigger.act.partition(" ")[2]) if trigger.is_order else about
        current = self._current
        if current and not current.is_stop and current.turns[-1] >= clause.seq - 2:
            other = (
                about - _CONTAINERS
                and not (about - _CONTAINERS) & current.stems
                and kind == "issue"
            )
            if (
                current in self._faults
                and (cues.SEND_SOMEONE.match(trigger.act) or kind == "issue")
                and kind != "message"
                and not other
            ):
                return current
            if current in self._faults and cues.REMEDY.match(trigger.act):
                current.kind = "task"
                return current
            if (
                kind == current.kind == "message"
                and cues.CALL_BACK.search(current.act)
                and cues.CALL_BACK.search(trigger.act)
            ):
                return current
            if (
                not about
                and kind == "reminder"
                and current.turns[-1] == clause.seq
                and current.kind == "task"
            ):
                current.kind = "reminder"
                return current
            if not about and kind != "reminder":
                return current
        return next(
            (
                ask
                for ask in reversed(self.asks)
                if _asks_again(
                    ask, kind, thing or about, same_turn=ask.turns[-1] == clause.seq
                )
            ),
            None,
        )

    def _drop_ignored_faults(self, text: str) -> None:
        for fault in self._faults:
            if (
                fault.from_fault
                and fault in self.asks
                and not TAKEN_UP.search(text)
                and "?" not in text
                and not is_promise(text)
            ):
                self.asks.remove(fault)

    def _keep_faults(self) -> None:
        """Those the agent took up are requests like any other."""
        self._faults = [fault for fault in self._faults if fault in self.asks]
        for fault in self._faults:
            fault.from_fault = False

    def _forget_everything(self) -> None:
        self.asks.clear()
        self._current = None
        self._before = []
        self._told = []


def _asks_again(
    ask: Ask, kind: RequestKind, about: frozenset[str], *, same_turn: bool
) -> bool:
    """Whether an act is the same request in other words: "shut the account, close the account"."""
    if kind == "reminder" or (kind != ask.kind and not {kind, ask.kind} <= _OF_WORK):
        return False
    if kind == ask.kind == "issue" and about and about <= ask.stems:
        return True
    known = stems(ask.act)
    if about - _CONTAINERS and known - _CONTAINERS:
        about, known = about - _CONTAINERS, known - _CONTAINERS
    return overlap_coefficient(about, known) >= (
        0.5 if kind == ask.kind or same_turn else 0.75
    )
