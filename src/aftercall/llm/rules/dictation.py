"""Words that are not the caller's own wish: dictated to somebody else, supposed, or wished by
others.
"""

from aftercall.llm.rules import cues
from aftercall.llm.rules.asks import Ask
from aftercall.llm.rules.exchange import Exchange
from aftercall.llm.rules.kinds import kind_of
from aftercall.llm.rules.reality import is_real
from aftercall.llm.rules.sentences import Clause
from aftercall.llm.rules.triggers import find_trigger

_RUN_ON_WORDS = 30


class Dictation(Exchange):
    def _is_muted(self, clause: Clause) -> bool:
        """What others wish and what is only supposed colours the rest of its sentence."""
        place = (clause.seq, clause.sentence)
        if not is_real(clause):
            self._refuse(clause.text)
            self._muted = place if len(clause.whole.split()) <= _RUN_ON_WORDS else None
            return True
        if cues.IF_NOT_REACHED.search(clause.whole):
            return True
        return self._muted == place and not cues.TURNS.match(clause.text)

    def _is_dictated(self, clause: Clause) -> bool:
        if (
            self._current
            and self._current.kind in ("message", "note")
            and clause.seq == self._current.turns[-1]
            and cues.DICTATES.match(clause.body)
        ):
            self._dictated = (clause.seq, clause.sentence)
            return True
        if self._current and self._dictates_on == clause.seq:
            return True
        if self._current and self._opens_note(self._current, clause):
            self._dictated = (clause.seq, clause.sentence)
            return True
        if self._dictated != (clause.seq, clause.sentence):
            return False
        if (
            self._current
            and self._current.kind == "message"
            and (asked := cues.THEY_ARE_ASKED.match(clause.body))
        ):
            if cues.CALL_BACK.search(asked["act"]) or cues.BELL.search(asked["act"]):
                self._current.due = self._current.due or self._first_day(clause.text)
            return True
        trigger = find_trigger(clause.text)
        speaks_up = trigger and (
            not trigger.is_order
            or cues.ALSO.search(clause.text)
            or cues.TO_THE_AGENT.search(trigger.act)
            or kind_of(trigger.act) == "reminder"
        )
        runs_on = len(clause.whole.split()) > _RUN_ON_WORDS and "," not in clause.whole
        if (
            trigger
            and runs_on
            and (
                kind_of(trigger.act) == "reminder"
                or (trigger.is_order and cues.THEN_ALSO.match(clause.text))
            )
        ):
            return False
        return not (cues.NEW_POINT.match(clause.text) and speaks_up)

    def _opens_note(self, ask: Ask, clause: Clause) -> bool:
        """ "Put a note down from the sponsor call.

        Yusra said they'll renew.": the sentence after says what is noted.
        """
        follows = (
            self._dictated == (clause.seq, clause.sentence - 1)
            and ask.turns == [clause.seq]
            and not ask.details
        )
        return (
            follows
            and ask.kind == "note"
            and not cues.SAYS_WHAT.search(ask.act)
            and not find_trigger(clause.text)
        )

    def _answers_what_to_say(self, clause: Clause) -> bool:
        """Whatever answers "what's the message?" is the message, wishes and all."""
        ask = self._current
        asked = cues.WHAT_TO_SAY.search(self._question)
        if not (ask and asked):
            return False
        trigger = find_trigger(clause.text)
        return ask.kind in ("message", "note") or not (
            trigger and not trigger.is_order and cues.STARTS_NEW.match(clause.text)
        )
