"""Who wants what, turn by turn: requests are raised, filled in, corrected, accepted and called
off as the call goes on.
"""

import re
from datetime import date

from aftercall.llm.rules import cues
from aftercall.llm.rules.additions import (
    is_slight,
    only_adds,
    replaces,
    says_how_to_reach,
    says_where_to,
)
from aftercall.llm.rules.asks import Ask
from aftercall.llm.rules.corrections import REPAIRS, REPLACES, denied_words, outnumbered
from aftercall.llm.rules.dates import month_only, named_month
from aftercall.llm.rules.due import (
    is_about_request,
    must_be,
    opening_day,
    own_days,
    takes_day,
)
from aftercall.llm.rules.faults import is_absence, is_fault
from aftercall.llm.rules.kinds import kind_of
from aftercall.llm.rules.matters import is_bare_thing
from aftercall.llm.rules.names import asks_name
from aftercall.llm.rules.persons import person_in
from aftercall.llm.rules.reality import is_others_wish, is_real
from aftercall.llm.rules.secrets import is_confided
from aftercall.llm.rules.sentences import Clause
from aftercall.llm.rules.stances import stance
from aftercall.llm.rules.stems import stems
from aftercall.llm.rules.triggers import Trigger, find_trigger, is_own_doing
from aftercall.llm.rules.withdrawals import find_call_off
from aftercall.llm.rules.yielding import Yielding

_RUN_ON_WORDS = 30
_SHORT = 7  # words of an answer that says little else than a day
_NEAR = 4  # turns within which a day still belongs to the request talked of


class Floor(Yielding):
    def hear_caller(self, clauses: list[Clause]) -> None:
        if any(cues.WRONG_NUMBER.search(clause.text) for clause in clauses):
            self._forget_everything()
        self._agreed = None
        self._asks_house = any(
            cues.IS_THAT.match(clause.whole) for clause in clauses[:3]
        )
        answer = stance(clauses)
        if clauses:
            self._mishears(answer, clauses)
            self._answer_offer(answer, clauses)
            self._choose(clauses[0])
            if self._current is None and self._accepts(answer, clauses):
                self._accept_slot(clauses)
            self._answer_recheck(answer, clauses[0].seq)
            self._answer_proposal(answer, clauses)
            self._confirm(answer, clauses[0].seq)
        self._own_days = {
            day for clause in clauses for day in own_days(clause.body, self.today)
        }
        for index, clause in enumerate(clauses):
            self._used = False
            self._month = named_month(clause.text, self.today) or self._month
            if (
                index
                and answer
                and not self._asked_openly
                and cues.GOES_ON.match(clause.text)
            ):
                self._question = ""  # it has been answered
            if self._departs(clause, self._current):
                self._current, self._topic = None, clause
            self._hear(clause, clauses[index + 1 :])
            self._here = self._keep_day(clause.text) or self._here
            if is_others_wish(clause.text):
                self._hearsay = [*self._hearsay[-2:], clause]
            if is_real(clause) and self._muted != (clause.seq, clause.sentence):
                self._before = [*self._before[-3:], clause]
                self._keep_matter(clause)
                self._keep_told(clause)
                if REPAIRS.match(clause.text) or find_call_off(clause.text):
                    self._sound[clause.seq] = self._sound.get(clause.seq, [])[:-1]
                asks = (
                    clause.is_question
                    and not find_trigger(clause.whole)
                    and not cues.CONDITION.match(clause.body)
                )
                if not (
                    self._declined
                    or asks
                    or is_slight(clause.body)
                    or find_call_off(clause.text)
                ):
                    self._sound.setdefault(clause.seq, []).append(clause)
        keeps_open = (
            answer is None
            and bool(clauses)
            and (clauses[-1].is_question or self._echoes_offer(clauses))
        )
        self._offer = self._offer if keeps_open else None
        (
            self._proposals,
            self._question,
            self._declined,
            self._agent_dated,
            self._asked_when,
        ) = (
            [],
            "",
            False,
            False,
            False,
        )
        self._asks_matter = self._rechecked = None
        self._asked_after = next(
            (
                clause
                for clause in clauses
                if clause.is_question and cues.ASKED_AFTER.search(clause.body)
            ),
            None,
        )

    def _keep_told(self, clause: Clause) -> None:
        """Until the agent acts on it, nobody knows whether what is told is a request."""
        if (
            self._used
            or self._declined
            or clause.is_question
            or is_slight(clause.body)
            or asks_name(self._question)
        ):
            return
        if (
            len(clause.body.split()) > 2
            and not find_call_off(clause.text)
            and not cues.POINTS_ACT.match(clause.body)
        ):
            self._told = [*self._told[-5:], clause]

    def _keep_matter(self, clause: Clause) -> None:
        """The first thing the caller tells of is what later pronouns and slots are about."""
        plain = (
            len(clause.body.split()) > 3
            and bool(stems(clause.body))
            and not cues.SMALL_TALK.search(clause.body)
        )
        if self._matter is None and plain and cues.CONTEXT.search(clause.body):
            self._matter = clause

    def _hear(self, clause: Clause, after: list[Clause]) -> None:
        if self._is_dictated(clause) or self._answers_what_to_say(clause):
            if self._current:
                self._add(self._current, clause)
            return
        if self._is_muted(clause) or (
            asks_name(self._said) and cues.CALL_ME.match(clause.body)
        ):
            return
        if (stop := cues.STOP.match(clause.body)) and not (
            self._current and self._is_of_the_current(clause)
        ):
            self._raise(
                Ask("other", stop["what"], clause.text, [clause.seq], is_stop=True)
            )
            return
        if self._negates(clause) or is_confided(clause.text):
            return
        if self._thinks_better(clause, after):
            return
        # "tell the team there's no meeting": what is off is their matter
        tells = cues.ADDRESSED.match(clause.body)
        if (
            not tells
            and (call_off := find_call_off(clause.text))
            and self._call_off(self._aimed(call_off, clause), clause)
        ):
            return
        if self._gives_up(clause) or self._keeps(clause):
            return
        trigger = find_trigger(clause.text)
        if (
            self._current
            and REPLACES.search(clause.text)
            and not cues.MINE.match(clause.body)
            and (not trigger or cues.ANAPHOR.match(trigger.act))
        ):
            self._correct(self._current, clause)
        elif trigger and says_how_to_reach(
            trigger,
            self._said,
            [other for other in self._before if other.seq == clause.seq],
        ):
            self._fill_in(clause, after)
        elif trigger and any(is_own_doing(other.text) for other in after[:1]):
            self._called_off_at = clause.seq
        elif trigger:
            self._ask(trigger, clause)
        elif (
            self._current is None
            and REPLACES.search(clause.text)
            and (self._changes_standing(clause) or self._moves_last(clause))
        ):
            return
        elif (
            self._current is None
            and not trigger
            and clause.is_question
            and cues.INQUIRY.search(clause.body)
        ):
            self._inquiry = clause
        elif (
            not trigger
            and (is_fault(clause.body) or is_absence(clause.body, self._said))
            and not clause.is_question
        ):
            self._report(clause)
        elif (
            self._current is None and not trigger and self._names_matter(clause, after)
        ):
            self._name(clause)
        else:
            self._fill_in(clause, after)

    def _is_of_the_current(self, clause: Clause) -> bool:
        """Whether calling something off means the request talked of, not a thing that runs
        since before.
        """
        about = find_call_off(clause.text)
        return bool(
            about
            and self._current
            and (not about.stems or about.stems & self._current.stems)
        )

    def _changes_standing(self, clause: Clause) -> bool:
        """ "I've an appointment tomorrow at four. Could you make it later?" """
        told = [other for other in self._before if other.seq == clause.seq]
        standing = [
            other
            for other in told
            if cues.BOOKED.search(other.body) or other is self._topic
        ]
        if not standing or not (
            clause.is_question
            or cues.BIDS.match(clause.body)
            or cues.WISH.match(clause.body)
        ):
            return False
        booked = any(cues.BOOKED.search(other.body) for other in standing)
        ask = Ask(
            "booking" if booked else kind_of(clause.body),
            clause.body,
            clause.text,
            [clause.seq],
        )
        for other in standing:
            ask.add_detail(other.seq, other.text)
        ask.due = self._first_day(clause.text) or self._first_day(standing[-1].text)
        self._raise(ask)
        return True

    def _moves_last(self, clause: Clause) -> bool:
        """ "Anything else?", "Actually, make that Thursday": what was taken down last is put
        right, though nobody talks of it now.
        """
        last = self.asks[-1] if self.asks else None
        if last is None or clause.seq - max(last.turns) > _NEAR:
            return False
        if last.due is None or not self._first_day(clause.text):
            return last.renumber(clause.text, clause.seq)
        self._correct(last, clause)
        return True

    def _name(self, clause: Clause) -> None:
        ask = Ask(
            kind_of(clause.body),
            clause.body,
            clause.text,
            [clause.seq],
            due=self._first_day(clause.text),
        )
        for told in self._told[-2:]:
            ask.add_detail(told.seq, told.text)
        self._raise(ask)

    def _names_matter(self, clause: Clause, after: list[Clause]) -> bool:
        """ "What do you need?", "The main hall."; but in "my boss, she says…" the thing only
        opens a sentence.
        """
        matter = self._asks_matter
        goes_on = any(
            other.sentence == clause.sentence and cues.PRONOUN.match(other.text)
            for other in after[:1]
        )
        is_plain = not (
            clause.is_question or goes_on or cues.SMALL_TALK.search(clause.text)
        )
        return bool(
            matter and is_plain and is_bare_thing(clause.body.strip(" .,!"), matter)
        )

    def _ask(self, trigger: Trigger, clause: Clause) -> None:
        """Something is asked for: it changes or repeats what was asked before, or it is new."""
        current = self._current
        if (
            self._offer
            and self._offer.seq == clause.seq - 1
            and not self._declined
            and cues.ANAPHOR.match(trigger.act)
        ):
            self._accept_changed(self._offer, clause)
        elif current and (
            cues.WITH_PERSON.fullmatch(trigger.act)
            or self._tells_another(current, trigger, clause)
        ):
            self._correct(current, clause)
        elif says_where_to(trigger, self._said) and not (
            current and current.turns[-1] == clause.seq
        ):
            if current:
                self._add(current, clause)
        elif cues.RECORDS.match(trigger.act):
            self._record(trigger, clause)
        elif current and replaces(current, trigger, clause, self._before):
            self._current = current
        elif cues.PASSIVE.match(trigger.act) and (
            known := self._overlapping(stems(trigger.words.partition(" be ")[0]))
        ):
            self._correct(known, clause)
        elif (
            cues.ALL_DONE.match(trigger.act)
            and self.asks
            and (day := self._first_day(clause.text))
        ):
            self._date_all(day, clause.seq)
        elif (
            current and self._points_elsewhere(current, trigger, clause)
        ) or not self._asks_on(trigger, clause):
            self._open(trigger, clause)

    def _tells_another(self, current: Ask, trigger: Trigger, clause: Clause) -> bool:
        """ "Ask Hamza for the rota. No, not Hamza.

        Ask Lindiwe.": the message stays, whom it is for does not.
        """
        near = current.kind == "message" and current.turns[-1] >= clause.seq - 2
        return (
            near
            and bool(cues.TELLS_ONLY.match(trigger.act))
            and any(word[:1].isupper() for word in current.denied)
        )

    def _asks_on(self, trigger: Trigger, clause: Clause) -> bool:
        """Whether the words fill in the request talked of, or ask for one once more."""
        kind, current = kind_of(trigger.act), self._current
        if current and only_adds(current, trigger, clause, self._said):
            self._correct(current, clause)
            if kind == "message":
                self._dictated = (clause.seq, clause.sentence)
            return True
        known = self._same(trigger, clause)
        if known is None:
            return False
        known.from_fault = False
        self._add(known, clause)
        if known.kind not in ("note", "message") or cues.CALL_BACK.search(known.act):
            self._move(known, clause.text)
        self._current = known
        return True

    def _open(self, trigger: Trigger, clause: Clause) -> None:
        kind = kind_of(trigger.act)
        first, *others = (
            cues.AND_ALSO.split(trigger.act) if kind == "reminder" else [trigger.act]
        )
        ask = Ask(
            kind,
            first,
            trigger.words,
            [clause.seq],
            is_question=clause.is_question,
            is_soft=bool(cues.SOFT.match(first)),
        )
        if (
            cues.ANAPHOR.match(trigger.act)
            or cues.TELLS_ONLY.match(trigger.act)
            or not stems(trigger.act)
        ):
            self._lean_back(ask, clause)
            ask.kind = (
                kind
                if kind != "task"
                else kind_of(
                    " ".join((trigger.act, *(text for _, text in ask.details[:2])))
                )
            )
        else:
            for other in self._leading_up(clause):
                ask.denied += denied_words(other.text)
                ask.add_detail(other.seq, other.text)
        words = self._dated(f"{self._led} {first if others else clause.text}")
        named = opening_day(ask, words, self.today, self._anchor(), self._before)
        ask.due = named or self._day_around(ask, clause) or ask.due
        self._led = ""
        if kind in ("message", "note"):
            self._dictated = (clause.seq, clause.sentence)
            self._dictates_on = clause.seq if cues.DICTATION.search(clause.whole) else 0
        self._raise(ask)
        for further in others:
            self._raise(
                Ask(
                    kind,
                    further,
                    trigger.words,
                    [clause.seq],
                    due=self._first_day(further),
                )
            )

    def _day_around(self, ask: Ask, clause: Clause) -> date | None:
        """The day of the occasion it is for, of what the agent asked about, or of the question
        just before.
        """
        if (
            takes_day(ask)
            and ask.kind != "reminder"
            and (day := self._day_of_occasion(clause))
        ):
            return day
        if (
            takes_day(ask)
            and cues.THEN.search(self._question)
            and (day := self._first_day(self._said))
        ):
            return day
        before = self._before[-1] if self._before else None
        asked = (
            before
            and before.seq == clause.seq
            and before.is_question
            and not find_trigger(before.text)
        )
        return (
            self._first_day(before.text)
            if before and asked and not cues.MOVES.match(ask.act)
            else None
        )

    def _date_all(self, day: date, seq: int) -> None:
        """ "I want the lot done by Friday." """
        for ask in self.asks:
            if takes_day(ask) and (ask.due is None or ask is self._current):
                ask.move(day)
                ask.cite(seq)

    def _points_elsewhere(self, current: Ask, trigger: Trigger, clause: Clause) -> bool:
        """ "I had a cleaning in April.

        Could you move that?", "I can't come, tell Grace that": not the request before.
        """
        brought = self._brought_up(clause, current)
        if (addressed := cues.ADDRESSED.match(trigger.act)) and addressed[
            "who"
        ].lower() not in current.all_words:
            return bool(brought)
        before = self._before[-1] if self._before else None
        fronted = (
            before
            and (before.seq, before.sentence) == (clause.seq, clause.sentence)
            and cues.FRONTED.fullmatch(before.text)
        )
        if (
            fronted
            and cues.ANAPHOR.match(trigger.act)
            and not stems(fronted.group()) & stems(current.act)
        ):
            return True
        told = [
            other
            for other in brought
            if cues.CONTEXT.search(other.body) and len(stems(other.body)) > 1
        ]
        if cues.TO_THEM.match(trigger.act):
            someone = any(person_in(other.text) for other in brought)
            return bool(
                told
                or someone
                or (
                    brought
                    and current.kind != "message"
                    and not person_in(current.all_said)
                )
            )
        return bool(
            told and told[-1] is self._before[-1] and cues.ANAPHOR.match(trigger.act)
        )

    def _leading_up(self, clause: Clause) -> list[Clause]:
        """What the caller told in the same breath before asking: "I've got a sofa on order.

        It's the grey one. Can I change it?"
        """
        told: list[Clause] = []
        for other in reversed(self._before):
            if (
                other.seq != clause.seq
                or find_trigger(other.text)
                or find_call_off(other.text)
            ):
                break
            names = cues.CONTEXT.search(other.body) or cues.NEW_TOPIC.match(other.text)
            if not other.is_question and len(other.body.split()) > 2 and names:
                told.append(other)
        return told[::-1]

    def _record(self, trigger: Trigger, clause: Clause) -> None:
        """ "Log that as a bug": the matter is in the words before."""
        kind = kind_of(trigger.act)
        current = self._current
        if current and current.turns[-1] == clause.seq and current in self._faults:
            current.kind = (
                kind
                if kind != "task" or re.search(r"to[- ]?do|task", trigger.act, re.I)
                else current.kind
            )
            current.from_fault = False
            return
        if (
            current
            and current.turns[-1] >= clause.seq - 2
            and (not self._before or self._before[-1].seq != clause.seq)
        ):
            self._correct(current, clause)
            return
        if (
            current
            and self._before
            and current.turns[-1] == clause.seq
            and find_trigger(self._before[-1].text)
        ):
            current.kind = kind
            return
        ask = Ask(kind, trigger.act, trigger.words, [clause.seq])
        self._lean_back(ask, clause)
        self._raise(ask)

    def _report(self, clause: Clause) -> None:
        """A fault stands until the agent shows that nobody here takes it up."""
        about = stems(clause.body)
        is_new = cues.AND_ANOTHER.match(clause.text) and not self._overlapping(about)
        known = (
            None
            if is_new
            else next(
                (
                    ask
                    for ask in self._faults
                    if ask in self.asks and clause.seq - ask.turns[-1] <= 4
                ),
                None,
            )
        )
        current = self._current
        if (
            known is None
            and current
            and not is_new
            and current.turns[-1] == clause.seq
            and cues.SEES_TO.search(current.act)
        ):
            known = current
        if known or (known := self._overlapping(about, least=0.5)):
            self._add(known, clause)
            if known.kind != "issue" and known.due is None:
                known.due = self._first_day(clause.text)
            return
        fault = is_fault(clause.body)
        ask = Ask(
            "issue" if fault else "task",
            clause.body,
            clause.body,
            [clause.seq],
            from_fault=True,
        )
        ask.due = (
            None
            if fault
            else self._first_day(clause.text) or self._first_day(clause.whole)
        )
        if re.match(r"(?:it|she|he|they|that|this)\b", clause.body, re.I):
            self._lean_back(ask, clause)
        self._faults.append(ask)
        self._raise(ask)

    def _correct(self, ask: Ask, clause: Clause) -> None:
        if REPAIRS.match(clause.text):
            ask.drop_details(clause.seq)
        if ask.renumber(clause.text, clause.seq):
            self._current = ask
            return
        ask.denied += denied_words(clause.text) + outnumbered(
            clause.text, self._said, ask.all_said
        )
        self._move(ask, clause.text)
        self._add(ask, clause)
        self._current = ask

    def _fill_in(self, clause: Clause, after: list[Clause]) -> None:
        """Answers to what the agent asked, and what follows a request in the same breath."""
        answers = self._question and self._before and self._before[-1].seq != clause.seq
        if (cues.NEW_TOPIC.match(clause.text) and not answers) or (
            after and not self._question and cues.COUNTS_ON.fullmatch(clause.text)
        ):
            self._current = None
        ask = self._current
        if (
            self._leads_on(clause, after)
            or ask is None
            or (ask.is_stop and not self._question)
        ):
            return
        if REPAIRS.match(clause.text):
            ask.drop_details(clause.seq)
        if ask.renumber(clause.text, clause.seq):
            self._current = ask
            return
        ask.denied += denied_words(clause.text)
        if ask.due and (other := month_only(clause.text, ask.due)):
            ask.move(other)
        same_breath = ask.turns[-1] == clause.seq
        if cues.DATED_FOR.match(clause.body) and clause.seq - ask.turns[-1] <= 2:
            self._move(ask, clause.text)
        body = clause.body
        if self._may_date(ask, clause):
            self._move(ask, clause.text)
            self._agreed = ask if ask.due in self._offered_days else self._agreed
        if not (same_breath or self._question or self._proposals):
            return
        if (
            not clause.is_question
            and not is_slight(body)
            and not self._declined
            and not asks_name(self._question)
        ):
            self._add(ask, clause)

    def _may_date(self, ask: Ask, clause: Clause) -> bool:
        """Whether a day in these words is the day of the request."""
        if ask is self._agreed and not (
            REPAIRS.match(clause.text)
            or REPLACES.search(clause.text)
            or cues.PREFERS.search(clause.text)
        ):
            return False
        body = clause.body
        asked_when = self._agent_dated or self._asked_when
        told_of_else = (
            not asked_when and not self._question and self._brought_up(clause, ask)
        )
        if cues.ASKS_HOURS.search(body) or (told_of_else and not must_be(body)):
            return False
        if (
            not self._asked_when
            and (other := cues.DATED_THING.match(body))
            and stems(other["thing"]) - ask.stems
        ):
            return False
        about_matter = ask.kind == "issue" or (
            ask.kind == "message" and not cues.CALL_BACK.search(ask.act)
        )
        if (
            not clause.is_question
            and len(body.split()) <= _SHORT
            and cues.DAY_FIRST.match(body)
            and is_about_request(body, self.today, self._anchor(ask))
        ):
            return clause.seq - ask.turns[-1] <= _NEAR
        if must_be(body) and is_about_request(body, self.today, self._anchor(ask)):
            return clause.seq - ask.turns[-1] <= 2 * _NEAR
        if (
            (about_matter and not asked_when)
            or clause.seq - ask.turns[-1] > _NEAR
            or not is_about_request(body, self.today, self._anchor(ask))
        ):
            return False
        short = len(body.split()) <= _SHORT
        if ask.due is None:
            return short or not clause.is_question
        answers = (
            ask.turns[-1] == clause.seq or bool(self._question) or self._agent_dated
        )
        return answers and (
            short
            or (
                not clause.is_question
                and bool(cues.HEAD.match(body) or self._asked_when)
            )
        )

    def _leads_on(self, clause: Clause, after: list[Clause]) -> bool:
        """ "In two weeks, remind me": the day belongs to what comes next in the sentence."""
        rest = [other for other in after if other.sentence == clause.sentence]
        dated = len(clause.text.split()) <= 6 and bool(self._first_day(clause.text))
        leads = any(find_trigger(other.text) for other in (rest if dated else rest[:1]))
        if leads and dated:
            self._led = f"{self._led} {clause.text}"
        return leads
