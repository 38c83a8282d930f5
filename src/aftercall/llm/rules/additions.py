"""Words that sound like a new request and only fill in the one being talked about."""

from aftercall.llm.rules import cues
from aftercall.llm.rules.asks import Ask
from aftercall.llm.rules.promises import is_promise
from aftercall.llm.rules.sentences import Clause
from aftercall.llm.rules.triggers import Trigger

_NEAR = 4  # turns after which "it" may well be something else


def only_adds(current: Ask, trigger: Trigger, clause: Clause, said: str) -> bool:
    """`said` is what the agent said last."""
    if current.is_stop or clause.seq - current.turns[-1] > _NEAR:
        return False
    to_them = cues.TO_THEM.match(trigger.act) and (current.kind == "message" or clause.seq == current.turns[-1] or is_promise(said))
    if to_them or cues.ANAPHOR.match(trigger.act) or _says_how_to_reach(trigger, said):
        return True
    asked = "?" in said and not cues.ANYTHING_ELSE.search(said) and not cues.OPENS.search(said)
    return asked and (trigger.is_fragment or (_answers(trigger, clause) and not cues.STARTS_NEW.match(clause.text)))


def _answers(trigger: Trigger, clause: Clause) -> bool:
    wishes = cues.WISH.match(clause.body) and cues.PLAIN_THING.match(trigger.act)
    instructs = trigger.is_order and cues.INSTRUCTS.match(trigger.act)
    return bool(wishes or instructs)


def _says_how_to_reach(trigger: Trigger, said: str) -> bool:
    return bool(is_promise(said) and cues.REACHES.search(said) and cues.REACH_ME.match(trigger.act))
