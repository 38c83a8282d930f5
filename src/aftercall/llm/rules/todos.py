"""What callers say they will do themselves."""

import re
from collections.abc import Iterator

from aftercall.llm.rules.cue import Cue
from aftercall.llm.rules.facts import Heard, draft
from aftercall.llm.rules.reality import is_real
from aftercall.llm.rules.sentences import Clause
from aftercall.llm.rules.triggers import find_trigger
from aftercall.model.reading import FactDraft

_WILL = Cue(
    r"\b(?:i['’]ll|i will|i['’]m going to|i['’]m gonna|we['’]ll|we['’]re going to|i(?:['’]d)? "
    "(?:told|"
    r"promised) \w+ (?:that )?i['’]d|i said i['’]d|let me) (?:just |also |then |go and |try "
    "to |try and |have to |"
    r"need to )*(?P<act>\w+(?: .+|[.!]?$))",
)
_MUST = Cue(
    r"\b(?:i|we)(?:['’]ve got|['’]ve still got| have got| have| need| must| gotta| still need"
    "| still have| also need|"
    r" should(?: probably)?) (?:to )?(?P<act>[a-z]+ (?!to\b).+)",
)
_MINE = Cue(
    r"\b(?:that['’]s (?:on me|mine|my job|my responsibility)|i['’]ll (?:do|handle|sort|take "
    "care of) (?:that|it)|"
    r"leave that (?:to|with) me)\b",
)
_NO_TODO = Cue(
    "^(?:be|to|take (?:it|that|the|a|two|one|your)|have (?:the|a|to|it|that|one|two|my)|wait"
    r"|come\b(?! (?:back|in) (?:and|"
    r"to))|remember|see\b|let (?:you|me)|think|hold|get (?:it|that|the|a|going|off|back to "
    "(?:work|it))|tell (?:you|him|her|"
    r"them)|say|do (?:it|that|this)|go\b(?! (?:to|and|through)|\w+ to)|go (?:for|with|ahead)"
    "|pay (?:by|with|cash)|need|want|"
    "stay|keep (?:it|that|the|my)|never|not|hang|speak|talk (?:to you|later|soon)|leave (?:it"
    r"|that)|ask\b(?! (?:my|him|her|"
    r"them|the))|miss|spell|give you (?:a|my|the)|"
    r"pass\b|live|love|like|know|appreciate|sit|stick|try (?:it|that|again)|look forward"
    "|explain|start|use|repeat|read|"
    r"check\b(?! (?:with|my|the))|run\b|know|admit|make it|put you|find (?:it|that)|hear"
    "|believe|feel|end|just|no|one|only|"
    r"look|been|an?|the|my|this|enough|about|all|got|some|two|three|no|it|you|already|it)\b",
)
_ALONE = re.compile(r"(?:collect|walk|drive|cycle)\b", re.I)
_EVER = Cue(r"\b(?:if|maybe|might|probably)\b")


def find_todos(turns: list[Heard]) -> Iterator[FactDraft]:
    for heard in turns:
        for index, clause in enumerate(heard.clauses):
            if _is_todo(clause, heard.clauses[index + 1 : index + 3]) and (
                made := draft(clause, heard.clauses, "action_item", 0.75)
            ):
                yield made


def _up_to(clause: Clause) -> str:
    """The sentence up to the end of the clause: a condition in front of it still holds for it."""
    return clause.whole[: clause.whole.find(clause.text) + len(clause.text)]


def _is_todo(clause: Clause, after: list[Clause]) -> bool:
    text = clause.text
    if (
        clause.is_masked
        or clause.is_question
        or not is_real(clause)
        or _EVER.search(_up_to(clause))
    ):
        return False
    claimed = any(_MINE.search(other.text) for other in after)
    if (match := _WILL.search(text)) and not _NO_TODO.match(match["act"]):
        return len(match["act"].split()) >= 2 or bool(_ALONE.match(match["act"]))
    match = _MUST.search(text)
    return bool(
        match
        and not _NO_TODO.match(match["act"])
        and (
            claimed
            or (
                find_trigger(text) is None
                and re.search(r"\b(?:to|must|gotta|should)\b", text)
            )
        )
    )
