"""Words that sound like a new request and only fill in the one being talked about."""

from aftercall.llm.rules import cues
from aftercall.llm.rules.asks import Ask
from aftercall.llm.rules.memo import remember
from aftercall.llm.rules.promises import is_promise
from aftercall.llm.rules.sentences import Clause
from aftercall.llm.rules.stems import stems
from aftercall.llm.rules.triggers import Trigger

_NEAR = 4  # turns after which "it" may well be something else


def only_adds(current: Ask, trigger: Trigger, clause: Clause, said: str) -> bool:
    """`said` is what the agent said last."""
    if current.is_stop or clause.seq - current.turns[-1] > _NEAR:
        return False
    to_them = cues.TO_THEM.match(trigger.act) and (
        current.kind == "message" or clause.seq == current.turns[-1] or is_promise(said)
    )
    if (
        cues.ADD_ON.match(trigger.act)
        and current.kind in ("task", "booking")
        and not cues.ON_FILE.search(trigger.act)
    ):
        return True
    if (
        current.is_done
        and cues.ENDED.match(current.act)
        and cues.SENDS.match(trigger.act)
        and trigger.act.split()[0].lower() not in current.act.lower()
    ):
        return False
    if to_them or cues.ANAPHOR.match(trigger.act):
        return True
    asked = (
        "?" in said
        and current.turns[0] < clause.seq
        and not cues.ANYTHING_ELSE.search(said)
        and not cues.OPENS.search(said)
    )
    return asked and (
        trigger.is_fragment
        or (_answers(trigger, clause) and not cues.STARTS_NEW.match(clause.text))
    )


def says_where_to(trigger: Trigger, said: str) -> bool:
    """ "I'll email the confirmation." "Send it to mine.": how it is to come, not that it should."""
    return bool(
        cues.SENDS_THAT.match(trigger.act)
        and cues.IN_TOUCH.search(said)
        and (is_promise(said) or "?" in said)
    )


def _answers(trigger: Trigger, clause: Clause) -> bool:
    wishes = cues.WISH.match(clause.body) and cues.PLAIN_THING.match(trigger.act)
    instructs = (
        trigger.is_order
        and cues.INSTRUCTS.match(trigger.act)
        and not cues.ON_LIST.search(trigger.act)
    )
    return bool(wishes or instructs)


def says_how_to_reach(trigger: Trigger, said: str, before: list[Clause]) -> bool:
    """ "Don't ring. Email me, the college one.": by which way, not that anybody should."""
    if not cues.REACH_ME.match(trigger.act):
        return False
    return bool(is_promise(said) and cues.REACHES.search(said)) or any(
        cues.NOT_THAT_WAY.search(other.text) for other in before
    )


@remember
def is_slight(body: str) -> bool:
    """Whether words near a request add nothing to it."""
    return bool(cues.SMALL_TALK.search(body) or cues.SLIGHT.match(body)) or not stems(
        body
    )


def replaces(
    current: Ask, trigger: Trigger, clause: Clause, before: list[Clause]
) -> bool:
    """ "The small car won't do.

    Give me a seven seater.": what was asked for gives way to another thing of its kind.
    """
    if (
        current.kind not in ("booking", "task")
        or clause.seq - current.turns[-1] > 2
        or not cues.WANTS_THING.match(trigger.act)
    ):
        return False
    spoken = [other for other in before if other.seq == clause.seq]
    unfit = [
        match["what"]
        for other in spoken
        if (match := cues.UNFIT.search(other.text))
        and stems(match["what"]) & stems(current.act)
    ]
    if not unfit and not cues.INSTEAD.search(clause.whole):
        return False
    current.denied += [" ".join(what.split()[-2:]) for what in unfit]
    current.replace_act(trigger.act, trigger.words, clause.seq)
    return True
