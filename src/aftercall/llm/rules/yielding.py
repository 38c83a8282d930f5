"""What a caller gives up: called off, thought better of, put off, left for another matter, kept
after all.
"""

from aftercall.llm.rules import cues
from aftercall.llm.rules.asks import Ask, tidy
from aftercall.llm.rules.corrections import REPLACES
from aftercall.llm.rules.dictation import Dictation
from aftercall.llm.rules.promises import is_promise
from aftercall.llm.rules.sentences import Clause, split_sentences
from aftercall.llm.rules.stems import stems
from aftercall.llm.rules.triggers import find_trigger
from aftercall.llm.rules.withdrawals import (
    CallOff,
    find_call_off,
    find_earlier,
    find_negated,
    is_put_off,
)

_LETS_BE = ("forget", "scratch", "never", "skip", "don", "leave", "hold", "keep", "let")


class Yielding(Dictation):
    def _departs(self, clause: Clause, ask: Ask | None) -> bool:
        """ "And the second tasting, we never had that": something else is brought up, though
        nothing is asked for yet.
        """
        goes_on = cues.GOES_ON.match(clause.text)
        if (
            not (clause.is_question or goes_on)
            or self._question
            or self._dictated == (clause.seq, clause.sentence)
        ):
            return False
        if self._proposals and not goes_on:
            return False
        about = stems(clause.text)
        return (
            bool(about - stems(self._said))
            and (ask is None or (ask.turns[-1] < clause.seq and not about & ask.stems))
            and not cues.POINTS_BACK.search(clause.body)
            and not (
                find_trigger(clause.text)
                or REPLACES.search(clause.text)
                or find_call_off(clause.text)
            )
            and (len(about) > 1 or not self._first_day(clause.text))
        )

    def _negates(self, clause: Clause) -> bool:
        """ "Don't cancel": the request that has this verb is called off, whichever was last."""
        negated = find_negated(clause.text)
        if negated is None:
            return False
        verb, about = negated
        fits = [
            ask
            for ask in self.asks
            if ask.act.lower().startswith(verb) and (not about or about & ask.stems)
        ]
        if fits:
            self._withdraw(fits[-1], clause.seq)
            return True
        dropped = [ask.drop_saying(verb) for ask in self.asks]
        return any(dropped)

    def _thinks_better(self, clause: Clause, after: list[Clause]) -> bool:
        """ "Well, hang on, no.", with nothing put in its place."""
        ask = self._current
        if (
            ask is None
            or ask.is_stop
            or self._question
            or not cues.HALTS.fullmatch(clause.text)
        ):
            return False
        if any(
            find_trigger(other.text)
            or REPLACES.search(other.text)
            or self._first_day(other.text)
            or find_call_off(other.text)
            for other in after[:3]
        ):
            return False
        self._withdraw(ask, clause.seq)
        return True

    def _gives_up(self, clause: Clause) -> bool:
        """ "I'll ring you back" to a slot or a price that was put forward."""
        ask = self._current
        if (
            ask is None
            or ask.due
            or ask.is_stop
            or (ask.kind == "message" and cues.REACHES.search(clause.text))
            or not self._said
            or not is_put_off(clause.text)
        ):
            return False
        if (
            ask.turns[-1] < clause.seq - 2
            or cues.CONFIRMS.search(self._said)
            or is_promise(self._said)
        ):
            return False
        self._withdraw(ask, clause.seq)
        return True

    def _keeps(self, clause: Clause) -> bool:
        """ "Cancel the review. No, keep it." """
        ask = self._current
        if (
            ask is None
            or not cues.ENDS.match(ask.act)
            or ask.turns[-1] < clause.seq - 2
        ):
            return False
        kept = cues.KEEPS.search(clause.body)
        if not kept or (
            stems(kept["what"]) and not stems(kept["what"]) & stems(ask.act)
        ):
            return False
        self._withdraw(ask, clause.seq)
        return True

    def _aimed(self, call_off: CallOff, clause: Clause) -> CallOff:
        """ "The tubes I ordered, leave those off": the thing meant stands in front."""
        if call_off.scope != "last" or not self._before:
            return call_off
        before = self._before[-1]
        if (before.seq, before.sentence) != (
            clause.seq,
            clause.sentence,
        ) or find_trigger(before.text):
            return call_off
        earlier = find_earlier(before.text)
        if cues.CONDITION.match(before.body):
            return call_off
        if earlier or any(stems(before.text) & stems(ask.act) for ask in self.asks):
            return CallOff(
                "named",
                stems(before.text),
                tidy(before.text),
                earlier,
                call_off.cancels_standing,
            )
        return call_off

    def _call_off(self, call_off: CallOff, clause: Clause) -> bool:
        """Whether the words called something off, or at least ask for nothing."""
        # "cancel Tellix" says once more what was asked, if that was to cancel it
        ends = cues.CANCELS.search(clause.text)
        standing = [
            ask
            for ask in self.asks
            if not ask.is_stop and not (ends and cues.ENDS.match(ask.act))
        ]
        if call_off.scope == "all":
            for ask in standing:
                self._withdraw(ask, clause.seq)
            return bool(standing)
        if call_off.scope == "last" and (
            self._repeats_call_off(clause)
            or self._muted == (clause.seq, clause.sentence)
        ):
            return True
        if call_off.scope == "last":
            target = self._meant_by(clause, standing)
            hearsay = self._hearsay and self._hearsay[-1].seq == clause.seq
            if (
                target
                and hearsay
                and clause.seq > target.told_at
                and cues.BARE_NO.fullmatch(clause.text)
            ):
                return True
            asked = self._asked_after
            if (
                target
                and asked
                and self._agent_seq - 1 == asked.seq > target.told_at
                and not cues.CANCELS.search(clause.text)
            ):
                return True
            if (
                target
                and not cues.CANCELS.search(clause.text)
                and self._turned_to_else(clause, target)
            ):
                self._told, self._before, self._topic = [], [], None
                return True
            if target and (brought := self._brought_up(clause, target)):
                booked = any(cues.ON_THE_BOOKS.search(other.text) for other in brought)
                if cues.TAKES_OFF.search(clause.text) or (
                    cues.CANCELS.search(clause.text) and booked
                ):
                    return False
                if cues.IGNORE.search(clause.text) or target.turns[-1] < clause.seq - 2:
                    self._told, self._before = [], []
                    return True
            if (
                target
                and not self._declined
                and not call_off.cancels_standing
                and not self._refuses_suggestion(target)
            ):
                self._withdraw(target, clause.seq)
            elif target is None:
                self._told, self._before = [], []
            return not call_off.cancels_standing
        named = [ask for ask in standing if stems(ask.act) & call_off.stems]
        part = next((ask for ask in named if ask.drop_part(call_off.stems)), None)
        if part:
            part.cite(clause.seq)
            return True
        if named:
            self._withdraw(
                max(
                    named,
                    key=lambda ask: (
                        len(stems(ask.act) & call_off.stems),
                        ask.turns[-1],
                    ),
                ),
                clause.seq,
            )
            return True
        if call_off.names_earlier:
            self._withdraw(
                Ask("other", call_off.what, call_off.what, [clause.seq]), clause.seq
            )
            return True
        for ask in standing:
            ask.details = [
                (seq, text)
                for seq, text in ask.details
                if not stems(text) & call_off.stems
            ]
        return find_trigger(clause.text) is None or clause.body.lower().startswith(
            _LETS_BE
        )

    def _turned_to_else(self, clause: Clause, target: Ask) -> bool:
        """ "The Frankfurt trip, I don't know yet.

        Leave that.": something that was never asked for is let be.
        """
        fronted = [
            other
            for other in self._before
            if other.seq == clause.seq > target.told_at
            and cues.FRONTED.fullmatch(other.text)
        ]
        topic = (
            [self._topic] if self._topic and self._topic.seq > target.turns[-1] else []
        )
        return any(
            stems(other.text) and not stems(other.text) & target.stems
            for other in (*fronted, *topic)
        )

    def _meant_by(self, clause: Clause, standing: list[Ask]) -> Ask | None:
        """What "leave that" leaves: the request its sentence names, or the agent's last words,
        or the one talked of.
        """
        current = self._current
        fresh = (
            current in standing
            and current is not None
            and current.turns[-1] == clause.seq
        )
        for about in (stems(clause.whole), frozenset() if fresh else stems(self._said)):
            named = [ask for ask in standing if stems(ask.act) & about]
            if self._current in named:
                return self._current
            if named:
                return max(
                    named, key=lambda ask: (len(stems(ask.act) & about), ask.turns[-1])
                )
        return (
            self._current
            if self._current in standing
            else (standing[-1] if standing else None)
        )

    def _repeats_call_off(self, clause: Clause) -> bool:
        """ "So leave the flight?" "Yeah, leave it.": it is off already."""
        lately = bool(self.withdrawn) and self._called_off_at >= clause.seq - 2
        about = stems(self._said)
        return self._called_off_at == clause.seq or (
            lately
            and (
                bool(about & self.withdrawn[-1].stems)
                or not any(about & ask.stems for ask in self.asks)
            )
        )

    def _refuses_suggestion(self, ask: Ask) -> bool:
        """ "Don't do that" to a suggestion of the agent's own leaves the request alone."""
        last = split_sentences(self._said)[-1:]
        suggests = any(
            sentence.endswith("?") or is_promise(sentence) for sentence in last
        )
        return (
            suggests
            and bool(stems(last[0]))
            and not cues.POINTS.search(last[0])
            and not stems(last[0]) & ask.stems
            and ask.turns[-1] < self._agent_seq
        )
